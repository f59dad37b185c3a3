package lb

import (
	"net/netip"
	"slices"
)

// A claimPlanner plans allocations of IP Spaces.
type claimPlanner struct{ *planner }

// claims allocates and marks the addresses that need it, and releases those that nothing uses.
func (p claimPlanner) claims() {
	for _, f := range p.families {
		if a := p.external[f]; a.IsValid() && !p.internal {
			p.claim(a)
		}
	}
	p.release(func(a netip.Addr) bool { return !p.internal && p.external[FamilyOf(a)] == a })
}

// claim allocates and marks an address of an IP Space, as far as that is not done.
func (p claimPlanner) claim(a netip.Addr) {
	c, allocated := p.claimOf(a)
	space, inSpace := p.spaceOf(a)
	switch {
	case allocated && p.begun(c) && !p.mine(c):
		p.mark(c, p.d.Owner)
	case !allocated && inSpace && p.withheld(a):
		p.notice(AddressTaken, "the address %s is not allocated any more, and cannot be had again, as another organization has it, or this one may have no more of the "+
			"IP Space %q: clients may not reach it; request another address", a, space.Name)
	case !allocated && inSpace && !p.sharedBy(a):
		spec := Claim{Space: space, Value: a, Description: Marker{Owner: p.d.Owner}.String()}
		p.step(phaseClaim, Step{Verb: Create, Kind: KindAddress, Name: a.String(), Address: &spec})
		p.step(phaseClaim, Step{Verb: Mark, Kind: KindAddress, Name: a.String(), Address: &spec})
	}
}

// withheld says whether it was found out that an address that the load balancer has cannot be allocated.
func (p *planner) withheld(a netip.Addr) bool {
	space, _ := p.spaceOf(a)
	return slices.ContainsFunc(p.o.Taken, func(u Use) bool { return u.Address == a && u.Kind == KindAddress }) || p.problemOfSpace(a, space) != nil
}

func (p *planner) sharedBy(a netip.Addr) bool {
	return slices.ContainsFunc(p.own.others, func(u Use) bool { return u.Address == a && p.sharable(u) })
}

func (p claimPlanner) mark(c Claim, owner Owner) {
	spec := Claim{Space: c.Space, Value: c.Value}
	if owner != (Owner{}) {
		spec.Description = Marker{Owner: owner}.String()
	}
	p.step(phaseClaim, Step{
		Verb: Mark, Kind: KindAddress, Name: c.Value.String(), ID: c.ID, Address: &spec, FormerDescription: c.Description,
	})
}

// release gives allocations back that are the owner's and not wanted any more. One that others use passes to them.
func (p claimPlanner) release(wanted func(netip.Addr) bool) {
	for _, c := range p.o.Claims {
		mine := p.mine(c)
		if unmarked := p.begun(c) && !c.Used; wanted(c.Value) || !mine && !unmarked {
			continue
		}
		if !p.need(Forwardings) {
			return // others may be on it by rules
		}
		i := slices.IndexFunc(p.own.others, func(u Use) bool { return u.Address == c.Value })
		switch {
		case i < 0:
			spec := Claim{Space: c.Space, Value: c.Value}
			p.step(phaseRelease, Step{Verb: Delete, Kind: KindAddress, Name: c.Value.String(), ID: c.ID, Address: &spec})
		case p.own.others[i].Marker.Owner.UID != "":
			p.mark(c, p.own.others[i].Marker.Owner)
		case mine:
			p.notice(AddressShared, "the address %s stays allocated: %q uses it", c.Value, p.own.others[i].Name)
			p.mark(c, Owner{})
		}
	}
}

// intent says which addresses are to be written down before the first step: those that are used for the first time and are not named by the
// Service, those that are allocated for it, and those that were written down and are allocated but not marked.
func (p claimPlanner) intent() {
	var out []netip.Addr
	for _, f := range p.families {
		if p.intended(f) {
			out = append(out, p.external[f])
		}
	}
	if !slices.ContainsFunc(out, func(a netip.Addr) bool { return !slices.Contains(p.d.Intent, a) }) {
		return
	}
	for _, a := range p.d.Intent {
		if c, ok := p.claimOf(a); ok && p.begun(c) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	p.plan.Intent = out
}

// intended says whether the address of a family must be written down.
func (p claimPlanner) intended(f Family) bool {
	a := p.external[f]
	if !a.IsValid() {
		return false
	}
	_, allocated := p.claimOf(a)
	_, inSpace := p.spaceOf(a)
	return slices.Contains(p.d.Intent, a) || p.fresh[f] && !slices.Contains(p.d.Requested, a) || !allocated && inSpace && !p.internal
}
