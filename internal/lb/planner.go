// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// A design is the desired load balancer, as far as it is decided. Each field is set by one function, in this order.
type design struct {
	frontend     frontend
	bindings     []binding
	unbound      inventory // objects that no listener uses
	nodes        nodeSet
	certificates map[string]Ref       // by key of the listener
	placements   map[string]placement // by key of the listener
	pools        map[string]Ref       // by key of the listener
	intent       []netip.Addr
}

// Make plans the steps from the observed to the desired state. It is pure and total: any input results in a plan.
func Make(d Desired, o Observed, c Capabilities) Plan {
	in := newInput(d, o, c)
	if d.Absent {
		return planAbsence(in)
	}
	lb, all := decide(in)
	if !all.blocked() {
		intent, claims := planClaims(in, lb.frontend)
		lb.intent = intent
		all.add(claims)
		all.add(planServices(in, lb))
		all.add(planForwarding(in, lb))
		all.add(removeUnbound(in, lb))
	}
	return conclude(in, lb, all)
}

// decide computes the design. It stops at the first refusal after which the rest cannot be decided.
func decide(in input) (design, outcome) {
	var lb design
	families, all := validate(in)
	if in.owned.unread { // the owners of the objects are not known yet
		all.need(FullPools)
	}
	if all.blocked() {
		return lb, all
	}
	if all.add(reportForeign(in)); all.blocked() {
		return lb, all
	}
	var out outcome
	lb.frontend, out = chooseAddresses(in, families)
	if all.add(out); all.stops() {
		return lb, all
	}
	lb.bindings, lb.unbound, out = bindListeners(in, lb.frontend)
	if all.add(out); all.stops() {
		return lb, all
	}
	return equip(in, lb, all)
}

// equip decides on the objects of listeners whose addresses are known.
func equip(in input, lb design, all outcome) (design, outcome) {
	var out outcome
	if in.can.MemberSets && !in.desired.OwnMembers {
		lb.nodes, out = planNodeSet(in, lb.frontend.families[0])
		all.add(out)
	}
	lb.certificates, out = planCertificates(in, lb.bindings)
	if all.add(out); all.stops() {
		return lb, all
	}
	lb.placements, lb.unbound, out = placeServices(in, lb.bindings, lb.unbound)
	if all.add(out); all.stops() {
		return lb, all
	}
	if all.needs == 0 { // pools are read in full only when nothing else is missing
		lb.pools, out = planPools(in, lb)
		all.add(out)
	}
	all.add(planFirewall(in, lb.bindings))
	return lb, all
}
