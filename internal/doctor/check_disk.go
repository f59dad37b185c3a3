// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkDisks compares the disk sizes that machines request with the disks of their templates. The keys of templates are
// catalog and name.
func checkDisks(machines []Machines, templates map[string]vcd.Template, vdc vcd.VDC, held heldRights) findings {
	var f findings
	for _, m := range machines {
		template := templates[m.image()]
		switch {
		case template.DiskMiB == 0: // not found, or without a disk to boot from
		case checks.GrowsLinkedClone(&m.Spec, template, vdc):
			f.foundOf(m, Problem, checks.Consolidation(vdc, held.has(rights.Consolidate)))
		default:
			f.foundOf(m, Problem, checks.DiskSize(&m.Spec, template))
		}
	}
	return f
}
