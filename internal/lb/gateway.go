// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// A Gateway is an edge gateway.
type Gateway struct {
	ID, Name string
	// Ranges are the external addresses that the gateway has for itself, of all uplinks.
	Ranges []Range
	// Used are the external addresses that VCD lists as used, by the owner too.
	Used []UsedAddress
	// Spaces are the IP Spaces whose floating IPs the gateway can use; empty without IP Spaces.
	Spaces []Space
	// UsesSpaces is set if there are some. It is always known.
	UsesSpaces bool
	// Groups are the service engine groups assigned to the gateway.
	Groups []EngineGroup
}

// spaceOf returns the IP Space of an address.
func (g Gateway) spaceOf(a netip.Addr) (Space, bool) {
	i := slices.IndexFunc(g.Spaces, func(s Space) bool { return inRanges(s.Ranges, a) || slices.Contains(s.Free, a) })
	if i < 0 {
		return Space{}, false
	}
	return g.Spaces[i], true
}

// A UsedAddress is an address that VCD lists as used, for what, in VCD's words (PRIMARY_IP, SNAT, DNAT,
// Load_Balancer, …).
type UsedAddress struct {
	Address  netip.Addr
	Category string
}

// A Space is an IP Space.
type Space struct {
	ID, Name string
	// Ranges of its floating IPs.
	Ranges []Range
	// Free are some that could be allocated, in order.
	Free []netip.Addr
	// Full is set if the organization may have no more of its addresses.
	Full bool
}

// An EngineGroup is a service engine group assigned to the gateway.
type EngineGroup struct {
	Object
	// Deployed virtual services, and how many are allowed.
	Deployed, Max int
}

// Capabilities are what the gateway, the version of the API and the rights of the user allow.
type Capabilities struct {
	// SharedVIP: several virtual services may have one address (VCD 10.4 and later).
	SharedVIP bool
	// MemberSets: the members of a pool may be an IP set.
	MemberSets bool
	// PreserveClientIP: virtual services may be transparent.
	PreserveClientIP bool
	// MovesSharedVIP: a virtual service that shares its address can be given another one; false once VCD has refused.
	MovesSharedVIP bool
	// IPv6: virtual services may have IPv6 addresses. OnlyIPv6: they may have no others.
	IPv6, OnlyIPv6 bool
	// Disabled: the edge gateway has no load balancer; true only if that is known.
	Disabled bool
	// Premium: the load balancer has the feature set PREMIUM, not STANDARD; false only if that is known.
	Premium bool
	// SourceRanges: rules of the firewall may be created and deleted one by one.
	SourceRanges bool
	// MaxMembers of a pool without an IP set; 0 has no limit.
	MaxMembers int
}
