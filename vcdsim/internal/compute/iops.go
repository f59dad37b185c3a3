// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// codeSoftLimit is the minor code of a request for more than a limit of the provider.
const codeSoftLimit = "VM_LIMITS_SOFT_VIOLATION"

// giveDefaultIOPS gives disks the I/O operations per second that their storage profile gives to disks without a number.
func giveDefaultIOPS(st *store.Store, disks []store.VMDisk) {
	for i := range disks {
		_, _, profile := st.Profile(disks[i].StorageProfileID)
		if profile != nil {
			setIOPS(&disks[i], profile.IOPS.DefaultOf(disks[i].SizeMiB))
		}
	}
}

// setIOPS sets limit and reservation of a disk, as VCD does at once.
func setIOPS(d *store.VMDisk, iops int64) {
	d.IOPS.Reservation = iops
	d.IOPS.Limit = iops
}

// readDiskIOPS reads the I/O operations per second of a disk. Placed is true if it has no number on its storage profile
// yet: the disk is new, or was on another profile.
func readDiskIOPS(c *cloud.Cloud, vm *store.VM, d *store.VMDisk, settings *xmltree.Node, placed bool) error {
	_, _, profile := c.Store.Profile(d.StorageProfileID)
	if placed {
		setIOPS(d, profile.IOPS.DefaultOf(d.SizeMiB))
	}
	wished, given := wishedIOPS(settings, d)
	switch {
	case !given, !placed && wished == d.IOPS.Reservation:
		return nil
	case !profile.IOPS.Enabled && (wished == 0 || c.Assume.IOPSIgnoredWithoutLimits):
		return nil
	case !profile.IOPS.Enabled:
		return store.BadRequest("The storage profile %q does not support IOPS.", profile.Name)
	}
	if most := profile.IOPS.MaxOf(d.SizeMiB); profile.IOPS.Limits() && (wished == 0 || wished > most) {
		return store.Refuse(400, codeSoftLimit, "Requested disk iops %d for virtual machine \"%s\" exceeds maximum allowed iops %d.",
			wished, vm.Name, most)
	}
	others := c.Store.IOPSAllocated(profile.ID) - allocatedTo(vm, d)
	if limit := profile.IOPS.Limit; limit > 0 && others+wished > limit {
		return store.Refuse(400, codeSoftLimit, "Requested disk iops %d for virtual machine \"%s\" exceeds the limit %d of storage profile %q.",
			wished, vm.Name, limit, profile.Name)
	}
	setIOPS(d, wished)
	return nil
}

// wishedIOPS returns the number that a request has, in either form: clients return the one that they do not change.
func wishedIOPS(settings *xmltree.Node, d *store.VMDisk) (wished int64, given bool) {
	plain, isPlain := settings.Int("iops")
	if isPlain && plain != d.IOPS.Reservation {
		return plain, true
	}
	wished, given = settings.Int("IopsAllocation", "Reservation")
	if !given {
		return plain, isPlain
	}
	return wished, true
}

// allocatedTo returns the I/O operations per second that a disk of a VM has on its storage profile so far.
func allocatedTo(vm *store.VM, d *store.VMDisk) int64 {
	for _, have := range vm.Disks {
		if have.ID == d.ID && have.StorageProfileID == d.StorageProfileID {
			return have.IOPS.Reservation
		}
	}
	return 0
}
