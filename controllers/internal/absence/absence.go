// SPDX-License-Identifier: Apache-2.0

// Package absence reports what is decided about VMs and vApps that VCD does not show.
package absence

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Since returns when the VM of obj was first found missing; zero if it was not.
func Since(obj client.Object) time.Time {
	at, _ := time.Parse(time.RFC3339, obj.GetAnnotations()[infrav1.MissingSinceAnnotation])
	return at
}

// Note writes on obj what a verdict means for the next observation, and reports whether this one was the first that
// counts.
func Note(obj client.Object, v gone.Verdict, now time.Time) bool {
	if !v.Counts {
		Forget(obj)
		return false
	}
	if at := Since(obj); v.Reason != gone.Once || !at.IsZero() && !at.After(now) {
		return false
	}
	notes.Set(obj, infrav1.MissingSinceAnnotation, now.UTC().Format(time.RFC3339))
	return true
}

// Forget removes what says that the VM of obj is missing.
func Forget(obj client.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, infrav1.MissingSinceAnnotation)
	delete(annotations, infrav1.VMNotFoundSinceAnnotation)
	obj.SetAnnotations(annotations)
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
	first := metav1.Time{}
	if since != nil {
		first = *since
	}
	verdict := gone.Decide(now, gone.Subject{
		Missing:    gone.Missing{Since: first.Time},
		Evidence:   gone.Evidence(seen),
		Unrecorded: len(v.IDs) == 0,
	}, nil)
	switch {
	case !verdict.Counts:
		since = nil
	case verdict.Reason == gone.Once && (first.IsZero() || first.After(now)):
		since = &metav1.Time{Time: now.UTC().Truncate(time.Second)}
	}
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
		why = "nor is its VDC " + v.VDC.Name
	case gone.Listed:
		why = "although VCD lists it"
	default:
		why = "VCD does not show that it was deleted, either"
	}
	return phases.Unsure(session.RemedyPoll, infrav1.VAppUnverifiedReason,
		"vApp %s is not shown, %s: give the user of the identity access to it", v.Name, why)
}

// Once is the result of the first observation that something is missing.
func Once(v gone.Verdict, reason, what string) phases.Result {
	return phases.Verify(v.After, reason, "%s is missing: it counts as gone if it is still missing in a minute", what)
}
