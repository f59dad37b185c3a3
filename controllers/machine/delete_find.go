// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/marks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// find returns the VM, or nil if it is proved gone or was never created.
func (d deletion) find(ctx context.Context) (*vcd.VM, phases.Result, error) {
	if id := d.inputs.vmID(); id != "" {
		return d.findRecorded(ctx, id)
	}
	vApp, err := d.session.FindVApp(ctx, d.vdc, d.inputs.vAppName())
	owns := false
	if err == nil {
		owns, err = marks.OwnsVApp(ctx, d.session, d.inputs.vcdCluster.Spec.InfraID, vApp)
	}
	switch {
	case errors.Is(err, vcd.ErrNotFound), err == nil && !owns:
		return d.findUnrecorded(ctx)
	case err != nil:
		out, err := problems.OfRead(err, "Reading vApp "+d.inputs.vAppName())
		return nil, out, err
	case len(vApp.Tasks) > 0:
		return nil, phases.Wait(intervals.Busy, infrav1.EntityBusyReason,
			"Waiting for another task on vApp %s, which may create the VM", vApp.Name), nil
	}
	return d.findByName(ctx, vApp)
}

// findRecorded returns the recorded VM, or nil if it is gone.
func (d deletion) findRecorded(ctx context.Context, id string) (*vcd.VM, phases.Result, error) {
	vm, out, err := d.lost(id).find(ctx)
	switch {
	case vm != nil:
		out, err := d.ownershipProblem(ctx, *vm)
		return vm, out, err
	case err == nil && out == phases.Done:
		vmDeleted(d.recorder, d.inputs.vcdMachine, id)
	}
	return nil, out, err
}

// ownershipProblem returns why a VM is not touched: it has no ownership marker of this machine.
func (d deletion) ownershipProblem(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	owns, err := ownsVM(ctx, d.session, d.inputs, vm)
	switch {
	case err != nil:
		return problems.OfRead(err, "Reading the metadata of vApp "+vm.VApp.ID)
	case owns:
		return phases.Done, nil
	}
	return phases.Fail(intervals.Remedy, infrav1.VMNotOwnedReason,
		"VM %s has no ownership marker of this machine: add %q to its description if it belongs to this machine, or remove finalizer %s",
		vm.Name, d.inputs.marker(), infrav1.MachineFinalizer), nil
}

// findByName returns the VM in vApp that has the machine's name and marker, otherwise a renamed VM with its marker.
func (d deletion) findByName(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Result, error) {
	name := d.inputs.vmName()
	for _, ref := range vApp.VMs {
		if ref.Name != name {
			continue
		}
		vm, err := d.session.VM(ctx, ref.ID)
		if err != nil {
			out, err := problems.OfRead(err, "Reading VM "+name)
			return nil, out, err
		}
		owns, err := ownsVM(ctx, d.session, d.inputs, vm)
		if err != nil {
			out, err := problems.OfRead(err, "Reading the metadata of vApp "+vApp.Name)
			return nil, out, err
		}
		if owns {
			absence.Forget(d.inputs.vcdMachine)
			return &vm, phases.Done, nil
		}
		vmNotOwned(d.recorder, d.inputs.vcdMachine, name)
	}
	return d.findByMark(ctx, vApp)
}

// findByMark returns the VM in vApp that has the machine's marker under another name, if its creation was ever
// requested.
func (d deletion) findByMark(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Result, error) {
	if requested, err := wasRequested(ctx, d.live, d.inputs.vcdMachine); err != nil || !requested {
		return nil, phases.Done, err
	}
	vm, out, err := d.observer.findRenamed(ctx, vApp)
	if err != nil || out != phases.Done || vm != nil {
		return vm, out, err
	}
	return d.lost("").find(ctx)
}

// findUnrecorded decides whether a VM whose vApp is not found was ever created. A request to create it may still be in
// progress if the response was lost. CAPVCD did not record its requests.
func (d deletion) findUnrecorded(ctx context.Context) (*vcd.VM, phases.Result, error) {
	if d.inputs.createdByCAPVCD() {
		return d.lost("").find(ctx)
	}
	if requested, err := wasRequested(ctx, d.live, d.inputs.vcdMachine); err != nil || !requested {
		return nil, phases.Done, err
	}
	return d.lost("").find(ctx)
}

// wasRequested reports whether the creation of the VM was ever requested.
func wasRequested(ctx context.Context, live client.Reader, m *infrav1.VCDMachine) (bool, error) {
	if m.Spec.RecordedState.CreationRequestedAt != nil {
		return true, nil
	}
	now := &infrav1.VCDMachine{} // Another machine that requested both VMs may have just recorded it.
	if err := live.Get(ctx, client.ObjectKeyFromObject(m), now); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting VCDMachine %s: %w", m.Name, err)
	}
	requestedAt := now.Spec.RecordedState.CreationRequestedAt
	m.Spec.RecordedState.CreationRequestedAt = requestedAt
	return requestedAt != nil, nil
}
