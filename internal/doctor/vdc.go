// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkVDC finds the VDC.
func checkVDC(ctx context.Context, s *survey) {
	remedy := "correct " + s.plan.vdcField() + ", or share the VDC with the user"
	name := s.plan.VDC
	if s.plan.spread() {
		s.failed = true
		if len(s.plan.apart) == 0 {
			s.warn("add the VCDDeploymentZones and VCDFailureDomains to the manifest, or name each VDC: --vdc",
				"the manifest has none of the zones that failureDomainSelector of the VCDCluster selects")
		}
		return
	}
	if name == "" {
		all, err := s.session.VDCs.List(ctx)
		switch {
		case err != nil:
			s.unread(err, "listing VDCs", remedy)
			return
		case len(all) == 0:
			s.problem("share a VDC with the user", "the user is shown no VDC")
			return
		case len(all) > 1:
			s.problem("name one: --vdc, or -f with a manifest", "the user is shown several VDCs: %s",
				strings.Join(names(all), ", "))
			return
		}
		name = all[0].ID
	}
	var err error
	if s.vdc, err = s.session.VDCs.FindVDC(ctx, name); err == nil {
		s.capacity, err = s.session.VDCs.Capacity(ctx, s.vdc)
	}
	switch {
	case err != nil:
		s.unread(err, "reading VDC "+name, remedy)
	case !s.capacity.Enabled:
		s.problem("let the provider enable it", "VDC %s is disabled: nothing is created in it", s.vdc.Name)
	default:
		s.fact("%s has %d VMs, fast provisioning: %t", s.vdc.Name, s.capacity.VMs.Used, s.vdc.FastProvisioning)
	}
}

func names(refs []vcd.Ref) []string {
	all := make([]string, 0, len(refs))
	for _, ref := range refs {
		all = append(all, ref.Name)
	}
	slices.Sort(all)
	return all
}

// checkStorage finds the storage profiles of the machines. Without machines, it is the default one.
func checkStorage(ctx context.Context, s *survey) {
	for _, name := range s.profiles() {
		if _, err := s.session.VDCs.FindStorageProfile(ctx, s.vdc, name); err != nil {
			remedy := "correct spec.storageProfile of the VCDMachineTemplate, or give the VDC the profile, enabled"
			if name == "" {
				remedy = "set spec.storageProfile of the VCDMachineTemplate, or give the VDC a default one, enabled"
			}
			s.unread(err, "looking up storage profile "+name, remedy)
		}
	}
}

func (s *survey) profiles() []string {
	if len(s.plan.Machines) == 0 {
		return []string{""}
	}
	var all []string
	for _, m := range s.plan.Machines {
		if !slices.Contains(all, m.Spec.StorageProfile) {
			all = append(all, m.Spec.StorageProfile)
		}
	}
	return all
}

// checkPolicies finds the sizing and placement policies of the machines.
func checkPolicies(ctx context.Context, s *survey) {
	s.policies = map[string]vcd.Policy{}
	seen := map[string]bool{"": true}
	for _, m := range s.plan.Machines {
		if name := m.Spec.SizingPolicy; !seen[name] {
			seen[name] = true
			found, err := s.session.VDCs.FindSizingPolicy(ctx, s.vdc, name)
			if err != nil {
				s.unread(err, "looking up sizing policy "+name,
					"correct spec.sizingPolicy of the VCDMachineTemplate, or assign the policy to the VDC")
			}
			s.policies[name] = found
		}
	}
	seen = map[string]bool{"": true}
	for _, m := range s.plan.Machines {
		name := m.Spec.PlacementPolicy
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := s.session.VDCs.FindPlacementPolicy(ctx, s.vdc, name); err != nil {
			s.unread(err, "looking up placement policy "+name,
				"correct spec.placementPolicy of the VCDMachineTemplate, or assign the policy to the VDC")
		}
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
