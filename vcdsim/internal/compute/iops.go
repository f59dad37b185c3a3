// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// codeSoftLimit is the minor error code of a request that exceeds a limit of the provider.
const codeSoftLimit = "VM_LIMITS_SOFT_VIOLATION"

// giveDefaultIOPS sets the IOPS of disks to the default of their storage profile.
func giveDefaultIOPS(st *store.Store, disks []store.VMDisk) {
	for i := range disks {
		_, _, profile := st.Profile(disks[i].StorageProfileID)
		if profile != nil {
			setIOPS(&disks[i], profile.IOPS.DefaultOf(disks[i].SizeMiB))
		}
	}
}

// setIOPS sets limit and reservation of a disk, because VCD always sets both.
func setIOPS(d *store.VMDisk, iops int64) {
	d.IOPS.Reservation = iops
	d.IOPS.Limit = iops
}

// readDiskIOPS reads the IOPS of a disk. placed means that the disk is new or was moved from another storage profile,
// so it gets the default of its profile first.
func readDiskIOPS(c *cloud.Cloud, vm *store.VM, d *store.VMDisk, settings *xmltree.Node, placed bool) error {
	_, _, profile := c.Store.Profile(d.StorageProfileID)
	if placed {
		setIOPS(d, profile.IOPS.DefaultOf(d.SizeMiB))
	}
	requested, given := requestedIOPS(settings, d)
	switch {
	case !given, !placed && requested == d.IOPS.Reservation:
		return nil
	case !profile.IOPS.Enabled && (requested == 0 || c.Assume.IOPSIgnoredWithoutLimits):
		return nil
	case !profile.IOPS.Enabled:
		return store.BadRequest("The storage profile %q does not support IOPS.", profile.Name)
	}
	if most := profile.IOPS.MaxOf(d.SizeMiB); profile.IOPS.Limits() && (requested == 0 || requested > most) {
		return store.Refuse(400, codeSoftLimit, "Requested disk iops %d for virtual machine \"%s\" exceeds maximum allowed iops %d.",
			requested, vm.Name, most)
	}
	others := c.Store.IOPSAllocated(profile.ID) - allocatedTo(vm, d)
	if limit := profile.IOPS.Limit; limit > 0 && others+requested > limit {
		return store.Refuse(400, codeSoftLimit, "Requested disk iops %d for virtual machine \"%s\" exceeds the limit %d of storage profile %q.",
			requested, vm.Name, limit, profile.Name)
	}
	setIOPS(d, requested)
	return nil
}

// requestedIOPS returns the requested IOPS, which a request can contain in two forms. Clients that change one form send
// the other unchanged.
func requestedIOPS(settings *xmltree.Node, d *store.VMDisk) (requested int64, given bool) {
	plain, isPlain := settings.Int("iops")
	if isPlain && plain != d.IOPS.Reservation {
		return plain, true
	}
	requested, given = settings.Int("IopsAllocation", "Reservation")
	if !given {
		return plain, isPlain
	}
	return requested, true
}

// allocatedTo returns the IOPS that a disk of a VM currently has on its storage profile.
func allocatedTo(vm *store.VM, d *store.VMDisk) int64 {
	for _, have := range vm.Disks {
		if have.ID == d.ID && have.StorageProfileID == d.StorageProfileID {
			return have.IOPS.Reservation
		}
	}
	return 0
}
