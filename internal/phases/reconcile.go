// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Reconciler reconciles objects of one kind. A pass opens a scope, runs the phases up to the first that is not
// complete, and stores what they changed in the object, whatever they came to. What is nil is left out.
type Reconciler[T Object, S any] struct {
	Client   client.Client
	Recorder events.EventRecorder

	// Open finds what a pass over an object begins with. During the pass, the patcher stores what cannot wait.
	Open func(ctx context.Context, obj T, patcher *Patcher) (Entry[S], error)
	// Finalizer is added to an object before anything is made for it. An object with one also gets the condition Paused,
	// and no pass while it is paused. Empty: the object is another reconciler's, which does both.
	Finalizer string
	// Context derives the context of a pass.
	Context func(ctx context.Context, obj client.Object) context.Context
	// Begin runs before the phases. If its result is not done, the pass ends, stores nothing, and comes again as the
	// result says.
	Begin func(context.Context, *S) (Result, error)

	// Phases run in order.
	Phases []Phase[*S]
	// Deletion are the phases of an object that is being deleted; nil: the same.
	Deletion []Phase[*S]
	// Ended learns what the phases came to, before the upkeep.
	Ended func(*S, Pass)
	// Upkeep are phases that do not wait for each other and are no part of Ready. They run after Phases, even if these
	// are not complete, but not after an error. What they apply to is only decided then.
	Upkeep []Phase[*S]
	// Ready says that the condition Ready sums up the phases. An object that several reconcilers write has one that
	// sets Ready.
	Ready bool

	// Finish runs before the object is stored, whatever the phases came to.
	Finish func(context.Context, *S, *Pass)
	// Close runs at the end of a pass that was opened.
	Close func(*S)
}

// An Entry is what a pass over an object begins with. The zero Entry ends the pass: there is nothing to do, now or ever.
type Entry[S any] struct {
	Scope   *S
	Cluster *clusterv1.Cluster // which pauses the object, too; nil: none does
	After   time.Duration      // without a scope: when to reconcile again; zero if a watch triggers it
}

// Reconcile runs a pass over an object.
func (r Reconciler[T, S]) Reconcile(ctx context.Context, obj T) (ctrl.Result, error) {
	patcher := &Patcher{client: r.Client, obj: obj}
	entry, err := r.Open(ctx, obj, patcher)
	if err != nil || entry.Scope == nil {
		return ctrl.Result{RequeueAfter: entry.After}, err
	}
	if r.Close != nil {
		defer r.Close(entry.Scope)
	}
	admitted, err := admit(ctx, patcher, entry.Cluster, r.Finalizer)
	if !admitted || err != nil {
		return ctrl.Result{}, err
	}
	if r.Context != nil {
		ctx = r.Context(ctx, obj)
	}
	if r.Begin != nil {
		if out, err := r.Begin(ctx, entry.Scope); err != nil || out != Done {
			return ctrl.Result{RequeueAfter: out.After}, err
		}
	}
	pass := r.pass(ctx, obj, entry.Scope, patcher)
	if pass.Err != nil {
		return ctrl.Result{}, pass.Err
	}
	return ctrl.Result{RequeueAfter: pass.After}, nil
}

// pass runs the phases of an object, and stores what they changed.
func (r Reconciler[T, S]) pass(ctx context.Context, obj T, scope *S, patcher *Patcher) Pass {
	phases := applying(obj, scope, r.table(obj))
	pass := run(ctx, obj, scope, phases, r.Recorder)
	if pass.Complete {
		passed(obj, clusterv1.ReadyCondition, passComplete)
	}
	if r.Ended != nil {
		r.Ended(scope, pass)
	}
	if pass.Err == nil && obj.GetDeletionTimestamp().IsZero() {
		runEach(ctx, obj, scope, applying(obj, scope, r.Upkeep), r.Recorder, &pass)
	}
	if r.Finish != nil {
		r.Finish(ctx, scope, &pass)
	}
	if !pass.Outdated {
		pass.Err = errors.Join(pass.Err, r.store(ctx, obj, phases, patcher))
	}
	return pass
}

// table returns the phases that an object may have.
func (r Reconciler[T, S]) table(obj T) []Phase[*S] {
	if r.Deletion != nil && !obj.GetDeletionTimestamp().IsZero() {
		return r.Deletion
	}
	return r.Phases
}

// store stores what a pass with some phases changed: the spec first, so that the status is of the generation that it
// makes.
func (r Reconciler[T, S]) store(ctx context.Context, obj T, phases []Phase[*S], patcher *Patcher) error {
	err := patcher.saveSpec(ctx)
	var owned []string
	for _, p := range phases {
		owned = append(owned, p.Condition)
	}
	for _, p := range r.Upkeep {
		owned = append(owned, p.Condition)
	}
	if r.Ready {
		setReady(obj, phases)
		owned = append(owned, clusterv1.ReadyCondition, clusterv1.PausedCondition)
	}
	return errors.Join(err, patcher.finish(ctx, owned))
}
