// SPDX-License-Identifier: Apache-2.0

package query

import (
	"strconv"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A vmAttribute is an attribute of a VM's record. Each attribute is computed separately, so that filtering or sorting
// by one attribute does not create whole rows.
type vmAttribute struct {
	name     string
	value    func(w *vmRow) string
	id       func(w *vmRow) string // set for references: the bare ID, which is cheaper to filter and sort by
	optional bool                  // omitted if empty
}

// vmAttributes lists the attributes of a VM's record, in the order of the output.
var vmAttributes = []vmAttribute{
	{name: "name", value: func(w *vmRow) string { return w.vm.Name }},
	{name: "containerName", value: func(w *vmRow) string { return w.vapp.Name }},
	{
		name:  "container",
		value: func(w *vmRow) string { return w.r.Site.Href("vapp", w.vapp.ID) },
		id:    func(w *vmRow) string { return w.vapp.ID },
	},
	{name: "ownerName", value: func(w *vmRow) string { return ovf.UserName(w.r.Cloud.Store, w.vapp) }},
	{name: "owner", value: func(w *vmRow) string { return w.r.Site.Base() + "/api/admin/user/" + w.vapp.OwnerID }},
	{
		name:  "vdc",
		value: func(w *vmRow) string { return w.r.Site.Href("vdc", w.vapp.VDCID) },
		id:    func(w *vmRow) string { return w.vapp.VDCID },
	},
	{name: "vdcName", value: func(w *vmRow) string { return w.r.Cloud.Store.VDCName(w.vapp.VDCID) }},
	{name: "isVAppTemplate", value: constant(false)},
	{name: "isDeleted", value: constant(false)},
	{name: "guestOs", value: func(w *vmRow) string { return ovf.OSName(w.vm.OS) }},
	{name: "numberOfCpus", value: func(w *vmRow) string { return strconv.FormatInt(w.vm.CPUs, 10) }},
	{name: "memoryMB", value: func(w *vmRow) string { return strconv.FormatInt(w.vm.MemoryMiB, 10) }},
	{name: "status", value: func(w *vmRow) string { return w.vm.Status.Text() }},
	{name: "org", value: providerOnly(func(w *vmRow) string { return w.r.Site.Href("org", w.vapp.OrgID) }), optional: true},
	{name: "networkName", value: ofPrimaryNIC(func(_ *vmRow, nic *store.NIC) string { return nic.Network }), optional: true},
	{
		name:     "network",
		value:    ofPrimaryNIC(func(w *vmRow, nic *store.NIC) string { return networkHref(w.r.Site, w.vapp, nic.Network) }),
		optional: true,
	},
	{name: "ipAddress", value: ofPrimaryNIC(func(_ *vmRow, nic *store.NIC) string { return nic.Address }), optional: true},
	{name: "isBusy", value: func(w *vmRow) string { return strconv.FormatBool(w.r.Cloud.Tasks.Busy(w.vm.ID)) }},
	{name: "isDeployed", value: func(w *vmRow) string { return strconv.FormatBool(w.vm.Deployed) }},
	{name: "isPublished", value: constant(false)},
	{name: "catalogName", value: func(*vmRow) string { return "" }},
	{name: "hardwareVersion", value: func(w *vmRow) string { return strconv.Itoa(ovf.HardwareNumber(w.vm.HardwareVersion)) }},
	{name: "vmToolsStatus", value: func(*vmRow) string { return "RUNNING" }},
	{name: "isInMaintenanceMode", value: constant(false)},
	{name: "isAutoNature", value: func(w *vmRow) string { return strconv.FormatBool(w.vapp.AutoNature) }},
	{name: "storageProfileName", value: func(w *vmRow) string { return w.r.Cloud.Store.ProfileName(w.vm.StorageProfileID) }},
	{name: "gcStatus", value: func(w *vmRow) string { return ovf.GCStatus(w.vm) }},
	{
		name:     "autoUndeployDate",
		value:    func(w *vmRow) string { return date("autoUndeployDate", w.vapp.Lease.Undeploys()) },
		optional: true,
	},
	{
		name:     "autoDeleteDate",
		value:    func(w *vmRow) string { return date("autoDeleteDate", w.vapp.Lease.Deletes()) },
		optional: true,
	},
	{name: "isAutoUndeployNotified", value: constant(false)},
	{name: "isAutoDeleteNotified", value: constant(false)},
	{name: "isComputePolicyCompliant", value: constant(true)},
	{name: "vmSizingPolicyId", value: func(w *vmRow) string { return policyURN(w.vm.SizingPolicyID) }, optional: true},
	{name: "vmPlacementPolicyId", value: func(w *vmRow) string { return policyURN(w.vm.PlacementPolicyID) }, optional: true},
	{name: "encrypted", value: constant(false)},
	{name: "dateCreated", value: func(w *vmRow) string { return xmltree.A("dateCreated", w.vm.Created).Value }},
	{name: "totalStorageAllocatedMb", value: func(w *vmRow) string { return strconv.FormatInt(w.vm.Storage(), 10) }},
	{name: "isExpired", value: constant(false)},
	{
		name:  "href", // VMs sort by ID, before the VMs of templates
		value: func(w *vmRow) string { return w.r.Site.Href("vm", w.vm.ID) },
		id:    func(w *vmRow) string { return w.vm.ID },
	},
	{name: "type", value: func(*vmRow) string { return wire.Mime("vm") }},
	{name: "vmNameInVc", value: providerOnly(func(w *vmRow) string { return w.vm.Name + "-" + w.vm.ID[:4] }), optional: true},
	{name: "hostName", value: providerOnly(func(*vmRow) string { return "esx-1" }), optional: true},
	{name: "moref", value: providerOnly(func(w *vmRow) string { return "vm-" + w.vm.ID[:4] }), optional: true},
}

// vmAttributeByName returns the attribute with the given name, or nil if it does not exist. The name id selects the
// attribute href.
func vmAttributeByName(name string) *vmAttribute {
	if name == "id" {
		name = "href"
	}
	for i := range vmAttributes {
		if vmAttributes[i].name == name {
			return &vmAttributes[i]
		}
	}
	return nil
}

// constant returns a function for a value that all VMs share.
func constant(value bool) func(*vmRow) string {
	text := strconv.FormatBool(value)
	return func(*vmRow) string { return text }
}

// providerOnly returns a function for a value that only providers see.
func providerOnly(value func(*vmRow) string) func(*vmRow) string {
	return func(w *vmRow) string {
		if !w.r.Session.Provider() {
			return ""
		}
		return value(w)
	}
}

// ofPrimaryNIC returns a function for a value of the primary NIC. It is empty for a VM without one.
func ofPrimaryNIC(value func(*vmRow, *store.NIC) string) func(*vmRow) string {
	return func(w *vmRow) string {
		nic := w.vm.Primary()
		if nic == nil {
			return ""
		}
		return value(w, nic)
	}
}

func date(name string, t time.Time) string { return leaseAttr(name, t).Value }

// policyURN returns the URN of a compute policy, or an empty string for an empty ID.
func policyURN(id string) string {
	if id == "" {
		return ""
	}
	return store.URN("vdcComputePolicy", id)
}
