package lb

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A firewallPlanner plans the rules of the firewall that admit only the source ranges.
type firewallPlanner struct{ *planner }

// guard sees to the rules of the firewall that let only the source ranges in. A new rule comes before all others, so the rule that keeps
// away is made before the one that lets in, and when it has to be made again, so is the other.
func (p firewallPlanner) rules() {
	filtered := len(p.d.SourceRanges) > 0
	if !filtered && !p.wasFiltered() {
		return
	}
	if !p.need(Firewall) || p.needs != 0 {
		return
	}
	stale := p.own.firewall
	p.own.firewall = nil
	if filtered {
		for _, g := range p.destinations() {
			stale = p.destination(g, stale)
		}
	}
	for _, x := range stale {
		p.remove(phaseRemove, KindFirewall, x.base)
	}
}

// wasGuarded says whether there may be rules of the owner, as virtual services say. As long as there are none, whoever made rules first may
// have died meanwhile.
func (p firewallPlanner) wasFiltered() bool {
	return len(p.all.services) == 0 && p.c.SourceRanges || len(p.all.firewall) > 0 ||
		slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool { return vs.marker.Filtered })
}

// A gate is what the firewall guards: ports of a protocol on an address.
type destination struct {
	address  netip.Addr
	protocol Protocol
	ports    []int
}

// gates are sorted, as listeners are.
func (p firewallPlanner) destinations() []destination {
	var out []destination
	for _, t := range p.targets {
		for _, a := range t.vips {
			i := slices.IndexFunc(out, func(g destination) bool { return g.address == a && g.protocol == t.listener.Protocol })
			if i < 0 {
				i = len(out)
				out = append(out, destination{address: a, protocol: t.listener.Protocol})
			}
			out[i].ports = append(out[i].ports, t.listener.Port)
		}
	}
	return out
}

// gate sees to the two rules of one gate, and returns what is left of those that are there.
func (p firewallPlanner) destination(g destination, stale []owned[FirewallRule]) []owned[FirewallRule] {
	var sources []netip.Prefix
	for _, r := range p.d.SourceRanges {
		if FamilyOf(r.Addr()) == FamilyOf(g.address) {
			sources = append(sources, r.Masked())
		}
	}
	slices.SortFunc(sources, netip.Prefix.Compare)
	sources = slices.Compact(sources)
	drop := p.firewallStep("drop", FirewallRule{Destination: g.address, Protocol: g.protocol, Ports: g.ports})
	allow := p.firewallStep("allow", FirewallRule{Destination: g.address, Protocol: g.protocol, Ports: g.ports, Sources: sources})

	oldDrop, dropped := take(&stale, drop.key())
	oldAllow, allowed := take(&stale, allow.key())
	if !dropped || oldDrop.base.State == Failed {
		p.step(phaseFirewall, drop)
		if allowed {
			p.remove(phaseFirewall, KindFirewall, oldAllow.base)
			allowed = false
		}
	}
	if len(sources) > 0 && !allowed {
		p.step(phaseFirewall, allow)
	}
	if len(sources) == 0 && allowed {
		stale = append(stale, oldAllow)
	}
	return stale
}

// key is the word in the marker by which the rule is found: the name says all that the rule does.
func (s Step) key() string { return s.Name[strings.LastIndex(s.Name, "-")+1:] }

func (p firewallPlanner) firewallStep(what string, spec FirewallRule) Step {
	w := []string{what, spec.Destination.String(), string(spec.Protocol)}
	for _, port := range spec.Ports {
		w = append(w, strconv.Itoa(port))
	}
	for _, s := range spec.Sources {
		w = append(w, s.String())
	}
	hash := short(w...)
	spec.Description = Marker{Owner: p.d.Owner, Listener: hash}.String()
	return Step{Verb: Create, Kind: KindFirewall, Name: nameFor(KindFirewall, p.d.Owner, what+"-"+hash), Firewall: &spec}
}
