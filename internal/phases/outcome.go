// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func (o Outcome) pass() string {
	switch {
	case o.Unknown:
		return passUnknown
	case o.Problem:
		return passProblem
	}
	return passWaiting
}

// An Outcome says why a phase is not complete yet. The zero value means it is.
type Outcome struct {
	Reason, Message string
	After           time.Duration // when to run again; zero if a watch triggers it
	Problem         bool          // worth a warning: a user may have to act
	Unknown         bool          // VCD could not be asked: nothing is said about the object itself
	Complete        bool          // the phase is complete all the same: only a warning
	Access          bool          // VCD may not or cannot be asked: Unknown for what has run before
}

// Done is the outcome of a complete phase.
var Done Outcome

// Wait is the outcome of a phase that makes progress and must run again.
func Wait(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// Fail is the outcome of a phase that may need a user's help. It runs again all the same: most remedies are
// applied in VCD, where no watch sees them.
func Fail(after time.Duration, reason, format string, args ...any) Outcome {
	return Outcome{Reason: reason, Message: fmt.Sprintf(format, args...), After: after, Problem: true}
}

// Stop is the outcome of a phase that only a change to some Kubernetes object can help.
func Stop(reason, format string, args ...any) Outcome {
	return Fail(0, reason, format, args...)
}

// Unsure is the outcome of a phase that could not find out.
func Unsure(after time.Duration, reason, format string, args ...any) Outcome {
	out := Fail(after, reason, format, args...)
	out.Unknown = true
	return out
}

// Warn is the outcome of a phase that is complete, with something that a user should know. In a [Sequence] it
// is for the last step.
func Warn(reason, format string, args ...any) Outcome {
	return Outcome{Reason: reason, Message: fmt.Sprintf(format, args...), Complete: true}
}

// NoAccess returns the outcome with the mark that it is for lack of access.
func (o Outcome) NoAccess() Outcome {
	o.Access = o != Done
	return o
}

// Status returns the status of the condition of a phase with an outcome.
func (o Outcome) Status() metav1.ConditionStatus {
	switch {
	case o == Done || o.Complete:
		return metav1.ConditionTrue
	case o.Unknown:
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// unanswered reports whether VCD could not be asked.
func (o Outcome) unanswered() bool {
	return o.Unknown && (o.Reason == infrav1.SiteUnreachableReason || o.Reason == infrav1.ThrottledReason)
}
