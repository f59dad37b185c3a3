// SPDX-License-Identifier: Apache-2.0

// Package gateways answers for edge gateways with their NAT rules, routes and other settings, for external networks,
// and for IP Spaces with what is allocated from them.
package gateways
