// SPDX-License-Identifier: Apache-2.0

// Package phases runs the phases of a reconcile and reports them as conditions, events and metrics. A phase owns one
// condition. It returns a result: done, or the reason why not and when to run again. Only this package writes
// conditions.
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

// Object is an object that phases report on.
type Object interface {
	client.Object
	conditions.Setter
}

// A Phase is one step towards a ready object. It owns one condition.
type Phase[S any] struct {
	Condition string
	Run       func(context.Context, S) (Result, error)
	Applies   func(S) bool // whether the phase applies to a scope; nil: always
	Optional  bool         // the condition is removed while the phase does not apply
}

// Sequence runs the steps of a phase in order, up to the first one whose result is not Done.
func Sequence(ctx context.Context, steps ...func(context.Context) (Result, error)) (Result, error) {
	for _, step := range steps {
		if out, err := step(ctx); err != nil || out != Done {
			return out, err
		}
	}
	return Done, nil
}

// A Pass is the outcome of one run of phases.
type Pass struct {
	// Complete means that all phases are complete.
	Complete bool
	// Blocked is the result of the phase that is not complete. It is Done if all are complete, or if Err is set.
	Blocked Result
	// Err is the error of a phase, or of a maintenance phase.
	Err error
	// IncompleteMaintenance are the conditions of maintenance phases that are not complete.
	IncompleteMaintenance []string
	// After is when to reconcile again; zero if a watch triggers it.
	After time.Duration
	// Outdated means that the object changed meanwhile, so that nothing of the pass is stored.
	Outdated bool
}

// Within limits the time until the next pass to d. A d of zero has no effect.
func (p *Pass) Within(d time.Duration) {
	if p.After == 0 || d > 0 && d < p.After {
		p.After = d
	}
}

// applying returns the phases that apply to a scope, in order. It removes the conditions of optional phases that do
// not.
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

// run runs phases in order up to the first one that is not complete, and sets the conditions of all of them in obj.
// After an error, a phase keeps its last known condition, so that conditions do not flap when a single call fails. A
// problem that was not reported before is also recorded as an event.
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
		return Pass{After: reportOf(scope, obj, p.Condition, out, recorder), Blocked: out}
	}
	return Pass{Complete: true}
}

// runEach runs phases that do not depend on each other, and adds their outcomes to a pass.
func runEach[S any](ctx context.Context, obj Object, scope S, phases []Phase[S], recorder events.EventRecorder, to *Pass) {
	for _, p := range phases {
		pass := run(ctx, obj, scope, []Phase[S]{p}, recorder)
		to.Within(pass.After)
		to.Err = errors.Join(to.Err, pass.Err)
		if !pass.Complete {
			to.IncompleteMaintenance = append(to.IncompleteMaintenance, p.Condition)
		}
	}
}
