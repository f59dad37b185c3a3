package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteMachineVApp removes the vApp of a machine that had one of its own. A vApp that machines share goes with the
// cluster.
func deleteMachineVApp(ctx context.Context, s *machineScope) (outcome, error) {
	if s.vcdCluster == nil || !perMachine(s.vcdCluster) || !s.mayHaveVM() {
		return done, nil
	}
	if shared, err := s.hasTwin(ctx); err != nil || shared {
		return done, err
	}
	if s.session == nil {
		if out, err := s.openForDeletion(ctx); err != nil || out != done {
			return out, err
		}
	}
	out, ended := s.settle(stepCleanUp, deletingVApp)
	if out != done {
		return out, nil
	}
	return s.findMachineVApp(ctx, ended)
}

// findMachineVApp deletes the vApp that is the machine's alone if it is there; ended says that our own task deleted it.
func (s *machineScope) findMachineVApp(ctx context.Context, ended bool) (outcome, error) {
	name := s.vAppName()
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, name)
	if err == nil && s.ownsVApp(vApp) {
		return s.removeVApp(ctx, vApp)
	}
	if err != nil && !errors.Is(err, vcd.ErrNotFound) {
		return refusal(err, "Reading vApp "+name)
	}
	renamed, found, errRenamed := s.renamedVApp(ctx)
	switch {
	case errRenamed != nil:
		return refusal(errRenamed, "Reading the vApp that was "+name)
	case found:
		return s.removeVApp(ctx, renamed)
	case err == nil:
		vAppLeft(s.Recorder, s.vcdMachine, vApp.Name)
		return done, nil
	case ended:
		return done, nil
	}
	return vAppMissed(ctx, s.session, s.placement.vdc, s.vcdMachine, missing{what: "vApp " + name, finalizer: infrav1.MachineFinalizer, now: s.now()})
}

// ownsVApp says whether a vApp is the machine's alone.
func (s *machineScope) ownsVApp(vApp vcd.VApp) bool {
	marker, ok := vcd.ParseMarker(vApp.Description)
	return ok && marker == s.marker()
}

// renamedVApp finds the vApp that was made for the machine and that somebody renamed.
func (s *machineScope) renamedVApp(ctx context.Context) (vApp vcd.VApp, found bool, err error) {
	id := s.madeIn()
	if id == "" {
		return vcd.VApp{}, false, nil
	}
	vApp, err = s.session.VApp(ctx, id)
	if invisible(err) {
		return vcd.VApp{}, false, nil
	}
	return vApp, err == nil && s.ownsVApp(vApp), err //nolint:wrapcheck // refusal looks into it.
}

// madeIn is the URN of the vApp that the machine's VM was made in; empty if nobody knows.
func (s *machineScope) madeIn() string {
	if made, ok := s.made(); ok && made.VApp != "" {
		return made.VApp
	}
	if vApp := s.vcdMachine.Status.VApp; vApp != nil {
		return vApp.ID
	}
	return ""
}

// names returns the sorted names of refs.
func names(refs []vcd.Ref) []string {
	result := make([]string, 0, len(refs))
	for _, ref := range refs {
		result = append(result, ref.Name)
	}
	slices.Sort(result)
	return result
}

const deletingVApp = "Deleting the machine's vApp"

// removeVApp takes the next step of deleting a vApp that is the machine's alone. It took the proof that the VM is gone
// with it, which is stored first.
func (s *machineScope) removeVApp(ctx context.Context, vApp vcd.VApp) (outcome, error) {
	if len(vApp.Tasks) > 0 {
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp.Name), nil
	}
	if others := names(vApp.VMs); len(others) > 0 {
		if keepsVApp(s.vcdMachine) {
			vAppKept(s.Recorder, s.vcdMachine, vApp.Name, others)
			return done, nil
		}
		return fail(remedyPoll, infrav1.VAppNotEmptyReason,
			"vApp %s holds VMs that are not this machine's: move or delete %s, or annotate the VCDMachine with %s=true to leave the vApp as it is",
			vApp.Name, few(others), infrav1.KeepVAppAnnotation), nil
	}
	if err := s.noteOnce(ctx, infrav1.VMGoneAnnotation, "true"); err != nil {
		return done, err
	}
	task, err := s.session.DeleteVApp(ctx, vApp.ID)
	return s.started(stepCleanUp, task, err, deletingVApp)
}

// releaseMachine lets the API server delete the VCDMachine.
func releaseMachine(ctx context.Context, s *machineScope) (outcome, error) {
	if s.vcdCluster != nil && !perMachine(s.vcdCluster) && s.mayHaveVM() {
		switch err := s.noteVApp(ctx); {
		case apierrors.IsConflict(err):
			return wait(busyPoll, infrav1.EntityBusyReason, "Waiting to write down on the VCDCluster which vApp the VM was in, while others write there"), nil
		case err != nil:
			return done, err
		}
	}
	controllerutil.RemoveFinalizer(s.vcdMachine, infrav1.MachineFinalizer)
	return done, nil
}

// noteVApp remembers that there was a vApp, and which, for the day when its cluster is deleted.
func (s *machineScope) noteVApp(ctx context.Context) error {
	if err := s.noteOnCluster(ctx, infrav1.VAppCreatedAnnotation, "true"); err != nil {
		return err
	}
	known, id := knownVApps(s.vcdCluster), s.madeIn()
	if id == "" || slices.Contains(known, id) {
		return nil
	}
	// A machine of another vApp, which is released at the same time, must not lose what it wrote down.
	change := client.MergeFromWithOptions(s.vcdCluster, client.MergeFromWithOptimisticLock{})
	return s.patchCluster(ctx, infrav1.VAppsAnnotation, strings.Join(append(known, id), ","), change)
}

// mayHaveVM says whether VCD was asked for a VM.
func (s *machineScope) mayHaveVM() bool {
	return s.vcdMachine.Spec.ProviderID != "" || s.vcdMachine.Annotations[infrav1.CreationRequestedAnnotation] != ""
}

// noteOnce stores an annotation now, if there is none.
func (s *machineScope) noteOnce(ctx context.Context, key, value string) error {
	if s.vcdMachine.Annotations[key] != "" {
		return nil
	}
	annotate(s.vcdMachine, key, value)
	return s.save(ctx)
}

// maxNotedDisks bounds how many disks a cluster remembers: Kubernetes refuses objects with too many annotations, and with that the
// deletion of the machine.
const maxNotedDisks = 400

// noteDisk remembers that a disk outlives its VM, for the day when its cluster is deleted.
func (s *machineScope) noteDisk(ctx context.Context, disk vcd.Ref) error {
	if len(detachedDisks(s.vcdCluster)) >= maxNotedDisks {
		return nil
	}
	return s.noteOnCluster(ctx, infrav1.DetachedDiskAnnotationPrefix+disk.ID[strings.LastIndex(disk.ID, ":")+1:], disk.Name)
}

// noteOnCluster stores an annotation on the VCDCluster, which outlives the machine.
func (s *machineScope) noteOnCluster(ctx context.Context, key, value string) error {
	if s.vcdCluster.Annotations[key] == value {
		return nil
	}
	return s.patchCluster(ctx, key, value, client.MergeFrom(s.vcdCluster))
}

func (s *machineScope) patchCluster(ctx context.Context, key, value string, change client.Patch) error {
	c := s.vcdCluster.DeepCopy()
	annotate(c, key, value)
	if err := s.Client.Patch(ctx, c, change); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting %s on VCDCluster %s: %w", key, c.Name, err)
	}
	return nil
}
