// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// loads are machines with the templates and policies that determine their sizes.
type loads struct {
	machines  []Machines
	templates map[string]vcd.Template
	policies  map[string]vcd.Policy
}

// A load is the capacity of a VDC that planned machines require.
type load struct {
	vms, mhz, memoryMiB int64
	diskMiB             map[string]int64 // by URN of the storage profile
}

// sum adds up the requirements of all machines.
func (l loads) sum(ctx context.Context, in *vcd.VDCs, at place) load {
	sum := load{diskMiB: map[string]int64{}}
	for _, m := range l.machines {
		size := sizes.Of(&m.Spec, l.templates[m.image()], l.policies[m.Spec.SizingPolicy])
		sum.vms += m.Count
		sum.mhz += m.Count * size.CPUs * at.capacity.VCPUMHz
		sum.memoryMiB += m.Count * size.MemoryMiB
		sum.addDisk(ctx, in, at.vdc, m.Spec.StorageProfile, m.Count*size.DiskMiB)
		for _, disk := range m.Spec.AdditionalDisks {
			profile := cmp.Or(disk.StorageProfile, m.Spec.StorageProfile)
			sum.addDisk(ctx, in, at.vdc, profile, m.Count*sizes.InMiB(disk.Size))
		}
	}
	return sum
}

// addDisk adds disks with a storage profile, if it is found. Another check reports a missing profile.
func (l load) addDisk(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, profile string, sizeMiB int64) {
	if found, err := in.FindStorageProfile(ctx, vdc, profile); err == nil {
		l.diskMiB[found.ID] += sizeMiB
	}
}

// checkCapacity compares the requirements of planned machines with the free capacity of a VDC. Without machines, it
// checks that there is any free capacity.
func checkCapacity(at place, want load, hasMachines bool) findings {
	var f findings
	has := at.capacity
	f.compare(has.VMs, want.vms, "delete VMs, or ask the provider to raise the VM quota of the VDC",
		"VDC "+at.vdc.Name+" has capacity for %d more VMs of %d, but %d are planned")
	const smaller = "use smaller sizing policies, or ask the provider to raise the "
	f.compare(has.MemoryMiB, want.memoryMiB, smaller+"memory of the VDC",
		"VDC "+at.vdc.Name+" has %d MiB of memory left of %d, but %d are planned")
	f.compare(has.CPUMHz, want.mhz, smaller+"CPU of the VDC",
		"VDC "+at.vdc.Name+" has %d MHz of CPU left of %d, but %d are planned")
	for _, profile := range at.vdc.StorageProfiles {
		wanted, planned := want.diskMiB[profile.ID]
		if planned || profile.Default && !hasMachines {
			f.compare(has.Storage[profile.ID], wanted, "use another storage profile, or ask the provider to raise its limit", "storage profile "+profile.Name+" has %d MiB left of %d, but %d are planned")
		}
	}
	return f
}

// compare adds a problem if the free amount is smaller than want, or zero.
func (f *findings) compare(has vcd.Amount, want int64, remedy, format string) {
	if free, limited := has.Free(); limited && free < max(want, 1) {
		f.problem(remedy, format, free, has.Limit, want)
	}
}
