// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// Desired is what a load balancer should be.
type Desired struct {
	Owner Owner
	// Absent asks for the removal of everything the owner has. Of the rest only Intent, Published and Members then
	// matter, as proof of ownership.
	Absent bool
	// Families the load balancer has an address of, the one of the pool members first; at least one.
	Families []Family
	// AllFamilies refuses the load balancer if it cannot have an address of each family; else it goes without.
	AllFamilies bool
	// Requested are addresses that the Service names, at most one of each family.
	Requested []netip.Addr
	// Intent are the addresses stored on the Service before their first use ([Plan.Intent]).
	Intent []netip.Addr
	// Published are the addresses in the status of the Service: proof of whose objects without a marker are.
	Published []netip.Addr
	// Duplicate is set if another Service of the cluster has the same name, in another namespace: what is known by
	// this name only may belong to that one.
	Duplicate bool
	// Reserved is what others of the cluster are about to use on the gateway and may not be seen there yet: its
	// addresses are taken.
	Reserved []Use
	// Accompanied is set if other Services of the cluster have a load balancer on the gateway, or will: what all
	// share stays.
	Accompanied bool
	// Elsewhere is set if the owner may have something at another gateway: what it needs no more here may be in use
	// there, and what all gateways show stays.
	Elsewhere bool
	// Unseen is set if the other gateway cannot be observed: then only addresses stay, for VCD refuses to delete
	// certificates and port profiles that something uses.
	Unseen bool
	// Share is a key; Services with the same key may share an address if their ports differ. Empty: never.
	Share string
	// Internal asks for addresses inside the organization: from Subnet, else from InternalSubnets, else from OneArm,
	// never translated.
	Internal bool
	// Subnet limits from where addresses of its family are chosen. The zero Prefix does not.
	Subnet netip.Prefix
	// InternalSubnets are those that addresses inside the organization have to be in; empty: any.
	InternalSubnets []netip.Prefix
	// IPSpace is the name of the only IP Space that addresses are chosen from; empty for any of the gateway's.
	IPSpace string
	// OneArm puts virtual services on addresses of this range, reached through DNAT rules; nil puts them on the
	// addresses themselves.
	OneArm *Range
	// Listeners, each with another protocol or port.
	Listeners []Listener
	// Members are the addresses of the nodes, of all families, each once.
	Members []netip.Addr
	// OwnMembers are listed in the pools themselves, not in the IP set of the cluster's nodes, and may be none yet.
	OwnMembers bool
	// Generation orders the node lists that Members are from: that of a later list is higher. 0 if there is no order.
	Generation uint64
	// Sticky sends a client to the same node again.
	Sticky bool
	// SourceRanges are the only clients that may connect; empty: all.
	SourceRanges []netip.Prefix
	// PreserveClientIP lets nodes see the addresses of clients.
	PreserveClientIP bool
	// EngineGroup is the name of the service engine group; empty takes any with room.
	EngineGroup string
	// Algorithm of the pools, in VCD's words; empty leaves it as it is, in new pools ROUND_ROBIN.
	Algorithm string
}

// UsesCertificate reports whether a listener ends TLS with the certificate of an alias.
func (d Desired) UsesCertificate(alias string) bool {
	return slices.ContainsFunc(d.Listeners,
		func(l Listener) bool { return l.Application.TLS() && l.Certificate.aliasFor(d.Owner) == alias })
}

// members are the nodes of a family, sorted.
func (d Desired) members(f Family) []netip.Addr { return allOf(f, d.Members) }

// insideRanges are the ranges of internal load balancers.
func (d Desired) insideRanges() []Range {
	switch {
	case d.Subnet.IsValid():
		return []Range{hosts(d.Subnet)}
	case len(d.InternalSubnets) > 0:
		var out []Range
		for _, n := range d.InternalSubnets {
			out = append(out, hosts(n))
		}
		return out
	case d.OneArm != nil:
		return []Range{*d.OneArm}
	}
	return nil
}
