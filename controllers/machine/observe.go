// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// inventoryAge is how old the inventory may be for a machine that is being created or has a problem. The end of
	// one of the manager's tasks always causes a new query.
	inventoryAge = 30 * time.Second
	// inventoryEvery is how often the inventory is queried for machines without problems. All machines of a VDC are due
	// at the same time, so that one query serves them.
	inventoryEvery = 5 * time.Minute
	// readEvery is how often a VM is read if its inventory row does not show everything that may change: a row lacks
	// the addresses of additional NICs.
	readEvery = 9 * time.Minute
	// readRarely is how often any other VM is read although its inventory row did not change.
	readRarely = 6 * time.Hour
)

// An observer finds the machine's VM and reads it.
type observer struct {
	client    client.Client
	session   *session.Session
	inputs    *inputs
	vdc       vcd.VDC
	vm        *vmState // stores what was read
	freshness *freshness
	tasks     tasks
	now       func() time.Time
}

func newObserver(s *scope) observer {
	return observer{
		client:    s.reconciler.Client,
		session:   s.session,
		inputs:    &s.inputs,
		vdc:       s.target.vdc,
		vm:        s.vm,
		freshness: &s.state.freshness,
		tasks:     newTasks(s),
		now:       s.now,
	}
}

// observe finds the VM with few requests: the recorded VM by its ID, otherwise VMs by name, otherwise a VM by marker.
// While no VM is recorded, it returns those that may belong to the machine. While the machine is being created, it uses
// a recent read of the VM, because other changes show soon enough.
func (o observer) observe(ctx context.Context) (found []vcd.Ref, _ phases.Result, _ error) {
	id := o.inputs.vmID()
	if id != "" && !o.inputs.provisioned() && o.isFresh() && o.vm.reuse(id, o.session.Machines) {
		return nil, phases.Done, nil
	}
	rows, err := o.listVMs(ctx)
	if err != nil {
		out, err := problems.OfRead(err, "Listing VMs")
		return nil, out, err
	}
	if id != "" {
		out, err := o.observeRecorded(ctx, id, rows)
		return nil, out, err
	}
	for _, r := range rows {
		if r.Name == o.inputs.vcdMachine.Spec.RecordedState.VMName {
			found = append(found, r.Ref)
		}
	}
	if len(found) > 0 {
		return found, phases.Done, nil
	}
	return o.observeRenamed(ctx)
}

// isFresh reports whether the last read of a VM that is being created still holds: the read is recent, or a task
// of this manager changes the VM, and its end shows the result.
func (o observer) isFresh() bool {
	return o.now().Before(o.vm.cacheExpires) || slices.ContainsFunc(stepsOnVM, o.tasks.isRunning)
}

// observeRecorded finds the recorded VM in rows. It queries the VM by its ID if the vApp was renamed or the VM moved.
func (o observer) observeRecorded(ctx context.Context, id string, rows []vcd.VMRecord) (phases.Result, error) {
	if i := slices.IndexFunc(rows, func(r vcd.VMRecord) bool { return r.ID == id }); i >= 0 {
		row := rows[i] // The rows are shared.
		o.vm.listed = &row
		return phases.Done, nil
	}
	row, err := o.session.QueryVM(ctx, id)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return problems.OfRead(err, "Looking for VM "+id)
	}
	o.vm.listed = &row
	return phases.Done, nil
}

// observeRenamed searches for a VM that was renamed after its creation was requested, unless a create request is in
// flight.
func (o observer) observeRenamed(ctx context.Context) ([]vcd.Ref, phases.Result, error) {
	if o.inputs.vcdMachine.Spec.RecordedState.CreationRequestedAt == nil ||
		o.tasks.queues.InFlight(o.inputs.batchKey(), o.inputs.key()) {
		return nil, phases.Done, nil
	}
	vApp, err := o.session.FindVApp(ctx, o.vdc, o.inputs.vAppName())
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return nil, phases.Done, nil
	case err != nil:
		out, err := problems.OfRead(err, "Reading vApp "+o.inputs.vAppName())
		return nil, out, err
	}
	vm, out, err := o.findRenamed(ctx, vApp)
	if vm == nil {
		return nil, out, err
	}
	return []vcd.Ref{vm.Ref}, out, err
}

// findRenamed returns the VM in a vApp that has the machine's marker under another name, because it was renamed before
// it was recorded. It reads only VMs that no other machine claims. If several copies have the marker, it returns a
// problem, because none is known to be the machine's.
func (o observer) findRenamed(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Result, error) {
	refs, err := o.unclaimed(ctx, vApp.VMs)
	if err != nil {
		return nil, phases.Done, err
	}
	var found []vcd.VM
	for _, ref := range refs {
		vm, out, err := o.readMarked(ctx, ref)
		if err != nil || out != phases.Done {
			return nil, out, err
		}
		if vm != nil {
			found = append(found, *vm)
		}
	}
	switch len(found) {
	case 0:
		return nil, phases.Done, nil
	case 1:
		return &found[0], phases.Done, nil
	}
	return nil, phases.Fail(intervals.Remedy, infrav1.DuplicateMarkerReason,
		"VMs %s and %s in vApp %s both have the ownership marker of this machine: delete the copies, or change their descriptions",
		found[0].Name, found[1].Name, vApp.Name), nil
}

// readMarked reads a VM. It returns nil if the VM does not have the machine's marker, or if VCD does not show it.
func (o observer) readMarked(ctx context.Context, ref vcd.Ref) (*vcd.VM, phases.Result, error) {
	vm, err := o.session.VM(ctx, ref.ID)
	switch {
	case absence.Invisible(err):
		return nil, phases.Done, nil
	case err != nil:
		out, err := problems.OfRead(err, "Reading VM "+ref.Name)
		return nil, out, err
	}
	if !o.inputs.hasMarker(vm.Description) {
		return nil, phases.Done, nil
	}
	return &vm, phases.Done, nil
}

// unclaimed returns the VMs that have neither the machine's name nor the URN or name of another machine of the cluster.
func (o observer) unclaimed(ctx context.Context, refs []vcd.Ref) ([]vcd.Ref, error) {
	list := &infrav1.VCDMachineList{}
	ofCluster := index.OfCluster(capicluster.Name(o.inputs.vcdCluster, o.inputs.cluster))
	if err := o.client.List(ctx, list, client.InNamespace(o.inputs.vcdMachine.Namespace), ofCluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	taken := map[string]bool{o.inputs.vcdMachine.Spec.RecordedState.VMName: true}
	for _, m := range list.Items {
		if m.UID == o.inputs.vcdMachine.UID {
			continue
		}
		taken[m.Spec.RecordedState.VMName] = true
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil {
			taken[id] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref vcd.Ref) bool { return taken[ref.ID] || taken[ref.Name] }),
		nil
}

// ensureRead reads the VM of a machine that is being created, unless the full VM is known.
func (o observer) ensureRead(ctx context.Context) (phases.Result, error) {
	if o.vm.current() != nil {
		return phases.Done, nil
	}
	vm, err := o.fetch(ctx, o.inputs.vmID())
	if err != nil {
		return problems.OfRead(err, "Reading VM "+o.inputs.vmID())
	}
	owns, err := ownsVM(ctx, o.session, o.inputs, vm)
	if err != nil {
		return problems.OfRead(err, "Reading the metadata of vApp "+vm.VApp.ID)
	}
	// A user may have set the recorded ID. Once the VM ran, a lost marker is ordinary drift.
	if !o.inputs.hasRun() && !owns {
		return phases.Fail(intervals.Remedy, infrav1.VMNotOwnedReason,
			"VM %s in spec.providerID has no ownership marker of this machine: add %q to its description if it belongs to this machine, or delete the Machine", vm.Name, o.inputs.marker()), nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	o.keep(vm)
	return phases.Done, nil
}

// fetch reads the recorded VM once in a pass, and again after a change of ours.
func (o observer) fetch(ctx context.Context, id string) (vcd.VM, error) {
	if known := o.vm.readThisPass; known != nil && known.ID == id {
		return *known, nil
	}
	vm, err := o.session.VM(ctx, id)
	if err == nil {
		known := vm
		o.vm.readThisPass = &known
	}
	return vm, err
}

// owned reads the VM before it is changed. It returns a problem if the VM does not have the machine's marker: a
// recorded ID alone does not prove ownership.
func (o observer) owned(ctx context.Context) (vcd.VM, phases.Result, error) {
	vm, err := o.fetch(ctx, o.inputs.vmID())
	if err != nil {
		out, err := problems.OfRead(err, "Reading VM "+o.inputs.vmID())
		return vm, out, err
	}
	owns, err := ownsVM(ctx, o.session, o.inputs, vm)
	if err != nil {
		out, err := problems.OfRead(err, "Reading the metadata of vApp "+vm.VApp.ID)
		return vm, out, err
	}
	if owns {
		return vm, phases.Done, nil
	}
	known := vm
	known.ExtraConfig = nil
	o.keep(known)
	return vm, phases.Fail(intervals.Remedy, infrav1.VMNotOwnedReason,
		"VM %s is not changed because it has no ownership marker of this machine: add %q to its description if it belongs to this machine",
		vm.Name, o.inputs.marker()), nil
}

// ensureOwned returns why the VM must not be changed. It reads the VM, unless this pass already knows its marker.
func (o observer) ensureOwned(ctx context.Context) (phases.Result, error) {
	if vm := o.vm.current(); vm != nil && o.inputs.hasMarker(vm.Description) {
		return phases.Done, nil
	}
	_, out, err := o.owned(ctx)
	return out, err
}

// read reads the VM of a running machine. If that fails, the known VM is kept until a later read.
func (o observer) read(ctx context.Context) error {
	vm, err := o.fetch(ctx, o.vm.listed.ID)
	if err != nil {
		o.vm.nextRead = o.now().Add(inventoryEvery)
		return err
	}
	clearRemovalIfShown(o.inputs.vcdMachine, vm)
	vm.ExtraConfig = nil // It may be large, and only the creation needs it.
	o.keep(vm)
	return nil
}

// clearRemovalIfShown resets the recorded removal if a VM that was just read shows its bootstrap data again, as it does after a
// power cycle.
func clearRemovalIfShown(m *infrav1.VCDMachine, vm vcd.VM) {
	if !guestinfo.Redacted(vm.ExtraConfig) {
		clearBootstrapDataRemoved(m)
	}
}

// keep stores a VM that was read, and schedules the next read.
func (o observer) keep(vm vcd.VM) {
	v := o.vm
	v.cached = &vm
	v.cacheHolds = true
	v.dropCache = false
	v.cachedBy = o.session.Machines
	v.listedAtRead = vcd.VMRecord{}
	if v.listed != nil {
		v.listedAtRead = unchanging(*v.listed)
	}
	interval := readRarely
	if len(vm.NICs) > 1 {
		interval = readEvery
	}
	v.cacheExpires = o.now().Add(inventoryAge)
	// Spread the reads of machines that were created together.
	v.nextRead = o.now().Add(interval - spread(o.inputs.key(), interval/4))
}
