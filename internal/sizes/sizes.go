// SPDX-License-Identifier: Apache-2.0

// Package sizes decides how large machines are: by their spec, by the sizing policy, or by their template. It makes no
// request.
package sizes

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Mebibyte is in bytes.
const Mebibyte = 1 << 20

// A Size is what a machine has; 0 where nothing says it.
type Size struct {
	CPUs      int64
	MemoryMiB int64
	DiskMiB   int64 // of its first disk
}

// Of returns the size of a machine. What neither its spec nor its policy sets is as in its template.
func Of(spec *infrav1.VCDMachineSpec, template vcd.Template, policy vcd.Policy) Size {
	return Size{
		CPUs:      cmp.Or(int64(spec.CPUs), policy.CPUs, template.CPUs),
		MemoryMiB: cmp.Or(Memory(spec), policy.MemoryMiB, template.MemoryMiB),
		DiskMiB:   max(Disk(spec), template.DiskMiB),
	}
}

// Disk returns the size in MiB that a spec asks for the first disk, rounded up; 0 leaves the template's.
func Disk(spec *infrav1.VCDMachineSpec) int64 {
	if spec.DiskSize == nil {
		return 0
	}
	return InMiB(*spec.DiskSize)
}

// Memory returns the memory in MiB that a spec asks for, rounded up; 0 leaves that of the policy or the template.
func Memory(spec *infrav1.VCDMachineSpec) int64 {
	if spec.Memory == nil {
		return 0
	}
	return InMiB(*spec.Memory)
}

// InMiB returns a size in MiB, rounded up.
func InMiB(size resource.Quantity) int64 { return (size.Value() + Mebibyte - 1) / Mebibyte }
