// SPDX-License-Identifier: Apache-2.0

// Package firewalls handles the requests for the firewalls of edge gateways and of VDC groups, for firewall groups, and
// for application port profiles. It does not know the traffic that a firewall would filter.
package firewalls
