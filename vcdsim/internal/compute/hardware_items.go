// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Resource types of hardware items.
const (
	resourceCPU    = "3"
	resourceMemory = "4"
	resourceNIC    = "10"
	resourceDisk   = "17"
)

// adapterTypes are the numbers of controllers in DiskSettings, by their names in hardware items.
var adapterTypes = map[string]string{
	"ide":                    "1",
	"buslogic":               "2",
	"lsilogic":               "3",
	"lsilogicsas":            "4",
	"VirtualSCSI":            machines.DefaultDiskAdapter,
	"vmware.sata.ahci":       "6",
	"vmware.nvme.controller": "7",
}

// itemsOf returns the items of a resource type.
func itemsOf(section *xmltree.Node, kind string) []*xmltree.Node {
	return slices.DeleteFunc(section.All("Item"), func(i *xmltree.Node) bool { return i.Str("ResourceType") != kind })
}

// readNewHardware reads the VirtualHardwareSection of a VM that is created from a template or another VM. Hardware that the
// section omits is that of the source.
func readNewHardware(r *api.Request, vm *store.VM, section *xmltree.Node) error {
	if section == nil {
		return nil
	}
	if len(itemsOf(section, resourceNIC)) > len(vm.NICs) {
		return store.BadRequest("The network adapters of VM %q can be added only in a NetworkConnectionSection.", vm.Name)
	}
	c := &store.VMChange{}
	if err := readExtraConfigOf(r, section, c); err != nil {
		return err
	}
	machines.MergeExtraConfig(vm, c.ExtraConfig)
	readSize(vm, section, c)
	return readDisks(r, vm, diskSection(vm, section, true), c)
}

// diskSection returns the DiskSection that has the meaning of the disk items of a VirtualHardwareSection. If keep is true,
// it also lists the disks of the VM that the items omit.
func diskSection(vm *store.VM, section *xmltree.Node, keep bool) *xmltree.Node {
	items := itemsOf(section, resourceDisk)
	out := xmltree.New("DiskSection")
	for i := range vm.Disks {
		d := &vm.Disks[i]
		at := slices.IndexFunc(items, func(i *xmltree.Node) bool { return i.Str("InstanceID") == d.ID })
		switch {
		case at >= 0:
			out.Add(diskSettings(section, items[at], d))
			items = slices.Delete(items, at, at+1)
		case keep:
			out.Add(xmltree.New("DiskSettings", xmltree.T("DiskId", d.ID), xmltree.T("SizeMb", d.SizeMiB)))
		}
	}
	for _, i := range items {
		out.Add(diskSettings(section, i, nil))
	}
	return out
}

// diskSettings returns the DiskSettings that have the meaning of the item of a disk. The disk is nil if the item creates it.
func diskSettings(section, item *xmltree.Node, d *store.VMDisk) *xmltree.Node {
	host := item.At("HostResource")
	n := xmltree.New("DiskSettings")
	if d != nil {
		n.Add(xmltree.T("DiskId", d.ID))
	}
	if size, ok := itemSize(item, d); ok {
		n.Add(xmltree.T("SizeMb", size))
	}
	if href := host.Attr("storageProfileHref"); href != "" {
		n.Add(xmltree.New("StorageProfile", xmltree.A("href", href)))
	}
	if d != nil {
		return n
	}
	n.Add(xmltree.OptT("UnitNumber", item.Str("AddressOnParent")))
	for _, controller := range section.All("Item") {
		if controller.Str("InstanceID") == item.Str("Parent") && item.Str("Parent") != "" {
			n.Add(xmltree.OptT("BusNumber", controller.Str("Address")))
		}
	}
	n.Add(xmltree.OptT("AdapterType", adapterTypes[host.Attr("busSubType")]))
	return n
}

// itemSize returns the size in MiB that the item of a disk requests. An item has the size in up to two forms. Clients that
// change one form send the other unchanged.
func itemSize(item *xmltree.Node, d *store.VMDisk) (size int64, given bool) {
	capacity, err := strconv.ParseInt(item.At("HostResource").Attr("capacity"), 10, 64)
	if err == nil && (d == nil || capacity != d.SizeMiB) {
		return capacity, true
	}
	if quantity, ok := item.Int("VirtualQuantity"); ok {
		return quantity >> 20, true
	}
	if d != nil {
		return d.SizeMiB, true
	}
	return 0, false
}
