// SPDX-License-Identifier: Apache-2.0

// Package sizes computes the sizes of machines from their spec, their sizing policy and their template. It sends no
// requests.
package sizes

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Mebibyte is the number of bytes in a MiB.
const Mebibyte = 1 << 20

// A Size is the size of a machine. A value is 0 if it is unknown.
type Size struct {
	CPUs      int64
	MemoryMiB int64
	DiskMiB   int64 // size of its first disk
}

// Of returns the size of a machine. Values that neither the spec nor the policy sets come from the template.
func Of(spec *infrav1.VCDMachineSpec, template vcd.Template, policy vcd.Policy) Size {
	return Size{
		CPUs:      cmp.Or(int64(spec.CPUs), policy.CPUs, template.CPUs),
		MemoryMiB: cmp.Or(Memory(spec), policy.MemoryMiB, template.MemoryMiB),
		DiskMiB:   max(Disk(spec), template.DiskMiB),
	}
}

// Change returns the values that turn the size of a VM into that of the spec; 0 means no change. Disks do not shrink.
func Change(spec *infrav1.VCDMachineSpec, vm Size) Size {
	var change Size
	if desired := int64(spec.CPUs); desired > 0 && desired != vm.CPUs {
		change.CPUs = desired
	}
	if desired := Memory(spec); desired > 0 && desired != vm.MemoryMiB {
		change.MemoryMiB = desired
	}
	if desired := Disk(spec); desired > vm.DiskMiB {
		change.DiskMiB = desired
	}
	return change
}

// Disk returns the requested size of the first disk in MiB, rounded up. 0 means the size of the template.
func Disk(spec *infrav1.VCDMachineSpec) int64 {
	if spec.DiskSize == nil {
		return 0
	}
	return InMiB(*spec.DiskSize)
}

// Memory returns the requested memory in MiB, rounded up. 0 means the memory of the policy or the template.
func Memory(spec *infrav1.VCDMachineSpec) int64 {
	if spec.Memory == nil {
		return 0
	}
	return InMiB(*spec.Memory)
}

// InMiB returns a size in MiB, rounded up.
func InMiB(size resource.Quantity) int64 { return (size.Value() + Mebibyte - 1) / Mebibyte }
