package lb

import (
	"net/netip"
	"slices"
)

// An enginePlanner chooses a service engine group for each virtual service that is created.
type enginePlanner struct {
	*planner

	capacity map[string]int // how many virtual services the groups still take
}

// engines finds a service engine group for each virtual service that is to be made.
func (p *enginePlanner) engines() {
	p.removeObstacles()
	p.capacity = map[string]int{}
	for _, g := range p.o.Gateway.Groups {
		p.capacity[g.ID] = g.Max - g.Deployed
	}
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

func (p *enginePlanner) engine(t *target) {
	seen := false
	for _, g := range p.groups() {
		if p.d.EngineGroup != "" && g.Name != p.d.EngineGroup {
			continue
		}
		seen = true
		if replaces := t.anew && t.service.object.EngineGroup.ID == g.ID; g.Max > 0 && p.capacity[g.ID] <= 0 && !replaces {
			continue
		}
		t.engine = Ref{g.ID, g.Name}
		p.capacity[g.ID]--
		return
	}
	p.refuseEngine(seen)
}

func (p *enginePlanner) refuseEngine(seen bool) {
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
func (p *enginePlanner) groups() []EngineGroup {
	out := slices.Clone(p.o.Gateway.Groups)
	mine := func(g EngineGroup) int {
		if slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool { return vs.object.EngineGroup.ID == g.ID }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b EngineGroup) int { return mine(a) - mine(b) })
	return out
}

// obstacles finds virtual services of the owner on an address and port where another one of its is to be: they go first.
func (p *enginePlanner) removeObstacles() {
	var gone []owned[VirtualService]
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
		if i := slices.IndexFunc(p.own.services, func(x owned[VirtualService]) bool { return x.base.ID == vs.base.ID }); i >= 0 {
			p.own.services = slices.Delete(p.own.services, i, i+1)
			p.remove(phaseFree, KindService, vs.base)
		}
	}
}

// blocks says whether a virtual service is where that of a listener is to be.
func (p *enginePlanner) blocks(vs VirtualService, t *target) bool {
	samePort := vs.Protocol == t.listener.Protocol && vs.Port == t.listener.Port
	return (samePort || !p.c.SharedVIP) && slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(t.vips, a) })
}
