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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/plan"
)

const (
	// removalRounds is how often one call observes, plans and runs steps: a removal cannot ask to be called again soon.
	removalRounds = 6
	// removalPatience is how long a removal waits for other work at a location.
	removalPatience = 10 * time.Second
)

// A removal removes all that a Service has at some locations. The lock of the Service is held.
type removal struct {
	*LoadBalancers

	service *corev1.Service
}

func (r removal) run(ctx context.Context, locations []string) error {
	if len(locations) > 1 { // what locations share is in use until it is removed from all of them
		for _, location := range locations {
			if err := r.inTurn(ctx, location, r.removeLocal); err != nil {
				return err
			}
		}
	}
	for _, location := range locations {
		if err := r.inTurn(ctx, location, r.remove); err != nil {
			return err
		}
	}
	return nil
}

// inTurn calls f once fewer others work at the location.
func (r removal) inTurn(ctx context.Context, location string, f func(context.Context, string) error) error {
	free, ok := r.queue.try(location)
	if !ok {
		var err error
		if free, err = r.queue.wait(ctx, location, r.opts.Clock.After(removalPatience)); err != nil {
			return err
		}
	}
	defer free()
	return f(ctx, location)
}

// removeLocal removes what only one location has.
func (r removal) removeLocal(ctx context.Context, location string) error {
	p, err := r.planAbsent(ctx, r.service, location, PlanRequest{})
	if err != nil {
		return err
	}
	return r.runAll(ctx, location, slices.DeleteFunc(p.Steps, plan.Step.Deferrable))
}

func (r removal) runAll(ctx context.Context, location string, steps []plan.Step) error {
	if n, err := r.runSteps(ctx, r.service, location, steps); err != nil {
		return fmt.Errorf("%d of %d steps done: %w", n, len(steps), err)
	}
	return nil
}

// remove carries out the plan for absence at one location. It keeps its slot while the location is busy, because the
// service controller backs off for up to five minutes after each failed removal.
func (r removal) remove(ctx context.Context, location string) error {
	fresh := false
	for round := 1; ; round++ {
		p, err := r.removeMore(ctx, location, fresh)
		switch {
		case err == nil && p.Done() && fresh:
			return nil
		case round == removalRounds:
			return cmp.Or(err, fmt.Errorf("what is left at %s does not go: %w", location, plan.ErrBusy))
		case err == nil:
			fresh = p.Done()
		case !errors.Is(err, plan.ErrBusy):
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
func (r removal) removeMore(ctx context.Context, location string, fresh bool) (plan.Plan, error) {
	p, err := r.planAbsent(ctx, r.service, location, PlanRequest{Fresh: fresh})
	if err != nil {
		return p, err
	}
	r.events.notices(r.service, p.Notices)
	if p.Wait != "" {
		return p, errors.New(p.Wait)
	}
	return p, r.runAll(ctx, location, p.Steps)
}

// pause waits until something busy may be free.
func (r removal) pause(ctx context.Context) error {
	select {
	case <-r.opts.Clock.After(wait.Jitter(soon, 0.5)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
