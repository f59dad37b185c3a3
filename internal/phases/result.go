// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Result is the result of a phase: complete, or the reason why not and when to run it again. The zero value is
// [Done].
type Result struct {
	Reason  string
	Message string
	After   time.Duration // when to run again; zero if a watch triggers it

	kind     kind
	noAccess bool // caused by missing access, which proves nothing about an object that ran before
}

// kind is the kind of a result.
type kind int

const (
	done       kind = iota // complete
	obsolete               // complete; the condition is no longer needed
	warned                 // complete, with a warning
	noted                  // complete, with a remark
	waiting                // in progress
	failed                 // a problem: a user may have to act
	unverified             // not known yet, which is not a problem so far
	unsure                 // not known because of a problem
)

// Done is the result of a complete phase.
var Done Result

// Obsolete is the result of a complete phase whose condition is removed, because it no longer applies to the object.
var Obsolete = Result{kind: obsolete}

// Wait is the result of a phase that makes progress and must run again.
func Wait(after time.Duration, reason, format string, args ...any) Result {
	return result(waiting, after, reason, format, args...)
}

// Fail is the result of a phase that may need action by a user. The phase runs again nevertheless: most remedies are
// applied in VCD, where no watch sees them.
func Fail(after time.Duration, reason, format string, args ...any) Result {
	return result(failed, after, reason, format, args...)
}

// Stop is the result of a phase that can only continue after a change to a Kubernetes object.
func Stop(reason, format string, args ...any) Result {
	return result(failed, 0, reason, format, args...)
}

// Unsure is the result of a phase that a problem keeps from determining the state of the object.
func Unsure(after time.Duration, reason, format string, args ...any) Result {
	return result(unsure, after, reason, format, args...)
}

// Verify is the result of a phase that must observe the object again before it can decide.
func Verify(after time.Duration, reason, format string, args ...any) Result {
	return result(unverified, after, reason, format, args...)
}

// Warn is the result of a complete phase with a warning for users. In a [Sequence], only the last step may return it.
func Warn(reason, format string, args ...any) Result {
	return result(warned, 0, reason, format, args...)
}

// Note is the result of a complete phase with a remark that does not merit an event.
func Note(reason, format string, args ...any) Result {
	return result(noted, 0, reason, format, args...)
}

func result(of kind, after time.Duration, reason, format string, args ...any) Result {
	return Result{
		Reason:  reason,
		Message: fmt.Sprintf(format, args...),
		After:   after,
		kind:    of,
	}
}

// NoAccess returns the result, marked as caused by missing access. Done stays unmarked.
func (r Result) NoAccess() Result {
	r.noAccess = r != Done
	return r
}

// WithAccess returns the result without the mark of [Result.NoAccess].
func (r Result) WithAccess() Result {
	r.noAccess = false
	return r
}

// IsProblem reports whether the result merits a warning, because a user may have to act.
func (r Result) IsProblem() bool { return r.kind == failed || r.kind == unsure }

// IsUnknown reports whether the result proves nothing about the object: VCD did not respond, or must be queried again.
func (r Result) IsUnknown() bool { return r.kind == unverified || r.kind == unsure }

// isComplete reports whether the phase is complete, so that the next one runs.
func (r Result) isComplete() bool {
	return r.kind == done || r.kind == obsolete || r.kind == warned || r.kind == noted
}

// isUnanswered reports whether the state is unknown because VCD was unreachable or the request was throttled.
func (r Result) isUnanswered() bool {
	return r.IsUnknown() && (r.Reason == infrav1.SiteUnreachableReason || r.Reason == infrav1.ThrottledReason)
}

// ofEstablished returns the result for an object that ran before, about which missing access proves nothing.
func (r Result) ofEstablished() Result {
	switch {
	case !r.noAccess:
	case r.kind == waiting:
		r.kind = unverified
	case r.kind == failed:
		r.kind = unsure
	}
	return r
}

// status returns the status of the condition of a phase with the result.
func (r Result) status() metav1.ConditionStatus {
	switch {
	case r.isComplete():
		return metav1.ConditionTrue
	case r.IsUnknown():
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// outcome returns the metric label of a pass that ended with the result.
func (r Result) outcome() string {
	switch {
	case r.IsUnknown():
		return passUnknown
	case r.IsProblem():
		return passProblem
	}
	return passWaiting
}
