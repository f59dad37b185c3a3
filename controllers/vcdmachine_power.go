package controllers

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// reconcilePower makes sure that the VM runs: for the first time always, later if that is wished.
func reconcilePower(ctx context.Context, s *machineScope) (outcome, error) {
	const doing = "Powering on the VM"
	out, ended := s.settle(stepPowerOn, doing)
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
	case s.cameUp() && (status != vcd.StatusPoweredOff || s.vcdMachine.Spec.PowerState != infrav1.PowerStatePowerOn):
		return powerProblem(status), nil
	}
	ctrl.LoggerFrom(ctx).Info("Powering on VM", "vm", s.vmID())
	task, err := s.session.PowerOn(ctx, s.vmID())
	if err != nil {
		return s.refuse(stepPowerOn, err, doing)
	}
	return s.start(stepPowerOn, task, doing), nil
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
