// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A loop observes, plans and executes until the actual state matches the desired state, or until everything is removed.
type loop struct {
	// plan observes and plans. Rounds count from 0.
	plan func(ctx context.Context, round int) (loadbalancer.Plan, error)
	// carryOut executes a plan.
	carryOut func(context.Context, loadbalancer.Plan) error
	// rounds limits how often a plan is executed. 0 means as often as the plan changes.
	rounds int
}

// converge plans and executes until the plan ends ([loadbalancer.Plan.Ends]), and returns the last plan. It gives up if
// the rounds are used up, or if the steps equal those of the previous plan, because then the cloud has not applied
// them.
func (l loop) converge(ctx context.Context) (loadbalancer.Plan, error) {
	var before []string
	for round := 0; ; round++ {
		p, err := l.plan(ctx, round)
		if err != nil || p.Ends() {
			return p, err
		}
		steps := texts(p.Steps)
		if round > 0 && (round == l.rounds || slices.Equal(steps, before)) {
			return p, nil
		}
		before = steps
		if err := l.carryOut(ctx, p); err != nil {
			return p, err
		}
	}
}
