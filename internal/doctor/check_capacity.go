// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkCapacity compares what the planned machines take with what is left; without machines, whether anything is.
func checkCapacity(ctx context.Context, s *survey) {
	want := s.loadOf(ctx)
	has := s.capacity
	s.compare(has.VMs, want.vms, "delete VMs, or let the provider raise the VM quota of the VDC",
		"VDC "+s.vdc.Name+" has room for %d VMs of %d, and %d are planned")
	const smaller = "choose smaller sizing policies, or let the provider raise the "
	s.compare(has.MemoryMiB, want.memoryMiB, smaller+"memory of the VDC",
		"VDC "+s.vdc.Name+" has %d MiB of memory left of %d, and %d are planned")
	s.compare(has.CPUMHz, want.mhz, smaller+"CPU of the VDC",
		"VDC "+s.vdc.Name+" has %d MHz of CPU left of %d, and %d are planned")
	for _, profile := range s.vdc.StorageProfiles {
		wanted, planned := want.diskMiB[profile.ID]
		if planned || profile.Default && len(s.plan.Machines) == 0 {
			s.compare(has.Storage[profile.ID], wanted, "use another storage profile, or let the provider raise its "+
				"limit", "storage profile "+profile.Name+" has %d MiB left of %d, and %d are planned")
		}
	}
}

// compare reports that less is left than is planned, or nothing at all.
func (s *survey) compare(has vcd.Amount, want int64, remedy, format string) {
	if free, limited := has.Free(); limited && free < max(want, 1) {
		s.problem(remedy, format, free, has.Limit, want)
	}
}

// A load is what the planned machines take of the VDC.
type load struct {
	vms, mhz, memoryMiB int64
	diskMiB             map[string]int64 // by URN of the storage profile
}

// loadOf adds up the planned machines. One that has no size is as its template.
func (s *survey) loadOf(ctx context.Context) load {
	sum := load{diskMiB: map[string]int64{}}
	for _, m := range s.plan.Machines {
		image := s.templates[m.image()]
		policy := s.policies[m.Spec.SizingPolicy]
		sum.vms += m.Count
		sum.mhz += m.Count * or(policy.CPUs, image.CPUs) * s.capacity.VCPUMHz
		sum.memoryMiB += m.Count * or(policy.MemoryMiB, image.MemoryMiB)
		if profile, err := s.session.VDCs.FindStorageProfile(ctx, s.vdc, m.Spec.StorageProfile); err == nil {
			sum.diskMiB[profile.ID] += m.Count * max(image.DiskMiB, wishedDisk(m))
		}
	}
	return sum
}

func or(a, b int64) int64 {
	if a > 0 {
		return a
	}
	return b
}
