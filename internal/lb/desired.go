// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Desired is what a load balancer on an edge gateway should be.
type Desired struct {
	loadbalancer.Desired

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
func (d Desired) members(f loadbalancer.Family) []netip.Addr { return allOf(f, d.Members) }

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
