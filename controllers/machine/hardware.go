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
// additional disks. requested is the last requested change.
func hardwareChange(m *infrav1.VCDMachine, vm vcd.VM, requested hardware) hardware {
	change := sizeChange(&m.Spec, vm.CPUs, vm.MemoryMiB)
	change.diskIOPS = iopsChange(int64(m.Spec.DiskIOPS), drift.FirstDisk(vm), requested.diskIOPS)
	if desired := m.Spec.HardwareVersion; desired != vm.HardwareVersion && vm.HardwareVersion != "" {
		change.version = desired
	}
	return change
}

// sizeChange returns the change that gives a VM the CPUs and the memory of the spec.
func sizeChange(spec *infrav1.VCDMachineSpec, cpus, memoryMiB int64) hardware {
	change := sizes.Change(spec, sizes.Size{CPUs: cpus, MemoryMiB: memoryMiB})
	return hardware{cpus: change.CPUs, memoryMiB: change.MemoryMiB}
}

// iopsChange returns the I/O operations per second to set on a disk, or 0 for no change. If the current number is not
// visible to the user, iopsChange assumes the number that was requested last.
func iopsChange(desired int64, disk vcd.Disk, requested int64) int64 {
	if disk.ID == "" || desired == ptr.Deref(disk.IOPS, requested) {
		return 0
	}
	return desired
}
