// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rights"
)

// checkDisks compares the disks that machines ask for with those of their templates.
func checkDisks(_ context.Context, s *survey) {
	seen := map[string]bool{}
	for _, m := range s.plan.Machines {
		wished := wishedDisk(m)
		has := s.templates[m.image()].DiskMiB
		again := seen[m.Name]
		seen[m.Name] = true
		switch {
		case again || has == 0 || wished == 0:
		case wished < has:
			s.problem("set spec.diskSize of the VCDMachineTemplate to at least that, or leave it out",
				"VCDMachineTemplate %s asks for a disk of %s, and that of template %s has %d MiB: disks do not shrink",
				m.Name, m.Spec.DiskSize, m.Spec.Template, has)
		case wished > has && s.vdc.FastProvisioning && !s.holds(rights.Consolidate):
			s.problem("leave out spec.diskSize of the VCDMachineTemplate, or add the right to the role of the user "+
				"and to a rights bundle that is published to the organization",
				"VCDMachineTemplate %s asks for a larger disk than that of template %s, VDC %s has fast provisioning, "+
					"and right %q is missing: disks of linked clones do not grow", m.Name, m.Spec.Template, s.vdc.Name,
				rights.Consolidate)
		}
	}
}
