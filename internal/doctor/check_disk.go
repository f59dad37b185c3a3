// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

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

// checkIOPS compares the I/O operations per second that machines request for their disks with the limits of the storage
// profiles of the disks.
func checkIOPS(ctx context.Context, in *vcd.VDCs, vdc vcd.VDC, machines []Machines, templates map[string]vcd.Template) findings {
	var f findings
	for _, m := range machines {
		template := templates[m.image()]
		if template.DiskMiB == 0 { // not found, or without a disk to boot from
			continue
		}
		for _, disk := range checks.DisksWithIOPS(&m.Spec, m.Spec.StorageProfile, template) {
			profile, err := in.FindStorageProfile(ctx, vdc, disk.StorageProfile)
			if err != nil {
				f.unread(err, "looking up storage profile "+disk.StorageProfile,
					checks.StorageProfile.Remedy("the storage profile of "+disk.Field))
				continue
			}
			limits, err := in.IOPSLimits(ctx, profile)
			if err != nil {
				f.unread(err, "reading the IOPS limits of storage profile "+profile.Name, "grant the user access to the VDC")
				continue
			}
			f.foundOf(m, Problem, checks.IOPS(disk, profile, limits))
		}
	}
	return f
}
