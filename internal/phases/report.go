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
	// UnansweredRetry is the delay before the next attempt after VCD first failed to respond.
	UnansweredRetry = 10 * time.Second
	// RemedyPoll is the interval at which problems that a user fixes in VCD, where no watch sees the fix, are checked
	// again. It is shorter while the object is new, because users watch a new object while they fix its first problems.
	RemedyPoll = time.Minute
	// firstRemedyPoll is the interval for an object that was just created.
	firstRemedyPoll = 20 * time.Second
)

// An established scope belongs to an object that runs, or ran before. Missing access proves nothing about such an
// object. If it set a condition to False, health checks would delete a working object.
type established interface {
	Established() bool
}

// A tolerant scope keeps the conditions of its object when VCD fails to respond once, because a cell restarts or a
// connection is lost. The object itself has not changed.
type tolerant interface {
	// Tolerate records that VCD did not respond in this pass, and reports whether it responded in the previous one.
	Tolerate() bool
}

// A deferred error means that a request was not sent yet because requests of other objects come first.
type deferred interface {
	error
	Later() time.Duration
}

// Report sets a condition that no phase owns. It returns the delay before the next attempt; zero if the result is
// complete or a watch triggers the attempt.
func Report(obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if out.isComplete() {
		complete(obj, condition, out, recorder)
		return 0
	}
	return incomplete(obj, condition, out, recorder)
}

// Drop removes a condition that no longer applies to obj.
func Drop(obj Object, condition string) { conditions.Delete(obj, condition) }

// complete sets the condition of a complete phase to True. A warning that was not reported before is also recorded as
// an event.
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

// incomplete sets the condition of a phase that is not complete, and returns the delay before the next run.
func incomplete(obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if out.IsProblem() && !isReported(obj, condition, out) {
		problemFound(recorder, obj, condition, out)
	}
	countPass(obj, condition, out.outcome())
	set(obj, condition, out.status(), out.Reason, out.Message)
	switch {
	case out.IsProblem() && out.After == RemedyPoll:
		return Jitter(remedyPoll(time.Since(obj.GetCreationTimestamp().Time)), string(obj.GetUID()))
	case out.IsUnknown():
		return Jitter(out.After, string(obj.GetUID()))
	}
	return out.After
}

// remedyPoll returns RemedyPoll, or a shorter interval for an object that is still young.
func remedyPoll(age time.Duration) time.Duration {
	return min(RemedyPoll, max(firstRemedyPoll, age/20))
}

// reportOf reports that a phase is not complete, and returns the delay before its next run. The scope may be
// established or tolerant.
func reportOf(scope any, obj Object, condition string, out Result, recorder events.EventRecorder) time.Duration {
	if e, ok := scope.(established); ok && e.Established() {
		out = out.ofEstablished()
	}
	if t, ok := scope.(tolerant); ok && out.isUnanswered() && t.Tolerate() {
		countPass(obj, condition, out.outcome())
		setIfMissing(obj, condition, out.Reason, out.Message)
		return Jitter(min(out.After, UnansweredRetry), string(obj.GetUID()))
	}
	return incomplete(obj, condition, out, recorder)
}

// reportError reports that the phase of a condition failed. A deferred request is not a failure: reportError then
// returns the delay before the next run, and no error.
func reportError(obj Object, condition string, err error) (time.Duration, error) {
	if later, ok := errors.AsType[deferred](err); ok {
		countPass(obj, condition, passWaiting)
		setIfMissing(obj, condition, infrav1.ThrottledReason, "Waiting for requests of other clusters to VCD")
		return later.Later(), nil
	}
	countPass(obj, condition, passError)
	setIfMissing(obj, condition, infrav1.InternalErrorReason, "Please check controller logs for errors")
	return 0, fmt.Errorf("reconciling %s: %w", condition, err)
}

// isReported reports whether the condition already holds the result.
func isReported(obj Object, condition string, out Result) bool {
	was := conditions.Get(obj, condition)
	return was != nil && was.Status == out.status() && was.Reason == out.Reason && was.Message == out.Message
}

// setReady summarizes the conditions of phases in the Ready condition: the first one that is not True gives its reason
// and message. It also updates the observed generation, because tools that read a status regard an older one as work in
// progress.
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

// Jitter adds up to a fifth to d, derived from seed, so that objects that were woken together spread out.
func Jitter(d time.Duration, seed string) time.Duration {
	var sum uint32
	for _, b := range []byte(seed) {
		sum = sum*31 + uint32(b)
	}
	return d + d/5*time.Duration(sum%100)/100
}
