package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// proofInterval is how far apart two looks at what is not seen must be before it counts as gone: a minute, and a second
	// because the note of the first look has no fractions.
	proofInterval = 61 * time.Second
	// askedSiblings is how many other VMs of a cluster are asked for until one is seen.
	askedSiblings = 3
)

// missing is what is not seen.
type missing struct {
	what, finalizer string
	now             time.Time
}

// missed notes that something of obj was not seen, although VCD showed what else must be there. It is gone if that was
// so before, long enough ago.
func missed(obj client.Object, what, reason string, now time.Time) outcome {
	since, err := time.Parse(time.RFC3339, obj.GetAnnotations()[infrav1.MissingSinceAnnotation])
	if err != nil || since.After(now) {
		since = now
		annotate(obj, infrav1.MissingSinceAnnotation, now.UTC().Format(time.RFC3339))
	}
	left := since.Add(proofInterval).Sub(now)
	if left <= 0 {
		return done
	}
	out := wait(left, reason, "%s is not seen: it counts as gone if it is not seen in a minute either", what)
	out.unknown = true
	return out
}

// seen forgets that something of obj was not seen, or not in a way that proves anything.
func seen(obj client.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, infrav1.MissingSinceAnnotation)
	delete(annotations, infrav1.VMNotFoundSinceAnnotation)
	obj.SetAnnotations(annotations)
}

func annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// showsVDC says whether VCD shows the VDC now: without that, nothing else that is not seen means anything.
func showsVDC(ctx context.Context, s *session, vdc vcd.VDC) (bool, error) {
	s.Refresh()
	_, err := s.FindVDC(ctx, vdc.ID)
	if invisible(err) {
		return false, nil
	}
	return err == nil, err //nolint:wrapcheck // refusal looks into it.
}

// invisible says whether VCD does not show what it was asked for, whether that exists or not.
func invisible(err error) bool {
	return errors.Is(err, vcd.ErrNotFound) || errors.Is(err, vcd.ErrForbidden)
}

// vAppMissed tells of a vApp of obj that is not found.
func vAppMissed(ctx context.Context, s *session, vdc vcd.VDC, obj client.Object, m missing) (outcome, error) {
	shown, err := showsVDC(ctx, s, vdc)
	switch {
	case err != nil:
		return refusal(err, "Reading VDC "+vdc.Name)
	case !shown:
		seen(obj)
		return unsure(remedyPoll, infrav1.VAppUnverifiedReason,
			"Neither %s nor its VDC %s is seen, which proves nothing: give the user of the identity access to the VDC, or if that is gone, remove finalizer %s",
			m.what, vdc.Name, m.finalizer), nil
	}
	return missed(obj, m.what, infrav1.VAppUnverifiedReason, m.now), nil
}

// neverCreated says whether a VM that is neither recorded nor found was never created. A request to create it whose
// answer nobody saw may still be worked on.
func (s *machineScope) neverCreated(ctx context.Context) (outcome, error) {
	if asked, err := s.wasAsked(ctx); err != nil || !asked {
		return done, err
	}
	return s.proveGone(ctx, "")
}

// wasAsked says whether VCD was asked for the VM.
func (s *machineScope) wasAsked(ctx context.Context) (bool, error) {
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
		annotate(m, infrav1.CreationRequestedAnnotation, asked)
	}
	return asked != "", nil
}

// proveGone decides whether a VM that is not seen is gone; id is empty if none is recorded. It is if VCD shows its vApp
// without it after it was asked to delete it, or if VCD shows what else must be there, twice, and not too much else is missing.
// The same holds for a machine that runs and for one that is deleted.
func (s *machineScope) proveGone(ctx context.Context, id string) (outcome, error) {
	what := "VM " + cmp.Or(id, s.vcdMachine.Annotations[infrav1.VMNameAnnotation])
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, s.vAppName())
	if err != nil && !invisible(err) {
		return refusal(err, "Reading vApp "+s.vAppName())
	}
	shown := err == nil && s.isOurs(vApp)
	if shown {
		if slices.ContainsFunc(vApp.VMs, func(vm vcd.Ref) bool { return vm.ID == id }) {
			seen(s.vcdMachine)
			return unsure(remedyPoll, infrav1.VMUnverifiedReason, "vApp %s holds %s, which VCD does not show: grant its user access to it", vApp.Name, what), nil
		}
		if s.vcdMachine.Annotations[infrav1.DeleteRequestedAnnotation] != "" {
			return done, nil
		}
	}
	return s.proveUnseen(ctx, id, what, shown)
}

// proveUnseen looks twice, and asks of a recorded VM whether something else may be wrong.
func (s *machineScope) proveUnseen(ctx context.Context, id, what string, showsVApp bool) (outcome, error) {
	if out, err := s.lookTwice(ctx, id, what, showsVApp); err != nil || out != done || id == "" {
		return out, err
	}
	return s.mayBeGone(ctx, id, what)
}

// mayBeGone asks, of a recorded VM that was not seen twice, whether something else may be wrong: with VCD, or with the site.
func (s *machineScope) mayBeGone(ctx context.Context, id, what string) (outcome, error) {
	if out, err := s.remembered(ctx, id, what); err != nil || out != done {
		return out, err
	}
	return s.brake(ctx, what)
}

// lookTwice makes sure that VCD shows the VDC and, if any is known, something of the cluster, or how all of it was deleted, twice.
func (s *machineScope) lookTwice(ctx context.Context, id, what string, showsVApp bool) (outcome, error) {
	shown, err := showsVDC(ctx, s.session, s.placement.vdc)
	if err == nil && shown && !showsVApp {
		if shown, err = s.showsSibling(ctx); err == nil && !shown && id != "" {
			shown, err = s.showsDeletion(ctx, id)
		}
	}
	switch {
	case err != nil:
		return refusal(err, "Looking for "+what)
	case !shown:
		seen(s.vcdMachine)
		return unsure(remedyPoll, infrav1.VMUnverifiedReason,
			"Neither %s nor anything else of the cluster is seen, which proves nothing: give the user of the identity access to vApp %s, or if the VM is gone, annotate the VCDMachine with %s=true",
			what, s.vAppName(), infrav1.VMGoneAnnotation), nil
	}
	return s.missedTwice(what), nil
}

// missedTwice notes that the VM was not seen. The time between two looks of this process is taken from a clock that does not leap.
func (s *machineScope) missedTwice(what string) outcome {
	m, now := s.vcdMachine, s.now()
	before := m.Annotations[infrav1.MissingSinceAnnotation]
	out := missed(m, what, infrav1.VMUnverifiedReason, now)
	if m.Annotations[infrav1.MissingSinceAnnotation] != before {
		s.memory.missed = now
	}
	if left := s.memory.missed.Add(proofInterval).Sub(now); out == done && !s.memory.missed.IsZero() && left > 0 {
		return unsure(left, infrav1.VMUnverifiedReason, "%s is not seen: it counts as gone if it is not seen in a minute either", what)
	}
	return out
}

// showsSibling says whether VCD shows the VM of another machine of the cluster. Where nothing of the cluster was ever
// known to be there, nothing needs to be shown.
func (s *machineScope) showsSibling(ctx context.Context) (bool, error) {
	list := &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, list, client.InNamespace(s.vcdMachine.Namespace), ofCluster(clusterName(s.vcdCluster, s.cluster))); err != nil {
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
		if !invisible(err) {
			return false, err //nolint:wrapcheck // refusal looks into it.
		}
	}
	return known == 0 && s.vmID() == "", nil
}

// isOurs says whether a vApp is the cluster's.
func (s *machineScope) isOurs(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker.Cluster == s.vcdCluster.Spec.InfraID
}
