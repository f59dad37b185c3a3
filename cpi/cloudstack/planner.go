// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
)

// Reasons of findings.
const (
	// NoLoadBalancing means that the network cannot have load balancers, or lets no client in.
	NoLoadBalancing = "NetworkWithoutLoadBalancers"
	// AddressUnusable means that the requested address cannot be the load balancer's.
	AddressUnusable = "AddressUnusable"
	// AddressTakenOver means that an address that the original associated is released with its Service from now on.
	AddressTakenOver = "AddressTakenOver"
	// AddressStays means that an address is not released with its Service.
	AddressStays = "AddressStays"
	// PortTaken means that another rule has the port of the address.
	PortTaken = "PortTaken"
	// OpenedByOthers means that rules of others let in clients that the Service does not.
	OpenedByOthers = "OpenedByOthers"
	// NodeElsewhere means that a node is not in the network of the load balancer.
	NodeElsewhere = "NodeInOtherNetwork"
	// MachineNotShown means that the machine of a node is not among those that the user sees.
	MachineNotShown = "MachineNotShown"
)

// A view is what stands in a network, as it concerns one owner.
type view struct {
	*state

	want plan.Desired
	mine []cloudstack.Rule // of the owner
	// ids of the virtual machines of members in the network, and names of their Nodes; those elsewhere by name only.
	ids, names, elsewhere []string
	// hidden are the members whose virtual machines are not shown; stay are the ids of those with a provider ID.
	hidden []plan.Member
	stay   []string
}

func newView(s *state, want plan.Desired) *view {
	v := &view{state: s, want: want}
	v.mine = without(s.rules, func(r cloudstack.Rule) bool { return !v.owns(r) })
	return v
}

// A planner makes one plan: a pure function of what stands and what is desired.
type planner struct {
	*view

	extra extra
	// moved is the load balancer's address at its new location.
	moved []netip.Addr
	// closed are the ids of firewall rules that a step deletes.
	closed map[string]bool
	// opened are the firewall rules that steps create: one step tags them all.
	opened []cloudstack.Firewall
	out    plan.Plan
}

// followFor returns the plan for the members of what stands, whatever else is desired.
func followFor(s *state, want plan.Desired) plan.Plan {
	p := &planner{view: newView(s, want)}
	if p.setMembers(); p.blind() {
		p.out.Wait = noMachine
		return p.out
	}
	for _, r := range p.mine {
		p.follow(r)
	}
	return p.out
}

// planFor returns the plan for what is desired.
func planFor(s *state, want plan.Desired, moved []netip.Addr) plan.Plan {
	p := &planner{view: newView(s, want), moved: moved}
	p.extra, _ = want.Extra.(extra)
	if want.Absent {
		p.remove()
	} else {
		p.build()
	}
	p.out.Status.Objects = append(p.out.Status.Objects, p.objects()...)
	return p.out
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
		!slices.ContainsFunc(v.firewalls, func(f cloudstack.Firewall) bool {
			_, marked := markIn(f.Tags)
			return f.AddressID == a.ID && !marked
		})
}

// usedByOthers reports whether an address has rules of others.
func (v *view) usedByOthers(a cloudstack.Address) bool {
	return slices.ContainsFunc(v.rules, func(r cloudstack.Rule) bool { return r.Address == a.IPAddress && !v.owns(r) })
}

func contains(all []netip.Addr, text string) bool {
	return slices.ContainsFunc(all, func(a netip.Addr) bool { return a.String() == text })
}

func (p *planner) refuse(reason, format string, args ...any) {
	p.out.Refusals = append(p.out.Refusals, plan.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *planner) notice(reason, format string, args ...any) {
	p.out.Notices = append(p.out.Notices, plan.Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *planner) do(s step, format string, args ...any) {
	s.owner = p.want.Owner
	s.text = fmt.Sprintf(format, args...)
	p.out.Steps = append(p.out.Steps, s)
}

// build plans a load balancer.
func (p *planner) build() {
	p.setMembers()
	p.validate()
	target := p.target()
	if len(p.out.Refusals) > 0 || p.out.Wait != "" {
		p.status(target)
		return
	}
	if p.take(target); target == "" {
		return // the address is known then
	}
	for _, port := range p.want.Ports {
		p.serve(target, port)
	}
	if len(p.out.Refusals) > 0 {
		p.out.Steps = nil
		p.out.Intent = nil
		return
	}
	p.mark("tag the new firewall rules of "+target, target, p.opened...)
	p.removeStale(target)
	p.status(target)
	if p.out.Done() {
		p.out.Unused = without(p.want.Intent, func(a netip.Addr) bool { return a.String() == target && !p.want.Keep })
	}
}

func (p *planner) validate() {
	if !p.network.Has("Lb") {
		p.refuse(NoLoadBalancing,
			"network %s has no service Lb: choose another one by network in cloud-config or by the "+
				"annotation %snetwork-id, or give its offering that service", p.network.Name, prefix)
	}
	if p.filter() == closed {
		p.refuse(NoLoadBalancing, "the ACL list %s of network %s lets no client in and cannot be changed: give the "+
			"network a list of its own", p.network.ACLName, p.network.Name)
	}
	for _, r := range p.mine {
		if r.State == "Revoke" || r.State == "Deleting" {
			p.out.Wait = "rule " + r.Name + " is being removed"
		}
	}
	if p.blind() {
		p.out.Wait = noMachine
	}
}

// objects returns what stands of the owner.
func (p *planner) objects() []plan.Object {
	var out []plan.Object
	for _, r := range p.mine {
		out = append(out, plan.Object{
			Kind:      "rule",
			ID:        r.ID,
			Name:      r.Name,
			Addresses: parsed(r.Address),
			Inherited: p.inherited(r),
		})
	}
	for _, address := range p.addresses {
		if p.holds(address) {
			out = append(out, plan.Object{
				Kind:      "address",
				ID:        address.ID,
				Name:      address.IPAddress,
				Addresses: parsed(address.IPAddress),
			})
		}
	}
	return out
}

// status sets what clients can use.
func (p *planner) status(target string) {
	complete := target != ""
	for _, port := range p.want.Ports {
		s := plan.PortStatus{Protocol: port.Protocol, Port: port.Number}
		if i := p.standing(target, port); i < 0 {
			s.Problem = "NotBuilt"
			complete = false
		}
		p.out.Status.Ports = append(p.out.Status.Ports, s)
	}
	if a, err := netip.ParseAddr(target); err == nil && complete {
		p.out.Status.Addresses = []netip.Addr{a}
	}
}

// standing returns the index in mine of the rule of a port; less than 0 if there is none.
func (v *view) standing(target string, port plan.Port) int {
	return slices.IndexFunc(v.mine, func(r cloudstack.Rule) bool { return isAt(r, target, port) })
}

func protocolOf(port plan.Port) string { return strings.ToLower(string(port.Protocol)) }

// front describes a port for users.
func front(target string, port int, protocol string) string {
	return target + ":" + strconv.Itoa(port) + "/" + protocol
}
