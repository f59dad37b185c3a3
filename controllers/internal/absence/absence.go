// Package absence decides whether what VCD does not show is gone.
package absence

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// ProofInterval is how far apart two looks at what is not seen must be before it counts as gone: a minute, and a second
	// because the note of the first look has no fractions.
	ProofInterval = 61 * time.Second
)

// Subject is what is not seen.
type Subject struct {
	What, Finalizer string
	Now             time.Time
}

// Missed notes that something of obj was not seen, although VCD showed what else must be there. It is gone if that was
// so before, long enough ago.
func Missed(obj client.Object, what, reason string, now time.Time) phases.Outcome {
	since, err := time.Parse(time.RFC3339, obj.GetAnnotations()[infrav1.MissingSinceAnnotation])
	if err != nil || since.After(now) {
		since = now
		notes.Set(obj, infrav1.MissingSinceAnnotation, now.UTC().Format(time.RFC3339))
	}
	left := since.Add(ProofInterval).Sub(now)
	if left <= 0 {
		return phases.Done
	}
	out := phases.Wait(left, reason, "%s is not seen: it counts as gone if it is not seen in a minute either", what)
	out.Unknown = true
	return out
}

// Seen forgets that something of obj was not seen, or not in a way that proves anything.
func Seen(obj client.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, infrav1.MissingSinceAnnotation)
	delete(annotations, infrav1.VMNotFoundSinceAnnotation)
	obj.SetAnnotations(annotations)
}

// ShowsVDC says whether VCD shows the VDC now: without that, nothing else that is not seen means anything.
func ShowsVDC(ctx context.Context, s *session.Session, vdc vcd.VDC) (bool, error) {
	s.Refresh()
	_, err := s.FindVDC(ctx, vdc.ID)
	if Invisible(err) {
		return false, nil
	}
	return err == nil, err
}

// Invisible says whether VCD does not show what it was asked for, whether that exists or not.
func Invisible(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}

// VAppMissed tells of a vApp of obj that is not found.
func VAppMissed(ctx context.Context, s *session.Session, vdc vcd.VDC, obj client.Object, m Subject) (phases.Outcome, error) {
	shown, err := ShowsVDC(ctx, s, vdc)
	switch {
	case err != nil:
		return session.Refusal(err, "Reading VDC "+vdc.Name)
	case !shown:
		Seen(obj)
		return phases.Unsure(session.RemedyPoll, infrav1.VAppUnverifiedReason,
			"Neither %s nor its VDC %s is seen, which proves nothing: give the user of the identity access to the VDC, or if that is gone, remove finalizer %s",
			m.What, vdc.Name, m.Finalizer), nil
	}
	return Missed(obj, m.What, infrav1.VAppUnverifiedReason, m.Now), nil
}
