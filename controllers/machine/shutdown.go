// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	defaultShutdownTimeout = 60 * time.Second
	// cancelRetry is the interval between requests to cancel a shutdown that takes too long.
	cancelRetry = 30 * time.Second
)

// A cancellation is the last request to cancel a shutdown that took too long.
type cancellation struct {
	last    time.Time // time of the request; zero: no request
	refused bool      // VCD rejected it
}

// shutdown shuts down the guest before the VM is deleted or powered off for a change.
type shutdown struct {
	session      *session.Session
	inputs       *inputs
	requestedAt  **metav1.Time // recorded time of the request
	tasks        tasks
	cancellation *cancellation
	now          func() time.Time
}

func newShutdown(s *scope, requestedAt **metav1.Time) shutdown {
	return shutdown{
		session:      s.session,
		inputs:       &s.inputs,
		requestedAt:  requestedAt,
		tasks:        newTasks(s),
		cancellation: &s.state.cancellation,
		now:          s.now,
	}
}

// settleTask waits for the task of the shutdown while the guest has time left.
func (s shutdown) settleTask() phases.Result {
	out, _ := s.tasks.settle(stepShutdown)
	left, _ := s.left()
	if out.Reason != infrav1.TaskRunningReason || left <= 0 {
		return phases.Done // The caller reads the VM again.
	}
	out.After = min(out.After, left)
	return out
}

// ask requests a shutdown of the guest once and waits for its end until the timeout. If the VM must not be powered off,
// requestRepeatedly does so instead.
func (s shutdown) ask(ctx context.Context, vm *vcd.VM) (phases.Result, error) {
	switch {
	case s.isSoft():
		return s.requestRepeatedly(ctx, vm)
	case s.timeout() == 0:
		return phases.Done, nil
	}
	if left, requested := s.left(); requested {
		if left <= 0 || s.tasks.failing(stepShutdown) != phases.Done {
			return phases.Done, nil
		}
		return phases.Wait(min(left, intervals.Busy), infrav1.ShuttingDownReason,
			"Waiting for the guest to shut down"), nil
	}
	out, refused, err := s.request(ctx, vm)
	if refused != "" {
		return phases.Done, nil // No VMware Tools run in the guest, or the right is missing: power off the VM.
	}
	return out, err
}

// requestRepeatedly requests a shutdown of the guest, and again whenever a request has ended without effect after the
// timeout. It never gives up, because the VM must not be powered off.
func (s shutdown) requestRepeatedly(ctx context.Context, vm *vcd.VM) (phases.Result, error) {
	if out := s.tasks.failing(stepShutdown); out != phases.Done {
		return phases.Fail(out.After, infrav1.GuestNotShutDownReason, "The guest of VM %s does not shut down: %s. %s",
			vm.Name, out.Message, endOfWait), nil
	}
	if left, requested := s.left(); requested && left > 0 {
		return phases.Wait(min(left, intervals.Busy), infrav1.ShuttingDownReason,
			"Waiting for the guest to shut down"), nil
	}
	out, refused, err := s.request(ctx, vm)
	if refused != "" {
		return s.tasks.failed(stepShutdown, phases.Fail(intervals.Remedy, infrav1.GuestNotShutDownReason,
			"VCD rejects the request: %s", refused)), nil
	}
	return out, err
}

// endOfWait is the remedy for a guest that does not shut down although its VM must not be powered off.
const endOfWait = "Shut it down in VCD or in the guest, or set spec.powerOffMode of the VCDMachine to TrySoft to power off the VM"

// request requests a shutdown of the guest. refused is the reason if VCD rejects the request, otherwise empty.
func (s shutdown) request(ctx context.Context, vm *vcd.VM) (out phases.Result, refused string, err error) {
	done, out := s.tasks.beginWrite(stepShutdown)
	if out != phases.Done {
		return out, "", nil
	}
	defer done()
	ctrl.LoggerFrom(ctx).Info("Shutting down guest", "vmID", vm.ID)
	task, err := s.session.Shutdown(ctx, vm.ID)
	switch {
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		// The guest has no running VMware Tools, or the right is missing.
		return phases.Done, err.Error(), nil
	case err != nil:
		out, err = s.tasks.failedRequest(stepShutdown, err)
		return out, "", err
	}
	*s.requestedAt = timeOf(s.now()) // Each request has its own timeout.
	return s.tasks.start(stepShutdown, task), "", nil
}

// suspended returns a problem if the VM is suspended and must not be powered off, because its guest cannot shut down.
func (s shutdown) suspended(vm *vcd.VM) phases.Result {
	if vm.Status != vcd.StatusSuspended || !s.isSoft() {
		return phases.Done
	}
	return phases.Fail(intervals.Busy, infrav1.GuestNotShutDownReason, "VM %s is suspended, so its guest cannot shut down. Resume it, or set spec.powerOffMode of the VCDMachine to TrySoft to power it off", vm.Name)
}

// await waits for the tasks of a VM before its deletion. It cancels a shutdown that takes too long, because VCD rejects
// a power-off until the shutdown ends. If the VM must not be powered off, await only reports the slow shutdown.
func (s shutdown) await(ctx context.Context, vm *vcd.VM) (phases.Result, error) {
	left, requested := s.left()
	for _, t := range vm.Tasks {
		switch {
		case !t.ShutsDown():
		case !requested: // The shutdown was requested, but the response was lost.
			*s.requestedAt = timeOf(s.now())
		case left > 0:
		case s.isSoft():
			return phases.Fail(intervals.Busy, infrav1.GuestNotShutDownReason,
				"The guest of VM %s has not shut down in %s. %s", vm.Name, s.timeout(), endOfWait), nil
		default:
			return s.cancel(ctx, vm, t)
		}
	}
	return phases.Wait(intervals.Busy, infrav1.TaskRunningReason, "Waiting for another task on VM %s", vm.Name), nil
}

// cancel requests the cancellation of a shutdown, at intervals of at least cancelRetry.
func (s shutdown) cancel(ctx context.Context, vm *vcd.VM, t vcd.Task) (phases.Result, error) {
	if s.now().Sub(s.cancellation.last) >= cancelRetry {
		s.cancellation.last = s.now()
		s.cancellation.refused = false
		ctrl.LoggerFrom(ctx).Info("Cancelling the shutdown of the guest after a timeout", "vmID", vm.ID, "task",
			t.ID)
		err := s.session.CancelTask(ctx, t.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
			s.cancellation.refused = true // The task may have just ended.
		case err != nil:
			return problems.OfWrite(err, "Cancelling the shutdown of the guest")
		}
	}
	if s.cancellation.refused {
		return phases.Fail(intervals.Busy, infrav1.ShuttingDownReason, "The guest of VM %s did not shut down in time, and VCD did not cancel the task: cancel it in VCD", vm.Name), nil
	}
	return phases.Wait(intervals.Busy, infrav1.ShuttingDownReason,
		"The guest did not shut down in time: waiting for VCD to cancel the task"), nil
}

// left returns the time that remains for the guest to shut down, negative after the timeout. It returns false if no
// shutdown was requested. The time counts from a record on the object, so that a restart does not extend it.
func (s shutdown) left() (time.Duration, bool) {
	if *s.requestedAt == nil {
		return 0, false
	}
	if now := s.now(); (*s.requestedAt).After(now.Add(time.Second)) { // The clock was set back.
		*s.requestedAt = timeOf(now)
	}
	return (*s.requestedAt).Add(s.timeout()).Sub(s.now()), true
}

// isSoft reports whether the VM must not be powered off while its guest runs.
func (s shutdown) isSoft() bool { return s.inputs.vcdMachine.Spec.PowerOffMode == infrav1.PowerOffSoft }

// timeout returns how long the guest may take to shut down. 0 means that no shutdown is requested.
func (s shutdown) timeout() time.Duration {
	if s.inputs.vcdMachine.Spec.PowerOffMode == infrav1.PowerOffHard {
		return 0
	}
	if seconds := s.inputs.vcdMachine.Spec.ShutdownTimeoutSeconds; seconds != nil {
		return time.Duration(ptr.Deref(seconds, 0)) * time.Second
	}
	return defaultShutdownTimeout
}
