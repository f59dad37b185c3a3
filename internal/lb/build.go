package lb

import (
	"net/netip"
	"slices"
	"strings"
)

// certificates finds the certificates of the listeners, and imports those that are not in the library yet.
func (p *planner) certificates() {
	imported := map[string]bool{}
	for _, t := range p.targets {
		c := t.listener.Certificate
		if !t.listener.Application.TLS() {
			continue
		}
		alias := c.Alias
		if alias == "" {
			alias = nameFor(KindCertificate, p.d.Owner, short(c.Chain))
		}
		t.certificate = Ref{Name: alias}
		if have := t.service.object.Certificate; c.Alias != "" && have.Name == alias {
			t.certificate = have
			continue
		}
		if p.need(Certificates) && !imported[alias] {
			imported[alias] = p.findCertificate(t, c)
		} else if p.o.Known.Has(Certificates) {
			p.findCertificate(t, Certificate{Alias: alias})
		}
	}
	if slices.ContainsFunc(p.all.services, func(vs held[VirtualService]) bool { return p.imports(vs.object.Certificate.Name) }) {
		p.need(Certificates)
	}
}

// imports says whether an alias is one that imports for the owner have.
func (p *planner) imports(alias string) bool { return Imported(p.d.Owner, alias) }

// Imported says whether an alias is one that imports for an owner have.
func Imported(o Owner, alias string) bool {
	prefix := nameFor(KindCertificate, o, "")
	if o.Name == "" {
		prefix = prefixes[KindCertificate] // a long marker leaves out what the name was made of
	}
	return o.Cluster != "" && strings.HasPrefix(alias, prefix)
}

// findCertificate looks for the certificate of a target in the library. It returns true if it is imported by this plan.
func (p *planner) findCertificate(t *target, c Certificate) bool {
	var found []CertificateItem
	for _, x := range p.o.Certificates {
		if x.Name == t.certificate.Name {
			found = append(found, x)
		}
	}
	if len(found) == 1 {
		t.certificate.ID = found[0].ID
		return false
	}
	switch {
	case len(found) > 1:
		p.refuse(CertificateUnknown, "the certificate library has several certificates with the alias %q: give them different ones", t.certificate.Name)
	case c.Chain != "":
		m := Marker{Owner: p.d.Owner}
		p.step(phasePrepare, Step{
			Verb: Create, Kind: KindCertificate, Name: t.certificate.Name, Certificate: &CertificateItem{Object{Description: m.String()}, c.Chain, c.Key},
		})
		return true
	case !p.imports(t.certificate.Name):
		p.refuse(CertificateUnknown, "the certificate library has no certificate with the alias %q that the user can see: upload it, or correct the annotation", t.certificate.Name)
	}
	return false
}

// engines finds a service engine group for each virtual service that is to be made.
func (p *planner) engines() {
	p.obstacles()
	for _, t := range p.targets {
		have := t.service.object.EngineGroup
		if t.engine = have; p.d.EngineGroup != "" && have.Name != "" && have.Name != p.d.EngineGroup {
			t.anew = true
		}
		if (!t.hasService() || t.anew) && p.need(EngineGroups) {
			p.engine(t)
		}
	}
}

func (p *planner) engine(t *target) {
	if p.rooms == nil {
		p.rooms = map[string]int{}
		for _, g := range p.o.Gateway.Groups {
			p.rooms[g.ID] = g.Max - g.Deployed
		}
	}
	seen := false
	for _, g := range p.groups() {
		if p.d.EngineGroup != "" && g.Name != p.d.EngineGroup {
			continue
		}
		seen = true
		if replaces := t.anew && t.service.object.EngineGroup.ID == g.ID; g.Max > 0 && p.rooms[g.ID] <= 0 && !replaces {
			continue
		}
		t.engine = Ref{g.ID, g.Name}
		p.rooms[g.ID]--
		return
	}
	p.refuseEngine(seen)
}

func (p *planner) refuseEngine(seen bool) {
	switch {
	case seen:
		p.refuse(NoEngineGroup, "no service engine group of the edge gateway has room for another virtual service: ask the provider for more")
	case p.d.EngineGroup != "":
		p.refuse(NoEngineGroup, "the service engine group %q is not assigned to the edge gateway: correct the annotation, or ask the provider to assign it", p.d.EngineGroup)
	default:
		p.refuse(NoEngineGroup, "no service engine group is assigned to the edge gateway: ask the provider to assign one")
	}
}

// groups are the engine groups: those first that the load balancer is on already.
func (p *planner) groups() []EngineGroup {
	out := slices.Clone(p.o.Gateway.Groups)
	mine := func(g EngineGroup) int {
		if slices.ContainsFunc(p.all.services, func(vs held[VirtualService]) bool { return vs.object.EngineGroup.ID == g.ID }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b EngineGroup) int { return mine(a) - mine(b) })
	return out
}

// obstacles finds virtual services of the owner on an address and port where another one of its is to be: they go first.
func (p *planner) obstacles() {
	var gone []held[VirtualService]
	for _, t := range p.targets {
		for _, u := range p.targets {
			if u != t && u.hasService() && p.blocks(u.service.object, t) {
				u.anew = true
			}
		}
		for _, vs := range p.own.services {
			if p.blocks(vs.object, t) {
				gone = append(gone, vs)
			}
		}
	}
	for _, vs := range gone {
		if i := slices.IndexFunc(p.own.services, func(x held[VirtualService]) bool { return x.base.ID == vs.base.ID }); i >= 0 {
			p.own.services = slices.Delete(p.own.services, i, i+1)
			p.remove(phaseFree, KindService, vs.base)
		}
	}
}

// blocks says whether a virtual service is where that of a listener is to be.
func (p *planner) blocks(vs VirtualService, t *target) bool {
	samePort := vs.Protocol == t.listener.Protocol && vs.Port == t.listener.Port
	return (samePort || !p.c.SharedVIP) && slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(t.vips, a) })
}

func (p *planner) remove(ph phase, kind Kind, o Object) {
	p.step(ph, Step{Verb: Delete, Kind: kind, Name: o.Name, ID: o.ID})
}

// update lets an object follow what is wanted.
func (p *planner) update(ph phase, o Object, s Step) {
	s.Verb, s.Name, s.ID, s.Repair = Update, o.Name, o.ID, o.State == Failed
	p.step(ph, s)
}

// build makes pools, virtual services and NAT rules, or lets them follow what is wanted.
func (p *planner) build() {
	if p.needs != 0 {
		return
	}
	members := p.poolMembers()
	for _, t := range p.targets {
		pool := p.buildPool(t, members)
		p.buildService(t, pool)
		if p.nat() {
			p.buildForward(t)
		}
	}
}

func (p *planner) marker(t *target) Marker {
	return Marker{Owner: p.d.Owner, Listener: t.listener.Key()}
}

func (p *planner) buildPool(t *target, members []netip.Addr) Ref {
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
	case described && spec.doubts(t.pool.object) && !p.need(FullPools):
	case !described || spec.differs(t.pool.object) || t.pool.base.State == Failed:
		p.update(phasePool, t.pool.base, Step{Kind: KindPool, Pool: &spec, FormerMonitors: former})
	}
	return Ref{t.pool.base.ID, t.pool.base.Name}
}

func (p *planner) buildService(t *target, pool Ref) {
	l := t.listener
	m := p.marker(t)
	m.Share, m.Filtered = p.d.Share, len(p.d.SourceRanges) > 0
	switch {
	case p.inward:
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
func (p *planner) buildForward(t *target) {
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
