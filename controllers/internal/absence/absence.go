// SPDX-License-Identifier: Apache-2.0

// Package absence records and reports decisions about VMs and vApps that VCD does not show.
package absence

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// IsDeclared reports whether the VM of m is gone for good: a user declared it with an annotation, or it was proved gone
// earlier.
func IsDeclared(m *infrav1.VCDMachine) bool {
	return m.Annotations[infrav1.VMGoneAnnotation] == "true" || m.Spec.RecordedState.VMGoneAt != nil
}

// Since returns when the VM of m was first found missing; zero if it is not missing.
func Since(m *infrav1.VCDMachine) time.Time { return timeOf(m.Spec.RecordedState.MissingSince) }

func timeOf(recorded *metav1.Time) time.Time {
	if recorded == nil {
		return time.Time{}
	}
	return recorded.Time
}

// Note records on m a verdict for the next observation, and reports whether this observation was the first that counts.
func Note(m *infrav1.VCDMachine, v gone.Verdict, now time.Time) bool {
	if !v.Counts {
		Forget(m)
		return false
	}
	before := m.Spec.RecordedState.MissingSince
	m.Spec.RecordedState.MissingSince = missingSince(before, v, now)
	return m.Spec.RecordedState.MissingSince != before
}

// missingSince returns since when an object is missing, given the verdict and the earlier time; nil if it is not
// missing.
func missingSince(before *metav1.Time, v gone.Verdict, now time.Time) *metav1.Time {
	switch {
	case !v.Counts:
		return nil
	case v.Reason != gone.Once || !before.IsZero() && !before.After(now):
		return before
	}
	return &metav1.Time{Time: now.UTC().Truncate(time.Second)}
}

// Forget removes the records that the VM or vApp of m is missing.
func Forget(m *infrav1.VCDMachine) {
	m.Spec.RecordedState.MissingSince = nil
	m.Spec.RecordedState.VMNotFoundSince = nil
}

// Invisible reports whether VCD does not show an object, because it does not exist or because the user has no access.
func Invisible(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}

// A VApp is a vApp that was not found by name.
type VApp struct {
	Name string
	VDC  vcd.VDC
	IDs  []string // recorded URNs that VCD does not show; none: the vApp may never have existed
}

// Gone decides whether the vApp is gone. It also returns since when it is missing: the caller must record this time, or
// remove it if it is nil, before the next observation.
func (v VApp) Gone(ctx context.Context, s *session.Session, since *metav1.Time, now time.Time) (*metav1.Time, phases.Result, error) {
	seen, err := s.LostVApp(ctx, v.VDC, v.IDs...)
	if err != nil {
		out, err := problems.OfRead(err, "Looking for vApp "+v.Name)
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

// unproved returns the result for evidence that proves nothing.
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
	return phases.Unsure(intervals.Remedy, infrav1.VAppUnverifiedReason,
		"vApp %s is not visible, %s: grant the user of the identity access to it", v.Name, why)
}

// Once returns the result of the first observation that an object is missing.
func Once(v gone.Verdict, reason, what string) phases.Result {
	return phases.Verify(v.After, reason, "%s is missing; the provider treats it as deleted if it is still missing in one minute", what)
}
