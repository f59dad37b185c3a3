// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Deletion removes the VM.
type deletion struct{ scope *scope }

// deleteVM makes sure that the VM is gone: shut down, power off, detach independent disks, delete.
func deleteVM(ctx context.Context, s *scope) (phases.Outcome, error) {
	m := s.inputs.vcdMachine
	switch {
	case m.Annotations[infrav1.InstanceIDAnnotation] == "" && m.Spec.ProviderID == "":
		return phases.Done, nil // Nothing is created before the id is stored.
	case s.inputs.vcdCluster != nil && !s.reconciler.batches.Leave(s.inputs.queueName(), s.inputs.key()):
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason,
			"Waiting for the creation of the VM to start or fail"), nil
	case m.Annotations[infrav1.VMGoneAnnotation] == "true":
		return phases.Done, nil
	}
	if leaves, err := s.leavesVM(ctx); err != nil || leaves {
		if leaves && s.inputs.mayHaveVM() {
			vmLeftToDuplicate(s.reconciler.Recorder, m, cmp.Or(s.inputs.vmID(), m.Annotations[infrav1.VMNameAnnotation]))
		}
		return phases.Done, err
	}
	if s.inputs.vcdCluster == nil {
		return phases.Stop(infrav1.ClusterNotFoundReason,
			"The VCDCluster is gone, which says where VM %s is: delete the VM in VCD, then annotate the VCDMachine "+
				"with %s=true",
			m.Annotations[infrav1.VMNameAnnotation], infrav1.VMGoneAnnotation), nil
	}
	if out, err := s.deletion.open(ctx); err != nil || out != phases.Done {
		return s.deletion.unlessNeverRequested(ctx, out, err)
	}
	return s.deletion.next(ctx)
}

// unlessNeverRequested passes on why VCD cannot be asked about the VM, unless VCD was never asked to make it.
func (s deletion) unlessNeverRequested(ctx context.Context, out phases.Outcome, err error) (phases.Outcome, error) {
	if err != nil || s.scope.inputs.vmID() != "" {
		return out, err
	}
	asked, err := s.wasRequested(ctx)
	if err != nil || asked {
		return out, err
	}
	return phases.Done, nil
}

// next takes the next step, when VCD has ended the last one.
func (s deletion) next(ctx context.Context) (phases.Outcome, error) {
	if out, gone := s.settleAll(); out != phases.Done || gone {
		return out, nil
	}
	vm, out, err := s.find(ctx)
	if err != nil || out != phases.Done || vm == nil {
		return out, err
	}
	return s.takeDown(ctx, vm)
}

func (s deletion) open(ctx context.Context) (phases.Outcome, error) {
	out, err := s.scope.placer.open(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.scope.placement.vdc, out, err = s.scope.vdcOf(ctx)
	return out, err
}

// settleAll waits for what was started earlier, be it by a creation that the deletion overtook. gone says that
// our own task deleted the VM.
func (s deletion) settleAll() (out phases.Outcome, gone bool) {
	for _, what := range []step{
		stepCompose, stepConnect, stepAdd, stepCleanUp, stepConsolidate, stepInject, stepPowerOn, stepGrow, stepClear,
	} {
		// Whether these succeeded does not matter: what is there is read afresh.
		if out, _ := s.scope.settle(what); out.Reason == infrav1.TaskRunningReason {
			return out, false
		}
	}
	if out := s.scope.shutdown.settleTask(); out != phases.Done {
		return out, false
	}
	for _, what := range []step{stepPowerOff, stepDetach} {
		if out, _ := s.scope.settle(what); out != phases.Done {
			return out, false
		}
	}
	out, ended := s.scope.settle(stepDelete)
	if ended {
		m := s.scope.inputs.vcdMachine
		vmDeleted(s.scope.reconciler.Recorder, m, cmp.Or(s.scope.inputs.vmID(), m.Annotations[infrav1.VMNameAnnotation]))
	}
	return out, ended
}

// find returns the VM, or nil if it is proved gone or was never created.
func (s deletion) find(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	if id := s.scope.inputs.vmID(); id != "" {
		return s.findRecorded(ctx, id)
	}
	vApp, err := s.scope.session.FindVApp(ctx, s.scope.placement.vdc, s.scope.inputs.vAppName())
	marker, _ := vcd.ParseMarker(vApp.Description)
	switch {
	case errors.Is(err, vcd.ErrNotFound), err == nil && marker.Cluster != s.scope.inputs.vcdCluster.Spec.InfraID:
		return s.findUnrecorded(ctx)
	case err != nil:
		out, err := session.Unread(err, "Reading vApp "+s.scope.inputs.vAppName())
		return nil, out, err
	case len(vApp.Tasks) > 0:
		return nil, phases.Wait(session.BusyPoll, infrav1.EntityBusyReason,
			"Waiting for another task on vApp %s, which may create the VM", vApp.Name), nil
	}
	return s.findByName(ctx, vApp)
}

// findByName returns the VM in vApp that has the machine's name and marker, else one of its marker.
func (s deletion) findByName(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Outcome, error) {
	name := s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]
	for _, ref := range vApp.VMs {
		if ref.Name != name {
			continue
		}
		vm, err := s.scope.session.VM(ctx, ref.ID)
		if err != nil {
			out, err := session.Unread(err, "Reading VM "+name)
			return nil, out, err
		}
		if s.scope.inputs.marks(vm.Description) {
			absence.Forget(s.scope.inputs.vcdMachine)
			return &vm, phases.Done, nil
		}
		vmLeft(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, name)
	}
	return s.findByMark(ctx, vApp)
}

// findByMark returns the VM in vApp that has the machine's marker under another name, if VCD was ever asked to create
// it.
func (s deletion) findByMark(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Outcome, error) {
	if asked, err := s.wasRequested(ctx); err != nil || !asked {
		return nil, phases.Done, err
	}
	vm, out, err := s.scope.observer.findRenamed(ctx, vApp)
	if err != nil || out != phases.Done || vm != nil {
		return vm, out, err
	}
	return newLost(s.scope, "").find(ctx)
}

// findUnrecorded decides whether a VM whose vApp is not found was never created: a request to create it whose answer
// was lost may still be in progress.
func (s deletion) findUnrecorded(ctx context.Context) (*vcd.VM, phases.Outcome, error) {
	if asked, err := s.wasRequested(ctx); err != nil || !asked {
		return nil, phases.Done, err
	}
	return newLost(s.scope, "").find(ctx)
}

// wasRequested reports whether VCD was asked to create the VM.
func (s deletion) wasRequested(ctx context.Context) (bool, error) {
	m := s.scope.inputs.vcdMachine
	if m.Annotations[infrav1.CreationRequestedAnnotation] != "" {
		return true, nil
	}
	now := &infrav1.VCDMachine{} // Another machine, which asked for both, may have noted it just now.
	if err := s.scope.reconciler.Live.Get(ctx, client.ObjectKeyFromObject(m), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDMachine %s: %w", m.Name, err)
	}
	asked := now.Annotations[infrav1.CreationRequestedAnnotation]
	if asked != "" {
		notes.Set(m, infrav1.CreationRequestedAnnotation, asked)
	}
	return asked != "", nil
}

// findRecorded returns the recorded VM, or nil if it is gone.
func (s deletion) findRecorded(ctx context.Context, id string) (*vcd.VM, phases.Outcome, error) {
	vm, out, err := newLost(s.scope, id).find(ctx)
	switch {
	case vm != nil:
		return vm, s.ownershipProblem(*vm), nil
	case err == nil && out == phases.Done:
		vmDeleted(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, id)
	}
	return nil, out, err
}

// ownershipProblem returns why a VM without this machine's marker is not touched.
func (s deletion) ownershipProblem(vm vcd.VM) phases.Outcome {
	if s.scope.inputs.marks(vm.Description) {
		return phases.Done
	}
	return phases.Fail(session.RemedyPoll, infrav1.NotOursReason,
		"VM %s does not say that it is this machine's: put %q in its description if it is, else remove finalizer %s",
		vm.Name, s.scope.inputs.marker(), infrav1.MachineFinalizer)
}

// takeDown takes the next step of deleting a VM.
func (s deletion) takeDown(ctx context.Context, vm *vcd.VM) (phases.Outcome, error) {
	if len(vm.Tasks) > 0 {
		return s.scope.shutdown.await(ctx, vm)
	}
	if vm.Status == vcd.StatusPoweredOn {
		if out, err := s.scope.shutdown.ask(ctx, vm); err != nil || out != phases.Done {
			return out, err
		}
	}
	done, out := s.scope.beginWrite(stepDelete)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	if vm.Deployed || vm.Status == vcd.StatusPoweredOn || vm.Status == vcd.StatusSuspended {
		ctrl.LoggerFrom(ctx).Info("Powering off VM", "vm", vm.ID)
		task, err := s.scope.session.PowerOff(ctx, vm.ID)
		return s.scope.started(stepPowerOff, task, err)
	}
	if disks := vm.IndependentDisks(); len(disks) > 0 {
		return s.detach(ctx, vm, disks[0])
	}
	return s.remove(ctx, vm)
}

// remove deletes a VM that is off and has no independent disks.
func (s deletion) remove(ctx context.Context, vm *vcd.VM) (phases.Outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Deleting VM", "vm", vm.ID)
	if err := s.scope.noteOnce(ctx, infrav1.DeleteRequestedAnnotation, s.scope.now().UTC().Format(time.RFC3339)); err != nil {
		return phases.Done, err
	}
	task, err := s.scope.session.DeleteVM(ctx, vm.ID)
	return s.scope.started(stepDelete, task, err)
}

// detach takes an independent disk out of a VM before its deletion.
func (s deletion) detach(ctx context.Context, vm *vcd.VM, disk vcd.Ref) (phases.Outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Detaching disk", "vm", vm.ID, "disk", disk.ID)
	if err := s.scope.noteDisk(ctx, disk); err != nil {
		return phases.Done, err
	}
	task, err := s.scope.session.DetachDisk(ctx, vm.ID, disk.ID)
	if err != nil {
		return s.scope.started(stepDetach, task, fmt.Errorf("disk %s: %w", disk.Name, err))
	}
	diskDetached(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, disk)
	return s.scope.start(stepDetach, task), nil
}

// started follows what was asked for. What went away meanwhile is searched afresh.
func (s *scope) started(what step, t vcd.Task, err error) (phases.Outcome, error) {
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		s.session.Invalidate(s.placement.vdc)
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "%s: it went away meanwhile", what), nil
	case err != nil:
		return s.refuse(what, err)
	}
	return s.start(what, t), nil
}
