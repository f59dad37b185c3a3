// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Result is what a phase came to: it is complete, or why it is not and when to run it again. The zero value is [Done].
type Result struct {
	Reason  string
	Message string
	After   time.Duration // when to run again; zero if a watch triggers it

	kind     kind
	noAccess bool // for lack of access, which shows nothing about an object that ran before
}

// kind is the kind of a result.
type kind int

const (
	done       kind = iota // complete
	obsolete               // complete, and the condition is not needed any more
	warned                 // complete, with a warning
	noted                  // complete, with a remark
	waiting                // in progress
	failed                 // a problem: a user may have to act
	unverified             // nothing is known yet, which is no problem so far
	unsure                 // a problem that keeps the phase from finding out
)

// Done is the result of a complete phase.
var Done Result

// Obsolete is the result of a complete phase whose condition goes: the object asks for none of this any more.
var Obsolete = Result{kind: obsolete}

// Wait is the result of a phase that makes progress and must run again.
func Wait(after time.Duration, reason, format string, args ...any) Result {
	return result(waiting, after, reason, format, args...)
}

// Fail is the result of a phase that may need a user's help. It runs again all the same: most remedies are applied in
// VCD, where no watch sees them.
func Fail(after time.Duration, reason, format string, args ...any) Result {
	return result(failed, after, reason, format, args...)
}

// Stop is the result of a phase that only a change to some Kubernetes object can help.
func Stop(reason, format string, args ...any) Result {
	return result(failed, 0, reason, format, args...)
}

// Unsure is the result of a phase that could not find out.
func Unsure(after time.Duration, reason, format string, args ...any) Result {
	return result(unsure, after, reason, format, args...)
}

// Verify is the result of a phase that has to observe once more before it knows.
func Verify(after time.Duration, reason, format string, args ...any) Result {
	return result(unverified, after, reason, format, args...)
}

// Warn is the result of a phase that is complete, with something that a user should know. In a [Sequence] it is for the
// last step.
func Warn(reason, format string, args ...any) Result {
	return result(warned, 0, reason, format, args...)
}

// Note is the result of a phase that is complete, with a remark that is worth no event.
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

// NoAccess returns the result with the mark that it is for lack of access.
func (r Result) NoAccess() Result {
	r.noAccess = r != Done
	return r
}

// WithAccess returns the result without the mark of [Result.NoAccess].
func (r Result) WithAccess() Result {
	r.noAccess = false
	return r
}

// IsProblem reports whether the result is worth a warning: a user may have to act.
func (r Result) IsProblem() bool { return r.kind == failed || r.kind == unsure }

// IsUnknown reports whether the result shows nothing about the object: VCD could not be asked, or has to be once more.
func (r Result) IsUnknown() bool { return r.kind == unverified || r.kind == unsure }

// isComplete reports whether the next phase runs.
func (r Result) isComplete() bool {
	return r.kind == done || r.kind == obsolete || r.kind == warned || r.kind == noted
}

// isUnanswered reports whether VCD could not be asked.
func (r Result) isUnanswered() bool {
	return r.IsUnknown() && (r.Reason == infrav1.SiteUnreachableReason || r.Reason == infrav1.ThrottledReason)
}

// ofEstablished returns the result for an object that ran before: lack of access shows nothing about it.
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

// outcome returns what metrics call a pass that a phase with the result ended.
func (r Result) outcome() string {
	switch {
	case r.IsUnknown():
		return passUnknown
	case r.IsProblem():
		return passProblem
	}
	return passWaiting
}
