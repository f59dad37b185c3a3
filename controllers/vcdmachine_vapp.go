package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// inventoryAge is how old the inventory may be for a machine that is being made, or not well. What our own tasks changed is asked for afresh anyway.
const inventoryAge = 30 * time.Second

// defaultGather is how long the first machine waits for others: several VMs in one request take little longer than one,
// and those that come later wait for the end of it.
const defaultGather = time.Second

// reconcileVApp makes sure that the vApp exists and is the cluster's. A vApp that is not there is created together with
// the VMs that wait for it.
func reconcileVApp(ctx context.Context, s *machineScope) (outcome, error) {
	const composing, connecting = "Creating the vApp with its first VMs", "Connecting networks to the vApp"
	for _, p := range []struct {
		step  step
		doing string
	}{{stepCompose, composing}, {stepConnect, connecting}, {stepCleanUp, "Removing what a failed creation left behind"}} {
		if out, _ := s.settle(p.step, p.doing); out != done {
			return out, nil
		}
	}
	if s.vmID() == "" {
		// While the VM is being added, or may not be yet, there is nothing to look at: reconcileVM tells of it.
		if s.adding, _ = s.settle(stepAdd, addingVM); s.adding != done {
			return done, nil
		}
	}
	if out, err := s.observe(ctx); err != nil || out != done || s.vmID() != "" || len(s.found) > 0 {
		return out, err
	}
	if out := s.layoutProblem(ctx); out != done {
		return out, nil
	}
	return s.prepareVApp(ctx, composing, connecting)
}

// observe finds the machine's VM without asking much: the recorded one by its id, else those of its name, else one of its mark.
func (s *machineScope) observe(ctx context.Context) (outcome, error) {
	id := s.vmID()
	if id != "" && !s.provisioned() && s.memory.vm != nil && s.memory.vm.ID == id && s.memory.vmSeenBy == s.session.vms {
		s.vm = s.memory.vm
		return done, nil
	}
	records, err := s.session.VMs(ctx, s.placement.vdc, s.vAppName(), s.inventoryAge())
	if err != nil {
		return refusal(err, "Listing VMs")
	}
	if id != "" {
		return s.observeRecorded(ctx, id, records)
	}
	return s.observeUnrecorded(ctx, records)
}

// observeUnrecorded finds the VMs of the machine's name among records, else one that has its mark.
func (s *machineScope) observeUnrecorded(ctx context.Context, records []vcd.VMRecord) (outcome, error) {
	for _, r := range records {
		if r.Name == s.vcdMachine.Annotations[infrav1.VMNameAnnotation] {
			s.found = append(s.found, r.Ref)
		}
	}
	if len(s.found) > 0 {
		return done, nil
	}
	return s.observeRenamed(ctx)
}

// observeRecorded finds the recorded VM among records, or elsewhere: somebody may have renamed the vApp, or moved the VM.
func (s *machineScope) observeRecorded(ctx context.Context, id string, records []vcd.VMRecord) (outcome, error) {
	for _, r := range records {
		if r.ID == id {
			s.record = &r
			return done, nil
		}
	}
	record, err := s.session.QueryVM(ctx, id)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return done, nil
	case err != nil:
		return refusal(err, "Looking for VM "+id)
	}
	s.record = &record
	return done, nil
}

// prepareVApp looks at the vApp as it is now, in turn, and takes the next step towards one that VMs can be added to.
func (s *machineScope) prepareVApp(ctx context.Context, composing, connecting string) (outcome, error) {
	name := s.vAppName()
	mine := s.creation()
	if left := s.gather(); left > 0 && !mine.alone {
		s.creations.join(s.line(), mine)
		s.inLine = true
		return wait(left, infrav1.EntityBusyReason, "Waiting for machines that are created at the same time"), nil
	}
	t, ok := s.creations.take(s.line(), mine)
	if !ok {
		s.inLine = true
		return wait(taskPoll, infrav1.EntityBusyReason, "Waiting for another machine to be created in vApp %s", name), nil
	}
	s.turn = t
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, name)
	if errors.Is(err, vcd.ErrNotFound) {
		return s.compose(ctx, name, composing)
	}
	if err != nil {
		return refusal(err, "Reading vApp "+name)
	}
	return s.useVApp(ctx, vApp, connecting)
}

// useVApp takes the next step towards a vApp that VMs can be added to, or finds that the VM is in it.
func (s *machineScope) useVApp(ctx context.Context, vApp vcd.VApp, connecting string) (outcome, error) {
	if out := s.vAppProblem(vApp); out != done {
		return out, nil
	}
	s.vApp = &vApp
	for _, vm := range vApp.VMs {
		if vm.Name == s.vcdMachine.Annotations[infrav1.VMNameAnnotation] {
			s.found = append(s.found, vm)
		}
	}
	switch {
	case len(s.found) > 0:
		return done, nil
	case failedCreation(vApp.Status) && len(vApp.VMs) == 0:
		return s.cleanUpVApp(ctx, vApp)
	}
	return s.connect(ctx, vApp, connecting)
}

// gather returns how long the machine has still to wait for company, which it never has in a vApp of its own.
func (s *machineScope) gather() time.Duration {
	if perMachine(s.vcdCluster) {
		return 0
	}
	if s.memory.waitsSince.IsZero() {
		s.memory.waitsSince = s.now()
	}
	return s.memory.waitsSince.Add(cmp.Or(s.Gather, defaultGather)).Sub(s.now())
}

func (s *machineScope) creation() creation {
	return creation{
		key:     s.key(),
		machine: client.ObjectKeyFromObject(s.vcdMachine),
		spec:    s.vmSpec(),
		alone:   s.memory.failure.step == stepAdd || s.memory.failure.step == stepCompose,
		follow:  func(what string, t vcd.Task) { s.follow(step(what), t) },
		wake:    s.wakeUps.forObject(s.vcdMachine),
	}
}

// leaveLine makes sure, at the end of a pass that did not want it, that nobody creates the VM any more.
func (s *machineScope) leaveLine() {
	if !s.inLine {
		s.creations.leave(s.line(), s.key())
	}
}

// endTurn gives the turn back.
func (s *machineScope) endTurn() {
	if s.turn.end != nil {
		s.turn.end()
	}
	s.turn = turn{}
}

// vAppProblem says why nothing may or can be done with a vApp.
func (s *machineScope) vAppProblem(vApp vcd.VApp) outcome {
	marker, ok := vcd.ParseMarker(vApp.Description)
	if !ok || marker.Cluster != s.vcdCluster.Spec.InfraID {
		return fail(remedyPoll, infrav1.NameConflictReason,
			"vApp %s exists and is not this cluster's: rename or delete it in VCD, or make the cluster anew with another spec.vApp.name", vApp.Name)
	}
	if len(vApp.Tasks) > 0 {
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp.Name)
	}
	return done
}

// compose asks for a vApp with the VMs that wait for it.
func (s *machineScope) compose(ctx context.Context, name, doing string) (outcome, error) {
	marker := s.marker()
	if !perMachine(s.vcdCluster) {
		marker.Machine = ""
	}
	ours, err := s.company(ctx, s.sameNetworks)
	if err != nil {
		return done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating vApp", "vApp", name, "vms", len(ours))
	spec := vcd.VAppSpec{Name: name, Description: marker.String(), Networks: s.networkRefs(), VMs: specs(ours)}
	_, task, err := s.session.ComposeVApp(ctx, s.placement.vdc, spec)
	if err != nil {
		s.withdraw(ctx, ours, err)
		return s.refuse(stepCompose, err, doing)
	}
	s.followAll(stepCompose, task, ours)
	return running(doing), nil
}

// sameNetworks says whether the networks of s suffice for c.
func (s *machineScope) sameNetworks(c creation) bool {
	for _, nic := range c.spec.NICs {
		if !slices.ContainsFunc(s.placement.networks, func(n vcd.Network) bool { return n.Name == nic.Network }) {
			return false
		}
	}
	return true
}

// followAll lets every machine whose VM a task creates follow it. The task holds the vApp until it ends.
func (s *machineScope) followAll(what step, t vcd.Task, machines []creation) {
	for _, c := range machines {
		if c.key != s.key() {
			c.follow(string(what), t)
		}
	}
	key, line, wake := s.key()+"/"+string(what), s.line(), s.wakeUps.forObject(s.vcdMachine)
	s.creations.started(line, func() bool {
		running, ok := s.session.Task(key)
		return ok && running.State == vcd.TaskRunning
	})
	s.session.Follow(key, t, func() {
		wake()
		s.creations.ended(line)
	})
}

// connect connects the machine's networks to the vApp, if they are not.
func (s *machineScope) connect(ctx context.Context, vApp vcd.VApp, doing string) (outcome, error) {
	var missing []vcd.Ref
	for _, ref := range s.networkRefs() {
		if !slices.Contains(vApp.Networks, ref.Name) {
			missing = append(missing, ref)
		}
	}
	if len(missing) == 0 {
		return done, nil
	}
	task, err := s.session.ConnectNetworks(ctx, vApp.ID, missing)
	if err != nil {
		return s.refuse(stepConnect, err, doing)
	}
	return s.start(stepConnect, task, doing), nil
}

// cleanUpVApp removes a vApp of ours whose creation failed before it had a VM.
func (s *machineScope) cleanUpVApp(ctx context.Context, vApp vcd.VApp) (outcome, error) {
	task, err := s.session.DeleteVApp(ctx, vApp.ID)
	if err != nil {
		return s.refuse(stepCleanUp, err, fmt.Sprintf("Removing vApp %s, whose creation failed", vApp.Name))
	}
	leftoverRemoved(s.Recorder, s.vcdMachine, vApp.Ref)
	s.failedEarlier()
	return s.start(stepCleanUp, task, "Removing what a failed creation left behind"), nil
}

// failedEarlier counts a failure whose end nobody saw, so that it is not repeated at once.
func (s *machineScope) failedEarlier() {
	if f := s.memory.failure.step; f == stepAdd || f == stepCompose {
		return
	}
	out := fail(0, infrav1.TaskFailedReason, "Creating the VM failed earlier: see the tasks in VCD")
	s.memory.failed(stepAdd, out, s.now(), s.vcdMachine.Generation)
}

func failedCreation(status vcd.Status) bool {
	return status == vcd.StatusFailedCreation || status == vcd.StatusUnresolved
}
