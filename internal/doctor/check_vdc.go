// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"fmt"
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
	for _, choice := range profiles(machines) {
		if _, err := in.FindStorageProfile(ctx, vdc, choice.name); err != nil {
			remedy := checks.StorageProfile.Remedy(choice.field + " of the VCDMachineTemplate")
			if choice.name == "" {
				remedy = "set spec.storageProfile of the VCDMachineTemplate, or set and enable a default one in the VDC"
			}
			f.unread(err, "looking up storage profile "+choice.name, remedy)
		}
	}
	return f
}

// A profileChoice is a storage profile, and the first field that selects it.
type profileChoice struct {
	name  string // empty: the default profile
	field string
}

// profiles returns the storage profiles of the disks of machines, without duplicates.
func profiles(machines []Machines) []profileChoice {
	var all []profileChoice
	add := func(name, field string) {
		if !slices.ContainsFunc(all, func(known profileChoice) bool { return known.name == name }) {
			all = append(all, profileChoice{name: name, field: field})
		}
	}
	for _, m := range machines {
		add(m.Spec.StorageProfile, "spec.storageProfile")
		for i, disk := range m.Spec.AdditionalDisks {
			if disk.StorageProfile != "" {
				add(disk.StorageProfile, fmt.Sprintf("spec.additionalDisks[%d].storageProfile", i))
			}
		}
	}
	if len(all) == 0 {
		add("", "spec.storageProfile")
	}
	return all
}

// findPolicies looks up the placement policies and sizing policies of machines. It returns the sizing policies by name;
// an empty name is the default one of the VDC.
func findPolicies(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, machines []Machines) (map[string]vcd.Policy, findings) {
	var f findings
	sizing := map[string]vcd.Policy{}
	for _, m := range machines {
		name := m.Spec.SizingPolicy
		if _, seen := sizing[name]; !seen {
			found, err := findSizing(ctx, in, vdc, name)
			if err != nil {
				f.unread(err, "looking up sizing policy "+cmp.Or(name, "of VDC "+vdc.Name),
					checks.SizingPolicy.Remedy("spec.sizingPolicy of the VCDMachineTemplate"))
			}
			sizing[name] = found
		}
		if name == "" {
			f.foundOf(m, Problem, checks.DefaultSizing(&m.Spec, vdc, sizing[name]))
		}
	}
	seen := map[string]bool{"": true}
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

// findSizing finds a sizing policy by name. An empty name is the default one of the VDC.
func findSizing(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, name string) (vcd.Policy, error) {
	if name == "" {
		return in.FindDefaultSizing(ctx, vdc)
	}
	return in.FindSizingPolicy(ctx, vdc, name)
}
