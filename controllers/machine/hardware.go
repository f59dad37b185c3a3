// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hardware is what is to be set of a VM; zero where it stays.
type hardware struct {
	cpus, memoryMiB int64
	version         string
	disks           int // how many are to be added
	diskIOPS        int64
}

// hardwareChange returns what a VM that never ran lacks of what the machine asks for. Asked is what was requested last.
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

// iopsChange returns the I/O operations per second that a disk is to get; 0 where they stay. A disk whose number the user
// is not shown has those that were requested last.
func iopsChange(wished int64, disk vcd.Disk, asked int64) int64 {
	if disk.ID == "" || wished == ptr.Deref(disk.IOPS, asked) {
		return 0
	}
	return wished
}
