// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// disks expands the first disk of the VM and determines its missing disks. VCD does not change the disks of a linked
// clone before the VM is consolidated.
type disks struct {
	session  *session.Session
	inputs   *inputs
	target   *target
	vm       *vmState
	tasks    tasks
	recorder events.EventRecorder
}

func newDisks(s *scope) disks {
	return disks{
		session:  s.session,
		inputs:   &s.inputs,
		target:   &s.target,
		vm:       s.vm,
		tasks:    newTasks(s),
		recorder: s.reconciler.Recorder,
	}
}

// missing returns the additional disks that a VM which never ran still lacks. They follow the disks of its template, in
// order.
func (d disks) missing(vm vcd.VM) []vcd.NewDisk {
	has := -d.target.template.Disks
	for _, disk := range vm.Disks {
		if disk.Independent == nil {
			has++
		}
	}
	return d.target.disks[min(max(has, 0), len(d.target.disks)):]
}

// await waits for the steps of prepare.
func (d disks) await() phases.Result {
	if out := d.awaitConsolidation(); out != phases.Done {
		return out
	}
	out, ended := d.tasks.settle(stepGrow)
	if ended {
		d.vm.cacheHolds = false // The VM is read again, with its expanded disk.
	}
	return out
}

// awaitConsolidation waits for the consolidation of the VM.
func (d disks) awaitConsolidation() phases.Result {
	out, ended := d.tasks.settle(stepConsolidate)
	if ended {
		d.vm.consolidated = true
		vmConsolidated(d.recorder, d.inputs.vcdMachine)
	}
	return out
}

// prepare takes the next step to expand the first disk of a linked clone to the desired size, before anything else is
// written to the VM. The disks of other VMs are expanded by the request that writes the bootstrap data.
func (d disks) prepare(ctx context.Context) (phases.Result, error) {
	vm := d.vm.current()
	desired := sizes.Disk(&d.inputs.vcdMachine.Spec)
	if !d.target.vdc.FastProvisioning || drift.FirstDisk(*vm).SizeMiB >= desired {
		return phases.Done, nil
	}
	if out, err := d.consolidate(ctx, vm.ID); err != nil || out != phases.Done {
		return out, err
	}
	return d.grow(ctx, vm.ID, desired)
}

// growLater takes the next step to expand the first disk of a VM that ran before. It looks up the VDC, because earlier
// phases do not look it up for such a VM.
func (d disks) growLater(ctx context.Context, vmID string, desiredMiB int64) (phases.Result, error) {
	vdc, err := d.session.FindVDC(ctx, d.target.vdc.ID)
	if err != nil {
		return problems.OfRequest(err)
	}
	d.target.vdc = vdc
	if vdc.FastProvisioning {
		if out, err := d.consolidate(ctx, vmID); err != nil || out != phases.Done {
			return out, err
		}
	}
	return d.grow(ctx, vmID, desiredMiB)
}

// consolidate makes sure that a VM in a VDC with fast provisioning is no longer a linked clone. VCD does not show
// whether it is one. For other VMs, the request is a no-op.
func (d disks) consolidate(ctx context.Context, vmID string) (phases.Result, error) {
	if d.vm.consolidated {
		return phases.Done, nil
	}
	if out, err := consolidationProblem(ctx, d.session, d.target.vdc); err != nil || out != phases.Done {
		return out, err
	}
	return d.tasks.write(stepConsolidate, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Consolidating VM", "vmID", vmID)
		return d.session.Consolidate(ctx, vmID)
	})
}

// grow starts the expansion of the first disk.
func (d disks) grow(ctx context.Context, vmID string, desiredMiB int64) (phases.Result, error) {
	return d.tasks.write(stepGrow, func() (vcd.Task, error) {
		ctrl.LoggerFrom(ctx).Info("Expanding disk", "vmID", vmID, "diskMiB", desiredMiB)
		return d.session.ReconfigureVM(ctx, vmID, vcd.VMChange{DiskMiB: desiredMiB})
	})
}

// consolidationProblem returns a problem if the disks of linked clones cannot be expanded because the user lacks the
// right to consolidate VMs.
func consolidationProblem(ctx context.Context, opened *session.Session, vdc vcd.VDC) (phases.Result, error) {
	may, err := opened.MayHave(ctx, vcd.RightConsolidate)
	if err != nil {
		return problems.OfRequest(err)
	}
	return problems.OfFinding(checks.Consolidation(vdc, may)), nil
}
