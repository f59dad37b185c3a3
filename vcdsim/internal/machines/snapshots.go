// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// ChangeSnapshot refuses a snapshot operation that the state of the VM does not allow.
func ChangeSnapshot(vm *store.VM, op string) error {
	switch {
	case vm.Status == store.Unresolved || vm.Status == store.FailedCreation:
		return store.BadRequest("The requested operation could not be executed since VM %q is not resolved.", vm.Name)
	case op == cloud.OpRevertSnapshot && vm.Snapshot == nil:
		return store.BadRequest("The VM %q has no snapshot.", vm.Name)
	case op == cloud.OpCreateSnapshot && slices.ContainsFunc(vm.Disks, func(d store.VMDisk) bool { return d.DiskID != "" }):
		return store.BadRequest("A snapshot of VM %q cannot be made: an independent disk is attached to it.", vm.Name)
	}
	return nil
}

func commitSnapshot(s *cloud.Cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		vm := s.Store.VMs[id]
		if vm == nil {
			return cloud.Gone("vm", id)
		}
		switch t.Work.Op {
		case cloud.OpCreateSnapshot:
			vm.Snapshot = vm.TakeSnapshot(s.Clock.Now(), t.Work.PowerOn)
		case cloud.OpRevertSnapshot:
			VMsOf(s).revert(vm)
		default:
			vm.Snapshot = nil
		}
	}
	LeasesOf(s).DeployedChanged(s.Store.VApps[t.Work.VApp])
	return nil
}

// revert restores the snapshot of a VM. The VM is powered off afterwards unless the snapshot includes memory.
func (m VMs) revert(vm *store.VM) {
	x := vm.Snapshot.Clone()
	if x == nil {
		return
	}
	m.SetPower(vm, store.PoweredOff, false)
	vm.CPUs = x.CPUs
	vm.CoresPerSocket = x.CoresPerSocket
	vm.MemoryMiB = x.MemoryMiB
	vm.ExtraConfig = x.ExtraConfig
	if x.PoweredOn {
		m.SetPower(vm, store.PoweredOn, false)
	}
}
