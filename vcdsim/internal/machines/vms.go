// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// VMs changes VMs when tasks end.
type VMs struct{ cloud *cloud.Cloud }

// VMsOf returns the VMs of a cloud.
func VMsOf(c *cloud.Cloud) VMs { return VMs{cloud: c} }

// finishCreation completes a VM that a compose request created: it assigns the addresses and then sets the power state.
func (m VMs) finishCreation(id string, w store.Work) error {
	vm := m.cloud.Store.VMs[id]
	if vm == nil {
		return cloud.Gone("vm", id)
	}
	if err := IPAMOf(m.cloud).assign(vm); err != nil {
		for i := range vm.NICs {
			vm.NICs[i].Address = ""
		}
		return err
	}
	vm.Status = store.PoweredOff
	vm.Deployed = w.Deploy
	if w.PowerOn {
		m.SetPower(vm, store.PoweredOn, false)
	}
	return nil
}

// move moves a VM to another vApp and changes it. The VM keeps its ID, disks, metadata and power state. On an error, it
// stays in its vApp.
func (m VMs) move(to *store.VApp, c *store.VMChange) error {
	st := m.cloud.Store
	vm := st.VMs[c.VM.ID]
	if vm == nil {
		return cloud.Gone("vm", c.VM.ID)
	}
	from := st.VApps[vm.VAppID]
	st.MoveVM(vm, to)
	if err := m.changeNICs(vm, c); err != nil {
		st.MoveVM(vm, from)
		return err
	}
	applyChange(vm, c)
	MergeExtraConfig(vm, c.ExtraConfig)
	if from.VDCID != to.VDCID {
		st.LeaveRules(vm.ID)
	}
	if !VAppsOf(m.cloud).removeIfEmpty(from) {
		LeasesOf(m.cloud).DeployedChanged(from)
	}
	LeasesOf(m.cloud).DeployedChanged(to)
	return nil
}

// Remove removes a VM. It detaches independent disks and never deletes them.
func (m VMs) Remove(vm *store.VM) {
	for _, d := range vm.Disks {
		if x := m.cloud.Store.Disks[d.DiskID]; x != nil {
			x.Release(vm.ID)
		}
	}
	m.cloud.Store.RemoveVM(vm)
	m.cloud.Store.LeaveRules(vm.ID)
	m.cloud.Guests.Forget(vm.ID)
}

func commitDeleteVM(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	if vm == nil {
		return cloud.Gone("vm", t.Work.VM)
	}
	VMsOf(s).Remove(vm)
	if v := s.Store.VApps[vm.VAppID]; !VAppsOf(s).removeIfEmpty(v) {
		LeasesOf(s).DeployedChanged(v)
	}
	return nil
}

// commitPower sets the power state of VMs, or of a vApp and its VMs. An undeploy also marks them as not deployed.
func commitPower(s *cloud.Cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		vm := s.Store.VMs[id]
		if vm == nil {
			continue
		}
		if t.Work.Power == store.PoweredOn && vm.Status != store.PoweredOn {
			if err := VMsOf(s).checkPlacement(vm); err != nil {
				return err
			}
		}
		VMsOf(s).applyPower(vm, t.Work)
	}
	v := s.Store.VApps[t.Work.VApp]
	if v != nil && t.Owner.Kind == "vapp" && (t.Work.Op == cloud.OpDeploy || t.Work.Op == cloud.OpUndeploy) {
		v.Deployed = t.Work.Op == cloud.OpDeploy
	}
	LeasesOf(s).DeployedChanged(v)
	return nil
}

func (m VMs) applyPower(vm *store.VM, w store.Work) {
	if w.Power != 0 {
		m.SetPower(vm, w.Power, w.Gently)
	}
	switch w.Op {
	case cloud.OpUndeploy:
		vm.Deployed = false
	case cloud.OpDeploy:
		vm.Deployed = vm.Status != store.Unresolved && vm.Status != store.FailedCreation
	}
}

// SetPower changes the power state, and starts or stops the guest. If gently is true, it stops the guest through VMware
// Tools.
func (m VMs) SetPower(vm *store.VM, to store.Status, gently bool) {
	if vm.Status == to || vm.Status == store.Unresolved || vm.Status == store.FailedCreation {
		return
	}
	previous := vm.Status
	vm.Status = to
	if !m.cloud.Assume.PoolAddressKept {
		IPAMOf(m.cloud).updatePoolAddresses(vm)
	}
	switch {
	case to == store.PoweredOn && previous == store.Suspended:
		vm.Deployed = true
		m.cloud.Guests.Resume(vm)
	case to == store.PoweredOn:
		vm.Deployed = true
		m.cloud.Guests.Boot(vm)
	case to == store.PoweredOff:
		m.cloud.Guests.Halt(vm, gently)
	case to == store.Suspended:
		m.cloud.Guests.Suspend(vm)
	}
}

func commitRestart(s *cloud.Cloud, t *store.Task) error {
	for _, id := range t.Work.VMs {
		if vm := s.Store.VMs[id]; vm != nil && vm.Status == store.PoweredOn {
			s.Guests.Halt(vm, t.Work.Gently)
			s.Guests.Boot(vm)
		}
	}
	return nil
}

// CheckIdle returns an error if a task uses the VM or, if the simulator assumes so, its vApp.
func (m VMs) CheckIdle(vm *store.VM) error {
	if m.cloud.Assume.VMWaitsForVApp || m.cloud.Assume.VMWriteLocksVApp {
		return m.cloud.Tasks.CheckIdle(vm.ID, vm.VAppID)
	}
	return m.cloud.Tasks.CheckIdle(vm.ID)
}

// Locks returns the IDs of the entities that a write to a VM locks.
func (m VMs) Locks(vm *store.VM) []string {
	if m.cloud.Assume.VMWriteLocksVApp {
		return []string{vm.ID, vm.VAppID}
	}
	return []string{vm.ID}
}

// CountIn returns the number of VMs of a VDC, and the number of those that are running.
func (m VMs) CountIn(vdcID string) (all, running int) {
	for _, vm := range m.cloud.Store.VMs {
		if v := m.cloud.Store.VApps[vm.VAppID]; v == nil || v.VDCID != vdcID {
			continue
		}
		all++
		if vm.Status == store.PoweredOn {
			running++
		}
	}
	return all, running
}
