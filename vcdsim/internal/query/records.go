// SPDX-License-Identifier: Apache-2.0

package query

import (
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func templateVMRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range r.Cloud.Store.Catalogs() {
		if !r.Session.Sees(sh.Org.ID) {
			continue
		}
		for i := range sh.Catalog.Templates {
			t := &sh.Catalog.Templates[i]
			vdc := sh.VDCOf(t)
			for _, vm := range t.VMs {
				out = append(out, &record{attrs: []xmltree.Attr{
					A("name", vm.Name),
					A("containerName", t.Name),
					A("container", r.Site.Href("vapptemplate", t.ID)),
					A("ownerName", "system"),
					A("vdc", r.Site.Href("vdc", vdc.ID)),
					A("vdcName", vdc.Name),
					A("isVAppTemplate", true),
					A("isDeleted", false),
					A("guestOs", ovf.OSName(vm.OS)),
					A("numberOfCpus", vm.CPUs),
					A("memoryMB", vm.MemoryMiB),
					A("status", store.PoweredOff.Text()),
					A("isBusy", false),
					A("isDeployed", false),
					A("isPublished", sh.Catalog.Published),
					A("catalogName", sh.Catalog.Name),
					A("storageProfileName", r.Cloud.Store.ProfileName(vdc.DefaultProfile())),
					A("href", r.Site.Href("templatevm", vm.ID)),
					A("type", wire.Mime("vm")),
				}})
			}
		}
	}
	return out
}

func leaseAttr(name string, t time.Time) xmltree.Attr {
	if t.IsZero() {
		return xmltree.Attr{}
	}
	return xmltree.A(name, t)
}

// networkHref returns the address of a vApp's network by its name.
func networkHref(site wire.Site, v *store.VApp, name string) string {
	if n := v.Network(name); n != nil {
		return site.Href("network", n.ID)
	}
	return ""
}

func vappRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	viewer := access.ViewerOf(r)
	for _, v := range store.Sorted(r.Cloud.Store.VApps) {
		if !viewer.Sees(v) {
			continue
		}
		vdcName := r.Cloud.Store.VDCName(v.VDCID)
		var cpus, memory, storage int64
		vms := r.Cloud.Store.VMsOf(v.ID)
		for _, vm := range vms {
			cpus += vm.CPUs
			memory += vm.MemoryMiB
			storage += vm.Storage()
		}
		out = append(out, &record{
			metadata: v.Metadata,
			links:    recordLinks(r.Site, "vapp", v.ID),
			attrs: dropEmpty([]xmltree.Attr{
				A("name", v.Name),
				A("vdc", r.Site.Href("vdc", v.VDCID)),
				A("vdcName", vdcName),
				orgAttr(r, v.OrgID),
				A("isPublic", false),
				A("isEnabled", true),
				A("isBusy", r.Cloud.Tasks.Busy(v.ID)),
				A("creationDate", v.Created),
				A("status", r.Cloud.Store.Status(v).Text()),
				A("ownerName", ovf.UserName(r.Cloud.Store, v)),
				A("isDeployed", r.Cloud.Store.Deployed(v)),
				A("isInMaintenanceMode", false),
				A("isAutoNature", v.AutoNature),
				A("isExpired", false),
				A("numberOfVMs", len(vms)),
				A("numberOfCpus", cpus),
				A("cpuAllocationMhz", cpus*1000),
				A("memoryAllocationMB", memory),
				A("storageKB", storage*1024),
				A("isVdcEnabled", true),
				leaseAttr("autoUndeployDate", v.Lease.Undeploys()),
				leaseAttr("autoDeleteDate", v.Lease.Deletes()),
				A("description", v.Description),
				A("href", r.Site.Href("vapp", v.ID)),
				A("type", wire.Mime("vapp")),
			}),
		})
	}
	return out
}

func vdcRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for i := range o.VDCs {
			v := &o.VDCs[i]
			vms, running := machines.VMsOf(r.Cloud).CountIn(v.ID)
			out = append(out, &record{
				links: recordLinks(r.Site, "vdc", v.ID),
				attrs: []xmltree.Attr{
					A("name", v.Name),
					A("description", v.Description),
					A("isEnabled", !v.Disabled),
					A("cpuAllocationMhz", v.Compute.CPUAllocated),
					A("cpuLimitMhz", v.Compute.CPULimit),
					A("cpuUsedMhz", 0),
					A("memoryAllocationMB", v.Compute.MemoryAllocated),
					A("memoryLimitMB", v.Compute.MemoryLimit),
					A("memoryUsedMB", 0),
					A("storageLimitMB", 0),
					A("storageUsedMB", 0),
					A("providerVdcName", "provider"),
					A("orgName", o.Name),
					A("org", r.Site.Href("org", o.ID)),
					A("isSystemVdc", false),
					A("isBusy", false),
					A("status", "READY"),
					A("numberOfStorageProfiles", len(v.StorageProfiles)),
					A("numberOfVMs", vms),
					A("numberOfRunningVMs", running),
					A("isFastProvisioned", !v.FullClones),
					A("href", r.Site.Href("vdc", v.ID)),
					A("type", wire.Mime("vdc")),
				},
			})
		}
	}
	return out
}

func networkRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for i := range o.VDCs {
			v := &o.VDCs[i]
			for j := range v.Networks {
				n := &v.Networks[j]
				linkType := 1
				if n.Type == store.Isolated {
					linkType = 2
				}
				out = append(out, &record{
					links: recordLinks(r.Site, "network", n.ID),
					attrs: []xmltree.Attr{
						A("name", n.Name),
						A("defaultGateway", n.Gateway.Addr()),
						A("netmask", ovf.Netmask(n.Gateway)),
						A("linkType", linkType),
						A("connectedTo", r.Cloud.Store.GatewayName(n.Edge)),
						A("vdc", r.Site.Href("vdc", v.ID)),
						A("isBusy", r.Cloud.Tasks.Busy(n.ID)),
						A("isShared", false),
						A("vdcName", v.Name),
						A("isIpScopeInherited", false),
						A("usedIpCount", len(machines.IPAMOf(r.Cloud).AddressesIn(n.ID))),
						A("href", r.Site.Href("network", n.ID)),
						A("type", wire.Mime("network")),
					},
				})
			}
		}
	}
	return out
}

func profileRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for _, v := range o.VDCs {
			for _, p := range v.StorageProfiles {
				out = append(out, &record{
					links: recordLinks(r.Site, "vdcstorageProfile", p.ID),
					attrs: []xmltree.Attr{
						A("name", p.Name),
						A("isEnabled", !p.Disabled),
						A("isDefaultStorageProfile", p.Default),
						A("storageUsedMB", r.Cloud.Store.StorageUsed(p.ID)),
						A("storageLimitMB", p.LimitMiB),
						A("iopsAllocated", r.Cloud.Store.IOPSAllocated(p.ID)),
						A("iopsLimit", p.IOPS.Limit),
						A("numberOfConditions", 0),
						A("vdc", r.Site.Href("vdc", v.ID)),
						A("vdcName", v.Name),
						A("isVdcBusy", false),
						A("href", r.Site.Href("vdcstorageProfile", p.ID)),
						A("type", wire.Mime("vdcstorageProfile")),
					},
				})
			}
		}
	}
	return out
}

func catalogRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		out = append(out, &record{
			links: recordLinks(r.Site, "catalog", sh.Catalog.ID),
			attrs: []xmltree.Attr{
				A("name", sh.Catalog.Name),
				A("description", sh.Catalog.Description),
				A("isPublished", sh.Catalog.Published),
				A("isShared", true),
				A("creationDate", sh.Catalog.CreatedAt()),
				A("orgName", sh.Org.Name),
				A("org", r.Site.Href("org", sh.Org.ID)),
				A("ownerName", "system"),
				A("numberOfVAppTemplates", len(sh.Catalog.Templates)),
				A("numberOfMedia", len(sh.Catalog.Media)),
				A("publishSubscriptionType", "UNPUBLISHED"),
				A("version", 1),
				A("status", "READY"),
				A("isLocal", true),
				A("href", r.Site.Href("catalog", sh.Catalog.ID)),
				A("type", wire.Mime("catalog")),
			},
		})
	}
	return out
}

func itemRecords(r *api.Request) []*record {
	var out []*record
	for _, sh := range visibleCatalogs(r) {
		for _, i := range sh.Items() {
			out = append(out, itemRecord(r.Site, i))
		}
	}
	return out
}

func itemRecord(site wire.Site, i store.OrgCatalogItem) *record {
	A := xmltree.A
	return &record{
		links: recordLinks(site, "catalogitem", i.ID),
		attrs: []xmltree.Attr{
			A("entity", site.Href(i.Of.Kind, i.Of.ID)),
			A("entityName", i.Of.Name),
			A("entityType", i.Of.Kind),
			A("catalog", site.Href("catalog", i.Catalog.ID)),
			A("catalogName", i.Catalog.Name),
			A("ownerName", "system"),
			A("isPublished", i.Catalog.Published),
			A("vdc", site.Href("vdc", i.VDC.ID)),
			A("vdcName", i.VDC.Name),
			A("isVdcEnabled", true),
			A("creationDate", i.Created),
			A("isExpired", false),
			A("status", i.Status),
			A("name", i.Of.Name),
			A("href", site.Href("catalogitem", i.ID)),
			A("type", wire.Mime("catalogitem")),
		},
	}
}

func templateRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		for i := range sh.Catalog.Templates {
			t := &sh.Catalog.Templates[i]
			v := sh.VDCOf(t)
			out = append(out, &record{
				metadata: r.Cloud.Store.Metadata[t.ID],
				links:    recordLinks(r.Site, "vapptemplate", t.ID),
				attrs: []xmltree.Attr{
					A("ownerName", "system"),
					A("catalogName", sh.Catalog.Name),
					A("catalog", r.Site.Href("catalog", sh.Catalog.ID)),
					A("catalogItem", r.Site.Href("catalogitem", t.ItemID)),
					A("isPublished", sh.Catalog.Published),
					A("name", t.Name),
					A("description", t.Description),
					A("vdc", r.Site.Href("vdc", v.ID)),
					A("vdcName", v.Name),
					A("org", r.Site.Href("org", sh.Org.ID)),
					A("creationDate", t.CreatedAt()),
					A("isBusy", false),
					A("isGoldMaster", false),
					A("isEnabled", true),
					A("status", store.TemplateStatus(t)),
					A("isDeployed", false),
					A("isExpired", false),
					A("storageProfileName", r.Cloud.Store.ProfileName(v.DefaultProfile())),
					A("version", 1),
					A("numberOfVMs", len(t.VMs)),
					A("isInCatalog", true),
					A("href", r.Site.Href("vapptemplate", t.ID)),
					A("type", wire.Mime("vapptemplate")),
				},
			})
		}
	}
	return out
}

func taskRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	now := r.Cloud.Clock.Now()
	viewer := access.ViewerOf(r)
	for _, t := range store.Sorted(r.Cloud.Store.Tasks) {
		if !viewer.SeesTask(t) {
			continue
		}
		orgName := ""
		if org := r.Cloud.Store.Org(t.OrgID); org != nil {
			orgName = org.Name
		}
		rec := &record{
			links: recordLinks(r.Site, "task", t.ID),
			attrs: []xmltree.Attr{
				A("org", r.Site.Href("org", t.OrgID)),
				A("orgName", orgName),
				A("name", t.OperationName),
				A("operationFull", t.Operation),
				A("message", api.TaskDetails(r.Cloud, t)),
				A("startDate", t.Started),
			},
		}
		if t.Done() {
			rec.attrs = append(rec.attrs, A("endDate", t.Ended))
		}
		rec.attrs = append(rec.attrs, A("status", string(t.Status)), A("progress", t.Progress(now)),
			A("ownerName", t.UserName),
			A("object", r.Site.At(t.Owner)), A("objectType", t.Owner.Kind), A("objectName", t.Owner.Name),
			A("serviceNamespace", "com.vmware.vcloud"), A("href", r.Site.Href("task", t.ID)), A("type", wire.Mime("task")))
		out = append(out, rec)
	}
	return out
}

func diskRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	Opt := xmltree.Opt
	viewer := access.ViewerOf(r)
	for _, d := range store.Sorted(r.Cloud.Store.Disks) {
		if !viewer.SeesDisk(d) {
			continue
		}
		vdcName := r.Cloud.Store.VDCName(d.VDCID)
		attached := len(d.AttachedTo)
		out = append(out, &record{
			metadata: d.Metadata,
			links:    recordLinks(r.Site, "disk", d.ID),
			attrs: dropEmpty([]xmltree.Attr{
				A("name", d.Name),
				A("vdc", r.Site.Href("vdc", d.VDCID)),
				A("description", d.Description),
				A("sizeMb", d.SizeMiB),
				A("ownerName", r.Cloud.Store.User(d.OrgID, d.OwnerID)),
				A("vdcName", vdcName),
				A("storageProfile", r.Site.Href("vdcstorageProfile", d.StorageProfileID)),
				A("storageProfileName", r.Cloud.Store.ProfileName(d.StorageProfileID)),
				A("status", d.Status.Text()),
				A("busType", d.BusType),
				A("busTypeDesc", machines.BusNames[d.BusType]),
				A("busSubType", d.BusSubType),
				A("isAttached", attached > 0),
				A("attachedVmCount", attached),
				A("isShareable", machines.SharedDisk(d)),
				Opt("sharingType", d.SharingType),
				A("uuid", d.UUID),
				A("encrypted", false),
				datastoreAttr(r),
				A("href", r.Site.Href("disk", d.ID)),
				A("type", wire.Mime("disk")),
			}),
		})
	}
	return out
}

// datastoreAttr returns the datastore of a disk. It returns the zero value unless the caller is a provider.
func datastoreAttr(r *api.Request) xmltree.Attr {
	if !r.Session.Provider() {
		return xmltree.Attr{}
	}
	return xmltree.A("datastoreName", vdcs.ProviderDatastore)
}

func orgRecords(r *api.Request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		out = append(out, &record{
			links: recordLinks(r.Site, "org", o.ID),
			attrs: []xmltree.Attr{
				A("name", o.Name),
				A("isReadOnly", false),
				A("isEnabled", true),
				A("displayName", o.FullName),
				A("numberOfCatalogs", len(o.Catalogs)),
				A("numberOfVdcs", len(o.VDCs)),
				A("numberOfVApps", machines.VAppsOf(r.Cloud).CountIn(o.ID)),
				A("href", r.Site.Href("org", o.ID)),
				A("type", wire.Mime("org")),
			},
		})
	}
	return out
}
