// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// A Reconciler runs the phases of one object.
type Reconciler[S any] struct {
	Object   Object
	Patcher  *Patcher
	Recorder events.EventRecorder
	Phases   []Phase[S] // in the order in which they run
	// Ready says that the condition Ready sums up the phases. An object that several controllers write has one that
	// sets Ready.
	Ready bool
	// Obsolete says that the object asks for none of this any more: once the phases are complete, which then remove
	// things, their conditions go.
	Obsolete bool
	// Finish is called after the phases, before the object is stored; nil: there is nothing to do.
	Finish func(Pass)
}

// Reconcile runs the phases up to the first that is not complete, and stores what they changed in the object, whatever
// the outcome.
func (r Reconciler[S]) Reconcile(ctx context.Context, scope S) (Pass, error) {
	pass, err := Run(ctx, r.Object, scope, r.Phases, r.Recorder)
	if r.Obsolete && pass.Complete {
		for _, condition := range Conditions(r.Phases) {
			conditions.Delete(r.Object, condition)
		}
	}
	if r.Finish != nil && err == nil {
		r.Finish(pass)
	}
	return pass, errors.Join(err, r.store(ctx))
}

func (r Reconciler[S]) store(ctx context.Context) error {
	if !r.Ready {
		return r.Patcher.Finish(ctx, Conditions(r.Phases)...)
	}
	SetReady(r.Object, r.Phases)
	return r.Patcher.Finish(ctx, Owned(r.Phases)...)
}
