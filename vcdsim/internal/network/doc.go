// SPDX-License-Identifier: Apache-2.0

// Package network handles the requests for networks of VDCs, groups of VDCs, and the resources of NSX that they use.
// Package gateways handles the edge gateways.
package network
