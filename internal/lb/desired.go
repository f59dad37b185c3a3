// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Desired is the desired state of a load balancer on an edge gateway.
type Desired struct {
	loadbalancer.Desired

	// Internal requests addresses inside the organization: of each family from Subnet, else from InternalSubnets; if
	// there are none, from OneArm. They are never translated.
	Internal bool
	// Subnet restricts the choice of addresses of its family. The zero Prefix means no restriction.
	Subnet netip.Prefix
	// InternalSubnets are the allowed subnets for addresses inside the organization; empty means any.
	InternalSubnets []netip.Prefix
	// IPSpace is the name of the only IP Space that addresses are chosen from; empty means any IP Space of the gateway.
	IPSpace string
	// OneArm is the range for the addresses of virtual services that are reached through DNAT rules. Nil means that
	// virtual services have the addresses that clients use.
	OneArm *Range
	// Listeners are the listeners, each with a different protocol or port.
	Listeners []Listener
	// Members are the distinct addresses of the nodes, of all families.
	Members []netip.Addr
	// OwnMembers means that pools list their members themselves, without the IP set of the cluster's nodes. There may
	// be no members yet.
	OwnMembers bool
	// PreserveClientIP preserves the addresses of clients for nodes.
	PreserveClientIP bool
	// EngineGroup is the name of the service engine group; empty means any with free capacity.
	EngineGroup string
	// Algorithm of the pools, in VCD's terms. Empty keeps the algorithm of existing pools, and means ROUND_ROBIN for
	// new ones.
	Algorithm string
}

// UsesCertificate reports whether a listener terminates TLS with the certificate of an alias.
func (d Desired) UsesCertificate(alias string) bool {
	return slices.ContainsFunc(d.Listeners,
		func(l Listener) bool { return l.Application.TLS() && l.Certificate.aliasFor(d.Owner) == alias })
}

// members returns the sorted addresses of the nodes in a family.
func (d Desired) members(f loadbalancer.Family) []netip.Addr { return allOf(f, d.Members) }

// insideRanges returns the ranges for addresses of internal load balancers.
func (d Desired) insideRanges() []Range {
	var ranges []Range
	if d.Subnet.IsValid() {
		ranges = append(ranges, hosts(d.Subnet))
	}
	for _, n := range d.InternalSubnets {
		if !d.Subnet.IsValid() || loadbalancer.FamilyOf(n.Addr()) != loadbalancer.FamilyOf(d.Subnet.Addr()) {
			ranges = append(ranges, hosts(n))
		}
	}
	if len(ranges) == 0 && d.OneArm != nil {
		ranges = append(ranges, *d.OneArm)
	}
	return ranges
}
