// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// checkRunningHardware refuses a change of hardware that a VM that is powered on or suspended does not allow. VCD refuses
// to change the number of cores per socket. The other rules apply only if the simulator assumes them.
func checkRunningHardware(assume *cloud.Assumptions, c *store.VMChange, before *store.VM) error {
	if before.Status != store.PoweredOn && before.Status != store.Suspended {
		return nil
	}
	if c.Compute && c.VM.CoresPerSocket != before.CoresPerSocket {
		return store.BadRequest("The number of cores per socket can only be changed for the virtual machine %q when powered off.", before.Name)
	}
	if !assume.RunningVMKeepsHardware {
		return nil
	}
	if c.Settings && changesFixedSettings(&c.VM, before) {
		return store.BadRequest("The operating system, the hardware version and the hot-add settings of VM %q can be changed only while it is powered off.", before.Name)
	}
	if !c.Compute {
		return nil
	}
	return checkHotAdd(&c.VM, before)
}

// changesFixedSettings reports whether a change contains settings that are fixed while a VM runs.
func changesFixedSettings(after, before *store.VM) bool {
	return after.OS != before.OS || after.HardwareVersion != before.HardwareVersion ||
		after.CPUHotAdd != before.CPUHotAdd || after.MemoryHotAdd != before.MemoryHotAdd
}

// checkHotAdd refuses a change of CPUs or memory, except for an addition to a powered-on VM that allows it.
func checkHotAdd(after, before *store.VM) error {
	suspended := before.Status != store.PoweredOn
	if after.CPUs < before.CPUs || after.CPUs > before.CPUs && (suspended || !before.CPUHotAdd) {
		return store.BadRequest("The CPUs of VM %q cannot be changed from %d to %d while it is not powered off.", before.Name,
			before.CPUs, after.CPUs)
	}
	if after.MemoryMiB < before.MemoryMiB || after.MemoryMiB > before.MemoryMiB && (suspended || !before.MemoryHotAdd) {
		return store.BadRequest("The memory of VM %q cannot be changed from %d MB to %d MB while it is not powered off.",
			before.Name, before.MemoryMiB, after.MemoryMiB)
	}
	return nil
}
