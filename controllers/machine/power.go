// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Power switches the VM on.
type power struct{ scope *scope }

// reconcilePower makes sure that the VM runs: for the first time always, later if that is wished.
func reconcilePower(ctx context.Context, s *scope) (phases.Outcome, error) {
	out, err := s.power.ensure(ctx)
	return s.power.shownOff(out), err
}

// shownOff returns the outcome of a VM that VCD shows powered off and that it refuses to read or to power on: VCD was
// asked, so this is no lack of access that hides the state of the VM.
func (s power) shownOff(out phases.Outcome) phases.Outcome {
	if out.Reason != infrav1.ForbiddenReason || s.scope.vm.row == nil || s.scope.vm.row.Status != vcd.StatusPoweredOff {
		return out
	}
	out.Access = false
	out.Message = "The VM is powered off: " + out.Message
	return out
}

func (s power) ensure(ctx context.Context) (phases.Outcome, error) {
	out, ended := s.scope.settle(stepPowerOn)
	if out != phases.Done {
		return s.withRule(out), nil
	}
	if ended {
		vmPoweredOn(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine)
		s.isOn()
	}
	status := s.status()
	switch {
	case status == vcd.StatusPoweredOn:
		// Stored before anything else is built on it.
		return phases.Done, s.scope.noteOnce(ctx, infrav1.PoweredOnAnnotation, s.scope.now().UTC().Format(time.RFC3339))
	case s.scope.vm.row != nil && s.scope.vm.row.Busy:
		s.scope.session.Invalidate(s.scope.placement.vdc) // The next query shows its end.
		return phases.Wait(session.BusyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s",
			s.scope.vm.row.Name), nil
	case !s.scope.inputs.cameUp():
		return s.onFirst(ctx)
	case status == vcd.StatusPoweredOff && s.scope.inputs.vcdMachine.Spec.PowerOffPolicy == infrav1.PowerOffPowerOn &&
		!s.endsSoon():
		return s.onAgain(ctx)
	}
	return powerProblem(status), nil
}

// apart returns the group of machines whose VMs must run on different hosts; no name if the machine is in none.
func (s power) apart() affinity.Group {
	if s.scope.inputs.vcdCluster == nil || session.ExternallyManaged(s.scope.inputs.vcdCluster) {
		return affinity.Group{}
	}
	group := affinity.GroupOf(s.scope.inputs.vcdCluster.Spec.AntiAffinity, s.scope.inputs.vcdMachine)
	if group.Policy != infrav1.AntiAffinityRequired {
		return affinity.Group{}
	}
	return group
}

// withRule adds what may be the cause when VCD does not power on a VM that must have a host of its own.
func (s power) withRule(out phases.Outcome) phases.Outcome {
	if group := s.apart(); out.Problem && group.Name != "" {
		out.Message += ". spec.antiAffinity of the VCDCluster is Required for group " + group.Name + ", so each of " +
			"its " +
			"VMs needs a host of its own: add hosts, or set Preferred"
	}
	return out
}

// onFirst powers on a VM that never ran. It was read when it was written to, and is read again only if that failed. A
// VM that must have a host of its own is in its rule before: VCD checks rules when it powers on.
func (s power) onFirst(ctx context.Context) (phases.Outcome, error) {
	r := s.scope.reconciler
	wake := r.wakeUps.ForObject(s.scope.inputs.vcdMachine)
	if group := s.apart(); group.Name != "" &&
		!r.Apart.Has(s.scope.inputs.vcdCluster.UID, s.scope.inputs.vmID(), wake) {
		return phases.Wait(session.TaskPoll, infrav1.WaitingForAffinityRuleReason,
			"Waiting for the VM to be in the anti-affinity rule of group %s: see %s of the VCDCluster", group.Name,
			infrav1.AntiAffinityReadyCondition), nil
	}
	if out, err := s.scope.observer.ensureOwned(ctx); err != nil || out != phases.Done {
		return out, err
	}
	return s.on(ctx)
}

func (s power) on(ctx context.Context) (phases.Outcome, error) {
	return s.scope.write(stepPowerOn, func() (vcd.Task, error) { return s.powerOn(ctx) })
}

func (s power) powerOn(ctx context.Context) (vcd.Task, error) {
	ctrl.LoggerFrom(ctx).Info("Powering on VM", "vm", s.scope.inputs.vmID())
	return s.scope.session.PowerOn(ctx, s.scope.inputs.vmID())
}

// endsSoon reports whether the machine is about to be deleted: its VM stays off.
func (s power) endsSoon() bool {
	return s.scope.inputs.machine != nil && !s.scope.inputs.machine.DeletionTimestamp.IsZero() || s.scope.inputs.cluster != nil &&
		!s.scope.inputs.cluster.DeletionTimestamp.IsZero() ||
		s.scope.inputs.vcdMachine.Annotations[infrav1.ShutdownRequestedAnnotation] != ""
}

// onAgain powers on a VM that ran before. How often it did so is stored before the request, so that neither a restart
// nor a lost answer makes it more.
func (s power) onAgain(ctx context.Context) (phases.Outcome, error) {
	now := s.scope.now()
	past := parseRevivals(s.scope.inputs.vcdMachine.Annotations[infrav1.PoweredOnAgainAnnotation])
	if left := past.wait(now); left > 0 {
		out := phases.Fail(min(left, session.RemedyPoll), infrav1.VMPoweredOffReason,
			"The VM does not stay on: it was powered on again %d times in a row, and will be later, too; check its "+
				"guest and VCD's tasks, or set spec.powerOffPolicy to Report", past.count)
		return out, nil
	}
	if _, out, err := s.scope.observer.owned(ctx); err != nil || out != phases.Done {
		return out, err
	}
	done, out := s.scope.beginWrite(stepPowerOn)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	next := past.next(now)
	notes.Set(s.scope.inputs.vcdMachine, infrav1.PoweredOnAgainAnnotation, next.String())
	// What the guest changed is lost when its VM is powered off: bootstrap data may be back.
	delete(s.scope.inputs.vcdMachine.Annotations, infrav1.BootstrapDataRemovedAnnotation)
	if err := s.scope.save(ctx); err != nil {
		return phases.Done, err
	}
	vmPoweredOnAgain(s.scope.reconciler.Recorder, s.scope.inputs.vcdMachine, next.count)
	task, err := s.powerOn(ctx)
	if err != nil {
		return s.scope.refuse(stepPowerOn, err)
	}
	return s.scope.start(stepPowerOn, task), nil
}

const (
	firstRevival = time.Minute
	// maxRevivals in a row are followed by a pause of revivalMemory. A VM that stayed on for so long begins anew.
	maxRevivals   = 5
	revivalMemory = time.Hour
)

// revivals is how often in a row a VM was powered on again, and when last.
type revivals struct {
	count int
	last  time.Time
}

// parseRevivals reads what [revivals.String] writes; nothing usable is none.
func parseRevivals(stored string) revivals {
	count, at, _ := strings.Cut(stored, " ")
	n, err := strconv.Atoi(count)
	last, errLast := time.Parse(time.RFC3339, at)
	if err != nil || errLast != nil || n < 0 {
		return revivals{}
	}
	return revivals{n, last}
}

// String implements fmt.Stringer.
func (r revivals) String() string {
	return fmt.Sprintf("%d %s", r.count, r.last.UTC().Format(time.RFC3339))
}

// wait returns how long a VM is left off before it is powered on once more.
func (r revivals) wait(now time.Time) time.Duration {
	pause := revivalMemory
	switch {
	case r.count == 0 || r.last.After(now):
		return 0
	case r.count < maxRevivals:
		pause = firstRevival << (r.count - 1)
	}
	return max(0, r.last.Add(pause).Sub(now))
}

// next counts one more. What is long ago does not count.
func (r revivals) next(now time.Time) revivals {
	if now.Sub(r.last) >= revivalMemory {
		r.count = 0
	}
	return revivals{r.count + 1, now}
}

// isOn notes what a successful task says about the VM.
func (s power) isOn() {
	if vm := s.scope.vm.now(); vm != nil {
		vm.Status = vcd.StatusPoweredOn
	}
	if s.scope.vm.row != nil {
		s.scope.vm.row.Status = vcd.StatusPoweredOn
	}
}

func (s power) status() vcd.Status {
	if s.scope.vm.row != nil {
		return s.scope.vm.row.Status
	}
	return s.scope.vm.now().Status
}

// powerProblem says that the VM of a machine that ran before does not run.
func powerProblem(status vcd.Status) phases.Outcome {
	switch status {
	case vcd.StatusPoweredOff:
		return phases.Fail(session.RemedyPoll, infrav1.VMPoweredOffReason,
			"The VM is powered off: power it on in VCD, or set spec.powerOffPolicy to PowerOn")
	case vcd.StatusSuspended, vcd.StatusPartiallySuspended:
		return phases.Fail(session.RemedyPoll, infrav1.VMSuspendedReason, "The VM is suspended: resume it in VCD")
	case vcd.StatusFailedCreation, vcd.StatusResolved, vcd.StatusWaitingForInput, vcd.StatusInconsistent,
		vcd.StatusMixed, vcd.StatusPoweredOn:
		return phases.Fail(session.RemedyPoll, infrav1.VMInconsistentReason,
			"VCD reports state %d for the VM: check it in VCD", status)
	case vcd.StatusUnresolved, vcd.StatusUnknown, vcd.StatusUnrecognized:
	}
	return phases.Unsure(session.RemedyPoll, infrav1.VMInconsistentReason,
		"VCD does not know the state of the VM: check that it reaches its vCenter")
}

const (
	defaultShutdownTimeout = 60 * time.Second
	// cancelRetry is how often VCD is asked to give up a shutdown that took too long.
	cancelRetry = 30 * time.Second
)

// A cancellation is the last request to VCD to give up a shutdown that took too long.
type cancellation struct {
	last    time.Time
	refused bool
}

// Shutdown ends the guest before the VM is deleted.
type shutdown struct {
	scope        *scope
	cancellation *cancellation
}

// left returns how long the guest may still take to shut down. It reports false if it was not asked to. The time is
// counted from a note on the object, so that a restart does not start it again.
func (s shutdown) left() (time.Duration, bool) {
	asked, err := time.Parse(time.RFC3339, s.scope.inputs.vcdMachine.Annotations[infrav1.ShutdownRequestedAnnotation])
	if err != nil {
		return 0, false
	}
	if now := s.scope.now(); asked.After(now.Add(time.Second)) { // The clock was put back.
		asked = now
		notes.Set(s.scope.inputs.vcdMachine, infrav1.ShutdownRequestedAnnotation, now.UTC().Format(time.RFC3339))
	}
	return asked.Add(s.timeout()).Sub(s.scope.now()), true
}

func (s shutdown) timeout() time.Duration {
	if seconds := s.scope.inputs.vcdMachine.Spec.ShutdownTimeoutSeconds; seconds != nil {
		return time.Duration(ptr.Deref(seconds, 0)) * time.Second
	}
	return defaultShutdownTimeout
}

// ask asks the guest to shut down, once, and waits for it until the time is up.
func (s shutdown) ask(ctx context.Context, vm *vcd.VM) (phases.Outcome, error) {
	m := s.scope.inputs.vcdMachine
	if s.timeout() == 0 {
		return phases.Done, nil
	}
	if left, asked := s.left(); asked {
		if left <= 0 || s.scope.failing(stepShutdown) != phases.Done {
			return phases.Done, nil
		}
		return phases.Wait(min(left, session.BusyPoll), infrav1.ShuttingDownReason,
			"Waiting for the guest to shut down"), nil
	}
	done, out := s.scope.beginWrite(stepShutdown)
	if out != phases.Done {
		return out, nil
	}
	defer done()
	ctrl.LoggerFrom(ctx).Info("Shutting down guest", "vm", vm.ID)
	task, err := s.scope.session.Shutdown(ctx, vm.ID)
	switch {
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		return phases.Done, nil // No VMware Tools run in the guest, or the right is missing: power it off.
	case err != nil:
		return s.scope.refuse(stepShutdown, err)
	}
	notes.Set(m, infrav1.ShutdownRequestedAnnotation, s.scope.now().UTC().Format(time.RFC3339))
	return s.scope.start(stepShutdown, task), nil
}

// settleTask waits for the task of the shutdown while the guest may take its time.
func (s shutdown) settleTask() phases.Outcome {
	out, _ := s.scope.settle(stepShutdown)
	left, _ := s.left()
	if out.Reason != infrav1.TaskRunningReason || left <= 0 {
		return phases.Done // What is there is looked at afresh.
	}
	out.After = min(out.After, left)
	return out
}

// await waits for the tasks of a VM before its deletion. A shutdown that takes too long is cancelled: VCD refuses to
// power off the VM until it ends.
func (s shutdown) await(ctx context.Context, vm *vcd.VM) (phases.Outcome, error) {
	left, asked := s.left()
	for _, t := range vm.Tasks {
		switch {
		case !t.ShutsDown():
		case !asked: // It was asked for, and the answer got lost.
			notes.Set(s.scope.inputs.vcdMachine, infrav1.ShutdownRequestedAnnotation, s.scope.now().UTC().Format(time.RFC3339))
		case left <= 0:
			return s.cancel(ctx, vm, t)
		}
	}
	return phases.Wait(session.BusyPoll, infrav1.TaskRunningReason, "Waiting for another task on VM %s", vm.Name), nil
}

func (s shutdown) cancel(ctx context.Context, vm *vcd.VM, t vcd.Task) (phases.Outcome, error) {
	if s.scope.now().Sub(s.cancellation.last) >= cancelRetry {
		s.cancellation.last = s.scope.now()
		s.cancellation.refused = false
		ctrl.LoggerFrom(ctx).Info("Cancelling the shutdown of the guest, which takes too long", "vm", vm.ID, "task",
			t.ID)
		err := s.scope.session.CancelTask(ctx, t.ID)
		switch {
		case errors.Is(err, vcd.ErrForbidden), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
			s.cancellation.refused = true // It may have ended just now.
		case err != nil:
			return session.Refusal(err, "Cancelling the shutdown of the guest")
		}
	}
	if s.cancellation.refused {
		return phases.Fail(session.BusyPoll, infrav1.ShuttingDownReason, "The guest of VM %s did not shut down in "+
			"time, and VCD does not cancel the task that waits for it: cancel it in VCD", vm.Name), nil
	}
	return phases.Wait(session.BusyPoll, infrav1.ShuttingDownReason,
		"The guest did not shut down in time: waiting for VCD to give it up"), nil
}
