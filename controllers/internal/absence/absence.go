// SPDX-License-Identifier: Apache-2.0

// Package absence reports what is decided about VMs and vApps that VCD does not show.
package absence

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// IsDeclared reports whether the VM of m is gone for good: a person declared it with an annotation, or it was proved
// before the proof was deleted, too.
func IsDeclared(m *infrav1.VCDMachine) bool {
	return m.Annotations[infrav1.VMGoneAnnotation] == "true" || m.Spec.RecordedState.VMGoneAt != nil
}

// Since returns when the VM of m was first found missing; zero if it was not.
func Since(m *infrav1.VCDMachine) time.Time { return timeOf(m.Spec.RecordedState.MissingSince) }

func timeOf(recorded *metav1.Time) time.Time {
	if recorded == nil {
		return time.Time{}
	}
	return recorded.Time
}

// Note records on m what a verdict means for the next observation, and reports whether this one was the first that
// counts.
func Note(m *infrav1.VCDMachine, v gone.Verdict, now time.Time) bool {
	if !v.Counts {
		Forget(m)
		return false
	}
	before := m.Spec.RecordedState.MissingSince
	m.Spec.RecordedState.MissingSince = missingSince(before, v, now)
	return m.Spec.RecordedState.MissingSince != before
}

// missingSince returns since when something is missing according to a verdict, if it was known to be missing since a time
// before; nil is that it is not missing.
func missingSince(before *metav1.Time, v gone.Verdict, now time.Time) *metav1.Time {
	switch {
	case !v.Counts:
		return nil
	case v.Reason != gone.Once || !before.IsZero() && !before.After(now):
		return before
	}
	return &metav1.Time{Time: now.UTC().Truncate(time.Second)}
}

// Forget removes what says that the VM or vApp of m is missing.
func Forget(m *infrav1.VCDMachine) {
	m.Spec.RecordedState.MissingSince = nil
	m.Spec.RecordedState.VMNotFoundSince = nil
}

// Invisible reports whether VCD does not show an object, be it that there is none or that the user has no access.
func Invisible(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}

// A VApp is one that is not found by its name.
type VApp struct {
	Name string
	VDC  vcd.VDC
	IDs  []string // URNs that were recorded and are not shown; none: there may never have been one
}

// Gone decides whether the vApp is gone, and returns since when it is missing then: the time is to be recorded, or
// removed if it is nil, until the next observation.
func (v VApp) Gone(ctx context.Context, s *session.Session, since *metav1.Time, now time.Time) (*metav1.Time, phases.Result,
	error,
) {
	seen, err := s.LostVApp(ctx, v.VDC, v.IDs...)
	if err != nil {
		out, err := session.Unread(err, "Looking for vApp "+v.Name)
		return since, out, err
	}
	verdict := gone.Decide(now, gone.Subject{
		Missing:    gone.Missing{Since: timeOf(since)},
		Evidence:   gone.Evidence(seen),
		Unrecorded: len(v.IDs) == 0,
	}, nil)
	since = missingSince(since, verdict, now)
	switch verdict.State {
	case gone.Gone:
		return since, phases.Done, nil
	case gone.Waiting:
		return since, Once(verdict, infrav1.VAppUnverifiedReason, "vApp "+v.Name), nil
	default:
		return since, v.unproved(verdict.Reason), nil
	}
}

// unproved is the result of evidence that proves nothing.
func (v VApp) unproved(reason gone.Reason) phases.Result {
	var why string
	switch reason {
	case gone.ScopeHidden:
		why = "and neither is its VDC " + v.VDC.Name
	case gone.Listed:
		why = "although VCD lists it"
	default:
		why = "and VCD has no record of its deletion"
	}
	return phases.Unsure(session.RemedyPoll, infrav1.VAppUnverifiedReason,
		"vApp %s is not visible, %s: grant the user of the identity access to it", v.Name, why)
}

// Once is the result of the first observation that something is missing.
func Once(v gone.Verdict, reason, what string) phases.Result {
	return phases.Verify(v.After, reason, "%s is missing; the provider treats it as deleted if it is still "+
		"missing in one minute", what)
}
