// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"maps"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A step is a request to VCD that ends with a task: what it does, as conditions say it.
type step string

const (
	stepCompose  step = "Creating the vApp with its first VMs"
	stepConnect  step = "Connecting networks to the vApp"
	stepAdd      step = "Creating the VM"
	stepCleanUp  step = "Removing what a failed creation left behind"
	stepHardware step = "Setting CPUs, memory, hardware version and additional disks of the VM"
	stepInject   step = "Writing bootstrap data" // and the size of the disk
	// stepConsolidate gives a linked clone disks of its own.
	stepConsolidate step = "Consolidating the VM"

	stepPowerOn    step = "Powering on the VM"
	stepGrow       step = "Growing the disk"
	stepClear      step = "Removing bootstrap data"
	stepMetadata   step = "Writing metadata of the VM"
	stepShutdown   step = "Shutting down the guest"
	stepPowerOff   step = "Powering off the VM"
	stepDetach     step = "Detaching an independent disk, which its owner or an administrator of the organization may"
	stepDelete     step = "Deleting the VM"
	stepDeleteVApp step = "Deleting the machine's vApp"
)

// stepsOnVM are those on a VM that is being created.
var stepsOnVM = []step{stepHardware, stepInject, stepConsolidate, stepPowerOn, stepGrow}

// lastRetry is the longest delay after a failure. It doubles each time.
const lastRetry = 10 * time.Minute

// A backoff delays each step that failed. The zero value delays none.
type backoff struct{ byStep map[step]delay }

type delay struct {
	out        phases.Outcome // why the step failed
	count      int
	until      time.Time
	generation int64
}

// failed delays a step that failed. A change of the spec ends the delay.
func (b *backoff) failed(what step, out phases.Outcome, now time.Time, generation int64) phases.Outcome {
	count := 0
	if last := b.byStep[what]; last.generation == generation {
		count = last.count
	}
	if b.byStep == nil {
		b.byStep = map[step]delay{}
	}
	out.After = min(session.FirstRetry<<min(count, 10), lastRetry)
	b.byStep[what] = delay{out: out, count: count + 1, until: now.Add(out.After), generation: generation}
	return out
}

// failing returns why a step failed while it is delayed.
func (b *backoff) failing(what step, now time.Time, generation int64) phases.Outcome {
	last, ok := b.byStep[what]
	if !ok || last.generation != generation || !now.Before(last.until) {
		return phases.Done
	}
	last.out.After = last.until.Sub(now)
	return last.out
}

// succeeded ends the delay of a step, and of those that did the same in another way.
func (b *backoff) succeeded(what step) {
	delete(b.byStep, what)
	if creates(what) {
		maps.DeleteFunc(b.byStep, func(other step, _ delay) bool { return creates(other) })
	}
}

// creating reports whether a request that was to create the VM failed.
func (b *backoff) creating() bool {
	_, added := b.byStep[stepAdd]
	_, composed := b.byStep[stepCompose]
	return added || composed
}

// creates reports whether a step creates the VM.
func creates(what step) bool { return what == stepAdd || what == stepCompose }

func (s *scope) failed(what step, out phases.Outcome) phases.Outcome {
	return s.state.backoff.failed(what, out, s.now(), s.inputs.vcdMachine.Generation)
}

func (s *scope) failing(what step) phases.Outcome {
	return s.state.backoff.failing(what, s.now(), s.inputs.vcdMachine.Generation)
}

// start follows the task of a step and returns the outcome of having started it.
func (s *scope) start(what step, t vcd.Task) phases.Outcome {
	s.follow(what, t)
	return running(what)
}

// write sends a request about the machine's VM and follows its task.
func (s *scope) write(what step, send func() (vcd.Task, error)) (phases.Outcome, error) {
	done, out := s.beginWrite(what)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	task, err := send()
	if err != nil {
		return s.refuse(what, err)
	}
	return s.start(what, task), nil
}

// beginWrite begins a request about the machine's VM, unless a request or task of ours holds its vApp: VCD would refuse
// it. Call done once VCD has answered and the task is followed.
func (s *scope) beginWrite(what step) (done func(), out phases.Outcome) {
	done, ok := s.reconciler.batches.Write(s.inputs.queueName(), s.inputs.key(), s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine))
	if !ok {
		return nil, phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "%s: waiting for another task on vApp %s",
			what, s.inputs.vAppName())
	}
	return done, phases.Done
}

func (s *scope) follow(what step, t vcd.Task) {
	s.session.Follow(s.inputs.key()+"/"+string(what), t, s.reconciler.wakeUps.ForObject(s.inputs.vcdMachine))
}

func running(what step) phases.Outcome {
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "%s: waiting for VCD", what)
}

// isRunning reports whether VCD is at a step, or its end was not settled yet.
func (s *scope) isRunning(what step) bool {
	_, ok := s.session.Task(s.inputs.key() + "/" + string(what))
	return ok
}

// settle returns why a step that was started earlier has to be waited for; done if it has not. ended reports that its
// task succeeded since the last call.
func (s *scope) settle(what step) (out phases.Outcome, ended bool) {
	key := s.inputs.key() + "/" + string(what)
	t, ok := s.session.Task(key)
	if !ok {
		return s.failing(what), false
	}
	switch t.State {
	case vcd.TaskRunning:
		return running(what), false
	case vcd.TaskFailed:
		s.session.Forget(key)
		s.forget(what)
		return s.failed(what, session.TaskFailure(t, string(what))), false
	case vcd.TaskSucceeded, vcd.TaskUnknown:
	}
	s.session.Forget(key)
	s.session.Invalidate(s.placement.vdc)
	if t.State == vcd.TaskUnknown {
		s.vm.forget() // Its result is unknown: read the VM.
		return phases.Done, false
	}
	s.state.backoff.succeeded(what)
	return phases.Done, true
}

// refuse maps the failure of a request to an outcome, with a longer delay each time if VCD would only refuse again.
// VCD may have accepted the request and only its answer was lost, or what is known is outdated: so it is forgotten.
func (s *scope) refuse(what step, err error) (phases.Outcome, error) {
	if errors.Is(err, vcd.ErrLater) {
		return phases.Done, err // Nothing was requested.
	}
	s.forget(what)
	out, err := session.Refusal(err, string(what))
	if err == nil && out.Problem && !out.Unknown {
		out = s.failed(what, out)
	}
	return out, err
}

// forget makes the next pass observe the VM again, after a step that failed. What a VM was to be created from may have
// been replaced in VCD by something of the same name.
func (s *scope) forget(what step) {
	s.vm.forget()
	s.session.Invalidate(s.placement.vdc)
	if creates(what) {
		s.session.Refresh()
	}
}
