// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// A Gateway is an edge gateway.
type Gateway struct {
	ID, Name string
	// Ranges are the external addresses that belong to the gateway itself, of all uplinks.
	Ranges []Range
	// Used are the external addresses that VCD lists as used, also by the owner.
	Used []UsedAddress
	// Spaces are the IP Spaces whose floating IPs the gateway can use; empty without IP Spaces.
	Spaces []Space
	// UsesSpaces is set if there are IP Spaces. It is always known.
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

// A UsedAddress is an address that VCD lists as used. Category is the purpose in VCD's terms (PRIMARY_IP, SNAT, DNAT,
// Load_Balancer, …).
type UsedAddress struct {
	Address  netip.Addr
	Category string
}

// A Space is an IP Space.
type Space struct {
	ID, Name string
	// Ranges are the ranges of its floating IPs.
	Ranges []Range
	// Free are some addresses that could be allocated, in order.
	Free []netip.Addr
	// Full is set if the quota of the organization is exhausted.
	Full bool
}

// An EngineGroup is a service engine group assigned to the gateway.
type EngineGroup struct {
	Object
	// Deployed is the number of virtual services, Max the maximum number.
	Deployed, Max int
}

// Capabilities are the operations that the gateway, the API version and the rights of the user allow.
type Capabilities struct {
	// SharedVIP: several virtual services may share an address (VCD 10.4 and later).
	SharedVIP bool
	// MemberSets: an IP set may contain the members of a pool.
	MemberSets bool
	// PreserveClientIP: virtual services may be transparent.
	PreserveClientIP bool
	// MovesSharedVIP: the address of a virtual service that shares it can be changed; false after VCD refused that.
	MovesSharedVIP bool
	// IPv6: virtual services may have IPv6 addresses. OnlyIPv6: they may have only IPv6 addresses.
	IPv6, OnlyIPv6 bool
	// Disabled: the edge gateway has no load balancer; true only if that is certain.
	Disabled bool
	// Premium: the load balancer has the feature set PREMIUM, not STANDARD; false only if that is certain.
	Premium bool
	// SourceRanges: firewall rules may be created and deleted individually.
	SourceRanges bool
	// HealthMonitors: health monitors may have their own settings (VCD 10.6 and later).
	HealthMonitors bool
	// HTTPPolicies: virtual services may have rules for HTTP requests (VCD 10.5 and later).
	HTTPPolicies bool
	// MaxMembers is the maximum number of members in a pool without an IP set; 0 means no limit.
	MaxMembers int
}
