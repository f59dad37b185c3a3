// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// A claimPlanner plans claims of floating IPs.
type claimPlanner struct{ *planner }

// plan allocates and marks the addresses that need it, releases those that nothing uses, and names those to be
// stored first.
func (p claimPlanner) plan() {
	for _, f := range p.families {
		if a := p.external[f]; a.IsValid() && !p.internal {
			p.claim(a)
		}
	}
	p.release(func(a netip.Addr) bool { return !p.internal && p.external[FamilyOf(a)] == a })
	p.intent()
}

// claim allocates and marks an address of an IP Space, as far as that is not done. Services that share one may do so at
// the same time: the second finds it allocated. If each left that to the other, none would.
func (p claimPlanner) claim(a netip.Addr) {
	c, allocated := p.o.claimOf(a)
	space, inSpace := p.o.Gateway.spaceOf(a)
	switch {
	case allocated && p.intends(c) && !p.own.claimed(c):
		p.mark(c, p.d.Owner)
	case allocated, !inSpace:
	case space.Full, slices.ContainsFunc(p.o.Taken,
		func(u Use) bool { return u.Address == a && u.Kind == KindAddress }):
		p.notice(AddressTaken,
			"the address %s is not allocated any more, and cannot be had again, as another organization has it, "+
				"or this one may have no more of the IP Space %q: clients may not reach it; request another address", a,
			space.Name)
	default:
		want := Claim{Space: Ref{space.ID, space.Name}, Value: a, Description: Marker{Owner: p.d.Owner}.String()}
		p.step(phaseClaim, Step{
			Verb:    Create,
			Kind:    KindAddress,
			Name:    a.String(),
			Address: &want,
			Stored:  slices.Contains(p.d.Intent, a),
		})
		p.step(phaseClaim, Step{Verb: Mark, Kind: KindAddress, Name: a.String(), Address: &want})
	}
}

// mark describes a claim as an owner's; as no one's, if the owner is empty.
func (p claimPlanner) mark(c Claim, owner Owner) {
	want := Claim{Space: c.Space, Value: c.Value}
	if owner != (Owner{}) {
		want.Description = Marker{Owner: owner}.String()
	}
	p.step(phaseClaim, Step{
		Verb:              Mark,
		Kind:              KindAddress,
		Name:              c.Value.String(),
		ID:                c.ID,
		Address:           &want,
		FormerDescription: c.Description,
	})
}

// release releases claims of the owner that are not wanted any more. One that others use passes to them.
func (p claimPlanner) release(wanted func(netip.Addr) bool) {
	for _, c := range p.o.Claims {
		mine := p.own.claimed(c)
		if unmarked := p.intends(c) && !c.Used; wanted(c.Value) || !mine && !unmarked {
			continue
		}
		if !p.need(Forwardings) {
			return // rules of others may be on it
		}
		p.leave(c, mine)
	}
}

// leave deletes a claim, or passes it to another that uses its address.
func (p claimPlanner) leave(c Claim, mine bool) {
	i := slices.IndexFunc(p.own.others, func(u Use) bool { return u.Address == c.Value && !u.Reserved })
	switch {
	case i < 0:
		spec := Claim{Space: c.Space, Value: c.Value}
		p.step(phaseRelease,
			Step{Verb: Delete, Kind: KindAddress, Name: c.Value.String(), ID: c.ID, Address: &spec})
	case p.own.others[i].Marker.Owner.UID != "":
		p.mark(c, p.own.others[i].Marker.Owner)
	case mine:
		p.notice(AddressShared, "the address %s stays allocated: %q uses it", c.Value, p.own.others[i].Name)
		p.mark(c, Owner{})
	}
}

// intent names the addresses to be stored before the first step: those that are used for the first time and are not
// named by the Service, those that are allocated for it, and those that are stored and allocated but not marked.
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
		if c, ok := p.o.claimOf(a); ok && p.intends(c) && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	p.out.Intent = out
}

// intended reports whether the address of a family has to be stored.
func (p claimPlanner) intended(f Family) bool {
	a := p.external[f]
	if !a.IsValid() {
		return false
	}
	c, allocated := p.o.claimOf(a)
	if allocated && slices.Contains(p.o.NotOurs, c.ID) {
		return false
	}
	_, inSpace := p.o.Gateway.spaceOf(a)
	return slices.Contains(p.d.Intent, a) || p.unused[f] && !slices.Contains(p.d.Requested, a) ||
		!allocated && inSpace && !p.internal
}

// A removal plans the deletion of what is the owner's and not wanted.
type removal struct{ *planner }

// leftovers removes what no listener uses any more.
func (p removal) leftovers() {
	removeEach(p.planner, phaseRemove, KindRule, p.own.rules)
	removeEach(p.planner, phaseRemove, KindProfile, p.own.profiles)
	removeEach(p.planner, phaseRemove, KindService, p.own.services)
	removeEach(p.planner, phaseRemove, KindPool, p.own.pools)
	removeEach(p.planner, phaseRemove, KindCertificate,
		slices.DeleteFunc(p.own.certificates, func(x owned[CertificateItem]) bool {
			return slices.ContainsFunc(p.targets, func(t *target) bool { return t.certificate.Name == x.Name })
		}))
}

func removeEach[T any](p *planner, ph phase, kind Kind, list []owned[T]) {
	for _, x := range list {
		p.remove(ph, kind, x.Object)
	}
}

// absent removes everything of the owner: first what clients reach, last what no one else of the cluster needs.
func (p removal) absent() Plan {
	if !p.need(Forwardings | Certificates | Firewall) {
		return Plan{Needs: p.needs}
	}
	p.noteDoubtful()
	p.noteStrays()
	if !p.d.Owner.WholeCluster() {
		p.removeAll()
	}
	if !p.o.Others && !p.d.Accompanied && !p.d.Owner.IsEndpoint() {
		for _, s := range p.sets("") {
			p.remove(phaseRelease, KindSet, s.Object)
		}
	}
	return p.result()
}

func (p removal) removeAll() {
	removeEach(p.planner, phaseRemove, KindRule, p.own.rules)
	removeEach(p.planner, phaseRemove, KindProfile, p.own.profiles)
	removeEach(p.planner, phaseRemove, KindService, p.own.services)
	removeEach(p.planner, phaseRemove, KindFirewall, p.own.firewall)
	removeEach(p.planner, phaseRemove, KindPool, p.own.pools)
	removeEach(p.planner, phaseRemove, KindCertificate, p.own.certificates)
	claimPlanner(p).release(func(netip.Addr) bool { return false })
}
