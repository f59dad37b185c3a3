// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileDrift compares the VM with its state at creation, and expands its disk.
func reconcileDrift(ctx context.Context, s *scope) (phases.Result, error) {
	c := newDriftCheck(s)
	if s.vm.listed == nil { // The VM was created in this pass or the previous one.
		c.recordNew()
		return phases.Done, nil
	}
	baseline, ok := s.inputs.baseline()
	if ok && baseline.Differs() {
		c.readAgain(ctx)
	}
	if !ok {
		if s.vm.lastRead() == nil {
			return phases.Unsure(intervals.Remedy, infrav1.VMUnverifiedReason,
				"VM %s has not been read yet for the comparison", s.vm.listed.Name), nil
		}
		baseline = drift.BaselineOf(*s.vm.lastRead(), s.vm.listed.VDC.ID)
		if isAdopted(s) {
			baseline.Marker = infrav1.MarkerMissing
		}
		c.setBaseline(baseline)
	}
	if s.complete || driftInReady(s.inputs.vcdMachine) {
		if out, err := c.growDisk(ctx, &baseline); err != nil || out != phases.Done {
			return out, err
		}
	}
	return c.compare(baseline), nil
}

// A driftCheck compares the VM with its state at creation, and expands its disk.
type driftCheck struct {
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	vm       *vmState
	observer observer
	disks    disks
	tasks    tasks
	recorder events.EventRecorder
	now      func() time.Time
}

func newDriftCheck(s *scope) driftCheck {
	return driftCheck{
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		vm:       s.vm,
		observer: newObserver(s),
		disks:    newDisks(s),
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
}

// recordNew records the state of a VM that was just created.
func (c driftCheck) recordNew() {
	if _, ok := c.inputs.baseline(); ok || c.vm.current() == nil {
		return
	}
	vm := *c.vm.current()
	c.setBaseline(drift.BaselineOf(vm, c.vdc.ID))
	vm.ExtraConfig = nil
	c.observer.keep(vm)
}

// readAgain reads a VM with known drift again when a read is due. The inventory row does not show everything that a
// user may revert, such as the marker.
func (c driftCheck) readAgain(ctx context.Context) {
	if c.vm.lastRead() == nil || c.vm.cacheHolds || c.vm.listed.Busy || c.now().Before(c.vm.nextRead) {
		return
	}
	if err := c.observer.read(ctx); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Waiting to read the VM", "vmID", c.vm.listed.ID, "reason", err.Error())
	}
}

// growDisk takes the next step to expand the first disk to the desired size. The VM keeps running. The guest must
// expand its file system.
func (c driftCheck) growDisk(ctx context.Context, baseline *drift.Baseline) (phases.Result, error) {
	if out := c.disks.awaitConsolidation(); out != phases.Done {
		return out, nil
	}
	out, ended := c.tasks.settle(stepGrow)
	if out != phases.Done {
		return out, nil
	}
	desired := sizes.Disk(&c.inputs.vcdMachine.Spec)
	if ended {
		diskExpanded(c.recorder, c.inputs.vcdMachine, c.inputs.vcdMachine.Spec.DiskSize.String())
		if err := c.observer.read(ctx); err != nil {
			return problems.OfRead(err, "Reading VM "+c.vm.listed.Name)
		}
	}
	switch {
	case desired <= baseline.DiskMiB:
		return phases.Done, nil
	case c.vm.lastRead() == nil && c.vm.listed.Busy:
		return c.awaitOtherTask(), nil
	case c.vm.lastRead() == nil:
		return phases.Unsure(intervals.Remedy, infrav1.VMUnverifiedReason,
			"The disk of VM %s, which must be expanded, has not been read yet", c.vm.listed.Name), nil
	}
	return c.growDiskTo(ctx, desired, baseline)
}

// growDiskTo requests a first disk of the desired size in MiB, unless the disk already has that size.
func (c driftCheck) growDiskTo(ctx context.Context, desired int64, baseline *drift.Baseline) (phases.Result, error) {
	switch has := drift.FirstDisk(*c.vm.lastRead()); {
	case has.SizeMiB == desired:
		baseline.DiskMiB = desired
		c.setBaseline(*baseline)
		return phases.Done, nil
	case has.SizeMiB > desired || has.ID == "":
		return phases.Done, nil // compare reports the difference.
	case c.vm.listed.Busy:
		return c.awaitOtherTask(), nil
	}
	vm, out, err := c.observer.owned(ctx)
	switch {
	case out.Reason == infrav1.VMNotOwnedReason:
		return phases.Done, nil // compare reports the difference.
	case err != nil || out != phases.Done:
		return out, err
	case len(vm.Tasks) > 0:
		return c.awaitOtherTask(), nil
	}
	return c.disks.growLater(ctx, vm.ID, desired)
}

// awaitOtherTask waits for the end of a task on the VM that the process does not follow.
func (c driftCheck) awaitOtherTask() phases.Result {
	c.session.Invalidate(c.vdc, c.inputs.vAppName()) // The next query shows the end of the task.
	return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on VM %s", c.vm.listed.Name)
}

// compare reports drift. It also records whether drift exists, so that a new process reads such a VM at once.
func (c driftCheck) compare(baseline drift.Baseline) phases.Result {
	found := baseline.Differences(drift.Observed{
		Name:         c.inputs.vcdMachine.Spec.RecordedState.VMName,
		Row:          *c.vm.listed,
		VM:           c.vm.lastRead(),
		Marker:       c.inputs.marker(),
		RequestedMiB: sizes.Disk(&c.inputs.vcdMachine.Spec),
	})
	if differs := len(found) > 0; differs != baseline.Differs() && (differs || c.vm.lastRead() != nil) {
		baseline.Comparison = ""
		if differs {
			baseline.Comparison = infrav1.ComparisonDifferent
		}
		c.setBaseline(baseline)
	}
	if len(found) == 0 {
		return phases.Done
	}
	if again := c.now().Add(inventoryEvery); c.vm.nextRead.IsZero() || c.vm.nextRead.After(again) {
		c.vm.nextRead = again
	}
	reason, message := drift.Summary(found)
	return phases.Fail(max(c.vm.nextRead.Sub(c.now()), intervals.Busy), reason, "%s. Revert the change in VCD, replace the machine, or remove spec.recordedState.vm of the VCDMachine to accept the VM as it is", message)
}

// setBaseline records the state of the VM at creation.
func (c driftCheck) setBaseline(baseline drift.Baseline) {
	recorded := infrav1.RecordedVM(baseline)
	c.inputs.vcdMachine.Spec.RecordedState.VM = &recorded
}

// driftInReady reports whether a machine is not ready while its VM has drift.
func driftInReady(m *infrav1.VCDMachine) bool {
	return m.Annotations[infrav1.DriftInReadyAnnotation] == "true"
}
