// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Weights of addresses that are recorded for the Service, or published in its status. They exceed any number of
// objects.
const (
	weightIntended  = 1 << 20
	weightPublished = 1 << 21
)

// A presence finds the addresses that the load balancer already has.
type presence struct {
	desired  Desired
	owned    inventory
	internal bool // whether clients should connect from inside the organization
}

// current returns the address of a family that the load balancer has. If there are several, it prefers the published
// one, then the intended one, then the one with the most objects, then the lowest.
func (p *presence) current(f loadbalancer.Family) (netip.Addr, bool) {
	var found []netip.Addr
	for _, vs := range p.owned.services {
		found = append(found, vs.object.VIPs...)
	}
	for _, r := range p.owned.rules {
		found = append(found, r.object.External)
	}
	found = slices.DeleteFunc(found,
		func(a netip.Addr) bool { return !a.IsValid() || loadbalancer.FamilyOf(a) != f || p.count(a) == 0 })
	if len(found) == 0 {
		return netip.Addr{}, false
	}
	return slices.MinFunc(found, func(a, b netip.Addr) int {
		return cmp.Or(cmp.Compare(p.weight(b), p.weight(a)), a.Compare(b))
	}), true
}

// weight returns the precedence of an address that the load balancer has.
func (p *presence) weight(a netip.Addr) int {
	w := p.count(a)
	if slices.Contains(p.desired.Intent, a) {
		w += weightIntended
	}
	if slices.Contains(p.desired.Published, a) {
		w += weightPublished
	}
	return w
}

// count returns the number of the owner's objects that serve clients on an address.
func (p *presence) count(a netip.Addr) int {
	n := 0
	for _, vs := range p.owned.services {
		if slices.Contains(vs.object.VIPs, a) && p.isDirect(vs) {
			n++
		}
	}
	for _, r := range p.owned.rules {
		if !p.internal && r.object.External == a {
			n++
		}
	}
	return n
}

// isDirect reports whether clients, from where they should now connect, reach a virtual service on its own address.
func (p *presence) isDirect(vs owned[VirtualService]) bool {
	if p.internal {
		return vs.marker.Via == ViaInside || vs.old && !p.isTranslated(vs)
	}
	return !p.isTranslated(vs) && vs.marker.Via == ViaItself
}

// isTranslated reports whether a virtual service is reached through a DNAT rule.
func (p *presence) isTranslated(vs owned[VirtualService]) bool {
	if !vs.old {
		return vs.marker.Via == ViaNAT
	}
	return slices.ContainsFunc(vs.object.VIPs, func(a netip.Addr) bool {
		return p.desired.OneArm != nil && p.desired.OneArm.Contains(a) ||
			slices.ContainsFunc(p.owned.rules, func(r owned[Rule]) bool { return r.object.Internal == a })
	})
}
