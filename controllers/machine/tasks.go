// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A step is a request to VCD that starts a task. Its value describes the request in conditions.
type step string

const (
	stepCompose  step = "Creating the vApp with its first VMs"
	stepConnect  step = "Connecting networks to the vApp"
	stepAdd      step = "Creating the VM"
	stepCleanUp  step = "Removing the remains of a failed creation"
	stepHardware step = "Setting CPUs, memory, hardware version and additional disks of the VM"
	stepInject   step = "Writing bootstrap data" // and the size of the disk
	// stepConsolidate makes a linked clone independent of its template.
	stepConsolidate step = "Consolidating the VM"

	stepHotAdd step = "Adding CPUs and memory to the running VM"
	stepResize step = "Changing CPUs and memory of the VM"

	stepPowerOn    step = "Powering on the VM"
	stepReset      step = "Resetting the VM"
	stepGrow       step = "Expanding the disk"
	stepClear      step = "Removing bootstrap data"
	stepMetadata   step = "Writing metadata of the VM"
	stepShutdown   step = "Shutting down the guest"
	stepPowerOff   step = "Powering off the VM"
	stepDetach     step = "Detaching an independent disk (allowed for its owner and organization administrators)"
	stepDelete     step = "Deleting the VM"
	stepDeleteVApp step = "Deleting the machine's vApp"
)

// stepsOnVM are the steps on a VM that is being created.
var stepsOnVM = []step{stepHardware, stepInject, stepConsolidate, stepPowerOn, stepGrow}

// creates reports whether a step creates the VM.
func creates(what step) bool { return what == stepAdd || what == stepCompose }

// tasks sends requests about the machine's VM to VCD, and follows the tasks that they start.
type tasks struct {
	session *session.Session
	vdc     vcd.VDC // its inventory is outdated once a task has ended
	inputs  *inputs
	vm      *vmState
	backoff *backoff
	queues  *batch.Queues
	wake    func() // triggers a reconcile of the machine
	now     func() time.Time
}

func newTasks(s *scope) tasks {
	return tasks{
		session: s.session,
		vdc:     s.target.vdc,
		inputs:  &s.inputs,
		vm:      s.vm,
		backoff: &s.state.backoff,
		queues:  &s.reconciler.batches,
		wake:    s.wake(),
		now:     s.now,
	}
}

// write sends a request about the machine's VM and follows its task.
func (t tasks) write(what step, send func() (vcd.Task, error)) (phases.Result, error) {
	done, out := t.beginWrite(what)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	task, err := send()
	if err != nil {
		return t.failedRequest(what, err)
	}
	return t.start(what, task), nil
}

// beginWrite begins a request about the machine's VM, unless another request or task of this manager holds its vApp,
// because VCD would reject it. The caller must call done once VCD has responded and the task is followed.
func (t tasks) beginWrite(what step) (done func(), out phases.Result) {
	done, ok := t.queues.Write(t.inputs.batchKey(), t.inputs.key(), t.wake)
	if !ok {
		return nil, phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "%s: waiting for another task on vApp %s",
			what, t.inputs.vAppName())
	}
	t.vm.requireReadThisPass()
	return done, phases.Done
}

// start follows the task of a step, and returns the result of a running step.
func (t tasks) start(what step, task vcd.Task) phases.Result {
	t.follow(what, task)
	return running(what)
}

// started follows the task of a request, or handles its error. If the object no longer exists, the next pass searches
// for it again.
func (t tasks) started(what step, task vcd.Task, err error) (phases.Result, error) {
	switch {
	case errors.Is(err, vcd.ErrNotFound):
		t.session.Invalidate(t.vdc, t.inputs.vAppName())
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "%s: the object was deleted in the meantime", what), nil
	case err != nil:
		return t.failedRequest(what, err)
	}
	return t.start(what, task), nil
}

func (t tasks) follow(what step, task vcd.Task) {
	t.session.Follow(t.keyOf(what), task, t.wake)
}

// followAll makes the machine, and every other machine whose VM a task creates, follow the task. The task holds the
// vApp until it ends.
func (t tasks) followAll(what step, task vcd.Task, machines []batch.Member) {
	for _, c := range machines {
		if c.Key != t.inputs.key() {
			c.Follow(string(what), task)
		}
	}
	key := t.keyOf(what)
	queue := t.inputs.batchKey()
	t.queues.Started(queue, func() bool {
		followed, ok := t.session.Task(key)
		return ok && followed.State == vcd.TaskRunning
	})
	t.session.Follow(key, task, func() {
		t.wake()
		t.queues.Ended(queue)
	})
}

// keyOf returns the key of a step's task in the session.
func (t tasks) keyOf(what step) string { return t.inputs.key() + "/" + string(what) }

func running(what step) phases.Result {
	return phases.Wait(intervals.Task, infrav1.TaskRunningReason, "%s: waiting for VCD", what)
}

// isRunning reports whether the task of a step is running, or has ended but is not settled yet.
func (t tasks) isRunning(what step) bool {
	_, ok := t.session.Task(t.keyOf(what))
	return ok
}

// settle returns why the caller must wait for a step that was started earlier, or [phases.Done]. ended reports whether
// its task succeeded since the last call.
func (t tasks) settle(what step) (out phases.Result, ended bool) {
	key := t.keyOf(what)
	task, ok := t.session.Task(key)
	if !ok {
		return t.failing(what), false
	}
	if task.State == vcd.TaskRunning {
		return running(what), false
	}
	t.vm.requireReadThisPass()
	switch task.State {
	case vcd.TaskFailed:
		t.session.Forget(key)
		t.forget(what)
		return t.failed(what, problems.OfTask(task, string(what))), false
	case vcd.TaskRunning, vcd.TaskSucceeded, vcd.TaskUnknown:
	}
	t.session.Forget(key)
	t.session.InvalidateBefore(t.vdc, t.inputs.vAppName(), task.Noticed)
	if task.State == vcd.TaskUnknown {
		t.vm.requireReadNextPass() // Its result is unknown: read the VM.
		return phases.Done, false
	}
	t.backoff.succeeded(what)
	return phases.Done, true
}

// startsNothing reports whether a request certainly started no task, because it was not sent, or because VCD was busy or
// throttled it.
func startsNothing(err error) bool {
	return errors.Is(err, vcd.ErrLater) || errors.Is(err, vcd.ErrBusy) || errors.Is(err, vcd.ErrThrottled)
}

// failedRequest converts the failure of a request to a result. The delay increases with each failure if VCD would only
// reject the request again. The known state is discarded: VCD may have accepted the request and only the response was
// lost, or the state was outdated.
func (t tasks) failedRequest(what step, err error) (phases.Result, error) {
	if errors.Is(err, vcd.ErrLater) {
		return phases.Done, err // Nothing was requested.
	}
	t.forget(what)
	out, err := problems.OfWrite(err, string(what))
	if err == nil && out.IsProblem() && !out.IsUnknown() {
		out = t.failed(what, out)
	}
	return out, err
}

func (t tasks) failed(what step, out phases.Result) phases.Result {
	return t.backoff.failed(what, out, t.now(), settings.MachineSpec(t.inputs.vcdMachine))
}

func (t tasks) failing(what step) phases.Result {
	return t.backoff.failing(what, t.now(), settings.MachineSpec(t.inputs.vcdMachine))
}

// forget makes the next pass observe the VM again after a failed step. It also refreshes lookups if the step creates
// VMs: an object may have been replaced in VCD by another with the same name.
func (t tasks) forget(what step) {
	t.vm.requireReadNextPass()
	t.session.Invalidate(t.vdc, t.inputs.vAppName())
	if creates(what) {
		t.session.Refresh()
	}
}
