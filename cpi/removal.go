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
	// removalRounds is how often one call observes, plans and runs steps: a removal cannot ask to be called again soon.
	removalRounds = 6
	// removalPatience is how long a removal waits for other work at a location.
	removalPatience = 10 * time.Second
)

// A removal removes all that a Service has at some locations. The lock of the Service is held.
type removal struct {
	planner *planner
	queues  *queues
	events  *eventDeduper

	service *corev1.Service
}

// run removes what is at locations. With a reason why there may be more elsewhere, it removes what it can, and returns
// that reason. One location does not hold up the others, but what they share is in use until it is removed from all.
func (r removal) run(ctx context.Context, locations []string, elsewhere error) error {
	if len(locations) > 1 || elsewhere != nil {
		local := r.each(ctx, locations, loadbalancer.Step.Deferrable)
		if err := errors.Join(elsewhere, local); err != nil {
			return err
		}
	}
	return r.each(ctx, locations, func(loadbalancer.Step) bool { return false })
}

// each removes what is at each of some locations, but for some steps, and returns all errors.
func (r removal) each(ctx context.Context, locations []string, but func(loadbalancer.Step) bool) error {
	var failures []error
	for _, location := range locations {
		failures = append(failures, r.inTurn(ctx, location, but))
	}
	return errors.Join(failures...)
}

// inTurn removes what is at a location, but for some steps, once fewer others work there.
func (r removal) inTurn(ctx context.Context, location string, but func(loadbalancer.Step) bool) error {
	free, ok := r.queues.locations.try(location)
	if !ok {
		var err error
		if free, err = r.queues.locations.wait(ctx, location, r.planner.clock.After(removalPatience)); err != nil {
			return err
		}
	}
	defer free()
	return r.remove(ctx, location, but)
}

// remove carries out the plan for absence at one location, but for some steps. It keeps its slot while the location is
// busy, because the service controller backs off for up to five minutes after each failed removal.
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

// removeMore removes what can be removed at a location now, and returns the plan for that.
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

// pause waits until something busy may be free.
func (r removal) pause(ctx context.Context) error {
	select {
	case <-r.planner.clock.After(wait.Jitter(soon, 0.5)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
