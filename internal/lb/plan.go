// SPDX-License-Identifier: Apache-2.0

// Package lb is the model of a load balancer on an edge gateway, and its planner. The planner computes a [Plan], an
// ordered list of steps, from the desired state ([Desired]) and the observed state ([Observed]). It is pure: it has no
// code for Kubernetes or for calls to VCD, and returns the same plan for the same input. A caller observes, plans and
// runs the steps until the plan is empty. A removal is the plan for [Desired.Absent]. A plan may be interrupted after
// any step: the next plan continues from the observed state.
//
// The planner ([Make]) is a pipeline of functions, each in the file of its subject. They take the input and the
// decisions of earlier functions. They return their decision and an outcome: missing facts, refusals, notices, steps.
// None of them changes the result of another. The entry point merges the outcomes.
package lb

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Plan contains the next steps for a load balancer on an edge gateway. They are of type [Step].
type Plan struct {
	loadbalancer.Plan

	// Needs are facts to observe first. If there are any, the plan has no other content.
	Needs Facts
}

// Done reports whether nothing is left to do.
func (p Plan) Done() bool { return p.Needs == 0 && p.Plan.Done() }

// Doubtful reports whether a refusal depends on the provider's settings of the gateway, which are cached for a long
// time.
func Doubtful(p loadbalancer.Plan) bool {
	return slices.ContainsFunc(p.Refusals, func(f loadbalancer.Finding) bool {
		return slices.Contains([]string{AddressOutOfRange, NoFreeAddress, EngineGroupUnavailable, Unsupported}, f.Reason)
	})
}
