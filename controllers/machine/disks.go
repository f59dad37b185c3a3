package machine

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	growingDisk   = "Growing the disk"
	consolidating = "Consolidating the VM"
)

// Disks gives linked clones disks of the wished size. VCD changes no disk of one before it was consolidated.
type disks struct{ *scope }

// await waits for the steps of prepare.
func (s disks) await() phases.Outcome {
	if out := s.awaitConsolidation(); out != phases.Done {
		return out
	}
	out, ended := s.settle(stepGrow, growingDisk)
	if ended {
		s.vm.current = false // It is read again, with its new disk.
	}
	return out
}

func (s disks) awaitConsolidation() phases.Outcome {
	out, ended := s.settle(stepConsolidate, consolidating)
	if ended {
		s.vm.consolidated = true
		vmConsolidated(s.Recorder, s.vcdMachine)
	}
	return out
}

// prepare takes the next step towards the wished size of a linked clone's first disk, before anything else is written to
// it. The disks of other VMs grow by the request that writes the bootstrap data.
func (s disks) prepare(ctx context.Context) (phases.Outcome, error) {
	vm, wished := s.vm.now(), session.DiskMiB(s.vcdMachine)
	if !s.placement.vdc.FastProvisioning || drift.FirstDisk(*vm).SizeMiB >= wished {
		return phases.Done, nil
	}
	if out, err := s.consolidate(ctx, vm.ID); err != nil || out != phases.Done {
		return out, err
	}
	return s.grow(ctx, vm.ID, wished)
}

// consolidate makes sure that a VM of a VDC with fast provisioning is no linked clone any more. VCD does not show whether
// it is one, and has nothing to do if it is not.
func (s disks) consolidate(ctx context.Context, vmID string) (phases.Outcome, error) {
	if s.vm.consolidated {
		return phases.Done, nil
	}
	if out, err := s.problem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	return s.write(stepConsolidate, consolidating, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Consolidating VM", "vm", vmID)
		return s.session.Consolidate(ctx, vmID)
	})
}

// growLater takes the next step towards the wished size of the first disk of a VM that ran. Its VDC was not looked up
// for it.
func (s disks) growLater(ctx context.Context, vmID string, wishedMiB int64) (phases.Outcome, error) {
	vdc, err := s.session.FindVDC(ctx, s.placement.vdc.ID)
	if err != nil {
		return session.AskProblem(err)
	}
	s.placement.vdc = vdc
	if vdc.FastProvisioning {
		if out, err := s.consolidate(ctx, vmID); err != nil || out != phases.Done {
			return out, err
		}
	}
	return s.grow(ctx, vmID, wishedMiB)
}

func (s disks) grow(ctx context.Context, vmID string, wishedMiB int64) (phases.Outcome, error) {
	return s.write(stepGrow, growingDisk, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Growing disk", "vm", vmID, "diskMiB", wishedMiB)
		return s.session.ReconfigureVM(ctx, vmID, vcd.VMChange{DiskMiB: wishedMiB})
	})
}

// problem returns why no disk of a linked clone can grow: the right to consolidate is missing.
func (s disks) problem(ctx context.Context) (phases.Outcome, error) {
	may, err := s.session.MayHave(ctx, vcd.RightConsolidate)
	switch {
	case err != nil:
		return session.AskProblem(err)
	case !may:
		return phases.Fail(session.RemedyPoll, infrav1.ForbiddenReason, "VDC %s has fast provisioning: disks grow only "+
			"after their VM was consolidated. Grant right %q to the user of the identity, leave out spec.diskSize, or "+
			"have fast provisioning turned off", s.placement.vdc.Name, vcd.RightConsolidate), nil
	}
	return phases.Done, nil
}
