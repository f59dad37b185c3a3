// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// leaveOthers removes the objects of the Service at its previous locations. Objects that cannot be removed yet are
// retried later, because the load balancer works without their removal. Objects that locations share are removed last.
func (a *attempt) leaveOthers(ctx context.Context) error {
	stored := a.records.locations(a.service)
	candidates := a.locations.resolveKnown(stored)
	stays := []string{a.location}
	others := []string(nil)
	if len(stored) == 0 {
		candidates = a.everywhere(ctx)
	}
	for _, id := range candidates {
		if _, ok := unresolvedName(id); ok {
			stays = append(stays, id)
		} else if id != a.location {
			others = append(others, id)
		}
	}
	stays = append(stays, a.leaveEach(ctx, others)...)
	var n recordChange
	if !slices.Equal(stays, stored) {
		n.locations = stays
	}
	if len(stays) == 1 && len(a.unused) > 0 {
		n.addresses = slices.DeleteFunc(append([]netip.Addr{}, a.request.Desired.Intent...),
			func(x netip.Addr) bool { return slices.Contains(a.unused, x) })
	}
	return a.write(ctx, n)
}

// leaveEach removes the objects of the Service at other locations, shared objects last. It returns the locations where
// objects remain.
func (a *attempt) leaveEach(ctx context.Context, ids []string) (failed []string) {
	if len(ids) > 1 {
		failed = a.leaveAll(ctx, ids, loadbalancer.Step.Deferrable)
	}
	if len(failed) == 0 {
		failed = a.leaveAll(ctx, ids, func(loadbalancer.Step) bool { return false })
	}
	if len(failed) > 0 {
		a.removeShared(ctx)
	}
	return failed
}

// leaveAll removes the objects of the Service at other locations, except for steps that but matches. It returns the
// locations where that fails.
func (a *attempt) leaveAll(ctx context.Context, ids []string, but func(loadbalancer.Step) bool) (failed []string) {
	for _, id := range ids {
		if a.planner.clock.Now().Before(a.states.get(a.service.UID).leaveBackoffs[id].until) {
			failed = append(failed, id)
			continue
		}
		err := a.leave(ctx, id, but)
		a.recordLeave(id, err)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Cannot remove the load balancer from an earlier location", "service", klog.KObj(a.service), "location", id)
			a.events.notices(a.service, "left "+id, []loadbalancer.Finding{{
				Reason: reasonOrphaned,
				Message: fmt.Sprintf(
					"cannot remove the objects of the load balancer at %s yet; the controller retries (see its log)", id),
			}})
			failed = append(failed, id)
			continue
		}
		a.events.notices(a.service, "left "+id, nil)
	}
	return failed
}

// leave removes the objects of the Service at another location, except for steps that but matches.
func (a *attempt) leave(ctx context.Context, id string, but func(loadbalancer.Step) bool) error {
	moved := &Moved{Location: a.location, Desired: a.request.Desired, Addresses: a.addresses}
	p, err := loop{
		plan: func(ctx context.Context, _ int) (loadbalancer.Plan, error) {
			p, err := a.planner.planAbsent(ctx, a.service, id, PlanRequest{Moved: moved})
			p.Steps = slices.DeleteFunc(p.Steps, but)
			return p, err
		},
		carryOut: func(ctx context.Context, p loadbalancer.Plan) error {
			_, err := a.planner.runSteps(ctx, a.service, id, p.Steps)
			return err
		},
	}.converge(ctx)
	if err == nil && len(p.Steps) > 0 {
		return fmt.Errorf("%s: %w", p.Steps[0], loadbalancer.ErrBusy)
	}
	return err
}

// recordLeave records whether the objects at a location could be removed. After a refusal, retries back off: the
// location may no longer be visible, or a user may have written its ID.
func (a *attempt) recordLeave(id string, err error) {
	now := a.planner.clock.Now()
	a.states.change(a.service.UID, func(s *serviceState) {
		before := s.leaveBackoffs[id]
		s.leaveBackoffs = maps.Clone(s.leaveBackoffs)
		maps.DeleteFunc(s.leaveBackoffs,
			func(other string, b backoff) bool { return other == id || now.Sub(b.until) > maxRefusalBackoff })
		if !errors.Is(err, loadbalancer.ErrRefused) {
			return
		}
		if s.leaveBackoffs == nil {
			s.leaveBackoffs = map[string]backoff{}
		}
		s.leaveBackoffs[id] = before.next(now)
	})
}

// removeShared removes shared objects that the load balancer no longer needs, although another location cannot be left,
// which may last forever. The cloud refuses to remove objects that are in use there, so the removal is retried at
// intervals.
func (a *attempt) removeShared(ctx context.Context) {
	log := klog.FromContext(ctx)
	now := a.planner.clock.Now()
	if now.Before(a.states.get(a.service.UID).sharedRetryAt) {
		return
	}
	want := a.request.Desired
	want.Elsewhere = true
	want.Unseen = true
	p, err := a.planner.balancer.Plan(ctx, a.location, PlanRequest{Want: want})
	if err != nil {
		log.Error(err, "Cannot plan the removal of objects that locations share", "service", klog.KObj(a.service))
		return
	}
	for _, step := range p.Steps {
		if !step.Deferrable() {
			continue
		}
		if _, err := a.planner.runSteps(ctx, a.service, a.location, []loadbalancer.Step{step}); err != nil {
			log.Info("Cannot remove objects that locations share yet", "service", klog.KObj(a.service),
				"reason", err.Error())
			a.states.change(a.service.UID, func(s *serviceState) { s.sharedRetryAt = now.Add(maxRefusalBackoff) })
		}
	}
}
