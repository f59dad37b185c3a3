// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// A certificatePlanner plans the import of certificates.
type certificatePlanner struct{ *planner }

// plan finds the certificates of the listeners, and imports those that are not in the library yet.
func (p certificatePlanner) plan() {
	imported := map[string]bool{}
	for _, t := range p.targets {
		c := t.listener.Certificate
		if !t.listener.Application.TLS() {
			continue
		}
		alias := c.aliasFor(p.d.Owner)
		t.certificate = Ref{Name: alias}
		if have := t.service.object.Certificate; c.Alias != "" && have.Name == alias {
			t.certificate = have
			continue
		}
		if p.need(Certificates) {
			if imported[alias] {
				c = Certificate{Alias: alias}
			}
			imported[alias] = p.find(t, c) || imported[alias]
		}
	}
	if slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool {
		return Imported(p.d.Owner, vs.object.Certificate.Name)
	}) {
		p.need(Certificates)
	}
}

// find finds the certificate of a target in the library, or imports it. It reports whether it is imported.
func (p certificatePlanner) find(t *target, c Certificate) bool {
	alias := t.certificate.Name
	var found []CertificateItem
	for _, x := range p.o.Certificates {
		if x.Name == alias {
			found = append(found, x)
		}
	}
	switch {
	case len(found) == 1:
		t.certificate.ID = found[0].ID
	case len(found) > 1:
		p.refuse(CertificateUnknown,
			"the certificate library has several certificates with the alias %q: give them different ones", alias)
	case c.Chain != "":
		item := CertificateItem{Object{Description: Marker{Owner: p.d.Owner}.String()}, c.Chain, c.Key}
		p.step(phasePrepare, Step{Verb: Create, Kind: KindCertificate, Name: alias, Certificate: &item})
		return true
	case !Imported(p.d.Owner, alias):
		p.refuse(CertificateUnknown,
			"the certificate library has no certificate with the alias %q that the user can see: "+
				"upload it, or correct the annotation", alias)
	}
	return false
}

// An enginePlanner chooses a service engine group for each virtual service that is created.
type enginePlanner struct {
	*planner

	capacity map[string]int // how many virtual services the groups still take
}

func (p *enginePlanner) plan() {
	p.removeObstacles()
	p.capacity = map[string]int{}
	for _, g := range p.o.Gateway.Groups {
		p.capacity[g.ID] = g.Max - g.Deployed
	}
	for _, t := range p.targets {
		t.engine = t.service.object.EngineGroup
		t.replace = t.replace || p.inAnotherGroup(t)
		t.move = !t.replace && !p.c.MovesSharedVIP && p.fixed(t)
		if (!t.service.exists() || t.replace) && p.need(EngineGroups) {
			p.choose(t)
		}
	}
}

// inAnotherGroup reports whether a virtual service runs in another group than the one that is asked for.
func (p *enginePlanner) inAnotherGroup(t *target) bool {
	return p.d.EngineGroup != "" && t.engine.Name != "" && !isNamed(t.engine.ID, t.engine.Name, p.d.EngineGroup)
}

func (p *enginePlanner) choose(t *target) {
	full := false
	for _, g := range p.groups() {
		if p.d.EngineGroup != "" && !isNamed(g.ID, g.Name, p.d.EngineGroup) {
			continue
		}
		if stays := t.replace && t.service.object.EngineGroup.ID == g.ID; g.Max > 0 && p.capacity[g.ID] <= 0 && !stays {
			full = true
			continue
		}
		t.engine = Ref{g.ID, g.Name}
		p.capacity[g.ID]--
		return
	}
	switch {
	case full:
		p.refuse(NoEngineGroup,
			"no service engine group of the edge gateway has room for another virtual service: ask the "+
				"provider for more")
	case p.d.EngineGroup != "":
		p.refuse(NoEngineGroup,
			"the service engine group %q is not assigned to the edge gateway: correct its name, "+
				"or ask the provider to assign it", p.d.EngineGroup)
	default:
		p.refuse(NoEngineGroup,
			"no service engine group is assigned to the edge gateway: ask the provider to assign one")
	}
}

// groups are the engine groups: those first that the load balancer is on already.
func (p *enginePlanner) groups() []EngineGroup {
	out := slices.Clone(p.o.Gateway.Groups)
	rank := func(g EngineGroup) int {
		if slices.ContainsFunc(p.all.services,
			func(vs owned[VirtualService]) bool { return vs.object.EngineGroup.ID == g.ID }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b EngineGroup) int { return rank(a) - rank(b) })
	return out
}

// removeObstacles removes virtual services of the owner from an address and port that another one of its needs.
func (p *enginePlanner) removeObstacles() {
	for _, t := range p.targets {
		for _, u := range p.targets {
			if u != t && u.service.exists() && p.blocks(u.service.object, t) {
				u.replace = true
			}
		}
		p.own.services = slices.DeleteFunc(p.own.services, func(vs owned[VirtualService]) bool {
			blocks := p.blocks(vs.object, t)
			if blocks {
				p.remove(phaseFree, KindService, vs.Object)
			}
			return blocks
		})
	}
}

// fixed reports whether a listener's virtual service needs other addresses and shares those it has, or will before it
// is updated.
func (p *enginePlanner) fixed(t *target) bool {
	have := t.service.object
	if !t.service.exists() || slices.Equal(sorted(have.VIPs), sorted(t.vips)) {
		return false
	}
	return slices.ContainsFunc(have.VIPs, func(a netip.Addr) bool {
		return slices.ContainsFunc(p.own.others, func(u Use) bool { return u.Address == a && u.Kind == KindService }) ||
			slices.ContainsFunc(p.targets, func(u *target) bool { return u != t && slices.Contains(u.vips, a) }) ||
			slices.ContainsFunc(p.all.services, func(x owned[VirtualService]) bool {
				return x.ID != have.ID && slices.Contains(x.object.VIPs, a)
			})
	})
}

// blocks reports whether a virtual service is where that of a listener shall be.
func (p *enginePlanner) blocks(vs VirtualService, t *target) bool {
	samePort := vs.Protocol == t.listener.Protocol && vs.Port == t.listener.Port
	return (samePort || !p.c.SharedVIP) &&
		slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(t.vips, a) })
}

// A servicePlanner plans pools, virtual services, and the NAT rules that lead to them.
type servicePlanner struct{ *planner }

func (p servicePlanner) plan() {
	if p.needs != 0 {
		return
	}
	pools := poolPlanner(p)
	members := pools.members()
	for _, t := range p.targets {
		p.service(t, pools.plan(t, members))
		if p.nat() {
			p.forward(t)
		}
	}
}

func (p servicePlanner) service(t *target, pool Ref) {
	l := t.listener
	m := p.marker(t)
	m.Share = p.d.Share
	m.Filtered = len(p.d.SourceRanges) > 0
	m.Forwarded = !p.nat() && len(p.all.rules)+len(p.all.profiles) > 0
	switch {
	case p.internal:
		m.Via = ViaInside
	case p.nat():
		m.Via = ViaNAT
	}
	want := VirtualService{
		Object:      Object{Description: m.String()},
		VIPs:        t.vips,
		Protocol:    l.Protocol,
		Port:        l.Port,
		Application: l.Application,
		SSL:         l.Application.TLS(),
		Certificate: t.certificate,
		Pool:        pool,
		EngineGroup: t.engine,
		Transparent: p.d.PreserveClientIP,
	}
	create := Step{Verb: Create, Kind: KindService, Name: nameFor(KindService, p.d.Owner, l.Key()), Service: &want}
	switch {
	case !t.service.exists():
		p.step(phaseCreate, create)
	case t.replace:
		p.remove(phaseFree, KindService, t.service.Object)
		p.step(phaseReplace, create)
	case t.move:
		p.remove(phaseReplace, KindService, t.service.Object)
		p.step(phaseReplace, create)
	default:
		want.Description = describe(t.service.Description, m)
		if want.differs(t.service.object) {
			p.update(phaseUpdate, t.service.Object, Step{Kind: KindService, Service: &want})
		}
	}
}

// forward plans the NAT rule that leads clients to a virtual service, and the port profile that it refers to.
func (p servicePlanner) forward(t *target) {
	l := t.listener
	m := p.marker(t)
	ref := Ref{t.profile.ID, t.profile.Name}
	profile := Profile{Object{Description: describe(t.profile.Description, m)}, l.Protocol, l.Port}
	switch have := t.profile.object; {
	case !t.profile.exists():
		ref.Name = nameFor(KindProfile, p.d.Owner, l.Key())
		p.step(phaseForward, Step{Verb: Create, Kind: KindProfile, Name: ref.Name, Profile: &profile})
	case profile.Description != have.Description, have.Protocol != l.Protocol, have.Port != l.Port,
		have.State == Failed:
		p.update(phaseForward, have.Object, Step{Kind: KindProfile, Profile: &profile})
	}
	m.Share = p.d.Share
	rule := Rule{
		Object:       Object{Description: describe(t.rule.Description, m)},
		External:     p.external[IPv4],
		Internal:     t.vips[0],
		ExternalPort: l.Port,
		Profile:      ref,
	}
	if !t.rule.exists() {
		p.step(phaseForward,
			Step{Verb: Create, Kind: KindRule, Name: nameFor(KindRule, p.d.Owner, l.Key()), Rule: &rule})
	} else if rule.differs(t.rule.object) {
		p.update(phaseForward, t.rule.Object, Step{Kind: KindRule, Rule: &rule})
	}
}
