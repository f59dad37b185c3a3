// SPDX-License-Identifier: Apache-2.0

// Package lb is the model of a load balancer on an edge gateway, and its planner: what is desired ([Desired]) and
// what is observed ([Observed]) make a [Plan], an ordered list of steps. It is pure: it knows neither Kubernetes
// nor the calls of VCD, and gives the same plan for the same input. A caller observes, makes a plan, runs its steps
// and repeats that until the plan is empty; removal is the plan for [Desired.Absent]. A plan may be interrupted
// after any step: the next one continues from what is observed.
//
// The planner ([Make]) is a pipeline of functions, each in the file of its subject. They take the input and what earlier
// ones decided, and return what they decide and an outcome: missing facts, refusals, notices, steps. None changes what
// another returned; the entry point merges the outcomes.
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
