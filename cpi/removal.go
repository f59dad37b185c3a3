// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

const (
	// removalRounds is how often one call observes, plans and runs steps, because a removal cannot request an early
	// retry.
	removalRounds = 6
	// slotTimeout is how long a creation or removal waits for other work at a location. After the error of a removal, the
	// service controller backs off for up to five minutes, in which the location may be idle. Creations wait as long, so
	// that they keep their place between the removals.
	slotTimeout = 5 * time.Minute
)

// A removal removes all objects of a Service at some locations. The caller holds the lock of the Service.
type removal struct {
	planner *planner
	queues  *queues
	events  *eventDeduper

	service *corev1.Service
}

// run removes the objects at the given locations. If elsewhere, the reason why there may be more objects at other
// locations, is not nil, run removes as much as it can and returns that reason. Locations do not block each other, but
// objects that they share remain in use until the others are removed at all locations.
func (r removal) run(ctx context.Context, locations []string, elsewhere error) error {
	if len(locations) > 1 || elsewhere != nil {
		local := r.removeEach(ctx, locations, loadbalancer.Step.Deferrable)
		if err := errors.Join(elsewhere, local); err != nil {
			return err
		}
	}
	return r.removeEach(ctx, locations, func(loadbalancer.Step) bool { return false })
}

// removeEach removes the objects at each of the locations, except for steps that but matches, and returns all errors.
func (r removal) removeEach(ctx context.Context, locations []string, but func(loadbalancer.Step) bool) error {
	var failures []error
	for _, location := range locations {
		failures = append(failures, r.removeInSlot(ctx, location, but))
	}
	return errors.Join(failures...)
}

// removeInSlot waits for a slot at a location and removes the objects there, except for steps that but matches.
func (r removal) removeInSlot(ctx context.Context, location string, but func(loadbalancer.Step) bool) error {
	free, err := r.queues.slotAt(ctx, location, r.planner.clock, slotTimeout)
	if err != nil {
		return err
	}
	defer free()
	return r.remove(ctx, location, but)
}

// remove executes the plan for removal at one location, except for steps that but matches. It keeps its slot while the
// location is busy, because the service controller backs off for up to five minutes after each failed removal.
func (r removal) remove(ctx context.Context, location string, but func(loadbalancer.Step) bool) error {
	fresh := false
	for round := 1; ; round++ {
		p, err := r.removeMore(ctx, location, fresh, but)
		switch {
		case err == nil && p.Done() && fresh:
			return nil
		case round == removalRounds:
			return cmp.Or(err, fmt.Errorf("cannot remove the remaining objects at %s: %w", location, loadbalancer.ErrBusy))
		case err == nil:
			fresh = p.Done()
		case !errors.Is(err, loadbalancer.ErrBusy):
			return err
		default:
			fresh = false
			if err := r.pause(ctx); err != nil {
				return err
			}
		}
	}
}

// removeMore removes the objects that can be removed at a location now, and returns the plan.
func (r removal) removeMore(
	ctx context.Context, location string, fresh bool, but func(loadbalancer.Step) bool,
) (loadbalancer.Plan, error) {
	p, err := r.planner.planAbsent(ctx, r.service, location, PlanRequest{Fresh: fresh})
	if err != nil {
		return p, err
	}
	r.events.notices(r.service, "removal at "+location, p.Notices)
	if p.Wait != "" {
		return p, errors.New(p.Wait)
	}
	p.Steps = slices.DeleteFunc(p.Steps, but)
	return p, r.runAll(ctx, location, p.Steps)
}

func (r removal) runAll(ctx context.Context, location string, steps []loadbalancer.Step) error {
	if n, err := r.planner.runSteps(ctx, r.service, location, steps); err != nil {
		return fmt.Errorf("%d of %d steps done: %w", n, len(steps), err)
	}
	return nil
}

// pause waits until a busy object may be free.
func (r removal) pause(ctx context.Context) error {
	select {
	case <-r.planner.clock.After(wait.Jitter(soon, 0.5)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
