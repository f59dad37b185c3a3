// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// commitChange applies the parts of a change that are marked as changed.
func commitChange(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	c := t.Work.Change
	if vm == nil {
		return cloud.Gone("vm", t.Work.VM)
	}
	// The NICs come first: if no address is available, nothing has changed.
	if err := VMsOf(s).changeNICs(vm, c); err != nil {
		return err
	}
	applyChange(vm, c)
	if c.ExtraConfig != nil {
		MergeExtraConfig(vm, c.ExtraConfig)
	}
	return nil
}

// applyChange applies the parts of a change that are marked as changed, except for NICs and extra configuration.
func applyChange(vm *store.VM, c *store.VMChange) {
	if c.Name {
		vm.Name = c.VM.Name
		vm.Description = c.VM.Description
	}
	if c.Compute {
		vm.CPUs = c.VM.CPUs
		vm.CoresPerSocket = c.VM.CoresPerSocket
		vm.MemoryMiB = c.VM.MemoryMiB
		vm.CPUShare = c.VM.CPUShare
		vm.MemoryShare = c.VM.MemoryShare
		vm.SizingPolicyID = c.VM.SizingPolicyID
		vm.PlacementPolicyID = c.VM.PlacementPolicyID
		vm.StorageProfileID = c.VM.StorageProfileID
	}
	if c.Disks {
		vm.Disks = c.VM.Disks
	}
	if c.Custom {
		vm.Customization = c.VM.Customization
	}
	if c.Settings {
		applySettings(vm, &c.VM)
	}
	if c.Properties {
		vm.Properties = c.VM.Properties
	}
}

// applySettings applies operating system, firmware, boot options, hardware version, hot-add and other hardware
// settings.
func applySettings(vm *store.VM, to *store.VM) {
	vm.OS = to.OS
	vm.Firmware = to.Firmware
	vm.BootOptions = to.BootOptions
	vm.HardwareVersion = to.HardwareVersion
	vm.CPUHotAdd = to.CPUHotAdd
	vm.MemoryHotAdd = to.MemoryHotAdd
	vm.NestedHypervisor = to.NestedHypervisor
	vm.TimeSync = to.TimeSync
}

// MergeExtraConfig sets keys of the extra configuration. An empty value removes a key.
func MergeExtraConfig(vm *store.VM, keys map[string]string) {
	if vm.ExtraConfig == nil {
		vm.ExtraConfig = map[string]string{}
	}
	for k, v := range keys {
		if v == "" {
			delete(vm.ExtraConfig, k)
			continue
		}
		vm.ExtraConfig[k] = v
	}
}

// changeNICs applies the NICs of a change and assigns their addresses. It is a no-op for a change without NICs. On an
// error, the VM and its vApp remain unchanged.
func (m VMs) changeNICs(vm *store.VM, c *store.VMChange) error {
	if !c.NICs {
		return nil
	}
	home := m.cloud.Store.VApps[vm.VAppID]
	networks := home.Networks
	nics := vm.NICs
	primary := vm.PrimaryNIC
	VAppsOf(m.cloud).setNetworks(home, store.Work{Networks: c.Networks})
	vm.NICs = slices.Clone(c.VM.NICs)
	vm.PrimaryNIC = c.VM.PrimaryNIC
	err := IPAMOf(m.cloud).assign(vm)
	if err != nil {
		home.Networks = networks
		vm.NICs = nics
		vm.PrimaryNIC = primary
	}
	return err
}
