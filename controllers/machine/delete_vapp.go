// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deleteMachineVApp deletes the vApp of a machine that has its own. A shared vApp is deleted with the cluster.
func deleteMachineVApp(ctx context.Context, s *scope) (phases.Result, error) {
	if s.inputs.vcdCluster == nil || !vapp.PerMachine(s.inputs.vcdCluster) || !s.inputs.mayHaveVM() {
		return phases.Done, nil
	}
	if leaves, err := mustKeepVM(ctx, s.reconciler.Client, &s.inputs); err != nil || leaves {
		return phases.Done, err
	}
	out, err := deleteOwnVApp(ctx, s)
	return vapp.OrKeep(ctx, s.reconciler.Recorder, s.inputs.vcdMachine, "VCDMachine", s.inputs.vAppName(), out, err)
}

// deleteOwnVApp takes the next step to delete the vApp that belongs to the machine alone. If a user keeps the vApp, it
// does not wait for the manager's delete task, because VCD may never report its end.
func deleteOwnVApp(ctx context.Context, s *scope) (phases.Result, error) {
	if s.session == nil {
		if out, err := openForDeletion(ctx, s); err != nil || out != phases.Done {
			return out, err
		}
	}
	d := newVAppDeletion(s)
	task, _ := d.session.Task(d.tasks.keyOf(stepDeleteVApp))
	out, ended := d.tasks.settle(stepDeleteVApp)
	if out != phases.Done && !vapp.IsKept(s.inputs.vcdMachine) {
		return out, nil
	}
	return d.next(ctx, ended && !task.Undeploys())
}

// A vAppDeletion deletes the vApp of a machine that has its own.
type vAppDeletion struct {
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	records  *records
	tasks    tasks
	recorder events.EventRecorder
	now      func() time.Time
}

func newVAppDeletion(s *scope) vAppDeletion {
	return vAppDeletion{
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		records:  s.records,
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
		now:      s.now,
	}
}

// next deletes the machine's own vApp if it exists. ended means that the manager's task deleted it.
func (d vAppDeletion) next(ctx context.Context, ended bool) (phases.Result, error) {
	name := d.inputs.vAppName()
	vApp, err := d.session.FindVApp(ctx, d.vdc, name)
	if err == nil && d.ownsVApp(vApp) {
		return d.remove(ctx, vApp)
	}
	if err != nil && !errors.Is(err, vcd.ErrNotFound) {
		return problems.OfRead(err, "Reading vApp "+name)
	}
	renamed, found, errRenamed := d.renamedVApp(ctx)
	switch {
	case errRenamed != nil:
		return problems.OfRead(errRenamed, "Reading the former vApp "+name)
	case found:
		return d.remove(ctx, renamed)
	case err == nil:
		vapp.NotOwned(d.recorder, d.inputs.vcdMachine, vApp.Name)
		return phases.Done, nil
	case ended:
		return phases.Done, nil
	}
	return d.missingVApp(ctx, name)
}

// missingVApp decides whether a vApp that VCD does not show is gone.
func (d vAppDeletion) missingVApp(ctx context.Context, name string) (phases.Result, error) {
	lost := absence.VApp{Name: name, VDC: d.vdc}
	if id := d.inputs.createdInVApp(); id != "" {
		lost.IDs = []string{id}
	}
	recorded := &d.inputs.vcdMachine.Spec.RecordedState
	since, out, err := lost.Gone(ctx, d.session, recorded.MissingSince, d.now())
	recorded.MissingSince = since
	return out, err
}

// renamedVApp returns the vApp that was created for the machine, looked up by its URN in case it was renamed.
func (d vAppDeletion) renamedVApp(ctx context.Context) (vApp vcd.VApp, found bool, err error) {
	id := d.inputs.createdInVApp()
	if id == "" {
		return vcd.VApp{}, false, nil
	}
	vApp, err = d.session.VApp(ctx, id)
	if absence.Invisible(err) {
		return vcd.VApp{}, false, nil
	}
	return vApp, err == nil && d.ownsVApp(vApp), err
}

// ownsVApp reports whether a vApp belongs to the machine alone.
func (d vAppDeletion) ownsVApp(vApp vcd.VApp) bool {
	return d.inputs.hasMarker(vApp.Description)
}

// remove takes the next step to delete the machine's own vApp. With the vApp, the proof that the VM is gone is lost, so
// that fact is stored first.
func (d vAppDeletion) remove(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	others := vapp.Names(vApp.VMs)
	switch {
	case vapp.Hangs(d.inputs.vcdMachine, d.now(), vApp.Tasks...):
		return vapp.StillHeld(vApp.Name), nil
	case len(vApp.Tasks) > 0 && (len(others) == 0 || !vapp.IsKept(d.inputs.vcdMachine)):
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting for another task on vApp %s",
			vApp.Name), nil
	case len(others) > 0:
		return phases.Fail(intervals.Remedy, infrav1.VAppNotEmptyReason,
			"vApp %s contains VMs of other machines: move or delete %s", vApp.Name, phases.Few(others)), nil
	}
	if err := d.records.saveTimeOnce(ctx, &d.inputs.vcdMachine.Spec.RecordedState.VMGoneAt, d.now()); err != nil {
		return phases.Done, err
	}
	task, err := d.session.DeleteVApp(ctx, vApp.ID)
	return d.tasks.started(stepDeleteVApp, task, err)
}
