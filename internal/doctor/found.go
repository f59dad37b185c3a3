// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Found checks a VDC as it was found, without a request: the manager reads it anyway.
func Found(vdc vcd.VDC) []Finding {
	var all []Finding
	if vdc.Disabled {
		all = append(all, Finding{
			Check:    CheckVDC,
			Severity: Problem,
			Message:  "VDC " + vdc.Name + " is disabled: nothing is created in it",
			Remedy:   "let the provider enable it",
		})
	}
	if !slices.ContainsFunc(vdc.StorageProfiles, func(p vcd.StorageProfile) bool { return p.Enabled }) {
		all = append(all, Finding{
			Check:    CheckStorage,
			Severity: Problem,
			Message:  "VDC " + vdc.Name + " has no storage profile that is enabled: no VM can be created",
			Remedy:   "let the provider add or enable one",
		})
	}
	return all
}
