package lb

import (
	"fmt"
	"net/netip"
	"slices"
)

// An addressPlanner decides on the address of each family that clients use.
type addressPlanner struct{ *planner }

// scope finds out whether the load balancer is on an address inside the organisation, because it shall be or because such an address is
// requested by name.
func (p addressPlanner) decideScope() {
	p.internal = p.d.Internal
	for _, a := range p.d.Requested {
		if !p.internal && a.IsPrivate() {
			p.internal = p.insideAddress(a)
		}
	}
	if p.nat() || slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool { return vs.old || vs.marker.Via == ViaNAT }) {
		p.need(Forwardings)
	}
	if !p.c.SharedVIP && !p.nat() && len(p.d.Listeners) > 1 {
		p.refuse(Unsupported, "this VCD lets only one virtual service use an address, so only one port: configure one-arm mode, upgrade to VCD 10.4, or use one port")
	}
}

// insideAddress says whether a private address is not one of the gateway's, which may be private, too.
func (p addressPlanner) insideAddress(a netip.Addr) bool {
	for _, vs := range p.all.services {
		if slices.Contains(vs.object.VIPs, a) && !vs.old {
			return vs.marker.Via == ViaInside
		}
	}
	for _, r := range p.all.rules {
		if r.object.External == a {
			return false
		}
	}
	return p.need(Addresses) && !p.onGateway(a)
}

// onGateway says whether an address is one that the gateway has or could have. Takes Addresses.
func (p addressPlanner) onGateway(a netip.Addr) bool {
	_, inSpace := p.spaceOf(a)
	_, allocated := p.claimOf(a)
	return inSpace || allocated || inRanges(p.o.Gateway.Ranges, a)
}

func inRanges(ranges []Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(a) })
}

func (p *planner) spaceOf(a netip.Addr) (Ref, bool) {
	for _, s := range p.o.Gateway.Spaces {
		if inRanges(s.Ranges, a) || slices.Contains(s.Free, a) {
			return Ref{s.ID, s.Name}, true
		}
	}
	return Ref{}, false
}

func (p *planner) claimOf(a netip.Addr) (Claim, bool) {
	i := slices.IndexFunc(p.o.Claims, func(c Claim) bool { return c.Value == a })
	if i < 0 {
		return Claim{}, false
	}
	return p.o.Claims[i], true
}

// addresses finds the address of each family: the one requested, else the one the load balancer has, else the one it was meant to have,
// else a free one.
func (p addressPlanner) addresses() {
	if p.needs.Has(Forwardings) {
		return // what the load balancer has is not known yet
	}
	p.families = slices.DeleteFunc(p.families, func(f Family) bool {
		if a, ok := ofFamily(p.d.Requested, f); ok {
			p.requested(f, a)
			return false
		}
		if a, ok := p.current(f); ok {
			p.external[f] = a
			p.unclaimed(a)
			return false
		}
		if !p.internal && !p.need(Addresses) {
			return false
		}
		if f != p.families[0] && !p.offers(f) {
			p.notice(Unsupported, "the edge gateway has no %s addresses: the load balancer has an %s address only", f, p.families[0])
			return true
		}
		p.choose(f)
		return false
	})
}

// gives says whether there are addresses of a family, used or not. Takes Addresses, except inside.
func (p addressPlanner) offers(f Family) bool {
	of := func(r Range) bool { return FamilyOf(r.First) == f }
	if p.internal {
		return slices.ContainsFunc(p.insideRanges(), of)
	}
	return slices.ContainsFunc(p.o.Gateway.Ranges, of) ||
		slices.ContainsFunc(p.o.Gateway.Spaces, func(s Space) bool { return slices.ContainsFunc(s.Ranges, of) })
}

func ofFamily(list []netip.Addr, f Family) (netip.Addr, bool) {
	i := slices.IndexFunc(list, func(a netip.Addr) bool { return FamilyOf(a) == f })
	if i < 0 {
		return netip.Addr{}, false
	}
	return list[i], true
}

// requested takes the address that is asked for by name, or refuses it.
func (p addressPlanner) requested(f Family, a netip.Addr) {
	p.external[f] = a
	if p.count(a) > 0 {
		p.unclaimed(a)
		return
	}
	if !p.internal && !p.need(Addresses) {
		return
	}
	problem := candidates{p.planner}.problem(a, true)
	if problem != nil {
		p.plan.Refusals = append(p.plan.Refusals, *problem)
		return
	}
	p.fresh[f] = true
}

// unclaimed asks for the IP Spaces if an address that the load balancer has is not allocated: if it is one of theirs, somebody has given it back,
// and somebody else may get it.
func (p addressPlanner) unclaimed(a netip.Addr) {
	if _, allocated := p.claimOf(a); !allocated && p.o.Gateway.UsesSpaces && !p.internal {
		p.need(Addresses)
	}
}

// count says how many objects of the owner put an address before clients.
func (p addressPlanner) count(a netip.Addr) int {
	n := 0
	for _, vs := range p.all.services {
		if slices.Contains(vs.object.VIPs, a) && p.facing(vs) {
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

// facing says whether clients reach a virtual service on its own address, from where they are now to be.
func (p addressPlanner) facing(vs owned[VirtualService]) bool {
	if p.internal {
		return vs.marker.Via == ViaInside || vs.old && !p.translated(vs)
	}
	return !p.translated(vs) && vs.marker.Via == ViaItself
}

// translated says whether a virtual service is reached through a DNAT rule.
func (p addressPlanner) translated(vs owned[VirtualService]) bool {
	if !vs.old {
		return vs.marker.Via == ViaNAT
	}
	return slices.ContainsFunc(vs.object.VIPs, func(a netip.Addr) bool {
		return p.d.OneArm != nil && p.d.OneArm.Contains(a) ||
			slices.ContainsFunc(p.all.rules, func(r owned[Rule]) bool { return r.object.Internal == a })
	})
}

// standing returns the address of a family that the load balancer has: of several the published one, then the intended one, then the one
// that most objects are on, then the lowest.
func (p addressPlanner) current(f Family) (netip.Addr, bool) {
	var found []netip.Addr
	for _, vs := range p.all.services {
		found = append(found, vs.object.VIPs...)
	}
	for _, r := range p.all.rules {
		found = append(found, r.object.External)
	}
	found = slices.DeleteFunc(found, func(a netip.Addr) bool { return !a.IsValid() || FamilyOf(a) != f || p.count(a) == 0 })
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
	usable := candidates{p.planner}
	preferred := p.preferred(f)
	i := slices.IndexFunc(preferred, func(a netip.Addr) bool { return usable.problem(a, false) == nil })
	a, ok := netip.Addr{}, i >= 0
	if ok {
		a = preferred[i]
	} else {
		a, ok = usable.free(f)
	}
	switch {
	case ok:
		p.external[f], p.fresh[f] = a, true
	case len(p.plan.Refusals) == 0:
		p.refuse(NoFreeAddress, "no %s address is free%s: ask the provider for more, or request an address by name", f, p.within())
	}
}

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

// preferred are the addresses that are looked at before any free one: one to be shared, those written down, those claimed, those published.
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

// sharable says whether the owner of something on an address lets this load balancer use it, too.
func (p *planner) sharable(u Use) bool {
	return p.d.Share != "" && u.Marker.Share == p.d.Share && u.Marker.Owner.Cluster == p.d.Owner.Cluster && (p.internal == (u.Marker.Via == ViaInside))
}
