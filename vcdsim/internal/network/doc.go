// SPDX-License-Identifier: Apache-2.0

// Package network answers for networks of VDCs and groups of VDCs, edge gateways with their NAT rules and firewalls,
// external networks and IP Spaces.
package network
