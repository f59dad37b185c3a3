// SPDX-License-Identifier: Apache-2.0

// Package firewalls answers for the firewalls of edge gateways and of groups of VDCs, firewall groups, and
// application port profiles.
package firewalls
