// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// inventoryAge is how old the inventory may be for a machine that is being created, or has a problem. What our own
	// tasks changed is queried again anyway.
	inventoryAge = 30 * time.Second
	// inventoryEvery is how often the inventory is queried for a machine without problems. All machines of a VDC are
	// due at the same time, so that one query serves them.
	inventoryEvery = 5 * time.Minute
	// readEvery is how often a VM is read whose inventory row does not show everything that may change unnoticed: the
	// addresses of further NICs.
	readEvery = 9 * time.Minute
	// readRarely is how often another VM is read though its row did not change.
	readRarely = 6 * time.Hour
)

// Facts are what one pass knows of VCD. The placer and the observer find them; all other steps read them.
type facts struct {
	session   *session.Session
	zone      *placement.Zone // nil: none, or it is gone
	placement target
	vm        *vmState
	found     []vcd.Ref // VMs of the machine's name or marker, while none is recorded
}

// A vmState is the recorded VM as VCD showed it. It is kept between passes.
type vmState struct {
	row  *vcd.VMRecord // in the inventory of this pass; nil: not listed, or not queried
	full *vcd.VM       // as read last, with what our own tasks changed since

	askedMetadata map[string]string // the guest's metadata that was written last
	askedDiskMiB  int64             // the size that its first disk was requested to have
	askedHardware hardware          // what was requested last
	consolidated  bool              // by this process, and nothing failed since

	current  bool              // full holds in this pass
	outdated bool              // full does not hold after this pass
	readWith *session.Machines // what full was read with
	readRow  vcd.VMRecord      // the row when full was read
	readNext time.Time         // when to read full again
	expires  time.Time         // when full no longer holds for a machine that is being created
}

// begin starts a pass, which has observed nothing yet.
func (v *vmState) begin() {
	v.row = nil
	v.current = false
	if v.outdated {
		v.full = nil
		v.readWith = nil
		v.outdated = false
		v.consolidated = false
	}
}

// now returns the VM in full if that holds in this pass.
func (v *vmState) now() *vcd.VM {
	if !v.current {
		return nil
	}
	return v.full
}

// known returns the VM as it was read last; nil if this process did not read it since a step failed.
func (v *vmState) known() *vcd.VM {
	if v.outdated {
		return nil
	}
	return v.full
}

// use makes what was read earlier hold in this pass, if it is VM id and was read with the same credentials.
func (v *vmState) use(id string, client *session.Machines) bool {
	known := v.known()
	v.current = known != nil && known.ID == id && v.readWith == client
	return v.current
}

// expire makes the next pass of a machine that is being created read the VM again. What our own tasks changed stays
// known until then.
func (v *vmState) expire() { v.expires = time.Time{} }

// forget makes the next pass read the VM again.
func (v *vmState) forget() { v.outdated = true }

// Freshness is how old an inventory a machine accepts.
type freshness struct {
	settled bool        // the last pass was complete
	stale   atomic.Bool // another machine's pass requires a new query
}

// The observer finds the machine's VM, and reads it.
type observer struct{ scope *scope }

// observe finds the VM with few requests: the recorded one by its id, else those of its name, else one of its marker.
// While the machine is being created, the VM is as it was read a moment ago: what else changes it shows soon enough.
func (s observer) observe(ctx context.Context) (phases.Outcome, error) {
	id := s.scope.inputs.vmID()
	if id != "" && !s.scope.inputs.provisioned() && s.isFresh() && s.scope.vm.use(id, s.scope.session.Machines) {
		return phases.Done, nil
	}
	rows, err := s.scope.session.VMs(ctx, s.scope.placement.vdc, s.scope.inputs.vAppName(), s.inventoryAge())
	if err != nil {
		return session.Unread(err, "Listing VMs")
	}
	if id != "" {
		return s.observeRecorded(ctx, id, rows)
	}
	for _, r := range rows {
		if r.Name == s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation] {
			s.scope.found = append(s.scope.found, r.Ref)
		}
	}
	if len(s.scope.found) > 0 {
		return phases.Done, nil
	}
	return s.observeRenamed(ctx)
}

// isFresh reports whether the VM of a machine that is being created is as it was read last: that is a moment ago, or a
// task of ours works on it since, whose end shows the result.
func (s observer) isFresh() bool {
	return s.scope.now().Before(s.scope.vm.expires) || slices.ContainsFunc(stepsOnVM, s.scope.isRunning)
}

// observeRecorded finds the recorded VM among rows, or elsewhere if the vApp was renamed or the VM moved.
func (s observer) observeRecorded(ctx context.Context, id string, rows []vcd.VMRecord) (phases.Outcome, error) {
	if i := slices.IndexFunc(rows, func(r vcd.VMRecord) bool { return r.ID == id }); i >= 0 {
		row := rows[i] // The rows are shared.
		s.scope.vm.row = &row
		return phases.Done, nil
	}
	row, err := s.scope.session.QueryVM(ctx, id)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return session.Unread(err, "Looking for VM "+id)
	}
	s.scope.vm.row = &row
	return phases.Done, nil
}

// observeRenamed searches for a VM that VCD was asked to create and that has another name, unless a create request is
// in flight.
func (s observer) observeRenamed(ctx context.Context) (phases.Outcome, error) {
	if s.scope.inputs.vcdMachine.Annotations[infrav1.CreationRequestedAnnotation] == "" ||
		s.scope.reconciler.batches.InFlight(s.scope.inputs.queueName(), s.scope.inputs.key()) {
		return phases.Done, nil
	}
	vApp, err := s.scope.session.FindVApp(ctx, s.scope.placement.vdc, s.scope.inputs.vAppName())
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return session.Unread(err, "Reading vApp "+s.scope.inputs.vAppName())
	}
	vm, out, err := s.findRenamed(ctx, vApp)
	if vm != nil {
		s.scope.found = append(s.scope.found, vm.Ref)
	}
	return out, err
}

// findRenamed returns the VM in a vApp that has the machine's marker under another name: it was renamed before it was
// recorded. Only VMs that no other machine claims are read. Of several copies, none is known to be the machine's.
func (s observer) findRenamed(ctx context.Context, vApp vcd.VApp) (*vcd.VM, phases.Outcome, error) {
	refs, err := s.unclaimed(ctx, vApp.VMs)
	if err != nil {
		return nil, phases.Done, err
	}
	var found []vcd.VM
	for _, ref := range refs {
		vm, out, err := s.readMarked(ctx, ref)
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
	return nil, phases.Fail(session.RemedyPoll, infrav1.DuplicateMarkerReason,
		"VMs %s and %s in vApp %s both say that they are this machine's: delete the copies, or change their "+
			"descriptions",
		found[0].Name, found[1].Name, vApp.Name), nil
}

// readMarked returns a VM if it has the machine's marker.
func (s observer) readMarked(ctx context.Context, ref vcd.Ref) (*vcd.VM, phases.Outcome, error) {
	vm, err := s.scope.session.VM(ctx, ref.ID)
	switch {
	case absence.Invisible(err):
		return nil, phases.Done, nil
	case err != nil:
		out, err := session.Unread(err, "Reading VM "+ref.Name)
		return nil, out, err
	}
	if !s.scope.inputs.marks(vm.Description) {
		return nil, phases.Done, nil
	}
	return &vm, phases.Done, nil
}

// unclaimed returns those VMs that have neither the machine's name nor the URN or name of another machine of the
// cluster.
func (s observer) unclaimed(ctx context.Context, refs []vcd.Ref) ([]vcd.Ref, error) {
	list := &infrav1.VCDMachineList{}
	ofCluster := session.OfCluster(session.ClusterName(s.scope.inputs.vcdCluster, s.scope.inputs.cluster))
	if err := s.scope.reconciler.Client.List(ctx, list, client.InNamespace(s.scope.inputs.vcdMachine.Namespace), ofCluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	taken := map[string]bool{s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]: true}
	for _, m := range list.Items {
		if m.UID == s.scope.inputs.vcdMachine.UID {
			continue
		}
		taken[m.Annotations[infrav1.VMNameAnnotation]] = true
		if id, err := providerid.Parse(m.Spec.ProviderID); err == nil {
			taken[id] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref vcd.Ref) bool { return taken[ref.ID] || taken[ref.Name] }),
		nil
}

// ensureRead reads the VM of a machine that is being created, unless it is known in full.
func (s observer) ensureRead(ctx context.Context) (phases.Outcome, error) {
	if s.scope.vm.now() != nil {
		return phases.Done, nil
	}
	vm, err := s.scope.session.VM(ctx, s.scope.inputs.vmID())
	if err != nil {
		return session.Unread(err, "Reading VM "+s.scope.inputs.vmID())
	}
	// A recorded id may come from a user. Once the VM ran, a lost marker is a difference like others.
	if !s.scope.inputs.cameUp() && !s.scope.inputs.marks(vm.Description) {
		return phases.Fail(session.RemedyPoll, infrav1.NotOursReason,
			"VM %s, which spec.providerID names, does not say that it is this machine's: put %q in its description "+
				"if it is, "+
				"else delete the Machine", vm.Name, s.scope.inputs.marker()), nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	s.keep(vm)
	return phases.Done, nil
}

// owned reads the VM before something is written to it, and returns why that must not be: it does not have the
// machine's marker. A recorded id alone gives no right to a VM.
func (s observer) owned(ctx context.Context) (vcd.VM, phases.Outcome, error) {
	vm, err := s.scope.session.VM(ctx, s.scope.inputs.vmID())
	if err != nil {
		out, err := session.Unread(err, "Reading VM "+s.scope.inputs.vmID())
		return vm, out, err
	}
	if s.scope.inputs.marks(vm.Description) {
		return vm, phases.Done, nil
	}
	known := vm
	known.ExtraConfig = nil
	s.keep(known)
	return vm, phases.Fail(session.RemedyPoll, infrav1.NotOursReason,
		"Nothing is written to VM %s, which does not say that it is this machine's: put %q in its description if it is",
		vm.Name, s.scope.inputs.marker()), nil
}

// ensureOwned returns why nothing may be written to the VM. It reads the VM, unless this pass knows its marker.
func (s observer) ensureOwned(ctx context.Context) (phases.Outcome, error) {
	if vm := s.scope.vm.now(); vm != nil && s.scope.inputs.marks(vm.Description) {
		return phases.Done, nil
	}
	_, out, err := s.owned(ctx)
	return out, err
}

// read reads the VM of a machine that runs. If that fails, what is known stays until it is read later.
func (s observer) read(ctx context.Context) error {
	vm, err := s.scope.session.VM(ctx, s.scope.vm.row.ID)
	if err != nil {
		s.scope.vm.readNext = s.scope.now().Add(inventoryEvery)
		return err
	}
	s.scope.injection.recheck(vm)
	vm.ExtraConfig = nil // It may be large, and is needed for the creation only.
	s.keep(vm)
	return nil
}

// keep stores a VM that was read, and schedules the next read.
func (s observer) keep(vm vcd.VM) {
	v := s.scope.vm
	v.full = &vm
	v.current = true
	v.outdated = false
	v.readWith = s.scope.session.Machines
	v.readRow = vcd.VMRecord{}
	if v.row != nil {
		v.readRow = unchanging(*v.row)
	}
	interval := readRarely
	if len(vm.NICs) > 1 {
		interval = readEvery
	}
	v.expires = s.scope.now().Add(inventoryAge)
	// Machines that were created together are read apart.
	v.readNext = s.scope.now().Add(interval - spread(s.scope.inputs.key(), interval/4))
}

// readDue reports whether to read the VM: its row in the inventory changed, only the VM shows what is needed, or it is
// time.
func (s observer) readDue() bool {
	v := s.scope.vm
	if v.row.Busy {
		return false // It is read when the task ends.
	}
	made, ok := s.scope.inputs.made()
	row := unchanging(*v.row)
	first := v.readRow == (vcd.VMRecord{})
	if first {
		v.readRow = row
	}
	switch {
	case !ok, row != v.readRow, first && made.Suspicious(row):
		return true
	case v.known() == nil && (session.DiskMiB(s.scope.inputs.vcdMachine) > made.DiskMiB || made.Differs):
		return true // A known difference is confirmed at once after a restart, lest the condition flaps.
	case v.readNext.IsZero(): // After a restart, machines are read apart.
		v.readNext = s.scope.now().Add(spread(s.scope.inputs.key(), readEvery))
	}
	return !s.scope.now().Before(v.readNext)
}

// unchanging returns what stays the same in the row of a VM that is not changed.
func unchanging(row vcd.VMRecord) vcd.VMRecord {
	row.Busy = false
	row.LeaseEnd = time.Time{}
	row.StorageEnd = time.Time{}
	row.Status = 0
	return row
}

// inventoryAge is how old the inventory may be. A machine without problems accepts the last scheduled one, whatever
// caused the pass; what our own tasks changed is queried again anyway.
func (s observer) inventoryAge() time.Duration {
	if f := &s.scope.state.freshness; f.settled && !f.stale.Swap(false) {
		return s.scope.now().Sub(lastInventory(s.scope.now(), s.scope.placement.vdc.ID))
	}
	return inventoryAge
}

// lastInventory is when the inventory was last due for machines of a VDC.
func lastInventory(now time.Time, vdc string) time.Time {
	offset := spread(vdc, inventoryEvery)
	return now.Add(-offset).Truncate(inventoryEvery).Add(offset)
}

// untilNextInventory is when the inventory is due for a machine again.
func untilNextInventory(now time.Time, vdc, uid string) time.Duration {
	return lastInventory(now, vdc).Add(inventoryEvery).Sub(now) + spread(uid, 5*time.Second)
}

// spread returns a time below d that is always the same for a seed.
func spread(seed string, d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))                // a hash takes everything
	return time.Duration(h.Sum64() % uint64(d)) //nolint:gosec // below d
}
