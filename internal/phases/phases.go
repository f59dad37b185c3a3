// SPDX-License-Identifier: Apache-2.0

// Package phases runs the phases of a reconcile and reports them as conditions, events and metrics.
//
// A phase owns one condition. It returns a result: done, or why it is not and when to run again. Only this package
// writes conditions.
package phases

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Object is what phases report on.
type Object interface {
	client.Object
	conditions.Setter
}

// A Phase is one step towards a ready object. It owns one condition.
type Phase[S any] struct {
	Condition string
	Run       func(context.Context, S) (Result, error)
	Applies   func(S) bool // whether the object of a scope has the phase; nil: it has
	Optional  bool         // the condition goes while the phase does not apply
}

// Sequence runs the steps of a phase in order up to the first that is not complete.
func Sequence(ctx context.Context, steps ...func(context.Context) (Result, error)) (Result, error) {
	for _, step := range steps {
		if out, err := step(ctx); err != nil || out != Done {
			return out, err
		}
	}
	return Done, nil
}

// A Pass is what one run of phases came to.
type Pass struct {
	// Complete says that all phases are.
	Complete bool
	// Ended is the result of the phase that is not complete; done if there is none, or Err.
	Ended Result
	// Err is why a phase failed, or the upkeep.
	Err error
	// Due are the conditions of the upkeep that is not complete.
	Due []string
	// After is when to reconcile again; zero if a watch triggers it.
	After time.Duration
	// Outdated says that the object changed meanwhile, so that nothing of the pass is stored.
	Outdated bool
}

// Within makes the next pass come within d; zero does not matter.
func (p *Pass) Within(d time.Duration) {
	if p.After == 0 || d > 0 && d < p.After {
		p.After = d
	}
}

// applying returns those phases that the object of a scope has, in order.
func applying[S any](obj Object, scope S, phases []Phase[S]) []Phase[S] {
	var found []Phase[S]
	for _, p := range phases {
		switch {
		case p.Applies == nil || p.Applies(scope):
			found = append(found, p)
		case p.Optional:
			Drop(obj, p.Condition)
		}
	}
	return found
}

// run runs phases in order up to the first that is not complete, and reports all of them as conditions of obj. An error
// keeps the last known condition of its phase: conditions do not flap when a call fails once. A problem that was not
// reported yet is also reported as an event.
func run[S any](ctx context.Context, obj Object, scope S, phases []Phase[S], recorder events.EventRecorder) Pass {
	for i, p := range phases {
		out, err := p.Run(ctx, scope)
		if err == nil && out.isComplete() {
			complete(obj, p.Condition, out, recorder)
			continue
		}
		for _, later := range phases[i+1:] {
			setIfMissing(obj, later.Condition, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+p.Condition)
		}
		if err != nil {
			after, err := reportError(obj, p.Condition, err)
			return Pass{After: after, Err: err}
		}
		return Pass{After: reportOf(scope, obj, p.Condition, out, recorder), Ended: out}
	}
	return Pass{Complete: true}
}

// runEach runs phases that do not wait for each other, and adds to a pass what they came to.
func runEach[S any](ctx context.Context, obj Object, scope S, phases []Phase[S], recorder events.EventRecorder, to *Pass) {
	for _, p := range phases {
		pass := run(ctx, obj, scope, []Phase[S]{p}, recorder)
		to.Within(pass.After)
		to.Err = errors.Join(to.Err, pass.Err)
		if !pass.Complete {
			to.Due = append(to.Due, p.Condition)
		}
	}
}
