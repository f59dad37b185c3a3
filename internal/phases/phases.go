// SPDX-License-Identifier: Apache-2.0

// Package phases runs the phases of a reconcile and reports them as conditions, events and metrics.
//
// A phase owns one condition. It returns a result: done, or why it is not and when to run again. Only this package
// writes conditions.
package phases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
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

// A Pass is the result of one run of phases.
type Pass struct {
	ctrl.Result

	Complete bool // all phases are
	Problem  bool // a phase reports one
}

// Run runs phases in order up to the first that is not complete, and reports all of them as conditions
// of obj. An error keeps the last known condition of its phase: conditions do not flap when a call fails once. A
// problem that was not reported yet is also reported as an event.
func Run[S any](ctx context.Context, obj Object, scope S, phases []Phase[S],
	recorder events.EventRecorder,
) (Pass, error) {
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
			res, err := Failed(obj, p.Condition, err)
			return Pass{Result: res}, err
		}
		return Pass{Result: settle(obj, p.Condition, scope, out, recorder), Problem: out.IsProblem()}, nil
	}
	passed(obj, clusterv1.ReadyCondition, passComplete)
	return Pass{Complete: true}, nil
}

// complete makes the condition of a complete phase True. A warning that was not reported yet is an event, too.
func complete(obj Object, condition string, out Result, recorder events.EventRecorder) {
	if out.kind == warned && !Reported(obj, condition, out) {
		ProblemFound(recorder, obj, condition, out)
	}
	Set(obj, condition, out.status(), cmp.Or(out.Reason, infrav1.ReadyReason), out.Message)
}

// settle ends a pass over the object of a scope, in which the phase of a condition is not complete.
func settle(obj Object, condition string, scope any, out Result, recorder events.EventRecorder) ctrl.Result {
	if e, ok := scope.(established); ok && e.Established() {
		out = out.ofEstablished()
	}
	if t, ok := scope.(tolerant); ok && out.isUnanswered() && t.Tolerate() {
		passed(obj, condition, out.outcome())
		setIfMissing(obj, condition, out.Reason, out.Message)
		return ctrl.Result{RequeueAfter: Jitter(min(out.After, UnansweredRetry), string(obj.GetUID()))}
	}
	return Settle(obj, condition, out, recorder)
}

// An established scope is of an object that runs, or ran before. Missing access shows nothing about it: a condition
// that was False for that would have health checks delete what works.
type established interface {
	Established() bool
}

// UnansweredRetry is when it is asked again what VCD did not answer for the first time.
const UnansweredRetry = 10 * time.Second

// A tolerant scope is of an object that stays as it was said to be when VCD gives no answer for once: a cell is
// restarted, a connection is lost, and nothing has become of the object.
type tolerant interface {
	// Tolerate records that VCD gave no answer in this pass, and reports whether it did in the one before.
	Tolerate() bool
}

// Settle ends a pass in which the phase of a condition is not complete.
func Settle(obj Object, condition string, out Result, recorder events.EventRecorder) ctrl.Result {
	if out.IsProblem() && !Reported(obj, condition, out) {
		ProblemFound(recorder, obj, condition, out)
	}
	passed(obj, condition, out.outcome())
	Set(obj, condition, out.status(), out.Reason, out.Message)
	after := out.After
	if out.IsProblem() && after == RemedyPoll {
		after = Jitter(remedyPoll(time.Since(obj.GetCreationTimestamp().Time)), string(obj.GetUID()))
	} else if out.IsUnknown() {
		after = Jitter(after, string(obj.GetUID()))
	}
	return ctrl.Result{RequeueAfter: after}
}

const (
	// RemedyPoll is for problems that a person mends in VCD, where no watch sees it. It is shorter while the object is
	// new: the first problems are mended while a person watches it.
	RemedyPoll = time.Minute
	// firstRemedyPoll is that of an object made just now.
	firstRemedyPoll = 20 * time.Second
)

// remedyPoll is RemedyPoll for an object of some age.
func remedyPoll(age time.Duration) time.Duration {
	return min(RemedyPoll, max(firstRemedyPoll, age/20))
}

// A deferred error is that of a request which was not sent yet: those of other objects come first.
type deferred interface {
	error
	Later() time.Duration
}

// Failed ends a pass in which the phase of a condition failed. A deferred request is no failure.
func Failed(obj Object, condition string, err error) (ctrl.Result, error) {
	if later, ok := errors.AsType[deferred](err); ok {
		passed(obj, condition, passWaiting)
		setIfMissing(obj, condition, infrav1.ThrottledReason, "Waiting until requests for other clusters are sent")
		return ctrl.Result{RequeueAfter: later.Later()}, nil
	}
	passed(obj, condition, passError)
	setIfMissing(obj, condition, infrav1.InternalErrorReason, "Please check controller logs for errors")
	return ctrl.Result{}, fmt.Errorf("reconciling %s: %w", condition, err)
}

// Reported reports whether the condition holds the result already.
func Reported(obj Object, condition string, out Result) bool {
	was := conditions.Get(obj, condition)
	return was != nil && was.Status == out.status() && was.Reason == out.Reason && was.Message == out.Message
}

// SetReady sums up the conditions of phases: the first that is not true says why the object is not ready.
// Tools that read a status take one of an earlier generation for work in progress.
func SetReady[S any](obj Object, phases []Phase[S]) {
	if o, ok := obj.(interface{ ObserveGeneration() }); ok {
		o.ObserveGeneration()
	}
	for _, p := range phases {
		c := conditions.Get(obj, p.Condition)
		if c == nil {
			Set(obj, clusterv1.ReadyCondition, metav1.ConditionUnknown, infrav1.WaitingForEarlierPhaseReason,
				p.Condition+" is not known yet")
			return
		}
		if c.Status != metav1.ConditionTrue {
			message := strings.TrimSuffix(p.Condition+": "+c.Message, ": ")
			Set(obj, clusterv1.ReadyCondition, c.Status, c.Reason, message)
			return
		}
	}
	Set(obj, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
}

// Owned returns the conditions that the reconciler of an object with some phases owns.
func Owned[S any](phases []Phase[S]) []string {
	return append(Conditions(phases), clusterv1.ReadyCondition, clusterv1.PausedCondition)
}

// Conditions returns the conditions of phases, in order.
func Conditions[S any](phases []Phase[S]) []string {
	var ts []string
	for _, p := range phases {
		ts = append(ts, p.Condition)
	}
	return ts
}

// Set sets a condition of obj, which is not saved.
func Set(obj conditions.Setter, condition string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(obj, metav1.Condition{Type: condition, Status: status, Reason: reason, Message: message})
}

func setIfMissing(obj conditions.Setter, condition, reason, message string) {
	if !conditions.Has(obj, condition) {
		Set(obj, condition, metav1.ConditionUnknown, reason, message)
	}
}

// Jitter spreads d over a fifth more, so that what was woken together does not stay together.
func Jitter(d time.Duration, seed string) time.Duration {
	var sum uint32
	for _, b := range []byte(seed) {
		sum = sum*31 + uint32(b)
	}
	return d + d/5*time.Duration(sum%100)/100
}
