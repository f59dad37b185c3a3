package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// askedSiblings is how many other VMs of a cluster are asked for until one is seen.
	askedSiblings = 3
)

// neverCreated says whether a VM that is neither recorded nor found was never created. A request to create it whose
// answer nobody saw may still be worked on.
func (s *scope) neverCreated(ctx context.Context) (phases.Outcome, error) {
	if asked, err := s.wasAsked(ctx); err != nil || !asked {
		return phases.Done, err
	}
	return s.proveGone(ctx, "")
}

// wasAsked says whether VCD was asked for the VM.
func (s *scope) wasAsked(ctx context.Context) (bool, error) {
	m := s.vcdMachine
	if m.Annotations[infrav1.CreationRequestedAnnotation] != "" {
		return true, nil
	}
	now := &infrav1.VCDMachine{} // Another machine, which asked for both, may have noted it just now.
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(m), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDMachine %s: %w", m.Name, err)
	}
	asked := now.Annotations[infrav1.CreationRequestedAnnotation]
	if asked != "" {
		notes.Set(m, infrav1.CreationRequestedAnnotation, asked)
	}
	return asked != "", nil
}

// proveGone decides whether a VM that is not seen is gone; id is empty if none is recorded. It is if VCD shows its vApp
// without it after it was asked to delete it, or if VCD shows what else must be there, twice, and not too much else is missing.
// The same holds for a machine that runs and for one that is deleted.
func (s *scope) proveGone(ctx context.Context, id string) (phases.Outcome, error) {
	what := "VM " + cmp.Or(id, s.vcdMachine.Annotations[infrav1.VMNameAnnotation])
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, s.vAppName())
	if err != nil && !absence.Invisible(err) {
		return session.Refusal(err, "Reading vApp "+s.vAppName())
	}
	shown := err == nil && s.isOurs(vApp)
	if shown {
		if slices.ContainsFunc(vApp.VMs, func(vm vcd.Ref) bool { return vm.ID == id }) {
			absence.Seen(s.vcdMachine)
			return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason, "vApp %s holds %s, which VCD does not show: grant its user access to it", vApp.Name, what), nil
		}
		if s.vcdMachine.Annotations[infrav1.DeleteRequestedAnnotation] != "" {
			return phases.Done, nil
		}
	}
	return s.proveUnseen(ctx, id, what, shown)
}

// proveUnseen looks twice, and asks of a recorded VM whether something else may be wrong.
func (s *scope) proveUnseen(ctx context.Context, id, what string, showsVApp bool) (phases.Outcome, error) {
	if out, err := s.lookTwice(ctx, id, what, showsVApp); err != nil || out != phases.Done || id == "" {
		return out, err
	}
	return s.mayBeGone(ctx, id, what)
}

// mayBeGone asks, of a recorded VM that was not seen twice, whether something else may be wrong: with VCD, or with the site.
func (s *scope) mayBeGone(ctx context.Context, id, what string) (phases.Outcome, error) {
	if out, err := s.remembered(ctx, id, what); err != nil || out != phases.Done {
		return out, err
	}
	return s.brake(ctx, what)
}

// lookTwice makes sure that VCD shows the VDC and, if any is known, something of the cluster, or how all of it was deleted, twice.
func (s *scope) lookTwice(ctx context.Context, id, what string, showsVApp bool) (phases.Outcome, error) {
	shown, err := absence.ShowsVDC(ctx, s.session, s.placement.vdc)
	if err == nil && shown && !showsVApp {
		if shown, err = s.showsSibling(ctx); err == nil && !shown && id != "" {
			shown, err = s.showsDeletion(ctx, id)
		}
	}
	switch {
	case err != nil:
		return session.Refusal(err, "Looking for "+what)
	case !shown:
		absence.Seen(s.vcdMachine)
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
			"Neither %s nor anything else of the cluster is seen, which proves nothing: give the user of the identity access to vApp %s, or if the VM is gone, annotate the VCDMachine with %s=true",
			what, s.vAppName(), infrav1.VMGoneAnnotation), nil
	}
	return s.missedTwice(what), nil
}

// missedTwice notes that the VM was not seen. The time between two looks of this process is taken from a clock that does not leap.
func (s *scope) missedTwice(what string) phases.Outcome {
	m, now := s.vcdMachine, s.now()
	before := m.Annotations[infrav1.MissingSinceAnnotation]
	out := absence.Missed(m, what, infrav1.VMUnverifiedReason, now)
	if m.Annotations[infrav1.MissingSinceAnnotation] != before {
		s.memory.missed = now
	}
	if left := s.memory.missed.Add(absence.ProofInterval).Sub(now); out == phases.Done && !s.memory.missed.IsZero() && left > 0 {
		return phases.Unsure(left, infrav1.VMUnverifiedReason, "%s is not seen: it counts as gone if it is not seen in a minute either", what)
	}
	return out
}

// showsSibling says whether VCD shows the VM of another machine of the cluster. Where nothing of the cluster was ever
// known to be there, nothing needs to be shown.
func (s *scope) showsSibling(ctx context.Context) (bool, error) {
	list := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.vcdMachine.Namespace), session.OfCluster(session.ClusterName(s.vcdCluster, s.cluster))); err != nil {
		return false, fmt.Errorf("listing VCDMachines: %w", err)
	}
	known := 0
	for _, m := range list.Items {
		id, err := providerid.Parse(m.Spec.ProviderID)
		if err != nil || m.UID == s.vcdMachine.UID {
			continue
		}
		if known++; known > askedSiblings {
			break
		}
		_, err = s.session.VM(ctx, id)
		if err == nil {
			return true, nil
		}
		if !absence.Invisible(err) {
			return false, err
		}
	}
	return known == 0 && s.vmID() == "", nil
}

// isOurs says whether a vApp is the cluster's.
func (s *scope) isOurs(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == s.vcdCluster.Spec.InfraID
}

// tasksKept is for how long VCD remembers at least what it did.
const tasksKept = 24 * time.Hour

// lookForMissing finds out what became of a recorded VM that the inventory does not show.
func (s *scope) lookForMissing(ctx context.Context) (phases.Outcome, error) {
	m, id := s.vcdMachine, s.vmID()
	_, err := s.session.VM(ctx, id)
	switch {
	case err == nil:
		absence.Seen(m)
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
			"VCD shows VM %s and does not list it: look whether its inventory is complete, and at the rights of the identity's user", id), nil
	case !absence.Invisible(err):
		return session.Refusal(err, "Reading VM "+id)
	case m.Annotations[infrav1.VMNotFoundSinceAnnotation] == "":
		if out, err := s.proveGone(ctx, id); err != nil || out != phases.Done {
			return out, err
		}
		vmGone(s.Recorder, m, id)
	}
	return phases.Fail(lookEvery, infrav1.VMNotFoundReason, "VM %s is gone from VCD: delete the Machine to replace it", id), nil
}

// saidGone is the outcome for a machine whose VM is gone by the word of a person.
func saidGone() phases.Outcome {
	return phases.Stop(infrav1.VMNotFoundReason, "The VM is gone, annotation %s says: delete the Machine to replace it", infrav1.VMGoneAnnotation)
}

// remembered makes sure that VCD, which does not show a VM, remembers that it made it: one that was set back to an earlier state
// knows nothing of what was made since, though it may still run.
func (s *scope) remembered(ctx context.Context, id, what string) (phases.Outcome, error) {
	since, err := time.Parse(time.RFC3339, s.vcdMachine.Annotations[infrav1.PoweredOnAnnotation])
	if err != nil || s.now().Sub(since) > tasksKept {
		return phases.Done, nil //nolint:nilerr // Without the time it is an old one.
	}
	tasks, err := s.history(ctx, id)
	if err != nil {
		return session.Refusal(err, "Looking for the tasks of "+what)
	}
	if len(tasks) > 0 {
		return phases.Done, nil
	}
	return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
		"Neither %s is seen nor any of the tasks that made it, less than a day ago: was VCD set back to an earlier state? If the VM is gone, annotate the VCDMachine with %s=true",
		what, infrav1.VMGoneAnnotation), nil
}

// showsDeletion says whether VCD's log of tasks shows that the VM, or the vApp it was in, was deleted, by whom ever.
func (s *scope) showsDeletion(ctx context.Context, id string) (bool, error) {
	ids := []string{id}
	if vApp := s.vcdMachine.Status.VApp; vApp != nil {
		ids = append(ids, vApp.ID)
	} else if made, ok := s.made(); ok && made.VApp != "" {
		ids = append(ids, made.VApp)
	}
	tasks, err := s.history(ctx, ids...)
	return slices.ContainsFunc(tasks, func(t vcd.Task) bool { return t.Deletes() && t.State == vcd.TaskSucceeded }), err
}

// history returns the tasks of objects, none if VCD does not show tasks to the user.
func (s *scope) history(ctx context.Context, ids ...string) ([]vcd.Task, error) {
	tasks, err := s.session.History(ctx, ids...)
	if errors.Is(err, vcd.ErrInvalid) || errors.Is(err, vcd.ErrForbidden) {
		return nil, nil
	}
	return tasks, err
}
