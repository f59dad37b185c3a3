// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// choose observes and plans, and reserves the addresses and ports of the plan at once. Otherwise, two Services that
// arrive at the same time could get the same address.
func (a *attempt) choose(ctx context.Context) (loadbalancer.Plan, error) {
	unlock, err := a.queues.choosing.wait(ctx, a.location, nil)
	if err != nil {
		return loadbalancer.Plan{}, err
	}
	defer unlock()
	want := a.request.Desired
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

// reserved returns the addresses and ports that other Services use or are about to use. These include the load
// balancers in progress, also of Services that are being deleted, and the addresses promised to Services that stay.
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

// usesOfOthers returns the planned uses of all other Services at the location. The planned uses of a deleted Service
// are free, unless an attempt for it still runs.
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

// usesAt returns the planned uses at a location, by Service.
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
