package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteVM makes sure that the VM is gone: shut down, power off, detach independent disks, delete.
func deleteVM(ctx context.Context, s *machineScope) (outcome, error) {
	m := s.vcdMachine
	switch {
	case m.Annotations[infrav1.InstanceIDAnnotation] == "" && m.Spec.ProviderID == "":
		return done, nil // Nothing is created before the id is stored.
	case s.vcdCluster != nil && !s.creations.leave(s.line(), s.key()):
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for the creation of the VM to start or fail"), nil
	case m.Annotations[infrav1.VMGoneAnnotation] == "true":
		return done, nil
	case s.vcdCluster == nil:
		return stop(infrav1.ClusterNotFoundReason,
			"The VCDCluster is gone, which says where VM %s is: delete the VM in VCD, then annotate the VCDMachine with %s=true",
			m.Annotations[infrav1.VMNameAnnotation], infrav1.VMGoneAnnotation), nil
	}
	if out, err := s.openForDeletion(ctx); err != nil || out != done {
		return s.unlessNeverAsked(ctx, out, err)
	}
	return s.deleteStep(ctx)
}

// unlessNeverAsked passes on why VCD cannot be asked about the VM, unless VCD was never asked to make it.
func (s *machineScope) unlessNeverAsked(ctx context.Context, out outcome, err error) (outcome, error) {
	if err != nil || s.vmID() != "" {
		return out, err
	}
	asked, err := s.wasAsked(ctx)
	if err != nil || asked {
		return out, err
	}
	return done, nil
}

// deleteStep takes the next step, when VCD has ended the last one.
func (s *machineScope) deleteStep(ctx context.Context) (outcome, error) {
	if out, gone := s.settleDeletion(); out != done || gone {
		return out, nil
	}
	vm, out, err := s.findForDeletion(ctx)
	if err != nil || out != done || vm == nil {
		return out, err
	}
	if shared, err := s.hasTwin(ctx); err != nil || shared {
		if shared {
			vmLeftToTwin(s.Recorder, s.vcdMachine, vm.ID)
		}
		return done, err
	}
	return s.takeDown(ctx, vm)
}

func (s *machineScope) openForDeletion(ctx context.Context) (outcome, error) {
	opened, out, err := s.Identities.open(ctx, s.Sessions, s.vcdCluster)
	if err != nil || out != done {
		return out, err
	}
	s.session = opened
	s.placement.vdc, out, err = vdcOf(ctx, s.session, s.vcdCluster)
	return out, err
}

// settleDeletion waits for what was started earlier, be it by a creation that the deletion overtook. gone says that
// our own task deleted the VM.
func (s *machineScope) settleDeletion() (out outcome, gone bool) {
	for _, p := range []struct {
		step  step
		doing string
	}{
		{stepCompose, "Creating the vApp"},
		{stepConnect, "Connecting networks"},
		{stepAdd, addingVM},
		{stepCleanUp, "Removing leftovers"},
		{stepInject, "Writing bootstrap data"},
		{stepPowerOn, "Powering on the VM"},
		{stepGrow, growingDisk},
		{stepClear, "Removing bootstrap data"},
	} {
		// Whether these succeeded does not matter: what is there is looked at afresh.
		if out, _ := s.settle(p.step, p.doing); out.reason == infrav1.TaskRunningReason {
			return out, false
		}
	}
	if out := s.settleShutdown(); out != done {
		return out, false
	}
	for _, p := range []struct {
		step  step
		doing string
	}{{stepPowerOff, "Powering off the VM"}, {stepDetach, "Detaching a disk"}} {
		if out, _ := s.settle(p.step, p.doing); out != done {
			return out, false
		}
	}
	out, ended := s.settle(stepDelete, "Deleting the VM")
	if ended {
		vmDeleted(s.Recorder, s.vcdMachine, cmp.Or(s.vmID(), s.vcdMachine.Annotations[infrav1.VMNameAnnotation]))
	}
	return out, ended
}

// findForDeletion returns the VM, or nil if it is proved gone or was never created.
func (s *machineScope) findForDeletion(ctx context.Context) (*vcd.VM, outcome, error) {
	if id := s.vmID(); id != "" {
		return s.findRecorded(ctx, id)
	}
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, s.vAppName())
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		out, err := s.neverCreated(ctx)
		return nil, out, err
	case err != nil:
		out, err := refusal(err, "Reading vApp "+s.vAppName())
		return nil, out, err
	case !s.isOurs(vApp):
		out, err := s.neverCreated(ctx) // Nothing of ours is in it.
		return nil, out, err
	case len(vApp.Tasks) > 0:
		return nil, wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s, which may create the VM", vApp.Name), nil
	}
	return s.findByName(ctx, vApp)
}

// findByName returns the VM in vApp that has the machine's name and marker, else one of its marker.
func (s *machineScope) findByName(ctx context.Context, vApp vcd.VApp) (*vcd.VM, outcome, error) {
	name := s.vcdMachine.Annotations[infrav1.VMNameAnnotation]
	for _, ref := range vApp.VMs {
		if ref.Name != name {
			continue
		}
		vm, err := s.session.VM(ctx, ref.ID)
		if err != nil {
			out, err := refusal(err, "Reading VM "+name)
			return nil, out, err
		}
		if marker, ok := vcd.ParseMarker(vm.Description); ok && marker == s.marker() {
			seen(s.vcdMachine)
			return &vm, done, nil
		}
		vmLeft(s.Recorder, s.vcdMachine, name)
	}
	return s.findByMark(ctx, vApp)
}

// findByMark returns the VM in vApp that has the machine's marker under another name, if VCD was ever asked to make it.
func (s *machineScope) findByMark(ctx context.Context, vApp vcd.VApp) (*vcd.VM, outcome, error) {
	if asked, err := s.wasAsked(ctx); err != nil || !asked {
		return nil, done, err
	}
	vm, out, err := s.findRenamed(ctx, vApp)
	if err != nil || out != done || vm != nil {
		return vm, out, err
	}
	out, err = s.proveGone(ctx, "")
	return nil, out, err
}

// findRecorded returns the recorded VM. That it is gone needs more than one answer: VCD says "forbidden" of what was
// deleted as of what may not be seen.
func (s *machineScope) findRecorded(ctx context.Context, id string) (*vcd.VM, outcome, error) {
	vm, err := s.session.VM(ctx, id)
	switch {
	case err == nil:
		seen(s.vcdMachine)
		return &vm, s.ownershipProblem(vm), nil
	case !errors.Is(err, vcd.ErrNotFound) && !errors.Is(err, vcd.ErrForbidden):
		out, err := refusal(err, "Reading VM "+id)
		return nil, out, err
	}
	listed, out, err := s.isListed(ctx, id)
	switch {
	case err != nil || out != done:
		return nil, out, err
	case listed:
		seen(s.vcdMachine)
		return nil, unsure(remedyPoll, infrav1.VMUnverifiedReason, "VCD lists VM %s and does not show it: grant its user access to it", id), nil
	}
	out, err = s.proveGone(ctx, id)
	if err == nil && out == done {
		vmDeleted(s.Recorder, s.vcdMachine, id)
	}
	return nil, out, err
}

// isListed says whether VCD lists the VM, in its vApp or anywhere else.
func (s *machineScope) isListed(ctx context.Context, id string) (bool, outcome, error) {
	s.session.Invalidate(s.placement.vdc)
	records, err := s.session.VMs(ctx, s.placement.vdc, s.vAppName(), 0)
	if err != nil {
		out, err := refusal(err, "Listing VMs")
		return false, out, err
	}
	if slices.ContainsFunc(records, func(r vcd.VMRecord) bool { return r.ID == id }) {
		return true, done, nil
	}
	_, err = s.session.QueryVM(ctx, id)
	if err != nil && !errors.Is(err, vcd.ErrNotFound) {
		out, err := refusal(err, "Looking for VM "+id)
		return false, out, err
	}
	return err == nil, done, nil
}

// ownershipProblem keeps hands off a VM that does not say it is this machine's.
func (s *machineScope) ownershipProblem(vm vcd.VM) outcome {
	if marker, ok := vcd.ParseMarker(vm.Description); ok && marker == s.marker() {
		return done
	}
	return fail(remedyPoll, infrav1.NotOursReason,
		"VM %s does not say that it is this machine's: put %q in its description if it is, else remove finalizer %s", vm.Name, s.marker(), infrav1.MachineFinalizer)
}

// takeDown takes the next step of deleting a VM.
func (s *machineScope) takeDown(ctx context.Context, vm *vcd.VM) (outcome, error) {
	if len(vm.Tasks) > 0 {
		return s.waitForVM(ctx, vm)
	}
	if vm.Status == vcd.StatusPoweredOn {
		if out, err := s.shutDown(ctx, vm); err != nil || out != done {
			return out, err
		}
	}
	log := ctrl.LoggerFrom(ctx)
	if vm.Deployed || vm.Status == vcd.StatusPoweredOn || vm.Status == vcd.StatusSuspended {
		log.Info("Powering off VM", "vm", vm.ID)
		task, err := s.session.PowerOff(ctx, vm.ID)
		return s.started(stepPowerOff, task, err, "Powering off the VM")
	}
	if disks := vm.IndependentDisks(); len(disks) > 0 {
		return s.detach(ctx, vm, disks[0])
	}
	log.Info("Deleting VM", "vm", vm.ID)
	if err := s.noteOnce(ctx, infrav1.DeleteRequestedAnnotation, s.now().UTC().Format(time.RFC3339)); err != nil {
		return done, err
	}
	task, err := s.session.DeleteVM(ctx, vm.ID)
	return s.started(stepDelete, task, err, "Deleting the VM")
}

// detach takes an independent disk out of a VM that is to be deleted.
func (s *machineScope) detach(ctx context.Context, vm *vcd.VM, disk vcd.Ref) (outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Detaching disk", "vm", vm.ID, "disk", disk.ID)
	if err := s.noteDisk(ctx, disk); err != nil {
		return done, err
	}
	task, err := s.session.DetachDisk(ctx, vm.ID, disk.ID)
	if err == nil {
		diskDetached(s.Recorder, s.vcdMachine, disk)
	}
	return s.started(stepDetach, task, err, "Detaching independent disk "+disk.Name)
}

// started follows what was asked for. What went away meanwhile is looked for afresh.
func (s *machineScope) started(what step, t vcd.Task, err error, doing string) (outcome, error) {
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		s.session.Invalidate(s.placement.vdc)
		return wait(busyPoll, infrav1.EntityBusyReason, "%s: it went away meanwhile", doing), nil
	case err != nil:
		return s.refuse(what, err, doing)
	}
	return s.start(what, t, doing), nil
}
