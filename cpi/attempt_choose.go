// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// choose plans. What a plan is about to use is reserved at once, not only when it stands: else two Services that come
// at the same time would be given the same address.
func (a *attempt) choose(ctx context.Context) (loadbalancer.Plan, error) {
	unlock, err := a.queues.choosing.wait(ctx, a.location, nil)
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	defer unlock()
	want := a.wish.Desired
	others, err := a.reserved()
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	want.Reserved = slices.Concat(want.Reserved, others)
	want.Elsewhere = a.elsewhere()
	p, err := a.planner.balancer.Plan(ctx, a.location, PlanRequest{Want: want})
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	var uses []loadbalancer.Use
	for _, step := range p.Steps {
		uses = append(uses, step.Uses()...)
	}
	a.states.change(a.service.UID, func(s *serviceState) {
		s.location = a.location
		s.uses = uses
	})
	return p, nil
}

// reserved returns what others have, or are about to have: what is being made, also for Services that are being
// deleted, and what those that stay were promised.
func (a *attempt) reserved() ([]loadbalancer.Use, error) {
	others, err := a.planner.others(a.service, a.location)
	if err != nil {
		return nil, err
	}
	out, err := a.usesOfOthers()
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		out = append(out, a.planner.defaults.Promised(other, a.service)...)
	}
	return out, nil
}

// usesOfOthers returns what is about to be used at the location by all other Services. What a Service was about to use
// that does not exist any more is free, unless an attempt for it still runs.
func (a *attempt) usesOfOthers() ([]loadbalancer.Use, error) {
	live, err := a.records.live()
	if err != nil {
		return nil, err
	}
	var out []loadbalancer.Use
	for uid, uses := range usesAt(a.states, a.location) {
		if uid != a.service.UID && (live[uid] || a.queues.isBusy(uid)) {
			out = append(out, uses...)
		}
	}
	return out, nil
}

// usesAt returns what Services are about to use at a location.
func usesAt(states *perService[serviceState], location string) map[types.UID][]loadbalancer.Use {
	states.mu.Lock()
	defer states.mu.Unlock()
	uses := map[types.UID][]loadbalancer.Use{}
	for uid, x := range states.all {
		if x.location == location && len(x.uses) > 0 {
			uses[uid] = x.uses
		}
	}
	return uses
}
