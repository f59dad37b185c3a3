// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A place is a VDC and its capacity.
type place struct {
	vdc      vcd.VDC
	capacity vcd.Capacity
}

// findVDC looks up the VDC of a plan. Without a VDC in the plan, it uses the only one that is visible to the user.
func findVDC(ctx context.Context, in *vcd.VDCs, plan Plan) (place, findings) {
	var at place
	var f findings
	remedy := checks.VDC.Remedy(plan.vdcField())
	if plan.spread() {
		f.stops = true
		if len(plan.otherIdentity) == 0 && len(plan.refused) == 0 {
			f.warn("add the VCDDeploymentZones and VCDFailureDomains to the manifest, or set each VDC with --vdc",
				"the manifest contains no zone that failureDomainSelector of the VCDCluster selects")
		}
		return at, f
	}
	name := plan.VDC
	if name == "" {
		all, err := in.List(ctx)
		switch {
		case err != nil:
			f.unread(err, "listing VDCs", remedy)
			return at, f
		case len(all) == 0:
			f.problem("share a VDC with the user", "no VDC is visible to the user")
			return at, f
		case len(all) > 1:
			f.problem("set one with --vdc, or use -f with a manifest", "several VDCs are visible to the user: %s",
				strings.Join(names(all), ", "))
			return at, f
		}
		name = all[0].ID
	}
	var err error
	if at.vdc, err = in.FindVDC(ctx, name); err == nil {
		at.capacity, err = in.Capacity(ctx, at.vdc)
	}
	switch {
	case err != nil:
		f.unread(err, "reading VDC "+name, remedy)
	case at.vdc.Disabled:
		f.found(Problem, checks.VDCEnabled(at.vdc, plan.vdcField()))
	default:
		f.fact("%s has %d VMs, fast provisioning: %t", at.vdc.Name, at.capacity.VMs.Used, at.vdc.FastProvisioning)
	}
	return at, f
}

func names(refs []vcd.Ref) []string {
	all := make([]string, 0, len(refs))
	for _, ref := range refs {
		all = append(all, ref.Name)
	}
	slices.Sort(all)
	return all
}

// checkStorage checks that the storage profiles of machines exist. Without machines, it checks the default one.
func checkStorage(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, machines []Machines) findings {
	var f findings
	for _, name := range profiles(machines) {
		if _, err := in.FindStorageProfile(ctx, vdc, name); err != nil {
			remedy := checks.StorageProfile.Remedy("spec.storageProfile of the VCDMachineTemplate")
			if name == "" {
				remedy = "set spec.storageProfile of the VCDMachineTemplate, or set and enable a default one in " +
					"the VDC"
			}
			f.unread(err, "looking up storage profile "+name, remedy)
		}
	}
	return f
}

// profiles returns the names of the storage profiles of machines. An empty name is the default profile.
func profiles(machines []Machines) []string {
	if len(machines) == 0 {
		return []string{""}
	}
	var all []string
	for _, m := range machines {
		if !slices.Contains(all, m.Spec.StorageProfile) {
			all = append(all, m.Spec.StorageProfile)
		}
	}
	return all
}

// findPolicies looks up the placement policies and sizing policies of machines. It returns the sizing policies by name.
func findPolicies(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, machines []Machines) (map[string]vcd.Policy, findings) {
	var f findings
	sizing := map[string]vcd.Policy{}
	seen := map[string]bool{"": true}
	for _, m := range machines {
		if name := m.Spec.SizingPolicy; !seen[name] {
			seen[name] = true
			found, err := in.FindSizingPolicy(ctx, vdc, name)
			if err != nil {
				f.unread(err, "looking up sizing policy "+name,
					checks.SizingPolicy.Remedy("spec.sizingPolicy of the VCDMachineTemplate"))
			}
			sizing[name] = found
		}
	}
	seen = map[string]bool{"": true}
	for _, m := range machines {
		name := m.Spec.PlacementPolicy
		if seen[name] {
			continue
		}
		seen[name] = true
		if _, err := in.FindPlacementPolicy(ctx, vdc, name); err != nil {
			f.unread(err, "looking up placement policy "+name,
				checks.PlacementPolicy.Remedy("spec.placementPolicy of the VCDMachineTemplate"))
		}
	}
	return sizing, f
}
