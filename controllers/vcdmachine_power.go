package controllers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const poweringOn = "Powering on the VM"

// reconcilePower makes sure that the VM runs: for the first time always, later if that is wished.
func reconcilePower(ctx context.Context, s *machineScope) (outcome, error) {
	out, ended := s.settle(stepPowerOn, poweringOn)
	if out != done {
		return out, nil
	}
	if ended {
		vmPoweredOn(s.Recorder, s.vcdMachine)
		s.poweredOn()
	}
	status := s.powerStatus()
	switch {
	case status == vcd.StatusPoweredOn:
		// Stored before anything else is built on it.
		return done, s.noteOnce(ctx, infrav1.PoweredOnAnnotation, s.now().UTC().Format(time.RFC3339))
	case s.record != nil && s.record.Busy:
		s.session.Invalidate(s.placement.vdc) // The next look shall see the end of it.
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", s.record.Name), nil
	case !s.cameUp():
		return s.powerOn(ctx)
	case status == vcd.StatusPoweredOff && s.vcdMachine.Spec.PowerState == infrav1.PowerStatePowerOn && !s.endsSoon():
		return s.powerOnAgain(ctx)
	}
	return powerProblem(status), nil
}

func (s *machineScope) powerOn(ctx context.Context) (outcome, error) {
	ctrl.LoggerFrom(ctx).Info("Powering on VM", "vm", s.vmID())
	task, err := s.session.PowerOn(ctx, s.vmID())
	if err != nil {
		return s.refuse(stepPowerOn, err, poweringOn)
	}
	return s.start(stepPowerOn, task, poweringOn), nil
}

// endsSoon says whether the machine is about to be deleted: its VM may well be off, and stays so.
func (s *machineScope) endsSoon() bool {
	return s.machine != nil && !s.machine.DeletionTimestamp.IsZero() || s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero() ||
		s.vcdMachine.Annotations[infrav1.ShutdownRequestedAnnotation] != ""
}

// powerOnAgain powers on a VM that ran before and that somebody, or its guest, powered off. How often is stored before VCD is
// asked, so that neither a restart nor a lost answer makes it more.
func (s *machineScope) powerOnAgain(ctx context.Context) (outcome, error) {
	now := s.now()
	past := parseRevivals(s.vcdMachine.Annotations[infrav1.PoweredOnAgainAnnotation])
	if left := past.wait(now); left > 0 {
		out := fail(min(left, remedyPoll), infrav1.VMPoweredOffReason,
			"The VM does not stay on: it was powered on again %d times in a row, and will be later, too; look at its guest and at VCD's tasks, or set spec.powerState to Report", past.count)
		return out, nil
	}
	next := past.next(now)
	annotate(s.vcdMachine, infrav1.PoweredOnAgainAnnotation, next.String())
	if err := s.save(ctx); err != nil {
		return done, err
	}
	vmPoweredOnAgain(s.Recorder, s.vcdMachine, next.count)
	return s.powerOn(ctx)
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

// poweredOn notes what a successful task says about the VM.
func (s *machineScope) poweredOn() {
	if s.vm != nil {
		s.vm.Status = vcd.StatusPoweredOn
	}
	if s.record != nil {
		s.record.Status = vcd.StatusPoweredOn
	}
}

func (s *machineScope) powerStatus() vcd.Status {
	if s.record != nil {
		return s.record.Status
	}
	return s.vm.Status
}

// powerProblem says that the VM of a machine that ran before does not run.
func powerProblem(status vcd.Status) outcome {
	switch status {
	case vcd.StatusPoweredOff:
		return fail(remedyPoll, infrav1.VMPoweredOffReason, "The VM is powered off: power it on in VCD, or set spec.powerState to PowerOn")
	case vcd.StatusSuspended, vcd.StatusPartiallySuspended:
		return fail(remedyPoll, infrav1.VMSuspendedReason, "The VM is suspended: resume it in VCD")
	default:
		return fail(remedyPoll, infrav1.VMInconsistentReason, "VCD reports state %d for the VM: look at it in VCD", status)
	}
}
