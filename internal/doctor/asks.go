// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// separates reports whether any VMs are kept on different hosts.
func separates(machines []Machines) bool {
	return slices.ContainsFunc(machines, func(m Machines) bool {
		return m.Spec.AntiAffinity != "" && m.Spec.AntiAffinity != infrav1.AntiAffinityNone
	})
}
