// SPDX-License-Identifier: Apache-2.0

package vcdsim

const opConsolidate = "consolidate"

func linkedCloneRoutes(add addRoute) {
	add("POST", "/api/vApp/vm-{vm}/action/consolidate", with(idleVM, consolidateVM), latencyWrite)
}

// consolidateVM gives a linked clone disks of its own. A VM that has them is done at once.
func consolidateVM(r *request, vm *VM) (*response, error) {
	if vm.Status == Unresolved || vm.Status == FailedCreation {
		return nil, badRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	}
	w := Work{Op: opConsolidate}
	if !vm.LinkedClone {
		w.Op = opDone
	}
	return startVM(r, vm, w)
}

func commitConsolidate(s *Simulator, t *Task) error {
	vm := s.store.VMs[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	vm.LinkedClone = false
	return nil
}

// mayResize refuses to change the size of a disk that others hang on: of a VM with a snapshot, and of a linked clone.
func (vm *VM) mayResize(d VMDisk, size int64, a *Assumptions) error {
	chained := vm.Snapshot != nil || vm.LinkedClone && a.LinkedClonesKeepSize
	if size == d.SizeMiB || d.DiskID != "" || !chained {
		return nil
	}
	return badRequest("The size of disk %q of VM %q cannot be modified while the virtual machine has snapshots.", d.ID,
		vm.Name)
}
