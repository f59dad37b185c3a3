// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A loop brings what exists to what is desired, or away.
type loop struct {
	// plan observes and plans; rounds count from 0.
	plan func(ctx context.Context, round int) (loadbalancer.Plan, error)
	// carryOut does what a plan says.
	carryOut func(context.Context, loadbalancer.Plan) error
	// rounds bounds how often a plan is carried out; 0: as often as that changes something.
	rounds int
}

// converge plans and carries out the plan until that ends ([loadbalancer.Plan.Ends]), and returns the last plan. One that
// does not end is left: the rounds are over, or its steps are those of the plan before, so the cloud has not followed.
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
