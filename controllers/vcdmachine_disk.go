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
	if wished <= made.DiskMiB || s.memory.full == nil {
		return done, nil
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
		s.session.Invalidate(s.placement.vdc) // The next look shall see the end of it.
		return wait(busyPoll, infrav1.EntityBusyReason, "Waiting for another task on VM %s", vm.Name), nil
	}
	ctrl.LoggerFrom(ctx).Info("Growing disk", "vm", vm.ID, "diskMiB", wished)
	task, err := s.session.ReconfigureVM(ctx, vm.ID, vcd.VMChange{DiskMiB: wished})
	if err != nil {
		return s.refuse(stepGrow, err, growingDisk)
	}
	return s.start(stepGrow, task, growingDisk), nil
}
