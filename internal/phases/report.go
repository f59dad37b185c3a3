// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const (
	// UnansweredRetry is when it is asked again what VCD did not answer for the first time.
	UnansweredRetry = 10 * time.Second
	// RemedyPoll is for problems that a person mends in VCD, where no watch sees it. It is shorter while the object is
	// new: the first problems are mended while a person watches it.
	RemedyPoll = time.Minute
	// firstRemedyPoll is that of an object made just now.
	firstRemedyPoll = 20 * time.Second
)

// An established scope is of an object that runs, or ran before. Missing access shows nothing about it: a condition
// that was False for that would have health checks delete what works.
type established interface {
	Established() bool
}

// A tolerant scope is of an object that stays as it was said to be when VCD gives no answer for once: a cell is
// restarted, a connection is lost, and nothing has become of the object.
type tolerant interface {
	// Tolerate records that VCD gave no answer in this pass, and reports whether it did in the one before.
	Tolerate() bool
}

// A deferred error is that of a request which was not sent yet: those of other objects come first.
type deferred interface {
	error
	Later() time.Duration
}

// Report reports a result as a condition that no phase owns, and returns when to run again what came to it.
func Report(obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if out.isComplete() {
		complete(obj, condition, out, recorder)
		return 0
	}
	return incomplete(obj, condition, out, recorder)
}

// Drop removes a condition that does not apply to obj any more.
func Drop(obj Object, condition string) { conditions.Delete(obj, condition) }

// complete makes the condition of a complete phase True. A warning that was not reported yet is an event, too.
func complete(obj Object, condition string, out Result, recorder events.EventRecorder) {
	if out == Obsolete {
		Drop(obj, condition)
		return
	}
	if out.kind == warned && !isReported(obj, condition, out) {
		problemFound(recorder, obj, condition, out)
	}
	set(obj, condition, out.status(), cmp.Or(out.Reason, infrav1.ReadyReason), out.Message)
}

// incomplete reports that the phase of a condition is not complete, and returns when to run it again.
func incomplete(obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if out.IsProblem() && !isReported(obj, condition, out) {
		problemFound(recorder, obj, condition, out)
	}
	passed(obj, condition, out.outcome())
	set(obj, condition, out.status(), out.Reason, out.Message)
	switch {
	case out.IsProblem() && out.After == RemedyPoll:
		return Jitter(remedyPoll(time.Since(obj.GetCreationTimestamp().Time)), string(obj.GetUID()))
	case out.IsUnknown():
		return Jitter(out.After, string(obj.GetUID()))
	}
	return out.After
}

// remedyPoll is RemedyPoll for an object of some age.
func remedyPoll(age time.Duration) time.Duration {
	return min(RemedyPoll, max(firstRemedyPoll, age/20))
}

// reportOf reports that a phase of the object of a scope is not complete, and returns when to run it again.
func reportOf(scope any, obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if e, ok := scope.(established); ok && e.Established() {
		out = out.ofEstablished()
	}
	if t, ok := scope.(tolerant); ok && out.isUnanswered() && t.Tolerate() {
		passed(obj, condition, out.outcome())
		setIfMissing(obj, condition, out.Reason, out.Message)
		return Jitter(min(out.After, UnansweredRetry), string(obj.GetUID()))
	}
	return incomplete(obj, condition, out, recorder)
}

// reportError reports that the phase of a condition failed. A deferred request is no failure: it returns when to run
// the phase again.
func reportError(obj Object, condition string, err error) (time.Duration, error) {
	if later, ok := errors.AsType[deferred](err); ok {
		passed(obj, condition, passWaiting)
		setIfMissing(obj, condition, infrav1.ThrottledReason, "Waiting for requests of other clusters to VCD")
		return later.Later(), nil
	}
	passed(obj, condition, passError)
	setIfMissing(obj, condition, infrav1.InternalErrorReason, "Please check controller logs for errors")
	return 0, fmt.Errorf("reconciling %s: %w", condition, err)
}

// isReported reports whether the condition holds the result already.
func isReported(obj Object, condition string, out Result) bool {
	was := conditions.Get(obj, condition)
	return was != nil && was.Status == out.status() && was.Reason == out.Reason && was.Message == out.Message
}

// setReady sums up the conditions of phases: the first that is not true says why the object is not ready.
// Tools that read a status take one of an earlier generation for work in progress.
func setReady[S any](obj Object, phases []Phase[S]) {
	if o, ok := obj.(interface{ ObserveGeneration() }); ok {
		o.ObserveGeneration()
	}
	for _, p := range phases {
		c := conditions.Get(obj, p.Condition)
		if c == nil {
			set(obj, clusterv1.ReadyCondition, metav1.ConditionUnknown, infrav1.WaitingForEarlierPhaseReason,
				p.Condition+" is not known yet")
			return
		}
		if c.Status != metav1.ConditionTrue {
			message := strings.TrimSuffix(p.Condition+": "+c.Message, ": ")
			set(obj, clusterv1.ReadyCondition, c.Status, c.Reason, message)
			return
		}
	}
	set(obj, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
}

func set(obj Object, condition string, status metav1.ConditionStatus, reason, message string) {
	conditions.Set(obj, metav1.Condition{
		Type:    condition,
		Status:  status,
		Reason:  reason,
		Message: message,
	})
}

func setIfMissing(obj Object, condition, reason, message string) {
	if !conditions.Has(obj, condition) {
		set(obj, condition, metav1.ConditionUnknown, reason, message)
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
