// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
)

// An addressPlanner decides on the address of each family that clients use.
type addressPlanner struct{ *planner }

func (p addressPlanner) plan() {
	p.internal = p.d.Internal || slices.ContainsFunc(p.d.Requested, p.inside)
	if p.nat() || slices.ContainsFunc(p.all.services, mayBeForwarded) {
		p.need(Forwardings)
	}
	if !p.c.SharedVIP && !p.nat() && len(p.d.Listeners) > 1 {
		p.refuse(Unsupported, "this VCD lets only one virtual service use an address, so only one port: "+
			"configure one-arm mode, upgrade to VCD 10.4, or use one port")
	}
	if len(p.out.Refusals) > 0 || p.needs&(Addresses|Forwardings|Hosts) != 0 {
		return // what the load balancer has is not known yet
	}
	p.families = slices.DeleteFunc(p.families, p.leftOut)
}

// mayBeForwarded reports whether a DNAT rule may lead to a virtual service.
func mayBeForwarded(vs owned[VirtualService]) bool {
	return vs.old || vs.marker.Via == ViaNAT || vs.marker.Forwarded
}

// inside reports whether an address is inside the organization: private, and not one of the gateway's, which may be
// private, too.
func (p addressPlanner) inside(a netip.Addr) bool {
	if !a.IsPrivate() {
		return false
	}
	for _, vs := range p.all.services {
		if slices.Contains(vs.object.VIPs, a) && !vs.old {
			return vs.marker.Via == ViaInside
		}
	}
	if slices.ContainsFunc(p.all.rules, func(r owned[Rule]) bool { return r.object.External == a }) ||
		!p.need(Addresses) {
		return false
	}
	_, inSpace := p.o.Gateway.spaceOf(a)
	_, allocated := p.o.claimOf(a)
	return !inSpace && !allocated && !inRanges(p.o.Gateway.Ranges, a)
}

// leftOut finds the address of a family: the requested one, else the current one, else the intended one, else a
// free one. It reports whether the load balancer goes without this family.
func (p addressPlanner) leftOut(f Family) bool {
	if a, ok := ofFamily(p.d.Requested, f); ok {
		p.request(f, a)
		return false
	}
	if a, ok := p.current(f); ok {
		p.external[f] = a
		p.verifyClaim(a)
		return false
	}
	if !p.need(p.places()) {
		return false
	}
	if f != p.families[0] && !p.offered(f) {
		p.without([]string{fmt.Sprintf("the edge gateway has no %s addresses", f)})
		return true
	}
	p.choose(f)
	return false
}

// places are the facts that show which addresses can be had.
func (p addressPlanner) places() Facts {
	if p.internal {
		return Hosts
	}
	return Addresses
}

// offered reports whether there are addresses of a family, used or not. Takes Addresses, inside nothing.
func (p addressPlanner) offered(f Family) bool {
	of := func(r Range) bool { return FamilyOf(r.First) == f }
	if p.internal {
		return slices.ContainsFunc(p.d.insideRanges(), of)
	}
	return slices.ContainsFunc(p.o.Gateway.Ranges, of) ||
		slices.ContainsFunc(p.o.Gateway.Spaces, func(s Space) bool { return slices.ContainsFunc(s.Ranges, of) })
}

// request takes an address that the Service names, or refuses it.
func (p addressPlanner) request(f Family, a netip.Addr) {
	p.external[f] = a
	switch {
	case p.count(a) > 0:
		p.verifyClaim(a)
	case p.need(p.places()):
		if problem := candidates(p).problem(a, true); problem != nil {
			p.out.Refusals = append(p.out.Refusals, *problem)
			return
		}
		p.unused[f] = true
	}
}

// verifyClaim asks for the IP Spaces if an address that the load balancer has is not allocated: if it is one of
// theirs, it was released, and may be given to another organization.
func (p addressPlanner) verifyClaim(a netip.Addr) {
	if _, allocated := p.o.claimOf(a); !allocated && p.o.Gateway.UsesSpaces && !p.internal {
		p.need(Addresses)
	}
}

// count returns how many objects of the owner put an address before clients.
func (p addressPlanner) count(a netip.Addr) int {
	n := 0
	for _, vs := range p.all.services {
		if slices.Contains(vs.object.VIPs, a) && p.direct(vs) {
			n++
		}
	}
	for _, r := range p.all.rules {
		if !p.internal && r.object.External == a {
			n++
		}
	}
	return n
}

// direct reports whether clients reach a virtual service on its own address, from where they shall now come.
func (p addressPlanner) direct(vs owned[VirtualService]) bool {
	if p.internal {
		return vs.marker.Via == ViaInside || vs.old && !p.translated(vs)
	}
	return !p.translated(vs) && vs.marker.Via == ViaItself
}

// translated reports whether a virtual service is reached through a DNAT rule.
func (p addressPlanner) translated(vs owned[VirtualService]) bool {
	if !vs.old {
		return vs.marker.Via == ViaNAT
	}
	return slices.ContainsFunc(vs.object.VIPs, func(a netip.Addr) bool {
		return p.d.OneArm != nil && p.d.OneArm.Contains(a) ||
			slices.ContainsFunc(p.all.rules, func(r owned[Rule]) bool { return r.object.Internal == a })
	})
}

// current returns the address of a family that the load balancer has: of several the published one, then the
// intended one, then the one that most objects are on, then the lowest.
func (p addressPlanner) current(f Family) (netip.Addr, bool) {
	var found []netip.Addr
	for _, vs := range p.all.services {
		found = append(found, vs.object.VIPs...)
	}
	for _, r := range p.all.rules {
		found = append(found, r.object.External)
	}
	found = slices.DeleteFunc(found,
		func(a netip.Addr) bool { return !a.IsValid() || FamilyOf(a) != f || p.count(a) == 0 })
	if len(found) == 0 {
		return netip.Addr{}, false
	}
	return slices.MinFunc(found, func(a, b netip.Addr) int {
		if d := p.weight(b) - p.weight(a); d != 0 {
			return d
		}
		return a.Compare(b)
	}), true
}

func (p addressPlanner) weight(a netip.Addr) int {
	w := p.count(a)
	if slices.Contains(p.d.Intent, a) {
		w += 1 << 20
	}
	if slices.Contains(p.d.Published, a) {
		w += 1 << 21
	}
	return w
}

// choose takes an address for a load balancer that has none.
func (p addressPlanner) choose(f Family) {
	usable := candidates(p)
	preferred := p.preferred(f)
	i := slices.IndexFunc(preferred, func(a netip.Addr) bool { return usable.problem(a, false) == nil })
	var a netip.Addr
	ok := i >= 0
	if ok {
		a = preferred[i]
	} else {
		a, ok = usable.free(f)
	}
	switch {
	case ok:
		p.external[f] = a
		p.unused[f] = true
	case len(p.out.Refusals) == 0:
		p.refuse(NoFreeAddress, "no %s address is free%s: ask the provider for more, or request an address by name", f,
			p.within())
	}
}

// within names the limits of the choice.
func (p addressPlanner) within() string {
	out := ""
	if p.d.Subnet.IsValid() {
		out = " in " + p.d.Subnet.String()
	}
	if p.d.IPSpace != "" && !p.internal {
		out += fmt.Sprintf(" in the IP Space %q", p.d.IPSpace)
	}
	return out
}

// preferred are the addresses that come before any free one: one to be shared, those intended, those claimed, those
// published.
func (p addressPlanner) preferred(f Family) []netip.Addr {
	var out []netip.Addr
	for _, u := range p.own.others {
		if p.sharable(u) {
			out = append(out, u.Address)
		}
	}
	out = append(out, p.d.Intent...)
	for _, c := range p.own.claims {
		out = append(out, c.Value)
	}
	out = append(out, p.d.Published...)
	return slices.DeleteFunc(out, func(a netip.Addr) bool { return FamilyOf(a) != f })
}

// sharable reports whether the owner of something on an address lets this load balancer use it, too.
func (p *planner) sharable(u Use) bool {
	return p.d.Share != "" && u.Marker.Share == p.d.Share && u.Marker.Owner.Cluster == p.d.Owner.Cluster &&
		p.internal == (u.Marker.Via == ViaInside)
}

// shared reports whether this load balancer may share an address that others use.
func (p *planner) shared(a netip.Addr) bool {
	return slices.ContainsFunc(p.own.others, func(u Use) bool { return u.Address == a && p.sharable(u) })
}
