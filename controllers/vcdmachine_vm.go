package controllers

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const addingVM = "Creating the VM"

// reconcileVM makes sure that the VM exists and is known by its URN.
func reconcileVM(ctx context.Context, s *machineScope) (outcome, error) {
	if s.vmID() != "" {
		s.watchLease(ctx)
		return s.reportVM(ctx)
	}
	if s.adding != done {
		return s.adding, nil
	}
	switch len(s.found) {
	case 0:
		return s.addVM(ctx)
	case 1:
		return s.recordVM(ctx, s.found[0])
	}
	return fail(remedyPoll, infrav1.DuplicateMarkerReason, "There are %d VMs of the name %s in vApp %s: delete or rename all but this machine's in VCD",
		len(s.found), s.found[0].Name, s.vAppName()), nil
}

// reportVM tells of the recorded VM.
func (s *machineScope) reportVM(ctx context.Context) (outcome, error) {
	m := s.vcdMachine
	switch {
	case m.Annotations[infrav1.VMGoneAnnotation] == "true":
		return saidGone(), nil
	case s.record != nil:
		if m.Annotations[infrav1.VMNotFoundSinceAnnotation] != "" {
			vmBack(s.Recorder, m, s.record.Ref)
		}
		seen(m)
		s.memory.announced = time.Time{}
		m.Status.VM = &infrav1.ResourceReference{Name: s.record.Name, ID: s.record.ID}
		m.Status.VApp = &infrav1.ResourceReference{Name: s.record.VApp.Name, ID: s.record.VApp.ID}
	case s.vm == nil:
		return s.lookForMissing(ctx)
	}
	return done, nil
}

// addVM asks for the VM, and for those of the other machines that wait for this vApp.
func (s *machineScope) addVM(ctx context.Context) (outcome, error) {
	if s.vApp == nil {
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for vApp %s", s.vAppName()), nil
	}
	ours, err := s.company(ctx, func(c creation) bool {
		exists := slices.ContainsFunc(s.vApp.VMs, func(vm vcd.Ref) bool { return vm.Name == c.spec.Name })
		connected := !slices.ContainsFunc(c.spec.NICs, func(nic vcd.NIC) bool { return !slices.Contains(s.vApp.Networks, nic.Network) })
		return !exists && connected
	})
	if err != nil {
		return done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating VMs", "vApp", s.vApp.Name, "vms", len(ours))
	task, err := s.session.AddVMs(ctx, s.vApp.ID, specs(ours))
	if err != nil {
		s.withdraw(ctx, ours, err)
		return s.refuse(stepAdd, err, addingVM)
	}
	s.followAll(stepAdd, task, ours)
	return running(addingVM), nil
}

// recordVM reads the VM of the machine's name and, if it is the machine's, stores its URN: from then on only that VM
// is the machine's. It is stored before the VM is powered on.
func (s *machineScope) recordVM(ctx context.Context, ref vcd.Ref) (outcome, error) {
	vm, err := s.session.VM(ctx, ref.ID)
	if err != nil {
		s.session.Invalidate(s.placement.vdc)
		return refusal(err, "Reading VM "+ref.Name)
	}
	if marker, ok := vcd.ParseMarker(vm.Description); !ok || marker != s.marker() {
		return fail(remedyPoll, infrav1.NameConflictReason,
			"VM %s exists in vApp %s and is not this machine's: rename or delete it in VCD", ref.Name, s.vAppName()), nil
	}
	if len(vm.Tasks) > 0 {
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name), nil
	}
	if failedCreation(vm.Status) {
		return s.cleanUpVM(ctx, vm)
	}
	m := s.vcdMachine
	m.Spec.ProviderID = providerid.Format(vm.ID)
	m.Status.VM = &infrav1.ResourceReference{Name: vm.Name, ID: vm.ID}
	if vm.VApp.ID != "" {
		m.Status.VApp = &infrav1.ResourceReference{Name: s.vAppName(), ID: vm.VApp.ID}
	}
	if err := s.save(ctx); err != nil {
		return done, err
	}
	vmCreated(s.Recorder, m, vm.Ref)
	s.memory.waitsSince = time.Time{}
	s.remember(vm)
	return done, nil
}

// cleanUpVM removes a VM of ours whose creation failed half-way. One that is still being created looks the same, but
// for the task that holds its vApp.
func (s *machineScope) cleanUpVM(ctx context.Context, vm vcd.VM) (outcome, error) {
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, s.vAppName())
	if err != nil {
		return refusal(err, "Reading vApp "+s.vAppName())
	}
	if out := s.vAppProblem(vApp); out != done {
		return out, nil
	}
	// The task may have ended well since the VM was read.
	now, err := s.session.VM(ctx, vm.ID)
	if err != nil {
		return refusal(err, "Reading VM "+vm.Name)
	}
	if len(now.Tasks) > 0 || !failedCreation(now.Status) {
		return wait(busyPoll, infrav1.EntityBusyReason, "VM %s was created just now", vm.Name), nil
	}
	task, err := s.session.DeleteVM(ctx, vm.ID)
	if err != nil {
		return s.refuse(stepCleanUp, err, "Removing VM "+vm.Name+", whose creation failed")
	}
	leftoverRemoved(s.Recorder, s.vcdMachine, vm.Ref)
	s.failedEarlier()
	return s.start(stepCleanUp, task, "Removing what a failed creation left behind"), nil
}

// readVM makes sure that the VM is known in full.
func (s *machineScope) readVM(ctx context.Context) (outcome, error) {
	if s.vm != nil {
		return done, nil
	}
	vm, err := s.session.VM(ctx, s.vmID())
	if err != nil {
		return refusal(err, "Reading VM "+s.vmID())
	}
	// A recorded id may come from a person. Once the VM came up it was ours, and people may write in descriptions.
	if marker, ok := vcd.ParseMarker(vm.Description); !s.cameUp() && (!ok || marker != s.marker()) {
		return fail(remedyPoll, infrav1.NotOursReason,
			"VM %s, which spec.providerID names, does not say that it is this machine's: put %q in its description if it is, else delete the Machine", vm.Name, s.marker()), nil
	}
	if len(vm.Tasks) > 0 {
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name), nil
	}
	s.remember(vm)
	return done, nil
}
