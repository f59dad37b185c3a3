// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hardwareRetry is how long the VM keeps running with its previous hardware after VCD rejected the new one, because
// each attempt restarts the VM.
const hardwareRetry = time.Hour

// updatesHardware reports whether Cluster API updates the machine in place, or whether such an update has restarted the
// VM and is not finished. No update starts while the machine is being deleted, because its pods are being drained.
func updatesHardware(s *scope) bool {
	m := s.inputs.vcdMachine
	if m.Spec.RecordedState.Restart.RequestedAt != nil {
		return true
	}
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return updating && s.reconciler.InPlaceUpdates && s.inputs.hasRun() && !s.inputs.ownerIsDeleting()
}

// reconcileHardware makes sure that a VM that ran before has the CPUs and the memory of the spec. It adds them to the
// running VM if the VM allows that. Otherwise it shuts down the VM, changes it, and powers it on again.
func reconcileHardware(ctx context.Context, s *scope) (phases.Result, error) {
	record := &s.inputs.vcdMachine.Spec.RecordedState.Restart
	return hardwareUpdate{
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		restart:  record,
		vm:       s.vm,
		observer: newObserver(s),
		records:  s.records,
		tasks:    newTasks(s),
		shutdown: newShutdown(s, &record.ShutdownRequestedAt),
		power:    newPower(s),
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}.next(ctx)
}

// A hardwareUpdate changes the CPUs and the memory of a VM that ran before.
type hardwareUpdate struct {
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	restart  *infrav1.RecordedRestart
	vm       *vmState
	observer observer
	records  *records
	tasks    tasks
	shutdown shutdown
	power    power
	recorder events.EventRecorder
	now      func() time.Time
}

// next takes the next step once VCD has ended the previous one.
func (u hardwareUpdate) next(ctx context.Context) (phases.Result, error) {
	if out := u.settle(); out != phases.Done {
		return out, nil
	}
	if u.restart.RequestedAt == nil && !u.needsChange() {
		return phases.Done, nil
	}
	vm, out, err := u.observe(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	change := u.change(vm.CPUs, vm.MemoryMiB)
	u.resetAfterFailure(vm)
	if out, err := u.fixedByPolicy(ctx, vm, change); err != nil || out != phases.Done {
		return out, err
	}
	switch {
	case change == (hardware{}):
		return u.finish(ctx, vm)
	case u.restart.FailedAt != nil:
		return u.keepPrevious(ctx, vm)
	case u.canHotAdd(vm, change):
		return u.reconfigure(ctx, stepHotAdd, vm, change)
	case vm.Status == vcd.StatusPoweredOff && !vm.Deployed:
		return u.reconfigure(ctx, stepResize, vm, change)
	}
	return u.stop(ctx, vm)
}

// fixedByPolicy returns a problem if a policy of the VM defines the CPUs or the memory to change. VCD would reject the
// change after a restart of the VM. A restart that has begun is finished.
func (u hardwareUpdate) fixedByPolicy(ctx context.Context, vm vcd.VM, change hardware) (phases.Result, error) {
	if change == (hardware{}) || u.restart.RequestedAt != nil {
		return phases.Done, nil
	}
	for _, of := range []struct {
		kind, id string
		find     func(context.Context, vcd.VDC, string) (vcd.Policy, error)
	}{
		{"sizing", vm.SizingPolicyID, u.session.FindSizingPolicy},
		{"placement", vm.PlacementPolicyID, u.session.FindPlacementPolicy},
	} {
		if of.id == "" {
			continue
		}
		policy, err := of.find(ctx, u.vdc, of.id)
		if _, ok := errors.AsType[*vcd.LookupError](err); ok {
			continue // not visible to the user
		}
		if err != nil {
			return problems.OfRead(err, "Reading the "+of.kind+" policy of VM "+vm.Name)
		}
		if policy.CPUs > 0 && change.cpus > 0 || policy.MemoryMiB > 0 && change.memoryMiB > 0 {
			return phases.Fail(intervals.Remedy, infrav1.HardwareRejectedReason, "%s policy %s of VM %s defines its CPUs or memory, so they cannot be changed: restore spec.cpus and spec.memory of the VCDMachine, or replace the machine with one of another policy", of.kind,
				policy.Name, vm.Name), nil
		}
	}
	return phases.Done, nil
}

// settle waits for steps that were started earlier. If VCD refused to add the hardware while the VM runs, the VM is
// restarted. If VCD rejected the hardware altogether, that is recorded, and the VM is powered on with its previous one.
func (u hardwareUpdate) settle() phases.Result {
	if out, _ := u.tasks.settle(stepHotAdd); out != phases.Done && !u.isHotAddRefused() {
		return out
	}
	out, _ := u.tasks.settle(stepResize)
	if out.Reason == infrav1.TaskRunningReason || out != phases.Done && u.restart.RequestedAt == nil {
		return out
	}
	u.setHardwareRejected()
	if out := u.shutdown.settleTask(); out != phases.Done {
		return out
	}
	if out, _ := u.tasks.settle(stepPowerOff); out != phases.Done {
		return out
	}
	out, _ = u.tasks.settle(stepPowerOn)
	return u.power.explainRule(out)
}

// isHotAddRefused reports whether VCD refused to add the hardware while the VM runs, for a reason that a restart may
// remove.
func (u hardwareUpdate) isHotAddRefused() bool {
	out, failed := u.tasks.backoff.last(stepHotAdd)
	return failed && (out.Reason == infrav1.TaskFailedReason || out.Reason == infrav1.RequestRejectedReason)
}

// setHardwareRejected records that VCD rejected the hardware of a VM that was powered off for it.
func (u hardwareUpdate) setHardwareRejected() {
	out, failed := u.tasks.backoff.last(stepResize)
	if !failed || u.restart.RequestedAt == nil || u.restart.FailedAt != nil {
		return
	}
	u.restart.FailedAt = timeOf(u.now())
	u.restart.ShutdownRequestedAt = nil
	hardwareRejected(u.recorder, u.inputs.vcdMachine, out.Message)
}

// needsChange reports whether the recorded configuration of the VM lacks the CPUs or the memory of the spec, or is not
// known.
func (u hardwareUpdate) needsChange() bool {
	baseline, ok := u.inputs.baseline()
	return !ok || u.change(baseline.CPUs, baseline.MemoryMiB) != (hardware{})
}

// change returns the change that gives a VM the CPUs and the memory of the spec.
func (u hardwareUpdate) change(cpus, memoryMiB int64) hardware {
	return sizeChange(&u.inputs.vcdMachine.Spec, cpus, memoryMiB)
}

// observe reads the VM. It waits for unfinished tasks, and reports a state in which the VM cannot be changed.
func (u hardwareUpdate) observe(ctx context.Context) (vcd.VM, phases.Result, error) {
	vm, out, err := u.observer.owned(ctx)
	if err != nil || out != phases.Done {
		return vm, out, err
	}
	known := vm
	known.ExtraConfig = nil
	u.observer.keep(known)
	if u.vm.listed != nil {
		u.vm.listed.Status = vm.Status
	}
	switch {
	case len(vm.Tasks) > 0 && u.restart.RequestedAt != nil:
		out, err = u.shutdown.await(ctx, &vm)
		return vm, out, err
	case len(vm.Tasks) > 0:
		return vm, phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	switch vm.Status {
	case vcd.StatusPoweredOn, vcd.StatusPoweredOff, vcd.StatusSuspended:
		return vm, phases.Done, nil
	default:
		return vm, powerProblem(vm.Status), nil
	}
}

// resetAfterFailure forgets a failed attempt if the next one is due.
func (u hardwareUpdate) resetAfterFailure(vm vcd.VM) {
	at := u.restart.FailedAt
	if at != nil && !u.now().Before(at.Add(hardwareRetry)) && vm.Status == vcd.StatusPoweredOn && !u.inputs.ownerIsDeleting() {
		*u.restart = infrav1.RecordedRestart{}
	}
}

// finish records the new hardware, and makes sure that a VM that was powered off for it runs again.
func (u hardwareUpdate) finish(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	if recorded := u.inputs.vcdMachine.Spec.RecordedState.VM; recorded != nil && u.needsChange() {
		recorded.CPUs = vm.CPUs
		recorded.MemoryMiB = vm.MemoryMiB
		hardwareUpdated(u.recorder, u.inputs.vcdMachine, vm)
	}
	if u.restart.RequestedAt != nil && vm.Status != vcd.StatusPoweredOn {
		return u.power.on(ctx)
	}
	*u.restart = infrav1.RecordedRestart{}
	u.tasks.backoff.forget(stepHotAdd)
	return phases.Done, nil
}

// keepPrevious makes sure that a VM whose new hardware VCD rejected runs with its previous one, and reports the
// rejection.
func (u hardwareUpdate) keepPrevious(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	if vm.Status != vcd.StatusPoweredOn {
		return u.power.on(ctx)
	}
	why := "Check the tasks of the VM in VCD"
	if out, failed := u.tasks.backoff.last(stepResize); failed {
		why = out.Message
	}
	left := u.restart.FailedAt.Add(hardwareRetry).Sub(u.now())
	return phases.Fail(min(left, intervals.Remedy), infrav1.HardwareRejectedReason, "VCD rejected the new CPUs or memory, and the VM runs with its previous ones. %s. To retry at once, remove spec.recordedState.restart of the VCDMachine", why), nil
}

// canHotAdd reports whether the change only adds hardware that the running VM accepts. The number of cores per socket
// of a running VM is fixed.
func (u hardwareUpdate) canHotAdd(vm vcd.VM, change hardware) bool {
	if vm.Status != vcd.StatusPoweredOn || u.restart.RequestedAt != nil || u.isHotAddRefused() {
		return false
	}
	cpus := change.cpus == 0 ||
		vm.CPUHotAdd && change.cpus > vm.CPUs && vm.CoresPerSocket > 0 && change.cpus%vm.CoresPerSocket == 0
	memory := change.memoryMiB == 0 || vm.MemoryHotAdd && change.memoryMiB > vm.MemoryMiB
	return cpus && memory
}

// reconfigure requests the change of the VM.
func (u hardwareUpdate) reconfigure(ctx context.Context, what step, vm vcd.VM, change hardware) (phases.Result, error) {
	return u.tasks.write(what, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info(string(what), "vmID", vm.ID, "cpus", change.cpus, "memoryMiB", change.memoryMiB)
		return u.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{CPUs: change.cpus, MemoryMiB: change.memoryMiB})
	})
}

// stop takes the next step to shut down the guest and to power off the VM. It records the restart before the first
// request, so that the VM is powered on again even if the change is withdrawn.
func (u hardwareUpdate) stop(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	if u.restart.RequestedAt == nil && vm.Status == vcd.StatusPoweredOff {
		return u.powerOff(ctx, vm) // The guest was shut down on purpose, and stays so.
	}
	if u.restart.RequestedAt == nil {
		u.tasks.backoff.forget(stepResize)
		u.restart.RequestedAt = timeOf(u.now())
		clearBootstrapDataRemoved(u.inputs.vcdMachine)
		if err := u.records.patcher.Save(ctx); err != nil {
			return phases.Done, err
		}
		vmRestarting(u.recorder, u.inputs.vcdMachine)
	}
	if out := u.shutdown.suspended(&vm); out != phases.Done {
		return out, nil
	}
	if vm.Status == vcd.StatusPoweredOn {
		if out, err := u.shutdown.ask(ctx, &vm); err != nil || out != phases.Done {
			return out, err
		}
	}
	return u.powerOff(ctx, vm)
}

// powerOff powers off a VM, or undeploys one whose guest was shut down.
func (u hardwareUpdate) powerOff(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	return u.tasks.write(stepPowerOff, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Powering off VM", "vmID", vm.ID)
		return u.session.PowerOff(ctx, vm.ID)
	})
}
