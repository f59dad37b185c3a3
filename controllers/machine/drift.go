// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Comparison compares the VM with what it was created like.
type comparison struct{ scope *scope }

// growDisk takes the next step towards a first disk as large as wished. The VM keeps running; its guest has to grow the
// file system.
func (s comparison) growDisk(ctx context.Context, made *drift.Made) (phases.Outcome, error) {
	if out := s.scope.disks.awaitConsolidation(); out != phases.Done {
		return out, nil
	}
	out, ended := s.scope.settle(stepGrow)
	if out != phases.Done {
		return out, nil
	}
	wished := session.DiskMiB(s.scope.inputs.vcdMachine)
	if ended {
		diskGrown(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, s.scope.inputs.vcdMachine.Spec.DiskSize.String())
		if err := s.scope.observer.read(ctx); err != nil {
			return session.Unread(err, "Reading VM "+s.scope.vm.row.Name)
		}
	}
	switch {
	case wished <= made.DiskMiB:
		return phases.Done, nil
	case s.scope.vm.known() == nil && s.scope.vm.row.Busy:
		return s.scope.comparison.awaitOtherTask(), nil
	case s.scope.vm.known() == nil:
		return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
			"The disk of VM %s could not be read yet, which is to grow", s.scope.vm.row.Name), nil
	}
	return s.growDiskTo(ctx, wished, made)
}

// growDiskTo asks for a first disk of a size, unless it has it.
func (s comparison) growDiskTo(ctx context.Context, wished int64, made *drift.Made) (phases.Outcome, error) {
	switch has := drift.FirstDisk(*s.scope.vm.known()); {
	case has.SizeMiB == wished:
		made.DiskMiB = wished
		s.recordMade(*made)
		return phases.Done, nil
	case has.SizeMiB > wished || has.ID == "":
		return phases.Done, nil // Reported as a difference.
	case s.scope.vm.row.Busy:
		return s.scope.comparison.awaitOtherTask(), nil
	}
	vm, out, err := s.scope.observer.owned(ctx)
	switch {
	case out.Reason == infrav1.NotOursReason:
		return phases.Done, nil // Reported as a difference.
	case err != nil || out != phases.Done:
		return out, err
	case len(vm.Tasks) > 0:
		return s.scope.comparison.awaitOtherTask(), nil
	}
	return s.scope.disks.growLater(ctx, vm.ID, wished)
}

// awaitOtherTask waits for the end of a task on the VM that is not followed.
func (s comparison) awaitOtherTask() phases.Outcome {
	s.scope.session.Invalidate(s.scope.placement.vdc) // The next query shows its end.
	return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", s.scope.vm.row.Name)
}

// asSpecified is the phase that compares the VM with what it was made like.
var asSpecified = phases.Phase[*scope]{Condition: infrav1.VMAsSpecifiedCondition, Run: reconcileAsSpecified}

// extraPhases are those whose conditions are no part of Ready. None waits for another.
func extraPhases(m *infrav1.VCDMachine) []phases.Phase[*scope] {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	extra := []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapDataRemovedCondition, Run: reconcileBootstrapDataRemoved},
	}
	if hasMetadata(m) {
		extra = append(extra, phases.Phase[*scope]{
			Condition: infrav1.VMMetadataReadyCondition,
			Run:       reconcileMetadata,
		})
	}
	if !driftInReady(m) {
		extra = append(extra, asSpecified)
	}
	return extra
}

// runExtra runs the phases that are no part of Ready if the VM is observed, whatever state it is in.
func (s *scope) runExtra(ctx context.Context, extra []phases.Phase[*scope]) (ctrl.Result, error) {
	if !s.complete && (s.vm.row == nil || !s.inputs.cameUp()) {
		return ctrl.Result{}, nil
	}
	if !hasMetadata(s.inputs.vcdMachine) {
		conditions.Delete(s.inputs.vcdMachine, infrav1.VMMetadataReadyCondition)
	}
	var res ctrl.Result
	var errs []error
	as := true
	for _, p := range extra {
		pass, err := phases.Run(ctx, s.inputs.vcdMachine, s, []phases.Phase[*scope]{p}, s.reconciler.Recorder)
		res = earliest(res, pass.Result)
		errs = append(errs, err)
		as = as && (pass.Complete || p.Condition != infrav1.VMAsSpecifiedCondition)
	}
	err := errors.Join(errs...)
	s.state.freshness.settled = s.complete && as && err == nil
	return res, err
}

// driftInReady reports whether a machine is not ready when its VM was changed.
func driftInReady(m *infrav1.VCDMachine) bool {
	return m.Annotations[infrav1.DriftInReadyAnnotation] == "true"
}

// earliest returns the result that comes first.
func earliest(a, b ctrl.Result) ctrl.Result {
	if a.RequeueAfter == 0 || b.RequeueAfter > 0 && b.RequeueAfter < a.RequeueAfter {
		return b
	}
	return a
}

// reconcileAsSpecified compares the VM with what it was created like, and grows its disk.
func reconcileAsSpecified(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.vm.row == nil { // It was created in this pass, or the one before.
		s.comparison.recordNew()
		return phases.Done, nil
	}
	made, ok := s.inputs.made()
	if ok && made.Differs {
		s.comparison.readAgain(ctx)
	}
	if !ok {
		if s.vm.known() == nil {
			return phases.Unsure(session.RemedyPoll, infrav1.VMUnverifiedReason,
				"VM %s was not read yet, which it will be compared with", s.vm.row.Name), nil
		}
		made = drift.From(*s.vm.known(), s.vm.row.VDC.ID)
		s.comparison.recordMade(made)
	}
	if s.complete || driftInReady(s.inputs.vcdMachine) {
		if out, err := s.comparison.growDisk(ctx, &made); err != nil || out != phases.Done {
			return out, err
		}
	}
	return s.comparison.compare(made), nil
}

// readAgain reads a VM that differed, when that is due: its row in the inventory does not show all that a user may set
// back, such as the marker.
func (s comparison) readAgain(ctx context.Context) {
	if s.scope.vm.known() == nil || s.scope.vm.current || s.scope.vm.row.Busy || s.scope.now().Before(s.scope.vm.readNext) {
		return
	}
	if err := s.scope.observer.read(ctx); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Reading the VM later", "vm", s.scope.vm.row.ID, "reason", err.Error())
	}
}

// compare reports the differences. That there are any is recorded: a new process then reads the VM at once.
func (s comparison) compare(made drift.Made) phases.Outcome {
	found := made.Differences(drift.Observed{
		Name:      s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation],
		Row:       *s.scope.vm.row,
		VM:        s.scope.vm.known(),
		Marker:    s.scope.inputs.marker(),
		WishedMiB: session.DiskMiB(s.scope.inputs.vcdMachine),
	})
	if differs := len(found) > 0; differs != made.Differs && (differs || s.scope.vm.known() != nil) {
		made.Differs = differs
		s.recordMade(made)
	}
	if len(found) == 0 {
		return phases.Done
	}
	if again := s.scope.now().Add(inventoryEvery); s.scope.vm.readNext.IsZero() || s.scope.vm.readNext.After(again) {
		s.scope.vm.readNext = again
	}
	reason, message := drift.Summary(found)
	return phases.Fail(max(s.scope.vm.readNext.Sub(s.scope.now()), session.BusyPoll), reason, "%s. Set it back in VCD, or replace the machine, or remove annotation %s from the "+
		"VCDMachine to take the VM as it is",
		message, infrav1.VMRecordedAnnotation)
}

// recordMade stores what the VM was created like.
func (s comparison) recordMade(made drift.Made) {
	notes.Set(s.scope.inputs.vcdMachine, infrav1.VMRecordedAnnotation, made.String())
}

// recordNew stores what a VM that was just created is like.
func (s comparison) recordNew() {
	if _, ok := s.scope.inputs.made(); ok || s.scope.vm.now() == nil {
		return
	}
	vm := *s.scope.vm.now()
	s.recordMade(drift.From(vm, s.scope.placement.vdc.ID))
	vm.ExtraConfig = nil
	s.scope.observer.keep(vm)
}

// Disks gives VMs disks of the wished size. VCD changes no disk of a linked clone before it was consolidated.
type disks struct{ scope *scope }

// find finds the storage profile of each additional disk, and the template, which has disks before them.
func (s disks) find(ctx context.Context, wished placement.Placement) (phases.Outcome, error) {
	p := &s.scope.placement
	specs := s.scope.inputs.vcdMachine.Spec.AdditionalDisks
	if len(specs) == 0 {
		return phases.Done, nil
	}
	var err error
	if p.template, err = s.scope.session.FindTemplate(ctx, wished.Catalog.Name, wished.Template.Name); err != nil {
		return session.TemplateProblem(err, wished.Catalog, wished.Template, session.Correct)
	}
	p.disks = make([]vcd.NewDisk, len(specs))
	for i, disk := range specs {
		p.disks[i].SizeMiB = session.InMiB(disk.Size)
		if disk.StorageProfile == "" {
			continue
		}
		profile, err := s.scope.session.FindStorageProfile(ctx, p.vdc, disk.StorageProfile)
		if err != nil {
			return session.LookupProblem(err, infrav1.StorageProfileNotFoundReason, fmt.Sprintf(
				"correct spec.additionalDisks[%d].storageProfile of the VCDMachine, or give the VDC the profile", i))
		}
		p.disks[i].StorageProfile = &profile
	}
	return phases.Done, nil
}

// missing returns the additional disks that a VM which never ran does not have yet. They come in order, behind those of
// its template.
func (s disks) missing(vm vcd.VM) []vcd.NewDisk {
	has := -s.scope.placement.template.Disks
	for _, disk := range vm.Disks {
		if disk.Independent == nil {
			has++
		}
	}
	return s.scope.placement.disks[min(max(has, 0), len(s.scope.placement.disks)):]
}

// await waits for the steps of prepare.
func (s disks) await() phases.Outcome {
	if out := s.awaitConsolidation(); out != phases.Done {
		return out
	}
	out, ended := s.scope.settle(stepGrow)
	if ended {
		s.scope.vm.current = false // It is read again, with its new disk.
	}
	return out
}

func (s disks) awaitConsolidation() phases.Outcome {
	out, ended := s.scope.settle(stepConsolidate)
	if ended {
		s.scope.vm.consolidated = true
		vmConsolidated(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine)
	}
	return out
}

// prepare takes the next step towards the wished size of a linked clone's first disk, before anything else is written
// to it. The disks of other VMs grow by the request that writes the bootstrap data.
func (s disks) prepare(ctx context.Context) (phases.Outcome, error) {
	vm := s.scope.vm.now()
	wished := session.DiskMiB(s.scope.inputs.vcdMachine)
	if !s.scope.placement.vdc.FastProvisioning || drift.FirstDisk(*vm).SizeMiB >= wished {
		return phases.Done, nil
	}
	if out, err := s.consolidate(ctx, vm.ID); err != nil || out != phases.Done {
		return out, err
	}
	return s.grow(ctx, vm.ID, wished)
}

// consolidate makes sure that a VM of a VDC with fast provisioning is no linked clone any more. VCD does not show
// whether it is one, and has nothing to do if it is not.
func (s disks) consolidate(ctx context.Context, vmID string) (phases.Outcome, error) {
	if s.scope.vm.consolidated {
		return phases.Done, nil
	}
	if out, err := s.problem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	return s.scope.write(stepConsolidate, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Consolidating VM", "vm", vmID)
		return s.scope.session.Consolidate(ctx, vmID)
	})
}

// growLater takes the next step towards the wished size of the first disk of a VM that ran. Its VDC was not looked up
// for it.
func (s disks) growLater(ctx context.Context, vmID string, wishedMiB int64) (phases.Outcome, error) {
	vdc, err := s.scope.session.FindVDC(ctx, s.scope.placement.vdc.ID)
	if err != nil {
		return session.AskProblem(err)
	}
	s.scope.placement.vdc = vdc
	if vdc.FastProvisioning {
		if out, err := s.consolidate(ctx, vmID); err != nil || out != phases.Done {
			return out, err
		}
	}
	return s.grow(ctx, vmID, wishedMiB)
}

func (s disks) grow(ctx context.Context, vmID string, wishedMiB int64) (phases.Outcome, error) {
	return s.scope.write(stepGrow, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Growing disk", "vm", vmID, "diskMiB", wishedMiB)
		return s.scope.session.ReconfigureVM(ctx, vmID, vcd.VMChange{DiskMiB: wishedMiB})
	})
}

// problem returns why no disk of a linked clone can grow: the right to consolidate is missing.
func (s disks) problem(ctx context.Context) (phases.Outcome, error) {
	may, err := s.scope.session.MayHave(ctx, vcd.RightConsolidate)
	switch {
	case err != nil:
		return session.AskProblem(err)
	case !may:
		return phases.Fail(session.RemedyPoll, infrav1.ForbiddenReason,
			"VDC %s has fast provisioning: disks grow only "+
				"after their VM was consolidated. Grant right %q to the user of the identity, leave out "+
				"spec.diskSize, or "+
				"have fast provisioning turned off", s.scope.placement.vdc.Name, vcd.RightConsolidate), nil
	}
	return phases.Done, nil
}
