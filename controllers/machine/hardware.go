// SPDX-License-Identifier: Apache-2.0

package machine

import (
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// hardware is what is to be set of a VM; zero where it stays.
type hardware struct {
	cpus, memoryMiB int64
	version         string
	disks           int // how many are to be added
}

// hardwareChange returns what a VM that never ran lacks of what the machine asks for.
func hardwareChange(m *infrav1.VCDMachine, vm vcd.VM) hardware {
	var change hardware
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
