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
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Plan is what to do next. Its steps are of type [Step].
type Plan struct {
	loadbalancer.Plan

	// Needs are facts to observe first. Then there is nothing else in the plan.
	Needs Facts
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool { return p.Needs == 0 && p.Plan.Done() }

// Doubtful reports whether a refusal depends on the settings of the gateway's provider, which are cached for long.
func Doubtful(p loadbalancer.Plan) bool {
	return slices.ContainsFunc(p.Refusals, func(f loadbalancer.Finding) bool {
		return slices.Contains([]string{AddressOutOfRange, NoFreeAddress, EngineGroupUnavailable, Unsupported}, f.Reason)
	})
}
