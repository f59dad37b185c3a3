// SPDX-License-Identifier: Apache-2.0

package ovf

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// VMNode returns the complete element of a VM. If root is true, the element is a document.
func VMNode(r *api.Request, vm *store.VM, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	n := wire.Element("Vm", root)
	n.Add([]xmltree.Attr{
		A("needsCustomization", false),
		A("nestedHypervisorEnabled", vm.NestedHypervisor),
		A("deployed", vm.Deployed),
		A("status", int(vm.Status)),
		A("name", vm.Name),
		A("id", store.URN("vm", vm.ID)),
		A("href", r.Site.Href("vm", vm.ID)),
		A("type", wire.Mime("vm")),
	})
	n.Add(vmLinks(r, vm))
	n.Add([]*xmltree.Node{
		T("Description", vm.Description),
		api.TasksNode(r, vm.ID),
		HardwareSection(r, vm, false),
		osSection(r.Site, vm),
		ConnectionSection(r.Site, vm, false),
		CustomizationSection(r.Site, vm, false),
		ProductSection(vm.Properties),
		runtimeSection(r.Site, vm),
		SnapshotSection(r.Site, vm, false),
		SpecSection(r, vm),
		T("DateCreated", vm.Created),
		T("VAppScopedLocalId", r.Cloud.IDs.Named("local", vm.ID)),
		CapabilitiesSection(r.Site, vm, false),
		ProfileRef(r.Site, r.Cloud.Store, "StorageProfile", vm.StorageProfileID),
		bootOptionsNode(r.Version, vm),
		computePolicy(r.Site, r.Cloud.Store, vm),
	})
	return n
}

// vmLinks returns links to the actions that a VM offers in its current state.
func vmLinks(r *api.Request, vm *store.VM) []*xmltree.Node {
	path := "/api/vApp/vm-" + vm.ID
	var out []*xmltree.Node
	add := func(rel, suffix, kind string) {
		t := ""
		if kind != "" {
			t = wire.Mime(kind)
		}
		out = append(out, r.Site.Link(rel, path+suffix, t))
	}
	if vm.Status == store.PoweredOn {
		for _, a := range []string{"powerOff", "reboot", "reset", "shutdown", "suspend"} {
			add("power:"+a, "/power/action/"+a, "")
		}
	} else {
		add("power:powerOn", "/power/action/powerOn", "")
		add("deploy", "/action/deploy", "deployVAppParams")
	}
	if vm.Deployed {
		add("undeploy", "/action/undeploy", "undeployVAppParams")
	}
	add("edit", "", "vm")
	if !vm.Deployed {
		add("remove", "", "")
	}
	add("down", "/metadata", "metadata")
	add("down", "/productSections/", "productSections")
	add("media:insertMedia", "/media/action/insertMedia", "mediaInsertOrEjectParams")
	add("media:ejectMedia", "/media/action/ejectMedia", "mediaInsertOrEjectParams")
	add("disk:attach", "/disk/action/attach", "diskAttachOrDetachParams")
	add("disk:detach", "/disk/action/detach", "diskAttachOrDetachParams")
	add("snapshot:create", "/action/createSnapshot", "createSnapshotParams")
	if vm.Snapshot != nil {
		add("snapshot:revertToCurrent", "/action/revertToCurrentSnapshot", "")
		add("snapshot:removeAll", "/action/removeAllSnapshots", "")
	}
	if r.Session.Provider() || access.HasRight(r, access.RightConsolidate) {
		add("consolidate", "/action/consolidate", "")
	}
	out = append(out, r.Site.Link("reconfigureVm", path+"/action/reconfigureVm", wire.Mime("vm"), vm.Name))
	return append(out, r.Site.Link("up", "/api/vApp/vapp-"+vm.VAppID, wire.Mime("vapp")))
}

// computePolicy returns the ComputePolicy element of a VM, which exists since API version 33.
func computePolicy(site wire.Site, st *store.Store, vm *store.VM) *xmltree.Node {
	n := xmltree.New("ComputePolicy")
	for element, id := range map[string]string{
		"VmPlacementPolicy": vm.PlacementPolicyID,
		"VmSizingPolicy":    vm.SizingPolicyID,
	} {
		p := st.Policy(id)
		if p == nil {
			continue
		}
		n.Add(xmltree.New(element,
			xmltree.A("href", site.Base()+"/cloudapi/2.0.0/vdcComputePolicies/"+store.URN("vdcComputePolicy", id)),
			xmltree.A("id", store.URN("vdcComputePolicy", id)), xmltree.A("name", p.Name),
			xmltree.A("type", "application/json")))
	}
	slices.SortFunc(n.Children, func(a, b *xmltree.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range []string{"VmPlacementPolicyFinal", "VmSizingPolicyFinal"} {
		n.Add(xmltree.T(e, false))
	}
	return n
}

func osSection(site wire.Site, vm *store.VM) *xmltree.Node {
	href := site.Href("vm", vm.ID) + "/operatingSystemSection/"
	return xmltree.New("ovf:OperatingSystemSection", xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value),
		xmltree.A("ovf:id", 94),
		xmltree.A("vcloud:href", href), xmltree.A("vcloud:type", wire.Mime("operatingSystemSection")),
		xmltree.A("vmw:osType", vm.OS),
		xmltree.T("ovf:Info", "Specifies the operating system installed"), xmltree.T("ovf:Description", OSName(vm.OS)))
}

// osNames maps guest operating systems to their display names.
var osNames = map[string]string{
	"ubuntu64Guest":       "Ubuntu Linux (64-bit)",
	"vmwarePhoton64Guest": "VMware Photon OS (64-bit)",
	"otherLinux64Guest":   "Other Linux (64-bit)",
}

// OSName returns the display name of an operating system, or its ID if the name is unknown.
func OSName(id string) string {
	if n, ok := osNames[id]; ok {
		return n
	}
	return id
}

func runtimeSection(site wire.Site, vm *store.VM) *xmltree.Node {
	n := xmltree.New("RuntimeInfoSection", xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value),
		xmltree.A("vcloud:href", site.Href("vm", vm.ID)+"/runtimeInfoSection"),
		xmltree.A("vcloud:type", wire.Mime("virtualHardwareSection")),
		xmltree.T("ovf:Info", "Specifies Runtime info"))
	if vm.Boot.Up {
		n.Add(xmltree.New("VMWareTools", xmltree.A("version", "12389")))
	}
	return n
}

// ConnectionSection returns the NetworkConnectionSection element of a VM. If root is true, the element is a document.
func ConnectionSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	href := site.Href("vm", vm.ID) + "/networkConnectionSection/"
	n := wire.Element("NetworkConnectionSection", root)
	n.Add(api.Section(href, "networkConnectionSection"))
	n.Add([]*xmltree.Node{
		T("ovf:Info", "Specifies the available VM network connections"),
		T("PrimaryNetworkConnectionIndex", vm.PrimaryNIC),
	})
	for _, nic := range vm.NICs {
		n.Add(xmltree.New("NetworkConnection", A("needsCustomization", false), A("network", nic.Network),
			T("NetworkConnectionIndex", nic.Index), xmltree.OptT("IpAddress", nic.Address),
			xmltree.OptT("SecondaryIpAddress", nic.Secondary), T("IsConnected", nic.Connected),
			T("MACAddress", nic.MAC), T("IpAddressAllocationMode", nic.Mode),
			xmltree.OptT("SecondaryIpAddressAllocationMode", nic.SecondaryMode), T("NetworkAdapterType", nic.Adapter)))
	}
	n.Add(xmltree.New("Link", A("rel", "edit"), A("href", href), A("type", wire.Mime("networkConnectionSection"))))
	return n
}

// NICItems returns the hardware items of a VM's network cards.
func NICItems(vm *store.VM) []*xmltree.Node {
	var out []*xmltree.Node
	for _, nic := range vm.NICs {
		out = append(out, nicItem("Item", vm, nic))
	}
	return out
}

func nicDescription(nic store.NIC) string {
	return fmt.Sprintf("Vmxnet3 ethernet adapter on %q", nic.Network)
}

// CustomizationSection returns the GuestCustomizationSection element of a VM. If root is true, the element is a
// document.
func CustomizationSection(site wire.Site, vm *store.VM, root bool) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	href := site.Href("vm", vm.ID) + "/guestCustomizationSection/"
	custom := vm.Customization
	n := wire.Element("GuestCustomizationSection", root)
	n.Add(api.Section(href, "guestCustomizationSection"))
	n.Add([]*xmltree.Node{
		T("ovf:Info", "Specifies Guest OS Customization Settings"),
		T("Enabled", custom.Enabled),
		T("ChangeSid", custom.ChangeSID),
		T("VirtualMachineId", vm.ID),
		T("JoinDomainEnabled", custom.JoinDomain),
		T("UseOrgSettings", custom.UseOrgSettings),
		xmltree.OptT("DomainName", custom.Domain),
		xmltree.OptT("DomainUserName", custom.DomainUser),
		xmltree.OptT("DomainUserPassword", custom.DomainPassword),
		xmltree.OptT("MachineObjectOU", custom.MachineObjectOU),
		T("AdminPasswordEnabled", custom.AdminPasswordEnabled),
		T("AdminPasswordAuto", !custom.AdminPasswordGiven),
		xmltree.OptT("AdminPassword", custom.AdminPassword),
		T("AdminAutoLogonEnabled", custom.AutoLogon),
		T("AdminAutoLogonCount", custom.AutoLogonCount),
		T("ResetPasswordRequired", custom.ResetPasswordRequired),
		xmltree.OptT("CustomizationScript", custom.Script),
		T("ComputerName", custom.ComputerName),
		xmltree.New("Link", A("rel", "edit"), A("href", href), A("type", wire.Mime("guestCustomizationSection"))),
	})
	return n
}

// CustomizationStatus returns the document with the status of a VM's guest customization.
func CustomizationStatus(vm *store.VM) *xmltree.Node {
	return xmltree.New("GuestCustomizationStatusSection", wire.Namespaces(), xmltree.A("ovf:required", false),
		xmltree.T("ovf:Info", "Specifies the status of guest customization"),
		xmltree.T("GuestCustStatus", GCStatus(vm)))
}

// GCStatus returns the status of a VM's guest customization.
func GCStatus(vm *store.VM) string {
	if vm.Boot.Up {
		return "GC_COMPLETE"
	}
	return "GC_PENDING"
}

var notHostname = regexp.MustCompile(`[^a-zA-Z0-9-]+`)

// ComputerName converts the name of a VM to a valid host name.
func ComputerName(name string) string {
	return strings.Trim(notHostname.ReplaceAllString(name, "-"), "-")
}

// SpecSection returns the VmSpecSection element of a VM.
func SpecSection(r *api.Request, vm *store.VM) *xmltree.Node {
	T := xmltree.T
	disks := xmltree.New("DiskSection")
	for _, d := range vm.Disks {
		s := xmltree.New("DiskSettings", T("DiskId", d.ID), T("SizeMb", d.SizeMiB), T("UnitNumber", d.Unit),
			T("BusNumber", d.Bus),
			T("AdapterType", api.OrElse(d.Adapter, machines.DefaultDiskAdapter)), T("ThinProvisioned", true))
		if x := r.Cloud.Store.Disks[d.DiskID]; x != nil {
			s.Add(r.Site.Ref("Disk", store.Entity{Kind: "disk", ID: x.ID, Name: x.Name}))
		}
		s.Add([]*xmltree.Node{
			ProfileRef(r.Site, r.Cloud.Store, "StorageProfile", d.StorageProfileID),
			T("overrideVmDefault", d.StorageProfileID != vm.StorageProfileID),
			T("iops", d.IOPS.Reservation),
			xmltree.New("IopsAllocation", T("Reservation", d.IOPS.Reservation), T("Limit", d.IOPS.Limit),
				T("SharesLevel", cmp.Or(d.IOPS.Level, "NORMAL")), T("Shares", cmp.Or(d.IOPS.Shares, 1000))),
			T("VirtualQuantityUnit", "byte"),
			T("VirtualQuantity", d.SizeMiB<<20),
		})
		disks.Add(s)
	}
	return xmltree.New("VmSpecSection", xmltree.A("Modified", false),
		T("ovf:Info", "Virtual hardware requirements (simplified)"),
		T("OsType", vm.OS), firmwareNode(r.Version, vm), T("NumCpus", vm.CPUs), T("NumCoresPerSocket", vm.CoresPerSocket),
		shareNode("CpuResourceMhz", vm.CPUs*1000, vm.CPUShare), shareNode("MemoryResourceMb", vm.MemoryMiB, vm.MemoryShare),
		xmltree.New("MediaSection"), disks, T("HardwareVersion", vm.HardwareVersion), T("VmToolsVersion", "12389"),
		T("ToolsGuestOsId", vm.OS), T("VirtualCpuType", "VM64"), T("TimeSyncWithHost", vm.TimeSync))
}

// shareNode returns the configured amount of a resource of a VM, with its reservation, limit and shares.
func shareNode(element string, configured int64, s store.Share) *xmltree.Node {
	return xmltree.New(element,
		xmltree.T("Configured", configured),
		xmltree.T("Reservation", s.Reservation),
		xmltree.T("Limit", cmp.Or(s.Limit, -1)),
		xmltree.T("SharesLevel", cmp.Or(s.Level, "NORMAL")),
		xmltree.T("Shares", s.Shares))
}

// RootItem adds the namespaces to a hardware item, which makes it a document.
func RootItem(n *xmltree.Node) *xmltree.Node {
	n.Attrs = append(append(wire.Namespaces(), xmltree.A("xmlns:vcloud", wire.Namespaces()[0].Value)), n.Attrs...)
	return n
}

// Newest returns the hardware version after an upgrade: the default version, or version itself if that is newer.
func Newest(version string) string {
	if HardwareNumber(version) > HardwareNumber(vdcs.DefaultHardware) {
		return version
	}
	return vdcs.DefaultHardware
}

// HardwareNumber returns the number in a hardware version: 19 for vmx-19.
func HardwareNumber(version string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(version, "vmx-")) // 0 for an invalid version
	return n
}

// ProfileRef returns a reference to a storage profile, or nil for an empty ID.
func ProfileRef(site wire.Site, st *store.Store, element, id string) *xmltree.Node {
	if id == "" {
		return nil
	}
	return site.Ref(element, store.Entity{Kind: "vdcstorageProfile", ID: id, Name: st.ProfileName(id)})
}
