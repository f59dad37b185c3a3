// SPDX-License-Identifier: Apache-2.0

// Package lb is the model of a load balancer on an edge gateway, and its planner: what is desired ([Desired]) and
// what is observed ([Observed]) make a [Plan], an ordered list of steps. It is pure: it knows neither Kubernetes
// nor the calls of VCD, and gives the same plan for the same input. A caller observes, makes a plan, runs its steps
// and repeats that until the plan is empty; removal is the plan for [Desired.Absent]. A plan may be interrupted
// after any step: the next one continues from what is observed.
//
// The planner ([Make]) is a row of functions, each in the file of its subject. They take the input and what earlier ones
// decided, and return what they decide and an outcome: missing facts, refusals, notices, steps. None changes what
// another returned; the outcomes are put together in [Make] and its helpers only.
package lb

import (
	"net/netip"
	"slices"
)

// A Plan is what to do next.
type Plan struct {
	// Needs are facts to observe first. Then there is nothing else in the plan.
	Needs Facts
	// Refusals explain why the load balancer cannot be as desired. Then there are no steps: what exists stays.
	Refusals []Finding
	// Notices explain what is done otherwise than desired.
	Notices []Finding
	// Intent are the addresses to store on the Service before any step runs; empty if they are stored already.
	Intent []netip.Addr
	// Unused are stored addresses that the load balancer has left, when nothing else is to do. They have to be
	// removed from the Service: their next user would be taken for it.
	Unused []netip.Addr
	// Steps in their order. Stopping after any of them does no harm.
	Steps []Step
	// Stuck names what VCD fails to realize, when there are no steps: the load balancer exists, but not as desired.
	Stuck []Finding
	// Wait names what VCD is still working on, when there are no steps; else it is empty.
	Wait string
	// Status of the load balancer as observed.
	Status Status
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool {
	return p.Needs == 0 && len(p.Refusals) == 0 && len(p.Intent) == 0 && len(p.Steps) == 0 && len(p.Stuck) == 0 &&
		p.Wait == ""
}

// Doubtful reports whether a refusal depends on the settings of the gateway's provider, which are cached for long.
func (p Plan) Doubtful() bool {
	return slices.ContainsFunc(p.Refusals, func(f Finding) bool {
		return slices.Contains([]string{AddressOutside, NoFreeAddress, NoEngineGroup, Unsupported}, f.Reason)
	})
}

// An input is what a plan is made from. Nothing changes it.
type input struct {
	desired  Desired
	observed Observed
	can      Capabilities
	owned    inventory
}

func newInput(d Desired, o Observed, c Capabilities) input {
	return input{
		desired:  d,
		observed: o,
		can:      c,
		owned:    takeInventory(d, o),
	}
}

// outcome returns an empty outcome.
func (in *input) outcome() outcome { return outcome{known: in.observed.Known} }

// A design is the load balancer as it shall be, as far as it is decided: each field by one function, in this order.
type design struct {
	frontend     frontend
	bindings     []binding
	unbound      inventory // what no listener uses any more
	nodes        nodeSet
	certificates map[string]Ref       // by key of the listener
	placements   map[string]placement // by key of the listener
	pools        map[string]Ref       // by key of the listener
	intent       []netip.Addr
}

// Make plans what leads from what is observed to what is desired. It is pure and total: any input gives a plan.
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

// decide finds out what the load balancer shall be. It stops at the first refusal that leaves the rest open.
func decide(in input) (design, outcome) {
	var lb design
	families, all := validate(in)
	if in.owned.unread {
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

// equip decides on what listeners on known addresses need.
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
