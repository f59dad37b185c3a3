package machine

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// inventoryAge is how old the inventory may be for a machine that is being made, or not well. What our own tasks changed is asked for afresh anyway.
const inventoryAge = 30 * time.Second

// defaultGather is how long the first machine waits for others: several VMs in one request take little longer than one,
// and those that come later wait for the end of it.
const defaultGather = time.Second

// reconcileVApp makes sure that the vApp exists and is the cluster's. A vApp that is not there is created together with
// the VMs that wait for it.
func reconcileVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	const composing, connecting = "Creating the vApp with its first VMs", "Connecting networks to the vApp"
	for _, p := range []struct {
		step  step
		doing string
	}{{stepCompose, composing}, {stepConnect, connecting}, {stepCleanUp, "Removing what a failed creation left behind"}} {
		if out, _ := s.settle(p.step, p.doing); out != phases.Done {
			return out, nil
		}
	}
	if s.vmID() == "" {
		// While the VM is being added, or may not be yet, there is nothing to look at: reconcileVM tells of it.
		if s.adding, _ = s.settle(stepAdd, addingVM); s.adding != phases.Done {
			return phases.Done, nil
		}
	}
	if out, err := s.observe(ctx); err != nil || out != phases.Done || s.vmID() != "" || len(s.found) > 0 {
		return out, err
	}
	if out := s.layoutProblem(ctx); out != phases.Done {
		return out, nil
	}
	return s.prepareVApp(ctx, composing, connecting)
}

// observe finds the machine's VM without asking much: the recorded one by its id, else those of its name, else one of its mark.
func (s *scope) observe(ctx context.Context) (phases.Outcome, error) {
	id := s.vmID()
	if id != "" && !s.provisioned() && s.memory.vm != nil && s.memory.vm.ID == id && s.memory.vmSeenBy == s.session.VMClient {
		s.vm = s.memory.vm
		return phases.Done, nil
	}
	records, err := s.session.VMs(ctx, s.placement.vdc, s.vAppName(), s.inventoryAge())
	if err != nil {
		return session.Refusal(err, "Listing VMs")
	}
	if id != "" {
		return s.observeRecorded(ctx, id, records)
	}
	return s.observeUnrecorded(ctx, records)
}

// observeUnrecorded finds the VMs of the machine's name among records, else one that has its mark.
func (s *scope) observeUnrecorded(ctx context.Context, records []vcd.VMRecord) (phases.Outcome, error) {
	for _, r := range records {
		if r.Name == s.vcdMachine.Annotations[infrav1.VMNameAnnotation] {
			s.found = append(s.found, r.Ref)
		}
	}
	if len(s.found) > 0 {
		return phases.Done, nil
	}
	return s.observeRenamed(ctx)
}

// observeRecorded finds the recorded VM among records, or elsewhere: somebody may have renamed the vApp, or moved the VM.
func (s *scope) observeRecorded(ctx context.Context, id string, records []vcd.VMRecord) (phases.Outcome, error) {
	for _, r := range records {
		if r.ID == id {
			s.record = &r
			return phases.Done, nil
		}
	}
	record, err := s.session.QueryVM(ctx, id)
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		return phases.Done, nil
	case err != nil:
		return session.Refusal(err, "Looking for VM "+id)
	}
	s.record = &record
	return phases.Done, nil
}

// prepareVApp looks at the vApp as it is now, in turn, and takes the next step towards one that VMs can be added to.
func (s *scope) prepareVApp(ctx context.Context, composing, connecting string) (phases.Outcome, error) {
	name := s.vAppName()
	mine := s.creation()
	if left := s.gather(); left > 0 && !mine.Alone {
		s.creations.Join(s.line(), mine)
		s.inLine = true
		return phases.Wait(left, infrav1.EntityBusyReason, "Waiting for machines that are created at the same time"), nil
	}
	t, ok := s.creations.Take(s.line(), mine)
	if !ok {
		s.inLine = true
		return phases.Wait(session.TaskPoll, infrav1.EntityBusyReason, "Waiting for another machine to be created in vApp %s", name), nil
	}
	s.turn = t
	vApp, err := s.session.FindVApp(ctx, s.placement.vdc, name)
	if errors.Is(err, vcd.ErrNotFound) {
		return s.compose(ctx, name, composing)
	}
	if err != nil {
		return session.Refusal(err, "Reading vApp "+name)
	}
	return s.useVApp(ctx, vApp, connecting)
}

// useVApp takes the next step towards a vApp that VMs can be added to, or finds that the VM is in it.
func (s *scope) useVApp(ctx context.Context, vApp vcd.VApp, connecting string) (phases.Outcome, error) {
	if out := s.vAppProblem(vApp); out != phases.Done {
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
		return phases.Done, nil
	case failedCreation(vApp.Status) && len(vApp.VMs) == 0:
		return s.cleanUpVApp(ctx, vApp)
	}
	return s.connect(ctx, vApp, connecting)
}

// gather returns how long the machine has still to wait for company, which it never has in a vApp of its own.
func (s *scope) gather() time.Duration {
	if vapp.PerMachine(s.vcdCluster) {
		return 0
	}
	if s.memory.waitsSince.IsZero() {
		s.memory.waitsSince = s.now()
	}
	return s.memory.waitsSince.Add(cmp.Or(s.Gather, defaultGather)).Sub(s.now())
}

func (s *scope) creation() batch.Member {
	return batch.Member{
		Key:     s.key(),
		Machine: client.ObjectKeyFromObject(s.vcdMachine),
		Spec:    s.vmSpec(),
		Alone:   s.memory.failure.step == stepAdd || s.memory.failure.step == stepCompose,
		Follow:  func(what string, t vcd.Task) { s.follow(step(what), t) },
		Wake:    s.wakeUps.ForObject(s.vcdMachine),
	}
}

// leaveLine makes sure, at the end of a pass that did not want it, that nobody creates the VM any more.
func (s *scope) leaveLine() {
	if !s.inLine {
		s.creations.Leave(s.line(), s.key())
	}
}

// endTurn gives the turn back.
func (s *scope) endTurn() {
	if s.turn.End != nil {
		s.turn.End()
	}
	s.turn = batch.Turn{}
}

// vAppProblem says why nothing may or can be done with a vApp.
func (s *scope) vAppProblem(vApp vcd.VApp) phases.Outcome {
	marker, ok := vcd.ParseMarker(vApp.Description)
	if !ok || marker.Cluster != s.vcdCluster.Spec.InfraID {
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
			"vApp %s exists and is not this cluster's: rename or delete it in VCD, or make the cluster anew with another spec.vApp.name", vApp.Name)
	}
	if len(vApp.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp.Name)
	}
	return phases.Done
}

// compose asks for a vApp with the VMs that wait for it.
func (s *scope) compose(ctx context.Context, name, doing string) (phases.Outcome, error) {
	marker := s.marker()
	if !vapp.PerMachine(s.vcdCluster) {
		marker.Machine = ""
	}
	ours, err := s.company(ctx, s.sameNetworks)
	if err != nil {
		return phases.Done, err
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
func (s *scope) sameNetworks(c batch.Member) bool {
	for _, nic := range c.Spec.NICs {
		if !slices.ContainsFunc(s.placement.networks, func(n vcd.Network) bool { return n.Name == nic.Network }) {
			return false
		}
	}
	return true
}

// followAll lets every machine whose VM a task creates follow it. The task holds the vApp until it ends.
func (s *scope) followAll(what step, t vcd.Task, machines []batch.Member) {
	for _, c := range machines {
		if c.Key != s.key() {
			c.Follow(string(what), t)
		}
	}
	key, line, wake := s.key()+"/"+string(what), s.line(), s.wakeUps.ForObject(s.vcdMachine)
	s.creations.Started(line, func() bool {
		running, ok := s.session.Task(key)
		return ok && running.State == vcd.TaskRunning
	})
	s.session.Follow(key, t, func() {
		wake()
		s.creations.Ended(line)
	})
}

// connect connects the machine's networks to the vApp, if they are not.
func (s *scope) connect(ctx context.Context, vApp vcd.VApp, doing string) (phases.Outcome, error) {
	var missing []vcd.Ref
	for _, ref := range s.networkRefs() {
		if !slices.Contains(vApp.Networks, ref.Name) {
			missing = append(missing, ref)
		}
	}
	if len(missing) == 0 {
		return phases.Done, nil
	}
	task, err := s.session.ConnectNetworks(ctx, vApp.ID, missing)
	if err != nil {
		return s.refuse(stepConnect, err, doing)
	}
	return s.start(stepConnect, task, doing), nil
}

// cleanUpVApp removes a vApp of ours whose creation failed before it had a VM.
func (s *scope) cleanUpVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	task, err := s.session.DeleteVApp(ctx, vApp.ID)
	if err != nil {
		return s.refuse(stepCleanUp, err, fmt.Sprintf("Removing vApp %s, whose creation failed", vApp.Name))
	}
	leftoverRemoved(s.Recorder, s.vcdMachine, vApp.Ref)
	s.failedEarlier()
	return s.start(stepCleanUp, task, "Removing what a failed creation left behind"), nil
}

// failedEarlier counts a failure whose end nobody saw, so that it is not repeated at once.
func (s *scope) failedEarlier() {
	if f := s.memory.failure.step; f == stepAdd || f == stepCompose {
		return
	}
	out := phases.Fail(0, infrav1.TaskFailedReason, "Creating the VM failed earlier: see the tasks in VCD")
	s.memory.failed(stepAdd, out, s.now(), s.vcdMachine.Generation)
}

func failedCreation(status vcd.Status) bool {
	return status == vcd.StatusFailedCreation || status == vcd.StatusUnresolved
}
