// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const opConsolidate = "consolidate"

func linkedCloneRoutes(add addRoute) {
	add("POST", "/api/vApp/vm-{vm}/action/consolidate", with(idleVM, consolidateVM), latencyWrite)
}

// consolidateVM gives a linked clone disks of its own. A VM that has them is done at once.
func consolidateVM(r *request, vm *store.VM) (*response, error) {
	if vm.Status == store.Unresolved || vm.Status == store.FailedCreation {
		return nil, store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	}
	w := store.Work{Op: opConsolidate}
	if !vm.LinkedClone {
		w.Op = opDone
	}
	return startVM(r, vm, w)
}

func commitConsolidate(s *cloud, t *store.Task) error {
	vm := s.store.VMs[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	vm.LinkedClone = false
	return nil
}

// mayResizeDisk refuses to change the size of a disk that others hang on: of a VM with a snapshot, and of a linked clone.
func mayResizeDisk(vm *store.VM, d store.VMDisk, size int64, a *Assumptions) error {
	chained := vm.Snapshot != nil || vm.LinkedClone && a.LinkedClonesKeepSize
	if size == d.SizeMiB || d.DiskID != "" || !chained {
		return nil
	}
	return store.BadRequest("The size of disk %q of VM %q cannot be modified while the virtual machine has snapshots.", d.ID,
		vm.Name)
}
