// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VDCEnabled reports a disabled VDC. field is the field that names the VDC; empty means unknown.
func VDCEnabled(vdc vcd.VDC, field string) *Finding {
	if !vdc.Disabled {
		return nil
	}
	remedy := "ask the provider to enable it"
	if field != "" {
		remedy += ", or set another one in " + field
	}
	return finding(infrav1.VDCDisabledReason, remedy, "VDC %s is disabled, so VCD creates nothing in it", vdc.Name)
}

// AnyStorage reports a VDC that cannot store disks with any storage profile.
func AnyStorage(vdc vcd.VDC) *Finding {
	if slices.ContainsFunc(vdc.StorageProfiles, func(p vcd.StorageProfile) bool { return p.Enabled }) {
		return nil
	}
	return finding(infrav1.StorageProfileNotFoundReason, "ask the provider to add or enable one",
		"VDC %s has no enabled storage profile, so it cannot create VMs", vdc.Name)
}

// DefaultSizing reports that a machine without a sizing policy sets CPUs or memory that the default sizing policy of its
// VDC defines.
func DefaultSizing(spec *infrav1.VCDMachineSpec, vdc vcd.VDC, policy vcd.Policy) *Finding {
	if (spec.CPUs == 0 || policy.CPUs == 0) && (spec.Memory == nil || policy.MemoryMiB == 0) {
		return nil
	}
	return finding(infrav1.PlacementInvalidReason, "set spec.sizingPolicy instead",
		"spec.cpus and spec.memory cannot be set in VDC %s, whose default sizing policy %s defines them", vdc.Name, policy.Name)
}
