// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A NewDisk is an empty disk to add to a VM.
type NewDisk struct {
	SizeMiB        int64
	StorageProfile *StorageProfile // nil: the storage profile of the VM
	IOPS           int64           // I/O operations per second; 0: the default of the storage profile
}

const (
	// paravirtualSCSI is the adapter type of new disks, unless the first disk of the VM has a known adapter type.
	paravirtualSCSI = "5"
	// unitsOfBus is the number of units on a SCSI bus, and controllerUnit is the unit of the controller itself.
	unitsOfBus, controllerUnit = 16, 7
)

// diskSettings returns the thin-provisioned settings of new disks. Their bus, unit and adapter are not set.
func (v *VMs) diskSettings(disks []NewDisk) []wire.DiskSettings {
	var settings []wire.DiskSettings
	for _, disk := range disks {
		d := wire.DiskSettings{SizeMiB: disk.SizeMiB, Thin: true}
		if profile := disk.StorageProfile; profile != nil {
			d.Override = true
			d.Profile = &wire.XMLRef{HRef: v.client.Href(urn.StorageProfile, profile.ID), ID: profile.ID, Name: profile.Name}
		}
		if disk.IOPS > 0 {
			d.IOPS = &wire.IOPSAllocation{Reservation: disk.IOPS}
		}
		settings = append(settings, d)
	}
	return settings
}

// addDisks appends new disks to the disks of a VM, on the controller of its first disk, so that the guest enumerates
// them in this order.
func addDisks(vm *wire.Node, added []wire.DiskSettings) error {
	spec := vm.First("VmSpecSection")
	if spec == nil || spec.First("DiskSection") == nil {
		return refuseDisks(vm, "has no disks that are visible to this user")
	}
	section := spec.First("DiskSection")
	bus, unit, adapter := freeUnit(section.Nodes("DiskSettings"))
	for _, disk := range added {
		if unit == controllerUnit {
			unit++
		}
		if unit >= unitsOfBus {
			return refuseDisks(vm, "has no free slot on its controller for these disks")
		}
		disk.Bus = bus
		disk.Unit = unit
		disk.Adapter = adapter
		n, err := wire.NewNode(disk)
		if err != nil {
			return err
		}
		section.InsertBefore("", n)
		unit++
	}
	spec.SetAttr("Modified", "true")
	return nil
}

// freeUnit returns the bus and the adapter type of the first disk, and the unit after the last disk on that bus.
func freeUnit(disks []*wire.Node) (bus, unit int, adapter string) {
	adapter = paravirtualSCSI
	for i, disk := range disks {
		onBus, errBus := strconv.Atoi(disk.Text("BusNumber"))
		at, errUnit := strconv.Atoi(disk.Text("UnitNumber"))
		if errBus != nil || errUnit != nil {
			continue
		}
		if i == 0 {
			bus = onBus
			if named := disk.Text("AdapterType"); named != "" {
				adapter = named
			}
		}
		if onBus == bus {
			unit = max(unit, at+1)
		}
	}
	return bus, unit, adapter
}
