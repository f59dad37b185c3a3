// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkDisks compares the disks that machines ask for with those of their templates, which are by catalog and name.
func checkDisks(machines []Machines, templates map[string]vcd.Template, vdc vcd.VDC, held heldRights) findings {
	var f findings
	seen := map[string]bool{}
	for _, m := range machines {
		wished := sizes.Disk(&m.Spec)
		has := templates[m.image()].DiskMiB
		again := seen[m.Name]
		seen[m.Name] = true
		switch {
		case again || has == 0 || wished == 0:
		case wished < has:
			f.problem("set spec.diskSize of the VCDMachineTemplate to at least that, or leave it out",
				"VCDMachineTemplate %s asks for a disk of %s, and that of template %s has %d MiB: disks do not shrink",
				m.Name, m.Spec.DiskSize, m.Spec.Template, has)
		case wished > has && vdc.FastProvisioning && !held.has(rights.Consolidate):
			f.problem("leave out spec.diskSize of the VCDMachineTemplate, or add the right to the role of the user "+
				"and to a rights bundle that is published to the organization",
				"VCDMachineTemplate %s asks for a larger disk than that of template %s, VDC %s has fast provisioning, "+
					"and right %q is missing: disks of linked clones do not grow", m.Name, m.Spec.Template, vdc.Name,
				rights.Consolidate)
		}
	}
	return f
}
