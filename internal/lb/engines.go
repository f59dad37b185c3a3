// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A placement is the service engine group for the virtual service of a listener, and how the virtual service gets
// there.
type placement struct {
	engine Ref
	// replace is set if the virtual service is recreated instead of updated. move is set if it shares its address and
	// VCD cannot change a shared address. Such virtual services are also recreated, but one after the other.
	replace, move bool
}

// placeServices decides how each virtual service reaches its desired place, and chooses a service engine group for each
// one that is created. It returns the unbound objects without those that must be removed before others are created.
func placeServices(in input, bindings []binding, unbound inventory) (map[string]placement, inventory, outcome) {
	p := placer{
		in:       in,
		bindings: bindings,
		planned:  map[string]int{},
		out:      in.outcome(),
	}
	replaced := p.replaced()
	unbound.services = p.removeObstacles(unbound.services)
	placements := map[string]placement{}
	for _, b := range bindings {
		x := placement{engine: b.service.object.EngineGroup}
		x.replace = replaced[b.key()] || p.isElsewhere(x.engine)
		x.move = !x.replace && !in.can.MovesSharedVIP && p.isFixed(b)
		if (!b.service.exists() || x.replace) && p.out.need(EngineGroups) {
			x.engine = p.choose(x)
		}
		placements[b.key()] = x
	}
	return placements, unbound, p.out
}

// A placer chooses service engine groups, one virtual service after the other.
type placer struct {
	in       input
	bindings []binding
	planned  map[string]int // number of virtual services that the plan creates, by group
	out      outcome
}

// isElsewhere reports whether an engine group differs from the requested one.
func (p *placer) isElsewhere(engine Ref) bool {
	asked := p.in.desired.EngineGroup
	return asked != "" && engine.Name != "" && !isNamed(engine.ID, engine.Name, asked)
}

// replaced returns the keys of listeners whose virtual services occupy the desired place of another listener.
func (p *placer) replaced() map[string]bool {
	replaced := map[string]bool{}
	for _, b := range p.bindings {
		for _, other := range p.bindings {
			if other.key() != b.key() && other.service.exists() && p.blocks(other.service.object, b) {
				replaced[other.key()] = true
			}
		}
	}
	return replaced
}

// removeObstacles removes unbound virtual services from an address and port that a listener needs. It returns the
// others.
func (p *placer) removeObstacles(unbound []owned[VirtualService]) []owned[VirtualService] {
	rest := unbound
	for _, b := range p.bindings {
		var free []owned[VirtualService]
		for _, vs := range rest {
			if p.blocks(vs.object, b) {
				p.out.remove(phaseFree, KindService, vs.Object)
			} else {
				free = append(free, vs)
			}
		}
		rest = free
	}
	return rest
}

// blocks reports whether a virtual service occupies the desired place of a listener.
func (p *placer) blocks(vs VirtualService, b binding) bool {
	samePort := vs.Protocol == b.listener.Protocol && vs.Port == b.listener.Port
	return (samePort || !p.in.can.SharedVIP) &&
		slices.ContainsFunc(vs.VIPs, func(a netip.Addr) bool { return slices.Contains(b.vips, a) })
}

// isFixed reports whether a listener's virtual service needs other addresses but shares its current ones, now or before
// it is updated.
func (p *placer) isFixed(b binding) bool {
	have := b.service.object
	if !b.service.exists() || slices.Equal(sorted(have.VIPs), sorted(b.vips)) {
		return false
	}
	return slices.ContainsFunc(have.VIPs, func(a netip.Addr) bool {
		isOthers := func(u loadbalancer.Use) bool { return u.Address == a && u.Kind == KindService }
		isAnotherListeners := func(x binding) bool { return x.key() != b.key() && slices.Contains(x.vips, a) }
		isAnotherServices := func(x owned[VirtualService]) bool { return x.ID != have.ID && slices.Contains(x.object.VIPs, a) }
		return slices.ContainsFunc(p.in.owned.others, isOthers) ||
			slices.ContainsFunc(p.bindings, isAnotherListeners) ||
			slices.ContainsFunc(p.in.owned.services, isAnotherServices)
	})
}

// choose returns the first suitable engine group with free capacity. A virtual service that is recreated may stay in
// its group.
func (p *placer) choose(x placement) Ref {
	asked := p.in.desired.EngineGroup
	chosen, shortage := ChooseEngineGroup(p.groups(x), asked)
	switch shortage {
	case AllGroupsFull:
		p.out.refuse(EngineGroupUnavailable,
			"no service engine group of the edge gateway has capacity for another virtual service: ask the provider for more")
		return x.engine
	case GroupNotAssigned:
		p.out.refuse(EngineGroupUnavailable,
			"the service engine group %q is not assigned to the edge gateway: correct its name, or ask the provider to assign it", asked)
		return x.engine
	case NoGroupAssigned:
		p.out.refuse(EngineGroupUnavailable,
			"no service engine group is assigned to the edge gateway: ask the provider to assign one")
		return x.engine
	case NoShortage:
	}
	p.planned[chosen.ID]++
	return Ref{chosen.ID, chosen.Name}
}

// A Shortage is the reason why an edge gateway has no service engine group for another virtual service.
type Shortage string

// Shortages of service engine groups.
const (
	NoShortage       Shortage = ""
	NoGroupAssigned  Shortage = "none is assigned"
	GroupNotAssigned Shortage = "the requested one is not assigned"
	AllGroupsFull    Shortage = "none has free capacity"
)

// ChooseEngineGroup returns the first group with capacity for another virtual service. asked is the name or URN of the
// requested group, or empty for any group. If all groups are full, it returns the first one.
func ChooseEngineGroup(groups []EngineGroup, asked string) (EngineGroup, Shortage) {
	var full []EngineGroup
	for _, g := range groups {
		if asked != "" && !isNamed(g.ID, g.Name, asked) {
			continue
		}
		if g.Max == 0 || g.Deployed < g.Max {
			return g, NoShortage
		}
		full = append(full, g)
	}
	switch {
	case len(full) > 0:
		return full[0], AllGroupsFull
	case asked != "":
		return EngineGroup{}, GroupNotAssigned
	}
	return EngineGroup{}, NoGroupAssigned
}

// groups returns the engine groups, including the planned virtual services in their numbers. Groups that the load
// balancer already uses come first. A virtual service that is replaced always fits into its current group.
func (p *placer) groups(x placement) []EngineGroup {
	groups := slices.Clone(p.in.observed.Gateway.Groups)
	for i := range groups {
		groups[i].Deployed += p.planned[groups[i].ID]
		if x.replace && groups[i].ID == x.engine.ID {
			groups[i].Max = 0
		}
	}
	rank := func(g EngineGroup) int {
		if slices.ContainsFunc(p.in.owned.services,
			func(vs owned[VirtualService]) bool { return vs.object.EngineGroup.ID == g.ID }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(groups, func(a, b EngineGroup) int { return cmp.Compare(rank(a), rank(b)) })
	return groups
}
