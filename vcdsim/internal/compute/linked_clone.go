// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func linkedCloneRoutes(add api.AddRoute) {
	add("POST", "/api/vApp/vm-{vm}/action/consolidate", api.With(IdleVM, consolidateVM), cloud.LatencyWrite)
}

// consolidateVM starts the task that turns a linked clone into a full clone. For a full clone, the task is a no-op.
func consolidateVM(r *api.Request, vm *store.VM) (*api.Response, error) {
	if vm.Status == store.Unresolved || vm.Status == store.FailedCreation {
		return nil, store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	}
	w := store.Work{Op: cloud.OpConsolidate}
	if !vm.LinkedClone {
		w.Op = cloud.OpDone
	}
	return StartVM(r, vm, w)
}

// mayResizeDisk refuses to change the size of a disk that is part of a disk chain. This is the case for a VM with a
// snapshot and, if the simulator assumes so, for a linked clone.
func mayResizeDisk(vm *store.VM, d store.VMDisk, size int64, a *cloud.Assumptions) error {
	chained := vm.Snapshot != nil || vm.LinkedClone && a.LinkedClonesKeepSize
	if size == d.SizeMiB || d.DiskID != "" || !chained {
		return nil
	}
	return store.BadRequest("The size of disk %q of VM %q cannot be modified while the virtual machine has snapshots.", d.ID,
		vm.Name)
}
