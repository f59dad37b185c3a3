package machine

import (
	"context"
	"hash/fnv"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const growingDisk = "Growing the disk"

// growDisk takes the next step towards a first disk as large as wished. The VM keeps running; its guest has to grow the file
// system.
func (s *scope) growDisk(ctx context.Context, made *drift.Made) (phases.Outcome, error) {
	out, ended := s.settle(stepGrow, growingDisk)
	if out != phases.Done {
		return out, nil
	}
	wished := session.DiskMiB(s.vcdMachine)
	if ended {
		diskGrown(s.Recorder, s.vcdMachine, s.vcdMachine.Spec.DiskSize.String())
		if err := s.read(ctx); err != nil {
			return session.Refusal(err, "Reading VM "+s.record.Name)
		}
	}
	switch {
	case wished <= made.DiskMiB:
		return phases.Done, nil
	case s.memory.full == nil && s.record.Busy:
		return s.awaitOtherTask(), nil
	case s.memory.full == nil:
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason, "The disk of VM %s could not be read yet, which is to grow", s.record.Name), nil
	}
	return s.growDiskTo(ctx, wished, made)
}

// growDiskTo asks for a first disk of a size, unless it has it.
func (s *scope) growDiskTo(ctx context.Context, wished int64, made *drift.Made) (phases.Outcome, error) {
	vm := s.memory.full
	switch has := drift.FirstDisk(*vm); {
	case has.SizeMiB == wished:
		made.DiskMiB = wished
		s.recordMade(*made)
		return phases.Done, nil
	case has.SizeMiB > wished || has.ID == "":
		return phases.Done, nil // Reported as a difference.
	case s.record.Busy:
		return s.awaitOtherTask(), nil
	}
	ctrl.LoggerFrom(ctx).Info("Growing disk", "vm", vm.ID, "diskMiB", wished)
	task, err := s.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{DiskMiB: wished})
	if err != nil {
		return s.refuse(stepGrow, err, growingDisk)
	}
	return s.start(stepGrow, task, growingDisk), nil
}

// awaitOtherTask waits for the end of a task on the VM that is not followed.
func (s *scope) awaitOtherTask() phases.Outcome {
	s.session.Invalidate(s.placement.vdc) // The next look shall see the end of it.
	return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", s.record.Name)
}

const (
	// lookEvery is how often the inventory is looked at for a machine that is well. All machines of a VDC look at the same
	// time, so that one query serves them.
	lookEvery = 5 * time.Minute
	// readEvery is how often a VM is read whose inventory row does not show everything that may change unnoticed: the
	// addresses of further NICs.
	readEvery = 9 * time.Minute
	// readRarely is how often another VM is read though its row did not change.
	readRarely = 6 * time.Hour
)

// asSpecified is the phase that compares the VM with what it was made like.
var asSpecified = phases.Phase[*scope]{Condition: infrav1.VMAsSpecifiedCondition, Run: reconcileAsSpecified}

// extraPhases are those whose conditions are no part of Ready. They run when all others are complete.
func extraPhases(m *infrav1.VCDMachine) []phases.Phase[*scope] {
	if !m.DeletionTimestamp.IsZero() || driftInReady(m) {
		return nil
	}
	return []phases.Phase[*scope]{asSpecified}
}

// driftInReady says whether a machine counts as not ready when its VM was changed.
func driftInReady(m *infrav1.VCDMachine) bool {
	return m.Annotations[infrav1.DriftInReadyAnnotation] == "true"
}

// soonest returns the result that comes first.
func soonest(a, b ctrl.Result) ctrl.Result {
	if a.RequeueAfter == 0 || b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter {
		return b
	}
	return a
}

// made returns what the VM was made like, if that is known.
func (s *scope) made() (drift.Made, bool) {
	return drift.Parse(s.vcdMachine.Annotations[infrav1.VMRecordedAnnotation])
}

// recordMade stores what the VM was made like.
func (s *scope) recordMade(made drift.Made) {
	notes.Set(s.vcdMachine, infrav1.VMRecordedAnnotation, made.String())
}

// lastLook is when the inventory was last due for machines of a VDC.
func lastLook(now time.Time, vdc string) time.Time {
	offset := spread(vdc, lookEvery)
	return now.Add(-offset).Truncate(lookEvery).Add(offset)
}

// untilNextLook is when the inventory is due for a machine again.
func untilNextLook(now time.Time, vdc, uid string) time.Duration {
	return lastLook(now, vdc).Add(lookEvery).Sub(now) + spread(uid, 5*time.Second)
}

// inventoryAge is how old the inventory may be. A machine that is well is content with what was due last, whatever brings it
// up meanwhile; what our own tasks changed is asked for afresh anyway.
func (s *scope) inventoryAge() time.Duration {
	if s.memory.well && !s.memory.unwell.Swap(false) {
		return s.now().Sub(lastLook(s.now(), s.placement.vdc.ID))
	}
	return inventoryAge
}

// spread returns a time below d that is always the same for a seed.
func spread(seed string, d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))                // a hash takes everything
	return time.Duration(h.Sum64() % uint64(d)) //nolint:gosec // below d
}

// readDue says whether the VM itself is to be read: because the row in the inventory changed, because only the VM shows what
// has to be known, or because it is time.
func (s *scope) readDue() bool {
	m := s.memory
	if s.record.Busy {
		return false // What a task is changing is looked at when it ends.
	}
	made, ok := s.made()
	row, first := unchanging(*s.record), m.row == (vcd.VMRecord{})
	if first {
		m.row = row
	}
	switch {
	case !ok, row != m.row, first && made.Suspicious(row):
		return true
	case m.full == nil && (session.DiskMiB(s.vcdMachine) > made.DiskMiB || !conditions.IsTrue(s.vcdMachine, infrav1.VMAsSpecifiedCondition)):
		return true // Whether it still differs is told at once after a restart, lest the condition flaps.
	case m.readNext.IsZero(): // This process has not read it: not all at once.
		m.readNext = s.now().Add(spread(s.key(), readEvery))
	}
	return !s.now().Before(m.readNext)
}

// unchanging returns what stays the same in the row of a VM that nobody changes.
func unchanging(row vcd.VMRecord) vcd.VMRecord {
	row.Busy, row.LeaseEnd, row.StorageEnd, row.Status = false, time.Time{}, time.Time{}, 0
	return row
}

// read reads the VM of a machine that runs. What cannot be read now is read later: what is known stays.
func (s *scope) read(ctx context.Context) error {
	m := s.memory
	vm, err := s.session.VM(ctx, s.record.ID)
	if err != nil {
		m.readNext = s.now().Add(lookEvery)
		return err
	}
	s.vm = &vm
	s.keepRead(vm)
	return nil
}

// keepRead remembers the VM as it was read, to compare it, and when to read it again.
func (s *scope) keepRead(vm vcd.VM) {
	m := s.memory
	vm.ExtraConfig = nil // It may be large, and is not compared.
	m.full, m.row = &vm, vcd.VMRecord{}
	if s.record != nil {
		m.row = unchanging(*s.record)
	}
	m.readNext = s.now().Add(s.readInterval(len(vm.NICs)))
}

// readInterval spreads reads, so that those of machines that were made together do not stay together.
func (s *scope) readInterval(nics int) time.Duration {
	interval := readRarely
	if nics > 1 {
		interval = readEvery
	}
	return interval - spread(s.key(), interval/4)
}

// reconcileAsSpecified compares the VM with what it was made like, and lets its disk grow.
func reconcileAsSpecified(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.record == nil { // It was made in this pass, or the one before.
		s.recordNew()
		return phases.Done, nil
	}
	made, ok := s.made()
	if !ok {
		if s.memory.full == nil {
			return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason, "VM %s was not read yet, which it will be compared with", s.record.Name), nil
		}
		made = drift.From(*s.memory.full, s.record.VDC.ID)
		s.recordMade(made)
	}
	if out, err := s.growDisk(ctx, &made); err != nil || out != phases.Done {
		return out, err
	}
	found := made.Differences(drift.Observed{
		Name: s.vcdMachine.Annotations[infrav1.VMNameAnnotation], Row: *s.record, VM: s.memory.full, WishedMiB: session.DiskMiB(s.vcdMachine),
	})
	if len(found) == 0 {
		return phases.Done, nil
	}
	reason, message := drift.Summary(found)
	return phases.Fail(0, reason, "%s. Set it back in VCD, or replace the machine, or remove annotation %s from the VCDMachine to take the VM as it is",
		message, infrav1.VMRecordedAnnotation), nil
}

// recordNew stores what a VM that was just made is like.
func (s *scope) recordNew() {
	if _, ok := s.made(); ok || s.vm == nil {
		return
	}
	s.recordMade(drift.From(*s.vm, s.placement.vdc.ID))
	s.keepRead(*s.vm)
}
