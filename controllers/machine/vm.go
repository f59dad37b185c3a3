// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/lease"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vmmetadata"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vmname"
)

// reconcileVM makes sure that the VM exists and is known by its URN.
func reconcileVM(ctx context.Context, s *scope) (phases.Outcome, error) {
	if s.inputs.vmID() != "" {
		keepLease(ctx, s)
		return reportVM(ctx, s)
	}
	if s.creation.pending != phases.Done {
		return s.creation.pending, nil
	}
	switch len(s.found) {
	case 0:
		return s.creation.addVM(ctx)
	case 1:
		return s.creation.recordVM(ctx, s.found[0])
	}
	return phases.Fail(session.RemedyPoll, infrav1.DuplicateMarkerReason,
		"There are %d VMs of the name %s in vApp %s: delete or rename all but this machine's in VCD",
		len(s.found), s.found[0].Name, s.inputs.vAppName()), nil
}

// keepLease renews the lease of the machine's vApp. The inventory shows when that is due: nothing is requested before.
func keepLease(ctx context.Context, s *scope) {
	if s.vm.row == nil || !s.inputs.cameUp() {
		return
	}
	keeper := lease.Keeper{
		Renewals: &s.reconciler.renewals,
		Session:  s.session,
		Machine:  s.inputs.vcdMachine,
		VDC:      s.placement.vdc,
		Row:      *s.vm.row,
		Cluster:  s.inputs.vcdCluster.Spec.InfraID,
		Recorder: s.reconciler.Recorder,
		Wake:     s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine),
		Now:      s.now(),
	}
	if after := keeper.Keep(ctx); after > 0 {
		s.requeueWithin(after)
	}
}

// reportVM reports the recorded VM.
func reportVM(ctx context.Context, s *scope) (phases.Outcome, error) {
	m := s.inputs.vcdMachine
	switch {
	case m.Annotations[infrav1.VMGoneAnnotation] == "true":
		return phases.Stop(infrav1.VMNotFoundReason,
			"The VM is gone, annotation %s says: delete the Machine to replace it", infrav1.VMGoneAnnotation), nil
	case s.vm.row != nil:
		if m.Annotations[infrav1.VMNotFoundSinceAnnotation] != "" {
			vmBack(s.reconciler.Recorder, m, s.vm.row.Ref)
		}
		absence.Forget(m)
		s.state.missing.announced = time.Time{}
		m.Status.VM = &infrav1.ResourceReference{Name: s.vm.row.Name, ID: s.vm.row.ID}
		m.Status.VApp = &infrav1.ResourceReference{Name: s.vm.row.VApp.Name, ID: s.vm.row.VApp.ID}
	case s.vm.now() == nil:
		return reportMissing(ctx, s)
	}
	s.reportFailureDomain()
	return phases.Done, nil
}

// addVM asks for the VM, and for those of the other machines that wait for this vApp.
func (s *creation) addVM(ctx context.Context) (phases.Outcome, error) {
	if s.vApp == nil {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for vApp %s", s.scope.inputs.vAppName()), nil
	}
	ours, err := s.batch(ctx, s.whileRoom(func(c batch.Member) bool {
		exists := slices.ContainsFunc(s.vApp.VMs, func(vm vcd.Ref) bool { return vm.Name == c.Spec.Name })
		connected := !slices.ContainsFunc(c.Spec.NICs,
			func(nic vcd.NIC) bool { return !slices.Contains(s.vApp.Networks, nic.Network) })
		return !exists && connected
	}))
	if err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating VMs", "vApp", s.vApp.Name, "vms", len(ours))
	task, err := s.scope.session.AddVMs(ctx, s.vApp.ID, specs(ours))
	if err != nil {
		return s.refused(ctx, stepAdd, ours, err)
	}
	s.followAll(stepAdd, task, ours)
	return running(stepAdd), nil
}

// recordVM reads the VM of the machine's name and, if it is the machine's, stores its URN: from then on only that VM
// is the machine's. It is stored before the VM is powered on.
func (s *creation) recordVM(ctx context.Context, ref vcd.Ref) (phases.Outcome, error) {
	s.release() // This pass creates no VMs.
	vm, err := s.scope.session.VM(ctx, ref.ID)
	if err != nil {
		s.scope.session.Invalidate(s.scope.placement.vdc)
		return session.Unread(err, "Reading VM "+ref.Name)
	}
	if !s.scope.inputs.marks(vm.Description) {
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
				"VM %s exists in vApp %s and is not this machine's: rename or delete it in VCD", ref.Name,
				s.scope.inputs.vAppName()),
			nil
	}
	if len(vm.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name),
			nil
	}
	if failedCreation(vm.Status) {
		return leftovers{s.scope}.cleanUpVM(ctx, vm)
	}
	m := s.scope.inputs.vcdMachine
	m.Spec.ProviderID = providerid.Format(vm.ID)
	m.Status.VM = &infrav1.ResourceReference{Name: vm.Name, ID: vm.ID}
	if vm.VApp.ID != "" {
		m.Status.VApp = &infrav1.ResourceReference{Name: s.scope.inputs.vAppName(), ID: vm.VApp.ID}
	}
	if err := s.scope.save(ctx); err != nil {
		return phases.Done, err
	}
	vmCreated(s.scope.reconciler.Recorder, m, vm.Ref)
	s.scope.state.gatherSince = time.Time{}
	s.scope.observer.keep(vm)
	return phases.Done, nil
}

// Leftovers removes what a failed creation left behind.
type leftovers struct{ scope *scope }

// cleanUpVM removes a VM of ours whose creation failed half-way. One that is still being created has the same status,
// but for the task that holds its vApp.
func (s leftovers) cleanUpVM(ctx context.Context, vm vcd.VM) (phases.Outcome, error) {
	vApp, err := s.scope.session.FindVApp(ctx, s.scope.placement.vdc, s.scope.inputs.vAppName())
	if err != nil {
		return session.Unread(err, "Reading vApp "+s.scope.inputs.vAppName())
	}
	if out := s.scope.creation.layout.problem(vApp); out != phases.Done {
		return out, nil
	}
	// The task may have ended well since the VM was read.
	now, err := s.scope.session.VM(ctx, vm.ID)
	if err != nil {
		return session.Unread(err, "Reading VM "+vm.Name)
	}
	if len(now.Tasks) > 0 || !failedCreation(now.Status) {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "VM %s was created just now", vm.Name), nil
	}
	out, err := s.scope.write(stepCleanUp, func() (vcd.Task, error) { return s.scope.session.DeleteVM(ctx, vm.ID) })
	if err == nil && out.Reason == infrav1.TaskRunningReason {
		leftoverRemoved(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, vm.Ref)
		s.failedEarlier()
	}
	return out, err
}

// cleanUpVApp removes a vApp of ours whose creation failed before it had a VM.
func (s leftovers) cleanUpVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	task, err := s.scope.session.DeleteVApp(ctx, vApp.ID)
	if err != nil {
		return s.scope.refuse(stepCleanUp, fmt.Errorf("vApp %s: %w", vApp.Name, err))
	}
	leftoverRemoved(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, vApp.Ref)
	s.failedEarlier()
	s.scope.creation.followAll(stepCleanUp, task, nil)
	return running(stepCleanUp), nil
}

// failedEarlier counts a failure that this process did not see, so that it is not repeated at once.
func (s leftovers) failedEarlier() {
	if s.scope.state.backoff.creating() {
		return
	}
	out := phases.Fail(0, infrav1.TaskFailedReason, "Creating the VM failed earlier: see the tasks in VCD")
	s.scope.failed(stepAdd, out)
}

func failedCreation(status vcd.Status) bool {
	return status == vcd.StatusFailedCreation || status == vcd.StatusUnresolved
}

// A design is what the machine's VM is to be.
type design struct {
	inputs    *inputs
	placement *target
}

// vm is the VM that VCD is asked for.
func (d design) vm() vcd.VMSpec {
	name := d.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation]
	p := d.placement
	return vcd.VMSpec{
		Name:            name,
		Description:     d.inputs.marker().String(),
		Template:        p.template,
		NICs:            d.nics(),
		SizingPolicy:    p.sizing,
		PlacementPolicy: p.policy,
		StorageProfile:  p.storage,
		ComputerName:    vmname.ComputerName(name),
	}
}

func (d design) nics() []vcd.NIC {
	var result []vcd.NIC
	for _, nic := range d.placement.wished() {
		result = append(result, nic.VCD())
	}
	return result
}

// networks returns the networks of the machine, each once.
func (d design) networks() []vcd.Ref {
	var refs []vcd.Ref
	for _, n := range d.placement.networks {
		if !slices.Contains(refs, n.Ref) {
			refs = append(refs, n.Ref)
		}
	}
	return refs
}

// sameNetworks reports whether c needs no other networks than the machine.
func (d design) sameNetworks(c batch.Member) bool {
	return !slices.ContainsFunc(c.Spec.NICs, func(nic vcd.NIC) bool {
		return !slices.ContainsFunc(d.placement.networks, func(n vcd.Network) bool { return n.Name == nic.Network })
	})
}

// hasMetadata reports whether the VM should have metadata, or has some of ours.
func hasMetadata(m *infrav1.VCDMachine) bool {
	return len(m.Spec.VMMetadata) > 0 || m.Annotations[infrav1.VMMetadataAnnotation] != ""
}

// reconcileMetadata makes sure that the VM has the metadata of the spec. What was written is recorded, so that nothing
// is requested at rest, and that what others wrote stays.
func reconcileMetadata(ctx context.Context, s *scope) (phases.Outcome, error) {
	out, ended := s.settle(stepMetadata)
	if out != phases.Done {
		return out, nil
	}
	m := s.inputs.vcdMachine
	record := vmmetadata.Parse(m.Annotations[infrav1.VMMetadataAnnotation])
	if ended || record.Open() {
		now, err := s.session.Metadata(ctx, s.inputs.vmID())
		if err != nil {
			return session.Unread(err, "Reading metadata of the VM")
		}
		record = record.Seen(now)
		noteMetadata(m, record)
	}
	return writeMetadata(ctx, s, record)
}

// writeMetadata writes what a record of the VM's metadata lacks, else removes an entry that the spec has no more.
func writeMetadata(ctx context.Context, s *scope, record vmmetadata.Record) (phases.Outcome, error) {
	m := s.inputs.vcdMachine
	missing := record.Missing(m.Spec.VMMetadata)
	obsolete := record.Obsolete(m.Spec.VMMetadata)
	if len(missing) == 0 && len(obsolete) == 0 {
		return phases.Done, nil
	}
	if _, out, err := s.observer.owned(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if len(missing) > 0 {
		noteMetadata(m, record.Ask(missing))
		if err := s.save(ctx); err != nil {
			return phases.Done, err
		}
		return s.write(stepMetadata, func() (vcd.Task, error) { return s.session.SetMetadata(ctx, s.inputs.vmID(), missing) })
	}
	return s.write(stepMetadata,
		func() (vcd.Task, error) { return s.session.RemoveMetadata(ctx, s.inputs.vmID(), obsolete[0]) })
}

func noteMetadata(m *infrav1.VCDMachine, record vmmetadata.Record) {
	if text := record.String(); text != "" {
		notes.Set(m, infrav1.VMMetadataAnnotation, text)
		return
	}
	delete(m.Annotations, infrav1.VMMetadataAnnotation)
}
