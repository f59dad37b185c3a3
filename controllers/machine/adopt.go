// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"time"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileAdopted adopts the VM that CAPVCD created for the machine. It does not write to the VM: the proof of
// ownership is in VCD, and is checked before each later write.
func reconcileAdopted(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.vcdMachine.Spec.RecordedState.PoweredOnAt != nil {
		return phases.Done, nil
	}
	if s.inputs.vcdCluster.Spec.RecordedState.VAppCount == 0 {
		return phases.Unsure(intervals.Task, infrav1.WaitingForClusterReason,
			"Waiting for VCDCluster %s to be adopted: check its condition %s", s.inputs.vcdCluster.Name,
			infrav1.AdoptedCondition), nil
	}
	a := adoption{
		session:  s.session,
		inputs:   &s.inputs,
		observer: newObserver(s),
		records:  s.records,
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
	return a.run(ctx)
}

// An adoption proves that a VM that CAPVCD created belongs to the machine, and records the result.
type adoption struct {
	session  *session.Session
	inputs   *inputs
	observer observer
	records  *records
	recorder events.EventRecorder
	now      func() time.Time
}

func (a adoption) run(ctx context.Context) (phases.Result, error) {
	vm, err := a.session.VM(ctx, a.inputs.vmID())
	if err != nil {
		return problems.OfRead(err, "Reading VM "+a.inputs.vmID())
	}
	owns, err := ownsVM(ctx, a.session, a.inputs, vm)
	if err != nil {
		return problems.OfRead(err, "Reading the metadata of vApp "+vm.VApp.ID)
	}
	if out := a.doubt(vm, owns); out != phases.Done {
		return out, nil
	}
	return phases.Done, a.record(ctx, vm)
}

// doubt returns why it is uncertain that a VM belongs to the machine; [phases.Done] if it is certain. A copied
// VCDMachine refers to the VM of the original, but expects another name.
func (a adoption) doubt(vm vcd.VM, owns bool) phases.Result {
	expected := a.inputs.vmName()
	switch {
	case expected == "":
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"Cannot derive the name of the VM from spec.vmNamingTemplate, so the ownership of VM %s is not proved: set spec.recordedState.vmName to the name of the VM if it belongs to this machine", vm.Name)
	case vm.Name != expected:
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"VM %s in spec.providerID should have the name %s: rename it in VCD if it belongs to this machine",
			vm.Name, expected)
	case !owns:
		return phases.Unsure(intervals.Remedy, infrav1.AdoptionUnverifiedReason,
			"VM %s in spec.providerID is not in a vApp of this cluster: metadata %s of its vApp is not %s. Correct the metadata of the vApp if CAPVCD created the VM for this machine",
			vm.Name, capvcd.MetadataKey, a.inputs.vcdCluster.Spec.InfraID)
	}
	return phases.Done
}

// record stores the name of the VM, the ID of the machine, and that the VM ran. CAPVCD recorded a VM only after its
// node had joined.
func (a adoption) record(ctx context.Context, vm vcd.VM) error {
	m := a.inputs.vcdMachine
	record := &m.Spec.RecordedState
	record.VMName = vm.Name
	record.InstanceID = cmp.Or(record.InstanceID, string(m.UID))
	record.PoweredOnAt = timeOf(a.now())
	if err := a.records.patcher.Save(ctx); err != nil {
		return err
	}
	vmAdopted(a.recorder, m, vm.Ref)
	vm.ExtraConfig = nil
	a.observer.keep(vm)
	return nil
}

// isAdopted reports whether the machine has a VM that CAPVCD created.
func isAdopted(s *scope) bool { return s.inputs.createdByCAPVCD() && s.inputs.vmID() != "" }
