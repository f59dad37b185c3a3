// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// planFirewall plans firewall rules that admit only the source ranges, two per destination. A new rule is placed before
// all others, so the drop rule is created before the allow rule. If the drop rule must be recreated, so must the allow
// rule.
func planFirewall(in input, bindings []binding) outcome {
	filtered := len(in.desired.SourceRanges) > 0
	f := filter{
		in:   in,
		left: in.owned.firewall,
		out:  in.outcome(),
	}
	if !filtered && !wasFiltered(in) || !f.out.need(Firewall) {
		return f.out
	}
	if filtered {
		for _, d := range destinations(bindings) {
			f.admit(d)
		}
	}
	removeEach(&f.out, phaseRemove, KindFirewall, f.left)
	return f.out
}

// wasFiltered reports whether the owner may have firewall rules, according to its virtual services. Without virtual
// services it may also have some, because a previous run may have been interrupted after it created rules.
func wasFiltered(in input) bool {
	return len(in.owned.services) == 0 && in.can.SourceRanges || len(in.owned.firewall) > 0 ||
		slices.ContainsFunc(in.owned.services, func(vs owned[VirtualService]) bool { return vs.marker.Filtered })
}

// destinations returns the ports of each address and protocol, in the order of the listeners.
func destinations(bindings []binding) []FirewallRule {
	var out []FirewallRule
	for _, b := range bindings {
		for _, a := range b.vips {
			i := slices.IndexFunc(out,
				func(r FirewallRule) bool { return r.Destination == a && r.Protocol == b.listener.Protocol })
			if i < 0 {
				i = len(out)
				out = append(out, FirewallRule{
					Destination: a,
					Protocol:    b.listener.Protocol,
				})
			}
			out[i].Ports = append(out[i].Ports, b.listener.Port)
		}
	}
	return out
}

// A filter plans the rules, one destination after the other.
type filter struct {
	in   input
	left []owned[FirewallRule] // existing rules that no destination has taken
	out  outcome
}

// admit plans the two rules of a destination, and reuses existing ones.
func (f *filter) admit(destination FirewallRule) {
	allow := destination
	allow.Sources = sourcesFor(destination.Destination, f.in.desired.SourceRanges)
	createDrop, dropKey := createRule(f.in.desired.Owner, "drop", destination)
	createAllow, allowKey := createRule(f.in.desired.Owner, "allow", allow)

	_, dropped := f.effective(dropKey, true)
	oldAllow, allowed := f.effective(allowKey, false)
	if !dropped {
		f.out.step(phaseFirewall, createDrop)
		if allowed {
			f.out.remove(phaseFirewall, KindFirewall, oldAllow.Object)
			allowed = false
		}
	}
	switch {
	case len(allow.Sources) > 0 && !allowed:
		f.out.step(phaseFirewall, createAllow)
	case len(allow.Sources) == 0 && allowed:
		f.left = append(f.left, oldAllow)
	}
}

// effective takes the rule with a key, if it exists and has the desired effect. It removes a rule that was disabled or
// has another action.
func (f *filter) effective(key string, drops bool) (owned[FirewallRule], bool) {
	r, left := take(f.left, key)
	f.left = left
	if r.exists() && (r.object.Disabled || r.object.Drops != drops) {
		f.out.remove(phaseFirewall, KindFirewall, r.Object)
		return owned[FirewallRule]{}, false
	}
	return r, r.exists()
}

// sourcesFor returns the distinct ranges in the family of a destination, sorted.
func sourcesFor(destination netip.Addr, ranges []netip.Prefix) []netip.Prefix {
	var sources []netip.Prefix
	for _, r := range ranges {
		if loadbalancer.FamilyOf(r.Addr()) == loadbalancer.FamilyOf(destination) {
			sources = append(sources, r.Masked())
		}
	}
	slices.SortFunc(sources, netip.Prefix.Compare)
	return slices.Compact(sources)
}

// createRule returns the step that creates a rule, and the key that identifies it: a hash of its whole effect.
func createRule(owner loadbalancer.Owner, action string, r FirewallRule) (create Step, key string) {
	hashed := []string{action, r.Destination.String(), string(r.Protocol)}
	for _, port := range r.Ports {
		hashed = append(hashed, strconv.Itoa(port))
	}
	for _, s := range r.Sources {
		hashed = append(hashed, s.String())
	}
	key = short(hashed...)
	r.Description = Marker{Owner: owner, Listener: key}.String()
	return Step{
		Verb:     Create,
		Kind:     KindFirewall,
		Name:     nameFor(KindFirewall, owner, action+"-"+key),
		Firewall: &r,
	}, key
}
