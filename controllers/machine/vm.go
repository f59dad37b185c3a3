// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileVM makes sure that the VM exists and that its URN is recorded.
func reconcileVM(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.vmID() != "" {
		keepLease(ctx, s)
		return reportVM(ctx, s)
	}
	if s.creation.pending != phases.Done {
		return s.creation.pending, nil
	}
	c := newCreator(s)
	switch found := s.creation.found; len(found) {
	case 0:
		return c.addVM(ctx)
	case 1:
		return c.recordVM(ctx, found[0])
	default:
		return phases.Fail(intervals.Remedy, infrav1.DuplicateMarkerReason,
			"vApp %[3]s has %[1]d VMs with the name %[2]s: in VCD, delete or rename all except the VM of this machine",
			len(found), found[0].Name, s.inputs.vAppName()), nil
	}
}

// addVM requests the VM, together with those of the other machines that wait for this vApp.
func (c creator) addVM(ctx context.Context) (phases.Result, error) {
	if c.pass.vApp == nil {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for vApp %s", c.inputs.vAppName()), nil
	}
	ours, err := c.batch(ctx, c.whileRoom(func(m batch.Member) bool {
		exists := slices.ContainsFunc(c.pass.vApp.VMs, func(vm vcd.Ref) bool { return vm.Name == m.Spec.Name })
		connected := !slices.ContainsFunc(m.Spec.NICs,
			func(nic vcd.NIC) bool { return !slices.Contains(c.pass.vApp.Networks, nic.Network) })
		return !exists && connected
	}))
	if err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating VMs", "vApp", c.pass.vApp.Name, "vms", len(ours))
	task, err := c.session.AddVMs(ctx, c.pass.vApp.ID, specs(ours))
	if err != nil {
		return c.refused(ctx, stepAdd, ours, err)
	}
	c.tasks.followAll(stepAdd, task, ours)
	return running(stepAdd), nil
}

// recordVM reads the VM with the machine's name and records its URN if the VM belongs to the machine. From then on,
// only that VM is the machine's. The URN is stored before the VM is powered on.
func (c creator) recordVM(ctx context.Context, ref vcd.Ref) (phases.Result, error) {
	c.pass.release() // This pass creates no VMs.
	vm, err := c.session.VM(ctx, ref.ID)
	if err != nil {
		c.session.Invalidate(c.vdc, c.inputs.vAppName())
		return problems.OfRead(err, "Reading VM "+ref.Name)
	}
	owns, err := ownsVM(ctx, c.session, c.inputs, vm)
	if err != nil {
		return problems.OfRead(err, "Reading the metadata of vApp "+vm.VApp.ID)
	}
	if !owns {
		return phases.Fail(intervals.Remedy, infrav1.NameConflictReason,
				"VM %s exists in vApp %s but does not belong to this machine: rename or delete it in VCD", ref.Name,
				c.inputs.vAppName()),
			nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	if isLeftover(c.inputs, vm) {
		return c.leftovers.cleanUpVM(ctx, vm)
	}
	m := c.inputs.vcdMachine
	m.Spec.ProviderID = providerid.Format(vm.ID)
	m.Status.VM = &infrav1.ResourceReference{Name: vm.Name, ID: vm.ID}
	if vm.VApp.ID != "" {
		m.Status.VApp = &infrav1.ResourceReference{Name: c.inputs.vAppName(), ID: vm.VApp.ID}
	}
	adopts := c.inputs.createdByCAPVCD()
	if adopts { // CAPVCD bootstrapped the VM: it runs, or it would be a leftover.
		m.Spec.RecordedState.PoweredOnAt = timeOf(c.now())
	}
	if err := c.records.patcher.Save(ctx); err != nil {
		return phases.Done, err
	}
	if adopts {
		vmAdopted(c.recorder, m, vm.Ref)
	} else {
		vmCreated(c.recorder, m, vm.Ref)
	}
	*c.gatherSince = time.Time{}
	c.observer.keep(vm)
	return phases.Done, nil
}

// reportVM reports the recorded VM.
func reportVM(ctx context.Context, s *scope) (phases.Result, error) {
	m := s.inputs.vcdMachine
	switch {
	case absence.IsDeclared(m):
		return phases.Stop(infrav1.VMNotFoundReason,
			"Annotation %s declares the VM as deleted: delete the Machine to replace it", infrav1.VMGoneAnnotation), nil
	case s.vm.listed != nil:
		if m.Spec.RecordedState.VMNotFoundSince != nil {
			vmFound(s.reconciler.Recorder, m, s.vm.listed.Ref)
		}
		absence.Forget(m)
		s.state.missing.announced = time.Time{}
		m.Status.VM = &infrav1.ResourceReference{Name: s.vm.listed.Name, ID: s.vm.listed.ID}
		m.Status.VApp = &infrav1.ResourceReference{Name: s.vm.listed.VApp.Name, ID: s.vm.listed.VApp.ID}
	case s.vm.current() == nil:
		return reportMissing(ctx, s)
	}
	reportFailureDomain(m, s.vm.listed)
	return phases.Done, nil
}

// reportFailureDomain reports the zone of the VM. A VM that was moved to another VDC is in no zone.
func reportFailureDomain(m *infrav1.VCDMachine, row *vcd.VMRecord) {
	m.Status.FailureDomain = m.Spec.RecordedState.DeploymentZone
	if row != nil && row.VDC.ID != "" && row.VDC.ID != m.Spec.RecordedState.OVDCID {
		m.Status.FailureDomain = ""
	}
}
