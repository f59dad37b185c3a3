// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A DiskWithIOPS is a disk with a requested number of I/O operations per second (IOPS).
type DiskWithIOPS struct {
	Field          string // field that sets IOPS
	IOPS           int64
	SizeMiB        int64
	StorageProfile string // name or URN; empty: the default of the VDC
}

// DisksWithIOPS returns the disks of a spec that request IOPS. profile is the storage profile of the VM; empty means
// the default of the VDC.
func DisksWithIOPS(spec *infrav1.VCDMachineSpec, profile string, t vcd.Template) []DiskWithIOPS {
	var disks []DiskWithIOPS
	if spec.DiskIOPS > 0 {
		disks = append(disks, DiskWithIOPS{
			Field:          "spec.diskIOPS",
			IOPS:           int64(spec.DiskIOPS),
			SizeMiB:        max(sizes.Disk(spec), t.DiskMiB),
			StorageProfile: profile,
		})
	}
	for i, disk := range spec.AdditionalDisks {
		if disk.IOPS == 0 {
			continue
		}
		withIOPS := DiskWithIOPS{
			Field:          fmt.Sprintf("spec.additionalDisks[%d].iops", i),
			IOPS:           int64(disk.IOPS),
			SizeMiB:        sizes.InMiB(disk.Size),
			StorageProfile: profile,
		}
		if disk.StorageProfile != "" {
			withIOPS.StorageProfile = disk.StorageProfile
		}
		disks = append(disks, withIOPS)
	}
	return disks
}

// IOPS reports a disk that requests more IOPS than its storage profile allows, or any IOPS if the profile has no
// limits: VCD would ignore them.
func IOPS(disk DiskWithIOPS, profile vcd.StorageProfile, limits vcd.IOPSLimits) *Finding {
	if !limits.Enabled {
		return finding(infrav1.DiskIOPSInvalidReason, "remove the field, use another storage profile, or ask the provider to enable IOPS limiting", "%s is %d, but storage profile %s has no IOPS limiting", disk.Field, disk.IOPS, profile.Name)
	}
	allowed, limited := limits.MaxOf(disk.SizeMiB)
	if !limited || disk.IOPS <= allowed {
		return nil
	}
	return finding(infrav1.DiskIOPSInvalidReason, "set at most this number, or use another storage profile",
		"%s is %d, but storage profile %s allows %d for a disk of %dMi", disk.Field, disk.IOPS, profile.Name, allowed,
		disk.SizeMiB)
}
