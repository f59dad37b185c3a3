// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Defaults of independent disks: SCSI disks on a paravirtual controller. A disk is either exclusive to one VM or shared
// by several.
const (
	BusSCSI     = "6"
	BusSubtype  = "VirtualSCSI"
	SharingNone = "None"
	SharingDisk = "DiskSharing"
)

// BusNames are the display names of bus types.
var BusNames = map[string]string{"5": "IDE", BusSCSI: "SCSI", "20": "SATA"}

// UnitsOfBus is the number of units per bus. MaxBus is the highest bus number.
const (
	UnitsOfBus = 16
	MaxBus     = 3
)

// DefaultDiskAdapter is the adapter type of paravirtual SCSI.
const DefaultDiskAdapter = "5"

// DiskID returns the ID of a disk of a VM. As in VCD, IDs start at 2000 and ascend bus by bus.
func DiskID(i int) string { return strconv.Itoa(2000 + i) }

// NextUnit returns the first unit of a bus after all its disks.
func NextUnit(disks []store.VMDisk, bus int) int {
	unit := 0
	for _, d := range disks {
		if d.Bus == bus {
			unit = max(unit, d.Unit+1)
		}
	}
	return unit
}

// TemplateDisks returns the disks of a VM that is created from a template, on a storage profile.
func TemplateDisks(vm *store.TemplateVM, profile string) []store.VMDisk {
	var out []store.VMDisk
	for i, size := range vm.DisksMiB {
		out = append(out, store.VMDisk{ID: DiskID(i), SizeMiB: size, Unit: i, StorageProfileID: profile})
	}
	return out
}

// SharedDisk reports whether several VMs can attach the disk at the same time.
func SharedDisk(d *store.Disk) bool { return d.SharingType != SharingNone }

// commitDisk completes the creation or change of a disk.
func commitDisk(s *cloud.Cloud, t *store.Task) error {
	d := s.Store.Disks[t.Work.Disk]
	if d == nil {
		return cloud.Gone("disk", t.Work.Disk)
	}
	if spec := t.Work.DiskSpec; spec != nil {
		d.Name = spec.Name
		d.Description = spec.Description
		d.SizeMiB = spec.SizeMiB
		d.IOPS = spec.IOPS
		d.StorageProfileID = spec.StorageProfileID
	}
	d.Status = store.Resolved
	return nil
}

func commitDeleteDisk(s *cloud.Cloud, t *store.Task) error {
	delete(s.Store.Disks, t.Work.Disk)
	return nil
}

func commitAttach(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	d := s.Store.Disks[t.Work.Disk]
	if vm == nil || d == nil {
		return cloud.Gone("disk", t.Work.Disk)
	}
	slot := t.Work.Slot
	d.AttachedTo = append(d.AttachedTo, vm.ID)
	vm.Disks = append(vm.Disks, store.VMDisk{
		ID:               DiskID(slot.Bus*UnitsOfBus + slot.Unit),
		SizeMiB:          d.SizeMiB,
		Bus:              slot.Bus,
		Unit:             slot.Unit,
		StorageProfileID: d.StorageProfileID,
		DiskID:           d.ID,
	})
	return nil
}

func commitDetach(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	d := s.Store.Disks[t.Work.Disk]
	if vm == nil || d == nil {
		return cloud.Gone("disk", t.Work.Disk)
	}
	d.Release(vm.ID)
	vm.Disks = slices.DeleteFunc(slices.Clone(vm.Disks), func(x store.VMDisk) bool { return x.DiskID == d.ID })
	return nil
}

func commitConsolidate(s *cloud.Cloud, t *store.Task) error {
	vm := s.Store.VMs[t.Work.VM]
	if vm == nil {
		return cloud.Gone("vm", t.Work.VM)
	}
	vm.LinkedClone = false
	return nil
}

// Name returns the name of a VM, or its ID if the VM does not exist.
func (m VMs) Name(id string) string {
	if vm := m.cloud.Store.VMs[id]; vm != nil {
		return vm.Name
	}
	return id
}
