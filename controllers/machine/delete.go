// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteVM makes sure that the VM is gone: it shuts down the guest, powers off the VM, detaches its independent disks,
// and deletes the VM.
func deleteVM(ctx context.Context, s *scope) (phases.Result, error) {
	m := s.inputs.vcdMachine
	switch {
	case m.Spec.RecordedState.InstanceID == "" && m.Spec.ProviderID == "" && !s.inputs.createdByCAPVCD():
		return phases.Done, nil // Nothing is created before the ID is stored.
	case s.inputs.vcdCluster != nil && !s.reconciler.batches.Leave(s.inputs.batchKey(), s.inputs.key()):
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
			"Waiting for the creation of the VM to start or fail"), nil
	case absence.IsDeclared(m):
		return phases.Done, nil
	}
	if leaves, err := mustKeepVM(ctx, s.reconciler.Client, &s.inputs); err != nil || leaves {
		if leaves && s.inputs.mayHaveVM() {
			vmShared(s.reconciler.Recorder, m, cmp.Or(s.inputs.vmID(), m.Spec.RecordedState.VMName))
		}
		return phases.Done, err
	}
	if s.inputs.vcdCluster == nil {
		return phases.Stop(infrav1.ClusterNotFoundReason,
			"The VCDCluster is deleted, so the location of VM %s is unknown: delete the VM in VCD, then annotate the VCDMachine with %s=true",
			m.Spec.RecordedState.VMName, infrav1.VMGoneAnnotation), nil
	}
	if out, err := openForDeletion(ctx, s); err != nil || out != phases.Done {
		return unlessNeverRequested(ctx, s.reconciler.Live, &s.inputs, out, err)
	}
	return newDeletion(s).next(ctx)
}

// unlessNeverRequested passes on why the VM cannot be looked up in VCD. It returns [phases.Done] if the creation of the
// VM was never requested. CAPVCD did not record its requests.
func unlessNeverRequested(ctx context.Context, live client.Reader, in *inputs, out phases.Result, err error) (phases.Result, error) {
	if err != nil || in.vmID() != "" || in.createdByCAPVCD() {
		return out, err
	}
	requested, err := wasRequested(ctx, live, in.vcdMachine)
	if err != nil || requested {
		return out, err
	}
	return phases.Done, nil
}

// A deletion deletes the VM.
type deletion struct {
	live     client.Reader
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	observer observer
	lost     func(id string) *lostVM
	shutdown shutdown
	records  *records
	tasks    tasks
	recorder events.EventRecorder
	now      func() time.Time
}

func newDeletion(s *scope) deletion {
	return deletion{
		live:     s.reconciler.Live,
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		observer: newObserver(s),
		lost:     func(id string) *lostVM { return newLost(s, id) },
		shutdown: newShutdown(s, &s.inputs.vcdMachine.Spec.RecordedState.ShutdownRequestedAt),
		records:  s.records,
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
}

// next takes the next step once VCD has ended the previous one.
func (d deletion) next(ctx context.Context) (phases.Result, error) {
	if out, gone := d.settleAll(); out != phases.Done || gone {
		return out, nil
	}
	vm, out, err := d.find(ctx)
	if err != nil || out != phases.Done || vm == nil {
		return out, err
	}
	return d.takeDown(ctx, vm)
}

// settleAll waits for steps that were started earlier, including those of a creation that the deletion overtook. gone
// reports whether the manager's task deleted the VM.
func (d deletion) settleAll() (out phases.Result, gone bool) {
	for _, what := range []step{
		stepCompose, stepConnect, stepAdd, stepCleanUp, stepConsolidate, stepInject, stepPowerOn, stepGrow, stepClear,
	} {
		// Their results do not matter, because the VM is read again.
		if out, _ := d.tasks.settle(what); out.Reason == infrav1.TaskRunningReason {
			return out, false
		}
	}
	if out := d.shutdown.settleTask(); out != phases.Done {
		return out, false
	}
	for _, what := range []step{stepPowerOff, stepDetach} {
		if out, _ := d.tasks.settle(what); out != phases.Done {
			return out, false
		}
	}
	out, ended := d.tasks.settle(stepDelete)
	if ended {
		m := d.inputs.vcdMachine
		vmDeleted(d.recorder, m, cmp.Or(d.inputs.vmID(), m.Spec.RecordedState.VMName))
	}
	return out, ended
}

// takeDown takes the next step to delete a VM that exists.
func (d deletion) takeDown(ctx context.Context, vm *vcd.VM) (phases.Result, error) {
	if len(vm.Tasks) > 0 {
		return d.shutdown.await(ctx, vm)
	}
	if out := d.shutdown.suspended(vm); out != phases.Done {
		return out, nil
	}
	if vm.Status == vcd.StatusPoweredOn {
		if out, err := d.shutdown.ask(ctx, vm); err != nil || out != phases.Done {
			return out, err
		}
	}
	done, out := d.tasks.beginWrite(stepDelete)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	if vm.Deployed || vm.Status == vcd.StatusPoweredOn || vm.Status == vcd.StatusSuspended {
		ctrl.LoggerFrom(ctx).Info("Powering off VM", "vmID", vm.ID)
		task, err := d.session.PowerOff(ctx, vm.ID)
		return d.tasks.started(stepPowerOff, task, err)
	}
	if disks := vm.IndependentDisks(); len(disks) > 0 {
		return d.detach(ctx, vm, disks[0])
	}
	return d.remove(ctx, vm)
}

// detach detaches an independent disk from a VM before the VM is deleted.
func (d deletion) detach(ctx context.Context, vm *vcd.VM, disk vcd.Ref) (phases.Result, error) {
	ctrl.LoggerFrom(ctx).Info("Detaching disk", "vmID", vm.ID, "diskID", disk.ID)
	if err := d.records.saveDetachedDisk(ctx, disk); err != nil {
		return phases.Done, err
	}
	task, err := d.session.DetachDisk(ctx, vm.ID, disk.ID)
	if err != nil {
		return d.tasks.started(stepDetach, task, fmt.Errorf("disk %s: %w", disk.Name, err))
	}
	diskDetached(d.recorder, d.inputs.vcdMachine, disk)
	return d.tasks.start(stepDetach, task), nil
}

// remove deletes a VM that is off and has no independent disks.
func (d deletion) remove(ctx context.Context, vm *vcd.VM) (phases.Result, error) {
	ctrl.LoggerFrom(ctx).Info("Deleting VM", "vmID", vm.ID)
	if err := d.records.saveTimeOnce(ctx, &d.inputs.vcdMachine.Spec.RecordedState.DeleteRequestedAt, d.now()); err != nil {
		return phases.Done, err
	}
	task, err := d.session.DeleteVM(ctx, vm.ID)
	return d.tasks.started(stepDelete, task, err)
}
