// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// vms changes VMs for tasks that end.
type vms struct{ cloud *cloud }

// vmsOf returns the VMs of a cloud.
func vmsOf(c *cloud) vms { return vms{cloud: c} }

// materialise completes a VM that a compose created: its addresses, then its power state.
func (m vms) materialise(id string, powerOn bool) error {
	vm := m.cloud.store.VMs[id]
	if vm == nil {
		return gone("vm", id)
	}
	if err := ipamOf(m.cloud).assign(vm); err != nil {
		for i := range vm.NICs {
			vm.NICs[i].Address = ""
		}
		return err
	}
	vm.Status = store.PoweredOff
	if powerOn {
		m.setPower(vm, store.PoweredOn, false)
	}
	return nil
}

// remove removes a VM; an independent disk that is still attached is set free, never deleted.
func (m vms) remove(vm *store.VM) {
	for _, d := range vm.Disks {
		if x := m.cloud.store.Disks[d.DiskID]; x != nil {
			x.Release(vm.ID)
		}
	}
	m.cloud.store.RemoveVM(vm)
	m.cloud.store.LeaveRules(vm.ID)
	m.cloud.guests.forget(vm.ID)
}

func commitDeleteVM(s *cloud, t *store.Task) error {
	vm := s.store.VMs[t.Work.VM]
	if vm == nil {
		return gone("vm", t.Work.VM)
	}
	vmsOf(s).remove(vm)
	if v := s.store.VApps[vm.VAppID]; !vappsOf(s).removeEmptied(v) {
		leasesOf(s).deployedChanged(v)
	}
	return nil
}

// commitPower brings VMs, or a vApp with its VMs, to a power state; undeploying also releases them.
func commitPower(s *cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		vm := s.store.VMs[id]
		if vm == nil {
			continue
		}
		if t.Work.Power == store.PoweredOn && vm.Status != store.PoweredOn {
			if err := vmsOf(s).hostFor(vm); err != nil {
				return err
			}
		}
		vmsOf(s).powerTo(vm, t.Work)
	}
	v := s.store.VApps[t.Work.VApp]
	if v != nil && t.Owner.Kind == "vapp" && (t.Work.Op == opDeploy || t.Work.Op == opUndeploy) {
		v.Deployed = t.Work.Op == opDeploy
	}
	leasesOf(s).deployedChanged(v)
	return nil
}

func (m vms) powerTo(vm *store.VM, w store.Work) {
	if w.Power != 0 {
		m.setPower(vm, w.Power, w.Gently)
	}
	switch w.Op {
	case opUndeploy:
		vm.Deployed = false
	case opDeploy:
		vm.Deployed = vm.Status != store.Unresolved && vm.Status != store.FailedCreation
	}
}

// setPower changes the power state and starts or ends the guest; gently ends it through VMware Tools.
func (m vms) setPower(vm *store.VM, to store.Status, gently bool) {
	if vm.Status == to || vm.Status == store.Unresolved || vm.Status == store.FailedCreation {
		return
	}
	was := vm.Status
	vm.Status = to
	switch {
	case to == store.PoweredOn && was == store.Suspended:
		vm.Deployed = true
		m.cloud.guests.resume(vm)
	case to == store.PoweredOn:
		vm.Deployed = true
		m.cloud.guests.boot(vm)
	case to == store.PoweredOff:
		m.cloud.guests.halt(vm, gently)
	case to == store.Suspended:
		m.cloud.guests.suspend(vm)
	}
}

func commitRestart(s *cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.store.VMs[id]; vm != nil && vm.Status == store.PoweredOn {
			s.guests.halt(vm, t.Work.Gently)
			s.guests.boot(vm)
		}
	}
	return nil
}

// checkIdle refuses when a VM, or, as is assumed, its vApp is busy.
func (m vms) checkIdle(vm *store.VM) error {
	if m.cloud.assume.VMWaitsForVApp || m.cloud.assume.VMWriteLocksVApp {
		return m.cloud.tasks.checkIdle(vm.ID, vm.VAppID)
	}
	return m.cloud.tasks.checkIdle(vm.ID)
}

// locks are the entities a write to a VM holds.
func (m vms) locks(vm *store.VM) []string {
	if m.cloud.assume.VMWriteLocksVApp {
		return []string{vm.ID, vm.VAppID}
	}
	return []string{vm.ID}
}
