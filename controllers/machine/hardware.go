// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hardware is a change of the virtual hardware of a VM. Zero fields stay unchanged.
type hardware struct {
	cpus, memoryMiB int64
	version         string
	disks           int   // number of disks to add
	diskIOPS        int64 // I/O operations per second of the first disk
}

// hardwareChange returns the change that gives a VM that never ran the hardware in the spec of its machine, except for
// additional disks. asked is the last requested change.
func hardwareChange(m *infrav1.VCDMachine, vm vcd.VM, asked hardware) hardware {
	change := hardware{diskIOPS: iopsChange(int64(m.Spec.DiskIOPS), drift.FirstDisk(vm), asked.diskIOPS)}
	if wished := int64(m.Spec.CPUs); wished > 0 && wished != vm.CPUs {
		change.cpus = wished
	}
	if wished := sizes.Memory(&m.Spec); wished > 0 && wished != vm.MemoryMiB {
		change.memoryMiB = wished
	}
	if wished := m.Spec.HardwareVersion; wished != vm.HardwareVersion && vm.HardwareVersion != "" {
		change.version = wished
	}
	return change
}

// iopsChange returns the I/O operations per second to set on a disk, or 0 for no change. If the current number is not
// visible to the user, iopsChange assumes the number that was requested last.
func iopsChange(wished int64, disk vcd.Disk, asked int64) int64 {
	if disk.ID == "" || wished == ptr.Deref(disk.IOPS, asked) {
		return 0
	}
	return wished
}
