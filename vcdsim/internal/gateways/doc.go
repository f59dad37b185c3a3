// SPDX-License-Identifier: Apache-2.0

// Package gateways handles the requests for edge gateways with their NAT rules, routes and other settings, for external
// networks, and for IP Spaces with their allocations. Package network handles the networks behind the gateways.
package gateways
