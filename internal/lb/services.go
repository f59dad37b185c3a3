package lb

import (
	"net/netip"
	"slices"
)

// A servicePlanner plans virtual services, and the NAT rules that lead to them.
type servicePlanner struct{ *planner }

// build makes pools, virtual services and NAT rules, or lets them follow what is wanted.
func (p servicePlanner) build() {
	if p.needs != 0 {
		return
	}
	members := poolPlanner{p.planner}.poolMembers()
	for _, t := range p.targets {
		pool := poolPlanner{p.planner}.buildPool(t, members)
		p.buildService(t, pool)
		if p.nat() {
			p.buildForward(t)
		}
	}
}

func (p poolPlanner) buildPool(t *target, members []netip.Addr) Ref {
	spec := p.poolSpec(t.listener, members)
	m := p.marker(t)
	m.Wrote = spec.hash()
	former := noteProbe(spec, &m, t.listener.Protocol, t.pool)
	if !t.hasPool() {
		spec.Description = m.String()
		name := nameFor(KindPool, p.d.Owner, t.listener.Key())
		p.step(phasePool, Step{Verb: Create, Kind: KindPool, Name: name, Pool: &spec})
		return Ref{Name: name}
	}
	spec.Description = describe(t.pool.base.Description, m)
	switch described := spec.Description == t.pool.base.Description; {
	case described && spec.noteDoubtful(t.pool.object) && !p.need(FullPools):
	case !described || spec.differs(t.pool.object) || t.pool.base.State == Failed:
		p.update(phasePool, t.pool.base, Step{Kind: KindPool, Pool: &spec, FormerMonitors: former})
	}
	return Ref{t.pool.base.ID, t.pool.base.Name}
}

func (p servicePlanner) buildService(t *target, pool Ref) {
	l := t.listener
	m := p.marker(t)
	m.Share, m.Filtered = p.d.Share, len(p.d.SourceRanges) > 0
	switch {
	case p.internal:
		m.Via = ViaInside
	case p.nat():
		m.Via = ViaNAT
	}
	spec := VirtualService{
		Object: Object{Description: m.String()}, VIPs: t.vips, Protocol: l.Protocol, Port: l.Port, Application: l.Application, SSL: l.Application.TLS(),
		Certificate: t.certificate, Pool: pool, EngineGroup: t.engine, Transparent: p.d.PreserveClientIP,
	}
	create := Step{Verb: Create, Kind: KindService, Name: nameFor(KindService, p.d.Owner, l.Key()), Service: &spec}
	switch {
	case !t.hasService():
		p.step(phaseCreate, create)
	case t.anew:
		p.remove(phaseFree, KindService, t.service.base)
		p.step(phaseFollow, create)
	default:
		spec.Description = describe(t.service.base.Description, m)
		if spec.Description != t.service.base.Description || spec.differs(t.service.object) || t.service.base.State == Failed {
			p.update(phaseSwitch, t.service.base, Step{Kind: KindService, Service: &spec})
		}
	}
}

// differs says whether a virtual service is not as the specification wants it. Whether it is enabled is left to people.
func (s VirtualService) differs(x VirtualService) bool {
	same := func(a, b netip.Addr) int { return a.Compare(b) }
	switch {
	case s.Protocol != x.Protocol, s.Port != x.Port, s.Application != x.Application, s.SSL != x.SSL, s.Transparent != x.Transparent:
		return true
	case s.Certificate.Name != x.Certificate.Name, s.Pool.ID == "" || s.Pool.ID != x.Pool.ID:
		return true
	}
	return !slices.Equal(slices.SortedFunc(slices.Values(s.VIPs), same), slices.SortedFunc(slices.Values(x.VIPs), same))
}

// buildForward makes the NAT rule that brings clients to a virtual service, and the port profile it refers to.
func (p servicePlanner) buildForward(t *target) {
	l, m := t.listener, p.marker(t)
	profile := Ref{t.profile.base.ID, t.profile.base.Name}
	spec := Profile{Object: Object{Description: describe(t.profile.base.Description, m)}, Protocol: l.Protocol, Port: l.Port}
	switch x := t.profile.object; {
	case !t.hasProfile():
		profile.Name = nameFor(KindProfile, p.d.Owner, l.Key())
		p.step(phaseForward, Step{Verb: Create, Kind: KindProfile, Name: profile.Name, Profile: &spec})
	case spec.Description != x.Description || x.Protocol != l.Protocol || x.Port != l.Port || x.State == Failed:
		p.update(phaseForward, x.Object, Step{Kind: KindProfile, Profile: &spec})
	}
	m.Share = p.d.Share
	rule := Rule{
		Object:   Object{Description: describe(t.rule.base.Description, m)},
		External: p.external[IPv4], Internal: t.vips[0], ExternalPort: l.Port, Profile: profile,
	}
	if !t.hasRule() {
		p.step(phaseForward, Step{Verb: Create, Kind: KindRule, Name: nameFor(KindRule, p.d.Owner, l.Key()), Rule: &rule})
	} else if rule.differs(t.rule.object) {
		p.update(phaseForward, t.rule.base, Step{Kind: KindRule, Rule: &rule})
	}
}

func (s Rule) differs(x Rule) bool {
	return s.Description != x.Description || s.External != x.External || s.Internal != x.Internal || s.ExternalPort != x.ExternalPort ||
		s.Profile.ID == "" || s.Profile.ID != x.Profile.ID || x.State == Failed
}
