// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcileVApp makes sure that the vApp exists and is the cluster's. A vApp that is not there is created together with
// the VMs that wait for it.
func reconcileVApp(ctx context.Context, s *scope) (phases.Outcome, error) {
	for _, what := range []step{stepCompose, stepConnect, stepCleanUp} {
		if out, _ := s.settle(what); out != phases.Done {
			return out, nil
		}
	}
	if s.inputs.vmID() == "" {
		// While the VM is being added, or may not be yet, there is nothing to observe: reconcileVM reports why.
		if s.creation.pending, _ = s.settle(stepAdd); s.creation.pending != phases.Done {
			return phases.Done, nil
		}
	}
	if out, err := s.observer.observe(ctx); err != nil || out != phases.Done || s.inputs.vmID() != "" || len(s.found) > 0 {
		return out, err
	}
	if out := s.creation.layout.ownProblem(ctx); out != phases.Done {
		return out, nil
	}
	return s.creation.prepareVApp(ctx)
}

// prepareVApp begins a batch, reads the vApp, and takes the next step towards one that VMs can be added to.
func (s *creation) prepareVApp(ctx context.Context) (phases.Outcome, error) {
	name := s.scope.inputs.vAppName()
	mine := s.member()
	if left := s.gather(); left > 0 && !mine.Alone {
		s.scope.reconciler.batches.Join(s.scope.inputs.queueName(), mine)
		s.joined = true
		return phases.Wait(left, infrav1.EntityBusyReason, "Waiting for machines that are created at the same time"),
			nil
	}
	t, ok := s.scope.reconciler.batches.Begin(s.scope.inputs.queueName(), mine)
	if !ok {
		s.joined = true
		return phases.Wait(session.TaskPoll, infrav1.EntityBusyReason,
			"Waiting for another machine to be created in vApp %s", name), nil
	}
	s.current = t
	vApp, err := s.scope.session.FindVApp(ctx, s.scope.placement.vdc, name)
	if errors.Is(err, vcd.ErrNotFound) {
		return s.compose(ctx, name)
	}
	if err != nil {
		return session.Unread(err, "Reading vApp "+name)
	}
	return s.useVApp(ctx, vApp)
}

// useVApp takes the next step towards a vApp that VMs can be added to, or finds that the VM is in it.
func (s *creation) useVApp(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	switch out := s.layout.problem(vApp); {
	case out.Reason == infrav1.NameConflictReason && s.scope.inputs.vAppNumber() > 1:
		return s.layout.next(ctx, vApp.Name+" is another owner's")
	case out != phases.Done:
		return out, nil
	}
	s.vApp = &vApp
	for _, vm := range vApp.VMs {
		if vm.Name == s.scope.inputs.vcdMachine.Annotations[infrav1.VMNameAnnotation] {
			s.scope.found = append(s.scope.found, vm)
		}
	}
	if len(s.scope.found) > 0 {
		return phases.Done, nil
	}
	return s.makeRoom(ctx, vApp)
}

// makeRoom takes the next step towards a vApp of ours that the machine's VM, which is not in it, can be added to.
func (s *creation) makeRoom(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	switch {
	case failedCreation(vApp.Status) && len(vApp.VMs) == 0:
		return leftovers{s.scope}.cleanUpVApp(ctx, vApp)
	case s.room() <= 0:
		return s.layout.next(ctx, vApp.Name+" is full")
	}
	return s.connect(ctx, vApp)
}

// room returns how many VMs the vApp takes yet.
func (s *creation) room() int {
	if s.vApp == nil {
		return vapp.MaxVMs
	}
	return vapp.MaxVMs - len(s.vApp.VMs)
}

// whileRoom returns a condition for members of a batch beside the machine, which holds for as many as the vApp takes.
func (s *creation) whileRoom(suits func(batch.Member) bool) func(batch.Member) bool {
	left := s.room() - 1
	return func(c batch.Member) bool {
		if left <= 0 || !suits(c) {
			return false
		}
		left--
		return true
	}
}

// nextVApp is how soon the machine goes on in the next vApp.
const nextVApp = time.Second

// compose asks for a vApp with the VMs that wait for it.
func (s *creation) compose(ctx context.Context, name string) (phases.Outcome, error) {
	marker := s.scope.inputs.marker()
	if !vapp.PerMachine(s.scope.inputs.vcdCluster) {
		marker.Machine = ""
	}
	ours, err := s.batch(ctx, s.whileRoom(s.design.sameNetworks))
	if err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Creating vApp", "vApp", name, "vms", len(ours))
	spec := vcd.VAppSpec{Name: name, Description: marker.String(), Networks: s.design.networks(), VMs: specs(ours)}
	_, task, err := s.scope.session.ComposeVApp(ctx, s.scope.placement.vdc, spec)
	if err != nil {
		return s.refused(ctx, stepCompose, ours, err)
	}
	s.followAll(stepCompose, task, ours)
	return running(stepCompose), nil
}

// connect connects the machine's networks to the vApp, if they are not.
func (s *creation) connect(ctx context.Context, vApp vcd.VApp) (phases.Outcome, error) {
	var missing []vcd.Ref
	for _, ref := range s.design.networks() {
		if !slices.Contains(vApp.Networks, ref.Name) {
			missing = append(missing, ref)
		}
	}
	if len(missing) == 0 {
		return phases.Done, nil
	}
	task, err := s.scope.session.ConnectNetworks(ctx, vApp.ID, missing)
	if err != nil {
		return s.scope.refuse(stepConnect, err)
	}
	s.followAll(stepConnect, task, nil)
	return running(stepConnect), nil
}

// A layout decides which vApp the machine's VM is created in.
type layout struct{ scope *scope }

// next makes the next pass create the VM in the next vApp of the cluster. Which that is, is stored before
// anything is created in it.
func (s layout) next(ctx context.Context, why string) (phases.Outcome, error) {
	if s.scope.now().Sub(s.scope.inputs.creationRequested()) < gone.LateRequest {
		return phases.Wait(session.RemedyPoll, infrav1.EntityBusyReason,
			"vApp %s, and a request to create the VM in it may still be on its way", why), nil
	}
	if out := s.driverProblem(ctx, vapp.LegacyDriversFull); out != phases.Done {
		return out, nil
	}
	notes.Set(s.scope.inputs.vcdMachine, infrav1.VAppNumberAnnotation, strconv.Itoa(s.scope.inputs.vAppNumber()+1))
	if err := s.scope.save(ctx); err != nil {
		return phases.Done, err
	}
	ctrl.LoggerFrom(ctx).Info("Continuing in another vApp", "reason", "vApp "+why, "vApp", s.scope.inputs.vAppName())
	return phases.Wait(nextVApp, infrav1.EntityBusyReason, "vApp %s: continuing in vApp %s", why, s.scope.inputs.vAppName()), nil
}

// problem says why nothing may or can be done with a vApp.
func (s layout) problem(vApp vcd.VApp) phases.Outcome {
	marker, ok := vcd.ParseMarker(vApp.Description)
	if !ok || marker.Cluster != s.scope.inputs.vcdCluster.Spec.InfraID {
		return phases.Fail(session.RemedyPoll, infrav1.NameConflictReason,
			"vApp %s exists and is not this cluster's: rename or delete it in VCD, or make the cluster anew with "+
				"another spec.vApp.name", vApp.Name)
	}
	if len(vApp.Tasks) > 0 {
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on vApp %s", vApp.Name)
	}
	return phases.Done
}

// ownProblem returns why the machine must not get another vApp than others. That of a zone does not depend on whether
// the workload cluster can be asked.
func (s layout) ownProblem(ctx context.Context) phases.Outcome {
	switch {
	case vapp.PerMachine(s.scope.inputs.vcdCluster):
		return s.driverProblem(ctx, vapp.LegacyDrivers)
	case vapp.Spread(s.scope.inputs.vcdCluster, s.scope.inputs.zoneName()):
		if out := s.driverProblem(ctx, vapp.LegacyDriversInZones); !out.Unknown {
			return out
		}
	}
	return phases.Done
}

// driverProblem returns why the machine must not get another vApp than others: drivers that search for nodes in one
// vApp run in the cluster, or may run. The message takes what runs.
func (s layout) driverProblem(ctx context.Context, message string) phases.Outcome {
	found, known := s.scope.reconciler.Drivers.In(ctx, s.scope.inputs.cluster, s.scope.now())
	switch {
	case !known:
		return phases.Unsure(vapp.UnknownRetry, infrav1.WorkloadClusterUnreachableReason,
			"Another vApp requires to know what runs in the workload cluster, and its API server cannot be "+
				"asked: see the Cluster")
	case len(found) > 0:
		return phases.Fail(vapp.DriversRetry, infrav1.LegacyDriverInstalledReason, message, phases.Few(found))
	}
	return phases.Done
}
