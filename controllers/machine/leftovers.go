// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/events"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// leftovers removes the remains of a failed creation.
type leftovers struct {
	session  *session.Session
	inputs   *inputs
	vdc      vcd.VDC
	layout   layout
	tasks    tasks
	recorder events.EventRecorder
}

func newLeftovers(s *scope) leftovers {
	return leftovers{
		session:  s.session,
		inputs:   &s.inputs,
		vdc:      s.target.vdc,
		layout:   newLayout(s),
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
	}
}

// cleanUpVM deletes a VM of the machine whose creation failed halfway. A VM that is still being created has the same
// status, except that a task holds its vApp.
func (l leftovers) cleanUpVM(ctx context.Context, vm vcd.VM) (phases.Result, error) {
	vApp, err := l.session.FindVApp(ctx, l.vdc, l.inputs.vAppName())
	if err != nil {
		return problems.OfRead(err, "Reading vApp "+l.inputs.vAppName())
	}
	if out, err := l.layout.problem(ctx, vApp); err != nil || out != phases.Done {
		return out, err
	}
	// The task may have succeeded since the VM was read.
	now, err := l.session.VM(ctx, vm.ID)
	if err != nil {
		return problems.OfRead(err, "Reading VM "+vm.Name)
	}
	if len(now.Tasks) > 0 || !isLeftover(l.inputs, now) {
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "VM %s was just created", vm.Name), nil
	}
	out, err := l.tasks.write(stepCleanUp, func() (vcd.Task, error) { return l.session.DeleteVM(ctx, vm.ID) })
	if err == nil && out.Reason == infrav1.TaskRunningReason {
		creationCleanedUp(l.recorder, l.inputs.vcdMachine, vm.Ref)
		l.failedEarlier()
	}
	return out, err
}

// cleanUpVApp deletes a vApp of the cluster whose creation failed before it had a VM.
func (l leftovers) cleanUpVApp(ctx context.Context, vApp vcd.VApp) (phases.Result, error) {
	task, err := l.session.DeleteVApp(ctx, vApp.ID)
	if err != nil {
		return l.tasks.failedRequest(stepCleanUp, fmt.Errorf("vApp %s: %w", vApp.Name, err))
	}
	creationCleanedUp(l.recorder, l.inputs.vcdMachine, vApp.Ref)
	l.failedEarlier()
	l.tasks.followAll(stepCleanUp, task, nil)
	return running(stepCleanUp), nil
}

// failedEarlier counts a failure that this process did not observe, so that the creation is not retried at once.
func (l leftovers) failedEarlier() {
	if l.tasks.backoff.creating() {
		return
	}
	out := phases.Fail(0, infrav1.TaskFailedReason, "An earlier creation of the VM failed: check the tasks in VCD")
	l.tasks.failed(stepAdd, out)
}

// isLeftover reports whether a VM of the machine cannot become its node: its creation failed, or CAPVCD stopped before
// it powered on the VM for the first time. Such a VM contains no data, and is created again.
func isLeftover(in *inputs, vm vcd.VM) bool {
	return failedCreation(vm.Status) || in.createdByCAPVCD() && !in.hasMarker(vm.Description) && vm.Status == vcd.StatusPoweredOff
}

func failedCreation(status vcd.Status) bool {
	return status == vcd.StatusFailedCreation || status == vcd.StatusUnresolved
}
