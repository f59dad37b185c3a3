// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// A view is what stands in a network, as it concerns one owner.
type view struct {
	state *state
	want  service.Desired
	mine  []cloudstack.Rule // of the owner
	// ids of the virtual machines of members in the network, and names of their Nodes; those elsewhere by name only.
	ids, names, elsewhere []string
	// hidden are the members whose virtual machines are not shown; stay are the ids of those with a provider ID.
	hidden []service.Member
	stay   []string
}

func newView(s *state, want service.Desired) *view {
	v := &view{state: s, want: want}
	v.mine = without(s.rules, func(r cloudstack.Rule) bool { return !v.owns(r) })
	return v
}

// owns reports whether a rule is the owner's.
func (v *view) owns(r cloudstack.Rule) bool { return ownedBy(r, v.want.Owner) }

// inherited reports whether the original, or the provider in Kubernetes before it, made a rule for the owner.
func (v *view) inherited(r cloudstack.Rule) bool { return inheritedBy(r, v.want.Owner) }

// holds reports whether an address carries the mark of the owner.
func (v *view) holds(a cloudstack.Address) bool {
	m, marked := holder(a)
	return marked && same(m.owner, v.want.Owner)
}

// intended reports whether an address was about to be associated for the owner, and is of no use to others. It got its
// mark before anything else: what is there without one is others'.
func (v *view) intended(a cloudstack.Address) bool {
	_, marked := holder(a)
	return !marked && !a.IsSourceNAT && !a.IsStaticNAT && contains(v.want.Intent, a.IPAddress) && !v.usedByOthers(a) &&
		!slices.ContainsFunc(v.state.firewalls, func(f cloudstack.Firewall) bool {
			_, marked := markIn(f.Tags)
			return f.AddressID == a.ID && !marked
		})
}

// usedByOthers reports whether an address has rules of others.
func (v *view) usedByOthers(a cloudstack.Address) bool {
	return slices.ContainsFunc(v.state.rules, func(r cloudstack.Rule) bool { return r.Address == a.IPAddress && !v.owns(r) })
}

// hasRules reports whether rules of the owner are at an address.
func (v *view) hasRules(a cloudstack.Address) bool {
	return slices.ContainsFunc(v.mine, func(r cloudstack.Rule) bool { return r.Address == a.IPAddress })
}

// current returns the address that the load balancer has, or that was associated for it; empty if there is none.
func (v *view) current() string {
	serving := func(a cloudstack.Address) bool { return v.holds(a) && v.hasRules(a) }
	for _, fits := range []func(cloudstack.Address) bool{serving, v.holds, v.hasRules, v.intended} {
		for _, a := range v.state.addresses {
			if v.state.here(a) && fits(a) && !releasing(a) {
				return a.IPAddress
			}
		}
	}
	return ""
}

func (v *view) isFree(ip string) bool {
	return slices.ContainsFunc(v.state.free, func(a cloudstack.Address) bool { return a.IPAddress == ip })
}

// serves reports whether an address serves others, too: CloudStack removes all that with an address.
func (v *view) serves(a cloudstack.Address) bool {
	return a.IsSourceNAT || a.IsStaticNAT || v.usedByOthers(a) || slices.Contains(v.state.shared, a.ID)
}

// standing returns the index in mine of the rule of a port; less than 0 if there is none.
func (v *view) standing(target string, port service.Port) int {
	return slices.IndexFunc(v.mine, func(r cloudstack.Rule) bool { return isAt(r, target, port) })
}

// needsFree reports whether the plan depends on which addresses are free.
func needsFree(s *state, want service.Desired) bool {
	if want.Absent {
		return false
	}
	if len(want.Requested) > 0 {
		_, found := s.address(want.Requested[0].String())
		return !found
	}
	return newView(s, want).current() == ""
}

// isAt reports whether a rule is at a port of an address.
func isAt(r cloudstack.Rule, target string, port service.Port) bool {
	return r.Address == target && int(r.PublicPort) == port.Number && transport(r.Protocol) == protocolOf(port)
}

// releasing reports whether CloudStack is releasing an address: it refuses to use it, and to release it twice.
func releasing(a cloudstack.Address) bool { return strings.EqualFold(a.State, "Releasing") }

func protocolOf(port service.Port) string { return strings.ToLower(string(port.Protocol)) }
