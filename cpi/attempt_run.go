// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	cloudprovider "k8s.io/cloud-provider"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// maxRounds is how often one attempt executes a plan.
const maxRounds = 3

func (a *attempt) run(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	a.events.notices(a.service, "service", a.request.Notices)
	if len(a.request.Refusals) > 0 {
		return nil, a.refused(ctx, a.request.Refusals)
	}
	if a.request.Wait != "" {
		return nil, retry(soon, "waiting: %s", a.request.Wait)
	}
	if err := a.locate(ctx); errors.Is(err, loadbalancer.ErrBusy) {
		return nil, retry(soon, "waiting: %v", err) // the error has the remedy
	} else if err != nil {
		return nil, a.failed(ctx, 0, 0, err)
	}
	if err := a.backOff(); err != nil {
		return nil, err
	}
	status, err := a.inQueue(ctx)
	if err != nil {
		return status, err
	}
	a.events.recovered(a.service)
	a.states.change(a.service.UID, func(s *serviceState) {
		s.provisioned = true
		s.refusal = refusal{}
	})
	return status, a.leaveOthers(ctx)
}

// inQueue reconciles at the location when a slot is free there. Cleanup at other locations does not hold a slot.
func (a *attempt) inQueue(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	free, err := a.slot(ctx)
	if errors.Is(err, loadbalancer.ErrBusy) {
		return nil, retry(soon, "waiting for other load balancers at %s", a.where())
	}
	if err != nil {
		return nil, err
	}
	defer free()
	a.events.admitted(a.service)
	if a.request.DryRun {
		return nil, a.dryRun(ctx)
	}
	return a.converge(ctx)
}

// slot returns a slot at the location. The returned function frees it. An event tells users that the Service waits.
func (a *attempt) slot(ctx context.Context) (func(), error) {
	if a.patience == 0 {
		return a.queues.slotForRepair(a.location)
	}
	if free, ok := a.queues.locations.try(a.location); ok {
		return free, nil
	}
	a.events.waiting(a.service, a.where())
	return a.queues.slotAt(ctx, a.location, a.planner.clock, a.patience)
}

// converge observes, plans and runs steps until the plan is empty. With an error, it returns a status only if the
// published status is outdated.
func (a *attempt) converge(ctx context.Context) (*corev1.LoadBalancerStatus, error) {
	p, err := loop{
		plan:     a.observe,
		carryOut: a.carryOut,
		rounds:   maxRounds,
	}.converge(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(p.Refusals) > 0:
		return nil, a.refused(ctx, p.Refusals)
	case p.Done():
		a.noteAppliedMembers()
		a.addresses = p.Status.Addresses
		a.unused = p.Unused
		return a.published(p.Status), nil
	case len(p.Stuck) > 0:
		return stuckStatus(a.service, p.Status), a.awaitUser(p.Stuck)
	case p.Wait != "":
		return nil, retry(soon, "%s", p.Wait)
	}
	return nil, retry(3*soon, "waiting for the cloud to apply changes: %s", strings.Join(problems(p), ", "))
}

// observe plans, and records whether the load balancer was usable before.
func (a *attempt) observe(ctx context.Context, round int) (loadbalancer.Plan, error) {
	p, err := a.choose(ctx)
	if err != nil {
		return p, a.unobserved(ctx, err)
	}
	a.events.notices(a.service, "plan", p.Notices)
	if round == 0 && len(p.Status.Addresses) > 0 {
		a.neverReady = false
	}
	return p, nil
}

// unobserved returns the error for a failed observation. It handles a location that was deleted and whose name now
// belongs to another one.
func (a *attempt) unobserved(ctx context.Context, err error) error {
	if errors.Is(err, loadbalancer.ErrRefused) && a.locations.replaced(ctx, a.request.Location, a.location) {
		return retry(soon, "%s was replaced by another object with the same name: the load balancer is created in that one", a.where())
	}
	return a.failed(ctx, 0, 0, err)
}

// carryOut records the intended addresses and locations, and runs the steps.
func (a *attempt) carryOut(ctx context.Context, p loadbalancer.Plan) error {
	if err := a.announce(ctx, p); err != nil {
		return err
	}
	a.noteChangedMembers()
	n, err := a.planner.runSteps(ctx, a.service, a.location, p.Steps)
	if errors.Is(err, loadbalancer.ErrRefused) {
		a.noteRefusal()
	}
	if err != nil {
		return a.failed(ctx, n, len(p.Steps), err)
	}
	return nil
}

// announce records what a plan is about to do for the first time: the addresses it uses, and the location where it
// creates objects.
func (a *attempt) announce(ctx context.Context, p loadbalancer.Plan) error {
	n := recordChange{addresses: p.Intent}
	if stored := a.records.locations(a.service); len(p.Steps) > 0 && !slices.Contains(stored, a.location) {
		n.locations = append([]string{a.location}, stored...)
		if len(stored) == 0 {
			n.locations = append(n.locations,
				slices.DeleteFunc(a.everywhere(ctx), func(id string) bool { return id == a.location })...)
		}
	}
	return a.write(ctx, n)
}

// failed returns the error for a failed step or observation, after done of the given number of steps.
func (a *attempt) failed(ctx context.Context, done, of int, err error) error {
	switch {
	case errors.Is(err, loadbalancer.ErrBusy):
		return retry(soon, "%d of %d steps done, then %s is busy", done, of, a.where())
	case errors.Is(err, loadbalancer.ErrRefused):
		return a.refused(ctx, []loadbalancer.Finding{{Reason: reasonRejected, Message: err.Error()}})
	}
	return err
}

// dryRun emits the plan and changes nothing. Its error makes Kubernetes keep the status, without an event that the load
// balancer was ensured.
func (a *attempt) dryRun(ctx context.Context) error {
	p, err := a.planner.balancer.Plan(ctx, a.location, PlanRequest{Want: a.request.Desired})
	if err != nil {
		return err
	}
	a.events.dryRun(a.service, p)
	return cloudprovider.ImplementedElsewhere
}

// problems returns the problems of the ports, or else the next step.
func problems(p loadbalancer.Plan) []string {
	var out []string
	for _, port := range p.Status.Ports {
		if port.Problem != "" {
			out = append(out, fmt.Sprintf("port %d %s", port.Port, port.Problem))
		}
	}
	if len(out) == 0 && len(p.Steps) > 0 {
		out = append(out, p.Steps[0].String())
	}
	return out
}
