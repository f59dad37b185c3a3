package controllers

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	defaultShutdownTimeout = 60 * time.Second
	// cancelRetry is how often VCD is asked to give up a shutdown that took too long.
	cancelRetry = 30 * time.Second
)

// shutdownLeft returns how long the guest may still take to shut down. It reports false if it was not asked to. The time is counted
// from a note on the object, so that a restart does not start it again.
func (s *machineScope) shutdownLeft() (time.Duration, bool) {
	asked, err := time.Parse(time.RFC3339, s.vcdMachine.Annotations[infrav1.ShutdownRequestedAnnotation])
	if err != nil {
		return 0, false
	}
	if now := s.now(); asked.After(now.Add(time.Second)) { // The clock was put back.
		asked = now
		annotate(s.vcdMachine, infrav1.ShutdownRequestedAnnotation, now.UTC().Format(time.RFC3339))
	}
	return asked.Add(s.shutdownTimeout()).Sub(s.now()), true
}

func (s *machineScope) shutdownTimeout() time.Duration {
	if seconds := s.vcdMachine.Spec.ShutdownTimeoutSeconds; seconds != nil {
		return time.Duration(ptr.Deref(seconds, 0)) * time.Second
	}
	return defaultShutdownTimeout
}

// shutDown asks the guest to shut down, once, and waits for it until the time is up.
func (s *machineScope) shutDown(ctx context.Context, vm *vcd.VM) (outcome, error) {
	m := s.vcdMachine
	if s.shutdownTimeout() == 0 {
		return done, nil
	}
	if left, asked := s.shutdownLeft(); asked {
		if left <= 0 || s.memory.failing(stepShutdown, s.now(), m.Generation) != done {
			return done, nil
		}
		return wait(min(left, busyPoll), infrav1.ShuttingDownReason, "Waiting for the guest to shut down"), nil
	}
	ctrl.LoggerFrom(ctx).Info("Shutting down guest", "vm", vm.ID)
	task, err := s.session.Shutdown(ctx, vm.ID)
	switch {
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		return done, nil // No VMware Tools run in the guest, or the right is missing: power it off.
	case err != nil:
		return s.refuse(stepShutdown, err, "Shutting down the guest")
	}
	annotate(m, infrav1.ShutdownRequestedAnnotation, s.now().UTC().Format(time.RFC3339))
	return s.start(stepShutdown, task, "Shutting down the guest"), nil
}

// settleShutdown waits for the task of the shutdown while the guest may take its time.
func (s *machineScope) settleShutdown() outcome {
	out, _ := s.settle(stepShutdown, "Shutting down the guest")
	left, _ := s.shutdownLeft()
	if out.reason != infrav1.TaskRunningReason || left <= 0 {
		return done // What is there is looked at afresh.
	}
	out.after = min(out.after, left)
	return out
}

// waitForVM waits for what holds a VM that is to be deleted. A shutdown that takes too long is given up: until it has ended, VCD
// lets nobody power the VM off.
func (s *machineScope) waitForVM(ctx context.Context, vm *vcd.VM) (outcome, error) {
	left, asked := s.shutdownLeft()
	for _, t := range vm.Tasks {
		switch {
		case !t.ShutsDown():
		case !asked: // It was asked for, and the answer got lost.
			annotate(s.vcdMachine, infrav1.ShutdownRequestedAnnotation, s.now().UTC().Format(time.RFC3339))
		case left <= 0:
			return s.giveUpShutdown(ctx, vm, t)
		}
	}
	return wait(busyPoll, infrav1.TaskRunningReason, "Waiting for another task on VM %s", vm.Name), nil
}

func (s *machineScope) giveUpShutdown(ctx context.Context, vm *vcd.VM, t vcd.Task) (outcome, error) {
	if s.now().Sub(s.memory.cancelled) >= cancelRetry {
		s.memory.cancelled, s.memory.cancelRefused = s.now(), false
		ctrl.LoggerFrom(ctx).Info("Cancelling the shutdown of the guest, which takes too long", "vm", vm.ID, "task", t.ID)
		err := s.session.CancelTask(ctx, t.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
			s.memory.cancelRefused = true // It may have ended just now.
		case err != nil:
			return refusal(err, "Cancelling the shutdown of the guest")
		}
	}
	if s.memory.cancelRefused {
		return fail(busyPoll, infrav1.ShuttingDownReason, "The guest of VM %s did not shut down in time, and VCD does not cancel the task that waits for it: cancel it in VCD", vm.Name), nil
	}
	return wait(busyPoll, infrav1.ShuttingDownReason, "The guest did not shut down in time: waiting for VCD to give it up"), nil
}
