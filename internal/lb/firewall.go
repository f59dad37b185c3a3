// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strconv"
)

// A firewallPlanner plans the rules of the firewall that admit only the source ranges.
type firewallPlanner struct{ *planner }

// plan plans two rules for each destination. A new rule comes before all others, so the one that drops is created
// before the one that admits, and when it has to be created again, so has the other.
func (p firewallPlanner) plan() {
	filtered := len(p.d.SourceRanges) > 0
	if !filtered && !p.wasFiltered() || !p.need(Firewall) || p.needs != 0 {
		return
	}
	if filtered {
		for _, d := range p.destinations() {
			p.rules(d)
		}
	}
	removeEach(p.planner, phaseRemove, KindFirewall, p.own.firewall)
}

// wasFiltered reports whether there may be rules of the owner, as virtual services show. As long as there are none,
// a former run may have been interrupted after it created rules.
func (p firewallPlanner) wasFiltered() bool {
	return len(p.all.services) == 0 && p.c.SourceRanges || len(p.all.firewall) > 0 ||
		slices.ContainsFunc(p.all.services, func(vs owned[VirtualService]) bool { return vs.marker.Filtered })
}

// destinations are the ports of each address and protocol, sorted as listeners are.
func (p firewallPlanner) destinations() []FirewallRule {
	var out []FirewallRule
	for _, t := range p.targets {
		for _, a := range t.vips {
			i := slices.IndexFunc(out,
				func(r FirewallRule) bool { return r.Destination == a && r.Protocol == t.listener.Protocol })
			if i < 0 {
				i = len(out)
				out = append(out, FirewallRule{Destination: a, Protocol: t.listener.Protocol})
			}
			out[i].Ports = append(out[i].Ports, t.listener.Port)
		}
	}
	return out
}

// rules plans the two rules of one destination, and takes those that exist.
func (p firewallPlanner) rules(destination FirewallRule) {
	drop := destination
	allow := destination
	for _, r := range p.d.SourceRanges {
		if FamilyOf(r.Addr()) == FamilyOf(destination.Destination) {
			allow.Sources = append(allow.Sources, r.Masked())
		}
	}
	slices.SortFunc(allow.Sources, netip.Prefix.Compare)
	allow.Sources = slices.Compact(allow.Sources)
	createDrop, dropKey := p.create("drop", drop)
	createAllow, allowKey := p.create("allow", allow)

	_, dropped := p.effective(dropKey, true)
	oldAllow, allowed := p.effective(allowKey, false)
	if !dropped {
		p.step(phaseFirewall, createDrop)
		if allowed {
			p.remove(phaseFirewall, KindFirewall, oldAllow.Object)
			allowed = false
		}
	}
	switch {
	case len(allow.Sources) > 0 && !allowed:
		p.step(phaseFirewall, createAllow)
	case len(allow.Sources) == 0 && allowed:
		p.own.firewall = append(p.own.firewall, oldAllow)
	}
}

// effective takes the rule that has a key, if it exists and does what it shall. One that was switched off, or given
// another action, is removed.
func (p firewallPlanner) effective(key string, drops bool) (owned[FirewallRule], bool) {
	r, found := take(&p.own.firewall, key)
	if found && (r.object.Disabled || r.object.Drops != drops) {
		p.remove(phaseFirewall, KindFirewall, r.Object)
		found = false
	}
	return r, found
}

// create returns the step that creates a rule, and the key by which it is found: a hash of everything that the rule
// does.
func (p firewallPlanner) create(what string, r FirewallRule) (create Step, key string) {
	w := []string{what, r.Destination.String(), string(r.Protocol)}
	for _, port := range r.Ports {
		w = append(w, strconv.Itoa(port))
	}
	for _, s := range r.Sources {
		w = append(w, s.String())
	}
	key = short(w...)
	r.Description = Marker{Owner: p.d.Owner, Listener: key}.String()
	name := nameFor(KindFirewall, p.d.Owner, what+"-"+key)
	return Step{Verb: Create, Kind: KindFirewall, Name: name, Firewall: &r}, key
}
