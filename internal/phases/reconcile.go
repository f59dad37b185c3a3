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

// A Reconciler reconciles objects of one kind. A pass opens a scope, runs the phases up to the first one that is not
// complete, and stores the changes to the object in any case. The order of a pass is Open, the finalizer and the Paused
// condition, Context, BeforePhases, Phases or Deletion, AfterPhases, Maintenance, BeforeStore, the write, and Close.
// Functions that are nil are skipped.
type Reconciler[T Object, S any] struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Writes delays passes over objects that do not contain the last write of an earlier pass yet. Reconcilers that
	// write the same objects share it.
	Writes *Writes

	// Open returns the entry of a pass over an object. The patcher stores changes that cannot wait for the end of the
	// pass.
	Open func(ctx context.Context, obj T, patcher *Patcher) (Entry[S], error)
	// Finalizer is added to an object before any resource is created for it. Such an object also gets the Paused
	// condition, and is not reconciled while it is paused. If Finalizer is empty, another reconciler owns the object
	// and does both.
	Finalizer string
	// Context derives the context of a pass.
	Context func(ctx context.Context, obj client.Object) context.Context
	// BeforePhases runs before the phases. If its result is not Done, the pass ends without storing anything, and runs
	// again after the delay of the result.
	BeforePhases func(context.Context, *S) (Result, error)

	// Phases run in order.
	Phases []Phase[*S]
	// Deletion are the phases of an object that is being deleted; nil means Phases.
	Deletion []Phase[*S]
	// AfterPhases is called with the outcome of the phases, before the maintenance phases.
	AfterPhases func(*S, Pass)
	// Maintenance are phases that do not depend on each other and do not count for Ready. They run after Phases, even if
	// these are not complete, but neither after an error nor during deletion. Their Applies functions are called only
	// then.
	Maintenance []Phase[*S]
	// Ready means that the Ready condition summarizes the phases. If several reconcilers write an object, one of them
	// sets Ready.
	Ready bool

	// BeforeStore runs before the object is stored, regardless of the outcome of the phases.
	BeforeStore func(context.Context, *S, *Pass)
	// Close runs at the end of a pass that was opened.
	Close func(*S)
}

// An Entry is the start of a pass over an object. The zero Entry ends the pass without a requeue.
type Entry[S any] struct {
	Scope   *S
	Cluster *clusterv1.Cluster // pausing it also pauses the object; nil if there is no Cluster
	After   time.Duration      // without a scope: when to reconcile again; zero if a watch triggers it
}

// Reconcile runs one pass over an object.
func (r Reconciler[T, S]) Reconcile(ctx context.Context, obj T) (ctrl.Result, error) {
	if !r.Writes.reached(obj) {
		return ctrl.Result{RequeueAfter: cacheDelay}, nil
	}
	patcher := &Patcher{client: r.Client, obj: obj, writes: r.Writes}
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
	if r.BeforePhases != nil {
		if out, err := r.BeforePhases(ctx, entry.Scope); err != nil || out != Done {
			return ctrl.Result{RequeueAfter: out.After}, err
		}
	}
	pass := r.pass(ctx, obj, entry.Scope, patcher)
	if pass.Err != nil {
		return ctrl.Result{}, pass.Err
	}
	return ctrl.Result{RequeueAfter: pass.After}, nil
}

// pass runs the phases of an object and stores the changes.
func (r Reconciler[T, S]) pass(ctx context.Context, obj T, scope *S, patcher *Patcher) Pass {
	phases := applying(obj, scope, r.table(obj))
	pass := run(ctx, obj, scope, phases, r.Recorder)
	if pass.Complete {
		countPass(obj, clusterv1.ReadyCondition, passComplete)
	}
	if r.AfterPhases != nil {
		r.AfterPhases(scope, pass)
	}
	if pass.Err == nil && obj.GetDeletionTimestamp().IsZero() {
		runEach(ctx, obj, scope, applying(obj, scope, r.Maintenance), r.Recorder, &pass)
	}
	if r.BeforeStore != nil {
		r.BeforeStore(ctx, scope, &pass)
	}
	if !pass.Outdated {
		pass.Err = errors.Join(pass.Err, r.store(ctx, obj, phases, patcher))
	}
	return pass
}

// table returns the phases of an object, which depend on whether it is being deleted.
func (r Reconciler[T, S]) table(obj T) []Phase[*S] {
	if r.Deletion != nil && !obj.GetDeletionTimestamp().IsZero() {
		return r.Deletion
	}
	return r.Phases
}

// store stores the changes of a pass with the given phases. The spec comes first, so that the status refers to the
// resulting generation.
func (r Reconciler[T, S]) store(ctx context.Context, obj T, phases []Phase[*S], patcher *Patcher) error {
	err := patcher.saveSpec(ctx)
	var owned []string
	for _, p := range phases {
		owned = append(owned, p.Condition)
	}
	for _, p := range r.Maintenance {
		owned = append(owned, p.Condition)
	}
	if r.Ready {
		setReady(obj, phases)
		owned = append(owned, clusterv1.ReadyCondition, clusterv1.PausedCondition)
	}
	return errors.Join(err, patcher.finish(ctx, owned))
}
