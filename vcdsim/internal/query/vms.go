// SPDX-License-Identifier: Apache-2.0

package query

import (
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// vmRecords are the rows of VMs, by id, then those of templates' VMs.
func vmRecords(r *api.Request) []*record {
	out := make([]*record, 0, len(r.Cloud.Store.Order))
	rows := make([]vmRow, len(r.Cloud.Store.Order))
	records := make([]record, len(rows))
	viewer := access.ViewerOf(r)
	for i, vm := range r.Cloud.Store.Order {
		vapp := r.Cloud.Store.VApps[vm.VAppID]
		if !viewer.Sees(vapp) {
			continue
		}
		rows[i] = vmRow{r: r, vm: vm, vapp: vapp}
		records[i] = record{metadata: vm.Metadata, row: &rows[i]}
		out = append(out, &records[i])
	}
	return append(out, templateVMRecords(r)...)
}

// A vmRow is a VM's record to be made.
type vmRow struct {
	r    *api.Request
	vm   *store.VM
	vapp *store.VApp
}

// orgOf is the organization of a row, which only providers see.
func orgOf(r *api.Request, id string) xmltree.Attr {
	if !r.Session.Provider() {
		return xmltree.Attr{}
	}
	return xmltree.A("org", r.Site.Href("org", id))
}

func (w *vmRow) peek(name string) (string, bool) {
	switch name {
	case "id", "href": // in the order of hrefs, VMs come before templates' VMs
		return w.vm.ID, true
	case "name":
		return w.vm.Name, true
	case "container":
		return w.vapp.ID, true
	case "containerName":
		return w.vapp.Name, true
	case "vdc":
		return w.vapp.VDCID, true
	case "status":
		return w.vm.Status.Text(), true
	case "isVAppTemplate":
		return "false", true
	case "isDeployed":
		return strconv.FormatBool(w.vm.Deployed), true
	}
	return "", false
}

func (w *vmRow) fill(rec *record) {
	r := w.r
	vm := w.vm
	vapp := w.vapp
	A := xmltree.A
	Opt := xmltree.Opt
	vdcName := r.Cloud.Store.VDCName(vapp.VDCID)
	attrs := []xmltree.Attr{
		A("name", vm.Name),
		A("containerName", vapp.Name),
		A("container", r.Site.Href("vapp", vapp.ID)),
		A("ownerName", ovf.UserName(r.Cloud.Store, vapp)),
		A("owner", r.Site.Base()+"/api/admin/user/"+vapp.OwnerID),
		A("vdc", r.Site.Href("vdc", vapp.VDCID)),
		A("vdcName", vdcName),
		A("isVAppTemplate", false),
		A("isDeleted", false),
		A("guestOs", ovf.OSName(vm.OS)),
		A("numberOfCpus", vm.CPUs),
		A("memoryMB", vm.MemoryMiB),
		A("status", vm.Status.Text()),
		orgOf(r, vapp.OrgID),
	}
	if nic := vm.Primary(); nic != nil {
		attrs = append(attrs, Opt("networkName", nic.Network), Opt("network", networkHref(r.Site, vapp, nic.Network)),
			Opt("ipAddress", nic.Address))
	}
	attrs = append(attrs, A("isBusy", r.Cloud.Tasks.Busy(vm.ID)), A("isDeployed", vm.Deployed), A("isPublished", false),
		A("catalogName", ""), A("hardwareVersion", ovf.HardwareNumber(vm.HardwareVersion)), A("vmToolsStatus", "RUNNING"),
		A("isInMaintenanceMode", false), A("isAutoNature", vapp.AutoNature),
		A("storageProfileName", r.Cloud.Store.ProfileName(vm.StorageProfileID)),
		A("gcStatus", ovf.GCStatus(vm)), leaseAttr("autoUndeployDate", vapp.Lease.Undeploys()),
		leaseAttr("autoDeleteDate", vapp.Lease.Deletes()),
		A("isAutoUndeployNotified", false), A("isAutoDeleteNotified", false), A("isComputePolicyCompliant", true),
		Opt("vmSizingPolicyId", store.URN("vdcComputePolicy", vm.SizingPolicyID)),
		Opt("vmPlacementPolicyId", store.URN("vdcComputePolicy", vm.PlacementPolicyID)),
		A("encrypted", false), A("dateCreated", vm.Created), A("totalStorageAllocatedMb", vm.Storage()),
		A("isExpired", false),
		A("href", r.Site.Href("vm", vm.ID)), A("type", wire.Mime("vm")))
	if r.Session.Provider() {
		attrs = append(attrs, A("vmNameInVc", vm.Name+"-"+vm.ID[:4]), A("hostName", "esx-1"),
			A("moref", "vm-"+vm.ID[:4]))
	}
	rec.attrs = kept(attrs)
	rec.links = recordLinks(r.Site, "vm", vm.ID)
}
