package controllers

import (
	"context"
	"hash/fnv"
	"time"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

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
var asSpecified = phase[*machineScope]{infrav1.VMAsSpecifiedCondition, reconcileAsSpecified}

// extraPhases are those whose conditions are no part of Ready. They run when all others are complete.
func extraPhases(m *infrav1.VCDMachine) []phase[*machineScope] {
	if !m.DeletionTimestamp.IsZero() || driftInReady(m) {
		return nil
	}
	return []phase[*machineScope]{asSpecified}
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
func (s *machineScope) made() (madeVM, bool) {
	return parseMade(s.vcdMachine.Annotations[infrav1.VMRecordedAnnotation])
}

// recordMade stores what the VM was made like.
func (s *machineScope) recordMade(made madeVM) {
	annotate(s.vcdMachine, infrav1.VMRecordedAnnotation, made.String())
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
func (s *machineScope) inventoryAge() time.Duration {
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
func (s *machineScope) readDue() bool {
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
	case !ok, row != m.row, first && made.suspicious(row):
		return true
	case m.full == nil && (diskMiB(s.vcdMachine) > made.DiskMiB || !conditions.IsTrue(s.vcdMachine, infrav1.VMAsSpecifiedCondition)):
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
func (s *machineScope) read(ctx context.Context) error {
	m := s.memory
	vm, err := s.session.VM(ctx, s.record.ID)
	if err != nil {
		m.readNext = s.now().Add(lookEvery)
		return err //nolint:wrapcheck // refusal looks into it.
	}
	s.vm = &vm
	s.keepRead(vm)
	return nil
}

// keepRead remembers the VM as it was read, to compare it, and when to read it again.
func (s *machineScope) keepRead(vm vcd.VM) {
	m := s.memory
	vm.ExtraConfig = nil // It may be large, and is not compared.
	m.full, m.row = &vm, vcd.VMRecord{}
	if s.record != nil {
		m.row = unchanging(*s.record)
	}
	m.readNext = s.now().Add(s.readInterval(len(vm.NICs)))
}

// readInterval spreads reads, so that those of machines that were made together do not stay together.
func (s *machineScope) readInterval(nics int) time.Duration {
	interval := readRarely
	if nics > 1 {
		interval = readEvery
	}
	return interval - spread(s.key(), interval/4)
}

// reconcileAsSpecified compares the VM with what it was made like, and lets its disk grow.
func reconcileAsSpecified(ctx context.Context, s *machineScope) (outcome, error) {
	if s.record == nil { // It was made in this pass, or the one before.
		s.recordNew()
		return done, nil
	}
	made, ok := s.made()
	if !ok {
		if s.memory.full == nil {
			return unsure(remedyPoll, infrav1.VMUnverifiedReason, "VM %s was not read yet, which it will be compared with", s.record.Name), nil
		}
		made = madeFrom(*s.memory.full, s.record.VDC.ID)
		s.recordMade(made)
	}
	if out, err := s.growDisk(ctx, &made); err != nil || out != done {
		return out, err
	}
	found := made.differences(seenVM{
		name: s.vcdMachine.Annotations[infrav1.VMNameAnnotation], row: *s.record, vm: s.memory.full, wishedMiB: diskMiB(s.vcdMachine),
	})
	if len(found) == 0 {
		return done, nil
	}
	reason, message := told(found)
	return fail(0, reason, "%s. Set it back in VCD, or replace the machine, or remove annotation %s from the VCDMachine to take the VM as it is",
		message, infrav1.VMRecordedAnnotation), nil
}

// recordNew stores what a VM that was just made is like.
func (s *machineScope) recordNew() {
	if _, ok := s.made(); ok || s.vm == nil {
		return
	}
	s.recordMade(madeFrom(*s.vm, s.placement.vdc.ID))
	s.keepRead(*s.vm)
}
