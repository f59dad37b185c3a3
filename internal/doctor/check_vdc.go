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
