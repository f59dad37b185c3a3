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
	c := &store.VMChange{}
	if err := readSourceHardware(r, vm, section, c); err != nil {
		return err
	}
	machines.MergeExtraConfig(vm, c.ExtraConfig)
	return nil
}

// readSourceHardware reads the VirtualHardwareSection of an item whose source is a VM. Changes of the extra configuration
// are only in c.
func readSourceHardware(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange) error {
	if section == nil {
		return nil
	}
	if len(itemsOf(section, resourceNIC)) > len(vm.NICs) {
		return store.BadRequest("The network adapters of VM %q can be added only in a NetworkConnectionSection.", vm.Name)
	}
	if err := readExtraConfigOf(r, section, c); err != nil {
		return err
	}
	readSize(vm, section, c)
	return readDiskItems(r, vm, section, c, true)
}

// putHardware replaces the hardware of a VM.
func putHardware(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange) error {
		if err := checkNICItems(vm, section); err != nil {
			return err
		}
		if err := readHardwareSection(r, vm, section, c); err != nil {
			return err
		}
		if len(itemsOf(section, resourceDisk)) == 0 {
			return nil // It is not known whether VCD removes the disks.
		}
		return readDiskItems(r, vm, section, c, false)
	})
}

// putDisks replaces the disks of a VM.
func putDisks(r *api.Request) (*api.Response, error) {
	return changeVM(r, func(r *api.Request, vm *store.VM, list *xmltree.Node, c *store.VMChange) error {
		return readDiskItems(r, vm, list, c, false)
	})
}

// putItem returns a handler that changes CPUs or memory with a single item.
func putItem(kind string) api.Handler {
	return func(r *api.Request) (*api.Response, error) {
		return changeVM(r, func(r *api.Request, vm *store.VM, tree *xmltree.Node, c *store.VMChange) error {
			if tree.Str("ResourceType") != kind {
				return store.BadRequest("The resource type of the item is %q instead of %s.", tree.Str("ResourceType"), kind)
			}
			tree.Name = "Item"
			return readHardwareSection(r, vm, xmltree.New("VirtualHardwareSection", tree), c)
		})
	}
}

// checkNICItems refuses a section whose network adapters differ from those of the VM, because the section does not change
// them. A section may omit all of them.
func checkNICItems(vm *store.VM, section *xmltree.Node) error {
	items := itemsOf(section, resourceNIC)
	same := len(items) == len(vm.NICs) || len(items) == 0
	for _, i := range items {
		same = same && slices.ContainsFunc(vm.NICs, func(nic store.NIC) bool {
			return i.Str("AddressOnParent") == strconv.Itoa(nic.Index) && i.Str("Connection") == nic.Network
		})
	}
	if !same {
		return store.BadRequest("The network adapters of VM %q can be changed only in its networkConnectionSection.", vm.Name)
	}
	return nil
}

// readDiskItems reads the disk items of a VirtualHardwareSection. If keep is true, disks that the items omit stay.
func readDiskItems(r *api.Request, vm *store.VM, section *xmltree.Node, c *store.VMChange, keep bool) error {
	for _, i := range itemsOf(section, resourceDisk) {
		href := i.At("HostResource").Attr("disk")
		attached := func(d store.VMDisk) bool { return d.DiskID == store.Bare(href) }
		if href != "" && !slices.ContainsFunc(vm.Disks, attached) {
			return store.BadRequest("The independent disk %s can be attached only with the action attach.", store.Bare(href))
		}
	}
	return readDisks(r, vm, diskSection(vm, section, keep), c)
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
