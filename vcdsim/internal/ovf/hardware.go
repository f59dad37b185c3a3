// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// rasdFields lists the elements of a hardware item in the order of the schema. VCD writes all of them, and marks unused
// ones as nil.
var rasdFields = []string{
	"Address", "AddressOnParent", "AllocationUnits", "AutomaticAllocation", "AutomaticDeallocation", "Caption",
	"ChangeableType",
	"ConfigurationName", "Connection", "ConsumerVisibility", "Description", "ElementName", "Generation", "HostResource",
	"InstanceID", "Limit",
	"MappingBehavior", "OtherResourceType", "Parent", "PoolID", "Reservation", "ResourceSubType", "ResourceType",
	"VirtualQuantity",
	"VirtualQuantityUnits", "Weight",
}

// optionalRasd lists the elements that are omitted if unused, instead of nil.
var optionalRasd = map[string]bool{"Connection": true, "HostResource": true}

var vssdFields = []string{
	"AutomaticRecoveryAction", "AutomaticShutdownAction", "AutomaticStartupAction", "AutomaticStartupActionDelay",
	"AutomaticStartupActionSequenceNumber", "Caption", "ChangeableType", "ConfigurationDataRoot", "ConfigurationFile",
	"ConfigurationID",
	"ConfigurationName", "CreationTime", "Description", "ElementName", "Generation", "InstanceID", "LogDataRoot",
	"RecoveryFile",
	"SnapshotDataRoot", "SuspendDataRoot", "SwapFileDataRoot", "VirtualSystemIdentifier", "VirtualSystemType",
}

// XSI is the namespace of XML Schema instances.
const XSI = "http://www.w3.org/2001/XMLSchema-instance"

func nilElement(name string) *xmltree.Node {
	return xmltree.New(name, xmltree.A("xmlns:xsi", XSI), xmltree.A("xsi:nil", true))
}

type fields map[string]any

func fill(n *xmltree.Node, prefix string, order []string, f fields) *xmltree.Node {
	for _, name := range order {
		switch v := f[name].(type) {
		case nil:
			if !optionalRasd[name] {
				n.Add(nilElement(prefix + name))
			}
		case *xmltree.Node:
			n.Add(v)
		default:
			n.Add(xmltree.T(prefix+name, v))
		}
	}
	return n
}

// VcloudPrefix is the prefix of attributes of VMware's namespace.
const VcloudPrefix = "vcloud:"

func item(element string, f fields, attrs ...xmltree.Attr) *xmltree.Node {
	return fill(xmltree.New(element, attrs), "rasd:", rasdFields, f)
}

func nicItem(element string, vm *store.VM, nic store.NIC) *xmltree.Node {
	conn := xmltree.New("rasd:Connection", xmltree.A(VcloudPrefix+"ipAddressingMode", nic.Mode),
		xmltree.Opt(VcloudPrefix+"ipAddress", nic.Address),
		xmltree.A(VcloudPrefix+"primaryNetworkConnection", nic.Index == vm.PrimaryNIC), nic.Network)
	return item(element, fields{
		"Address":             nic.MAC,
		"AddressOnParent":     nic.Index,
		"AutomaticAllocation": nic.Connected,
		"Connection":          conn,
		"Description":         nicDescription(nic),
		"ElementName":         fmt.Sprintf("Network adapter %d", nic.Index),
		"InstanceID":          nic.Index + 1,
		"ResourceSubType":     nic.Adapter,
		"ResourceType":        10,
	})
}

const controllerInstance = 100

// DiskItems returns the hardware items of a VM's disk controller and disks.
func DiskItems(site wire.Site, st *store.Store, element string, vm *store.VM) []*xmltree.Node {
	out := []*xmltree.Node{item(element, fields{
		"Address":         0,
		"Description":     "SCSI Controller",
		"ElementName":     "SCSI Controller 0",
		"InstanceID":      controllerInstance,
		"ResourceSubType": "VirtualSCSI",
		"ResourceType":    6,
	})}
	for i, d := range vm.Disks {
		bus := machines.BusSCSI
		subtype := machines.BusSubtype
		if x := st.Disks[d.DiskID]; x != nil {
			bus = x.BusType
			subtype = x.BusSubType
		}
		host := xmltree.New("rasd:HostResource",
			xmltree.A(VcloudPrefix+"storageProfileHref", site.Href("vdcstorageProfile", d.StorageProfileID)),
			xmltree.A(VcloudPrefix+"busType", bus), xmltree.A(VcloudPrefix+"busSubType", subtype),
			xmltree.A(VcloudPrefix+"capacity", d.SizeMiB),
			xmltree.A(VcloudPrefix+"iops", 0),
			xmltree.A(VcloudPrefix+"storageProfileOverrideVmDefault", d.StorageProfileID != vm.StorageProfileID))
		if d.DiskID != "" {
			host.Add(xmltree.A(VcloudPrefix+"disk", site.Href("disk", d.DiskID)))
		}
		out = append(out, item(element, fields{
			"AddressOnParent":      d.Unit,
			"Description":          "Hard disk",
			"ElementName":          fmt.Sprintf("Hard disk %d", i+1),
			"HostResource":         host,
			"InstanceID":           d.ID,
			"Parent":               controllerInstance,
			"ResourceType":         17,
			"VirtualQuantity":      d.SizeMiB << 20,
			"VirtualQuantityUnits": "byte",
		}))
	}
	return out
}

// DriveItems returns the hardware item of the CD drive. It returns nil if the drive is empty, as VCD does not show an
// empty drive.
func DriveItems(st *store.Store, element string, vm *store.VM) []*xmltree.Node {
	_, m := st.Media(vm.MediaID)
	if m == nil {
		return nil
	}
	return []*xmltree.Node{item(element, fields{
		"AddressOnParent":     0,
		"AutomaticAllocation": true,
		"Description":         "CD/DVD Drive",
		"ElementName":         "CD/DVD Drive 1",
		"HostResource":        xmltree.T("rasd:HostResource", m.Name),
		"InstanceID":          3000,
		"ResourceSubType":     "vmware.cdrom.iso",
		"ResourceType":        15,
	})}
}

// CPUItem returns the hardware item of a VM's CPUs.
func CPUItem(site wire.Site, element string, vm *store.VM) *xmltree.Node {
	href := site.Href("vm", vm.ID) + "/virtualHardwareSection/cpu"
	n := item(element, fields{
		"AllocationUnits": "hertz * 10^6",
		"Description":     "Number of Virtual CPUs",
		"ElementName":     fmt.Sprintf("%d virtual CPU(s)", vm.CPUs),
		"InstanceID":      5,
		"Reservation":     0,
		"ResourceType":    3,
		"VirtualQuantity": vm.CPUs,
		"Weight":          0,
	}, xmltree.A(VcloudPrefix+"href", href), xmltree.A(VcloudPrefix+"type", wire.Mime("rasdItem")))
	n.Add(xmltree.New("vmw:CoresPerSocket", xmltree.A("ovf:required", false), fmt.Sprint(vm.CoresPerSocket)))
	n.Add(xmltree.New("Link", xmltree.A("rel", "edit"), xmltree.A("href", href), xmltree.A("type", wire.Mime("rasdItem"))))
	return n
}

// MemoryItem returns the hardware item of a VM's memory.
func MemoryItem(site wire.Site, element string, vm *store.VM) *xmltree.Node {
	href := site.Href("vm", vm.ID) + "/virtualHardwareSection/memory"
	n := item(element, fields{
		"AllocationUnits": "byte * 2^20",
		"Description":     "Memory Size",
		"ElementName":     fmt.Sprintf("%d MB of memory", vm.MemoryMiB),
		"InstanceID":      6,
		"Reservation":     0,
		"ResourceType":    4,
		"VirtualQuantity": vm.MemoryMiB,
		"Weight":          0,
	}, xmltree.A(VcloudPrefix+"href", href), xmltree.A(VcloudPrefix+"type", wire.Mime("rasdItem")))
	n.Add(xmltree.New("Link", xmltree.A("rel", "edit"), xmltree.A("href", href), xmltree.A("type", wire.Mime("rasdItem"))))
	return n
}

// HardwareSection returns the VirtualHardwareSection of a VM. It includes the extra configuration if the caller may
// read it.
func HardwareSection(r *api.Request, vm *store.VM, root bool) *xmltree.Node {
	A := xmltree.A
	href := r.Site.Href("vm", vm.ID) + "/virtualHardwareSection/"
	n := wire.Element("ovf:VirtualHardwareSection", root)
	n.Add([]xmltree.Attr{
		A("xmlns:vcloud", wire.Namespaces()[0].Value),
		A("ovf:transport", ""),
		A(VcloudPrefix+"href", href),
		A(VcloudPrefix+"type", wire.Mime("virtualHardwareSection")),
	})
	n.Add(xmltree.T("ovf:Info", "Virtual hardware requirements"))
	n.Add(fill(xmltree.New("ovf:System"), "vssd:", vssdFields, fields{
		"ElementName":             "Virtual Hardware Family",
		"InstanceID":              0,
		"VirtualSystemIdentifier": vm.Name,
		"VirtualSystemType":       vm.HardwareVersion,
	}))
	for _, nic := range vm.NICs {
		n.Add(nicItem("ovf:Item", vm, nic))
	}
	n.Add(DiskItems(r.Site, r.Cloud.Store, "ovf:Item", vm))
	n.Add(DriveItems(r.Cloud.Store, "ovf:Item", vm))
	n.Add([]*xmltree.Node{CPUItem(r.Site, "ovf:Item", vm), MemoryItem(r.Site, "ovf:Item", vm)})
	shown := vm.ExtraConfig
	if len(shown) > 0 && !access.MayUseExtraConfig(r) {
		shown = nil
	}
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		n.Add(xmltree.New("vmw:ExtraConfig", A("vmw:key", key), A("vmw:value", vm.ExtraConfig[key]),
			A("ovf:required", false)))
	}
	link := func(rel, part, kind string) {
		n.Add(xmltree.New("Link", A("rel", rel), A("href", href+part), A("type", wire.Mime(kind))))
	}
	link("edit", "", "virtualHardwareSection")
	for _, p := range []string{"cpu", "memory"} {
		link("down", p, "rasdItem")
		link("edit", p, "rasdItem")
	}
	for _, p := range []string{"disks", "media", "networkCards"} {
		link("down", p, "rasdItemsList")
	}
	link("edit", "disks", "rasdItemsList")
	return n
}

// ItemsList returns a response with the hardware items of one kind.
func ItemsList(site wire.Site, vm *store.VM, part string, items []*xmltree.Node) *api.Response {
	href := site.Href("vm", vm.ID) + "/virtualHardwareSection/" + part
	n := xmltree.New("RasdItemsList", wire.Namespaces(), xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value),
		xmltree.A("href", href), xmltree.A("type", wire.Mime("rasdItemsList")))
	n.Add(items)
	return api.XML(n)
}
