// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// A view is the part of a network's state that concerns one owner.
type view struct {
	state *state
	want  service.Desired
	mine  []cloudstack.Rule // rules of the owner
	// ids are the virtual machines of members in the network, and names their Nodes. elsewhere are the Nodes of members
	// in other networks.
	ids, names, elsewhere []string
	// hidden are the members whose virtual machines are not visible. stay are the machine IDs of those with a provider
	// ID.
	hidden []service.Member
	stay   []string
}

func newView(s *state, want service.Desired) *view {
	v := &view{state: s, want: want}
	v.mine = without(s.rules, func(r cloudstack.Rule) bool { return !v.owns(r) })
	return v
}

// owns reports whether a rule belongs to the owner.
func (v *view) owns(r cloudstack.Rule) bool { return ownedBy(r, v.want.Owner) }

// inherited reports whether a rule was created for the owner by the original controller, or by the in-tree provider of
// Kubernetes before it.
func (v *view) inherited(r cloudstack.Rule) bool { return inheritedBy(r, v.want.Owner) }

// holds reports whether an address carries the owner's marker.
func (v *view) holds(a cloudstack.Address) bool {
	m, marked := markerOf(a)
	return marked && same(m.owner, v.want.Owner)
}

// intended reports whether an address was about to be associated for the owner, and nothing else uses it. An address
// gets its marker before anything else, so unmarked objects at it belong to others.
func (v *view) intended(a cloudstack.Address) bool {
	_, marked := markerOf(a)
	return !marked && !a.IsSourceNAT && !a.IsStaticNAT && contains(v.want.Intent, a.IPAddress) && !v.usedByOthers(a) &&
		!slices.ContainsFunc(v.state.firewalls, func(f cloudstack.Firewall) bool {
			_, marked := markerIn(f.Tags)
			return f.AddressID == a.ID && !marked
		})
}

// usedByOthers reports whether an address has rules of other owners.
func (v *view) usedByOthers(a cloudstack.Address) bool {
	return slices.ContainsFunc(v.state.rules, func(r cloudstack.Rule) bool { return r.Address == a.IPAddress && !v.owns(r) })
}

// hasRules reports whether the owner has rules at an address.
func (v *view) hasRules(a cloudstack.Address) bool {
	return slices.ContainsFunc(v.mine, func(r cloudstack.Rule) bool { return r.Address == a.IPAddress })
}

// current returns the address that the load balancer has, or that was associated for it. It returns an empty string if
// there is none.
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

// serves reports whether an address is also used for something else. CloudStack removes all its rules with an address.
func (v *view) serves(a cloudstack.Address) bool {
	return a.IsSourceNAT || a.IsStaticNAT || v.usedByOthers(a) || slices.Contains(v.state.shared, a.ID)
}

// ruleIndex returns the index in mine of the rule for a port, or a negative number.
func (v *view) ruleIndex(target string, port service.Port) int {
	return slices.IndexFunc(v.mine, func(r cloudstack.Rule) bool { return isAt(r, target, port) })
}

// needsFree reports whether the plan depends on the list of free addresses.
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

// isAt reports whether a rule serves a port of an address.
func isAt(r cloudstack.Rule, target string, port service.Port) bool {
	return r.Address == target && int(r.PublicPort) == port.Number && transport(r.Protocol) == protocolOf(port)
}

// releasing reports whether CloudStack is releasing an address. Then it refuses to use it or to release it again.
func releasing(a cloudstack.Address) bool { return strings.EqualFold(a.State, "Releasing") }

func protocolOf(port service.Port) string { return strings.ToLower(string(port.Protocol)) }
