// SPDX-License-Identifier: Apache-2.0

// Package loadbalancing answers for NSX ALB: its controllers and clouds, service engine groups, pools and virtual
// services, and their health.
package loadbalancing
