// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

// choose plans. What a plan is about to use is reserved at once, not only when it stands: else two Services that come
// at the same time would be given the same address.
func (a *attempt) choose(ctx context.Context) (plan.Plan, error) {
	unlock, err := a.balancers.choosing.wait(ctx, a.location, nil)
	if err != nil {
		return plan.Plan{}, err
	}
	defer unlock()
	want := a.wish.Desired
	others, err := a.reserved()
	if err != nil {
		return plan.Plan{}, err
	}
	want.Reserved = slices.Concat(want.Reserved, others)
	want.Elsewhere = a.elsewhere()
	p, err := a.balancers.opts.Balancer.Plan(ctx, a.location, PlanRequest{Want: want})
	if err != nil {
		return plan.Plan{}, err
	}
	var uses []plan.Use
	for _, step := range p.Steps {
		uses = append(uses, step.Uses()...)
	}
	a.balancers.state.change(a.service.UID, func(s *serviceState) {
		s.location = a.location
		s.uses = uses
	})
	return p, nil
}

// reserved returns what others have, or are about to have: what is being made, also for Services that are being
// deleted, and what those that stay were promised.
func (a *attempt) reserved() ([]plan.Use, error) {
	others, err := a.balancers.others(a.service, a.location)
	if err != nil {
		return nil, err
	}
	out, err := a.balancers.usesOfOthers(a.location, a.service.UID)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		out = append(out, a.balancers.opts.Defaults.Promised(other, a.service)...)
	}
	return out, nil
}
