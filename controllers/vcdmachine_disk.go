package controllers

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const growingDisk = "Growing the disk"

// growDisk takes the next step towards a first disk as large as wished. The VM keeps running; its guest has to grow the file
// system.
func (s *machineScope) growDisk(ctx context.Context, made *madeVM) (outcome, error) {
	out, ended := s.settle(stepGrow, growingDisk)
	if out != done {
		return out, nil
	}
	wished := diskMiB(s.vcdMachine)
	if ended {
		diskGrown(s.Recorder, s.vcdMachine, s.vcdMachine.Spec.DiskSize.String())
		if err := s.read(ctx); err != nil {
			return refusal(err, "Reading VM "+s.record.Name)
		}
	}
	switch {
	case wished <= made.DiskMiB:
		return done, nil
	case s.memory.full == nil && s.record.Busy:
		return s.awaitOtherTask(), nil
	case s.memory.full == nil:
		return unsure(remedyPoll, infrav1.VMUnverifiedReason, "The disk of VM %s could not be read yet, which is to grow", s.record.Name), nil
	}
	return s.growDiskTo(ctx, wished, made)
}

// growDiskTo asks for a first disk of a size, unless it has it.
func (s *machineScope) growDiskTo(ctx context.Context, wished int64, made *madeVM) (outcome, error) {
	vm := s.memory.full
	switch has := firstDisk(*vm); {
	case has.SizeMiB == wished:
		made.DiskMiB = wished
		s.recordMade(*made)
		return done, nil
	case has.SizeMiB > wished || has.ID == "":
		return done, nil // Reported as a difference.
	case s.record.Busy:
		return s.awaitOtherTask(), nil
	}
	ctrl.LoggerFrom(ctx).Info("Growing disk", "vm", vm.ID, "diskMiB", wished)
	task, err := s.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{DiskMiB: wished})
	if err != nil {
		return s.refuse(stepGrow, err, growingDisk)
	}
	return s.start(stepGrow, task, growingDisk), nil
}

// awaitOtherTask waits for the end of a task on the VM that is not followed.
func (s *machineScope) awaitOtherTask() outcome {
	s.session.Invalidate(s.placement.vdc) // The next look shall see the end of it.
	return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", s.record.Name)
}
