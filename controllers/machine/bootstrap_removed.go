// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileBootstrapDataRemoved makes sure that the VM no longer contains its bootstrap data once the guest is a Node.
// The guest removes the data. The provider removes it if the guest did not, or if it reappears when the VM is off.
func reconcileBootstrapDataRemoved(ctx context.Context, s *scope) (phases.Result, error) {
	machine := s.inputs.machine
	switch removed := s.inputs.vcdMachine.Spec.RecordedState.BootstrapDataRemoved; {
	case removed.Guest == infrav1.GuestPoweredOff,
		removed.Guest != "" && !s.vm.isOff() && !bootedSince(machine, removed.BootID):
		return phases.Done, nil
	case s.vm.listed == nil || machine == nil || !machine.Status.NodeRef.IsDefined():
		return phases.Wait(0, infrav1.WaitingForNodeReason, "Waiting for the guest to become a Node"), nil
	}
	r := removal{
		session:  s.session,
		inputs:   &s.inputs,
		observer: newObserver(s),
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
	}
	if out, _ := r.tasks.settle(stepClear); out != phases.Done {
		return out, nil
	}
	return r.clear(ctx)
}

// A removal removes bootstrap data that the guest did not remove.
type removal struct {
	session  *session.Session
	inputs   *inputs
	observer observer
	tasks    tasks
	recorder events.EventRecorder
}

// clear reads the VM, and removes its bootstrap data if it contains any.
func (r removal) clear(ctx context.Context) (phases.Result, error) {
	vm, out, err := r.observer.owned(ctx)
	if err != nil || out != phases.Done {
		return out, err
	}
	switch {
	case !guestinfo.Redacted(vm.ExtraConfig):
	case vm.ExtraConfig[guestinfo.KeyMetadata] == "":
		return r.tasks.failed(stepClear, phases.Unsure(0, infrav1.ExtraConfigHiddenReason,
			"The extra configuration of VM %s is not visible, so bootstrap data may remain in it: grant the user of the identity the right to view it", vm.Name)), nil
	default:
		setBootstrapDataRemoved(r.inputs, vm)
		return phases.Done, nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	return r.tasks.write(stepClear, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Removing the remaining bootstrap data", "vmID", vm.ID)
		task, err := r.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{ExtraConfig: guestinfo.ClearUserdata()})
		if err == nil {
			bootstrapDataRemoved(r.recorder, r.inputs.vcdMachine)
		}
		return task, err
	})
}

// setBootstrapDataRemoved records that a VM that was just read shows no bootstrap data. A removal by the guest lasts only until the
// VM is powered off.
func setBootstrapDataRemoved(in *inputs, vm vcd.VM) {
	removed := infrav1.BootstrapDataRemoved{Guest: infrav1.GuestRunning, BootID: bootID(in.machine)}
	if vm.Status == vcd.StatusPoweredOff {
		removed = infrav1.BootstrapDataRemoved{Guest: infrav1.GuestPoweredOff}
	}
	in.vcdMachine.Spec.RecordedState.BootstrapDataRemoved = removed
}

// clearBootstrapDataRemoved discards the recorded removal. A power-off reverts the changes of the guest, so the data may reappear.
func clearBootstrapDataRemoved(m *infrav1.VCDMachine) {
	m.Spec.RecordedState.BootstrapDataRemoved = infrav1.BootstrapDataRemoved{}
}

// bootedSince reports whether the guest booted since the removal of its bootstrap data was recorded. A power cycle
// reverts the changes of the guest, and VCD's inventory does not show it.
func bootedSince(machine *clusterv1.Machine, noted string) bool {
	now := bootID(machine)
	return now != "" && now != noted
}

// bootID returns the boot ID of the machine's Node; empty if it is unknown.
func bootID(machine *clusterv1.Machine) string {
	if machine == nil || machine.Status.NodeInfo == nil {
		return ""
	}
	return machine.Status.NodeInfo.BootID
}
