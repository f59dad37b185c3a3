// SPDX-License-Identifier: Apache-2.0

// Package loadbalancing handles the requests for NSX ALB: its controllers, clouds and service engine groups, and pools
// and virtual services with their health. It does not forward traffic.
package loadbalancing
