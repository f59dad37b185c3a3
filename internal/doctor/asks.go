// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// ruled reports whether any VMs are kept on different hosts, or on one.
func ruled(machines []Machines) bool {
	return slices.ContainsFunc(machines, func(m Machines) bool {
		return m.Spec.Affinity != nil || m.Spec.AntiAffinity != "" && m.Spec.AntiAffinity != infrav1.AntiAffinityNone
	})
}
