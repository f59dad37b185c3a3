// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// kept drops the attributes that were left out.
func kept(attrs []xmltree.Attr) []xmltree.Attr {
	out := attrs[:0]
	for _, a := range attrs {
		if a.Name != "" {
			out = append(out, a)
		}
	}
	return out
}

func templateVMRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range r.cloud.store.Catalogs() {
		if !r.session.Sees(sh.Org.ID) {
			continue
		}
		for i := range sh.Catalog.Templates {
			t := &sh.Catalog.Templates[i]
			vdc := sh.VDCOf(t)
			for _, vm := range t.VMs {
				out = append(out, &record{attrs: []xmltree.Attr{
					A("name", vm.Name),
					A("containerName", t.Name),
					A("container", r.site.Href("vapptemplate", t.ID)),
					A("ownerName", "system"),
					A("owner", r.site.Base()+"/api/admin/user/"),
					A("vdc", r.site.Href("vdc", vdc.ID)),
					A("vdcName", vdc.Name),
					A("isVAppTemplate", true),
					A("isDeleted", false),
					A("guestOs", osName(vm.OS)),
					A("numberOfCpus", vm.CPUs),
					A("memoryMB", vm.MemoryMiB),
					A("status", store.PoweredOff.Text()),
					A("isBusy", false),
					A("isDeployed", false),
					A("isPublished", false),
					A("catalogName", sh.Catalog.Name),
					A("storageProfileName", r.cloud.store.ProfileName(vdc.DefaultProfile())),
					A("href", r.site.Href("templatevm", vm.ID)),
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

func recordLinks(site wire.Site, kind, id string) []*xmltree.Node {
	return []*xmltree.Node{xmltree.New("Link", xmltree.A("rel", "self"), xmltree.A("href", site.Href(kind, id)),
		xmltree.A("type", wire.Mime(kind)))}
}

func userName(st *store.Store, v *store.VApp) string { return st.User(v.OrgID, v.OwnerID) }

// networkHref is the address of a vApp's network by its name.
func networkHref(site wire.Site, v *store.VApp, name string) string {
	if n := v.Network(name); n != nil {
		return site.Href("network", n.ID)
	}
	return ""
}

func gcStatus(vm *store.VM) string {
	if vm.Boot.Up {
		return "GC_COMPLETE"
	}
	return "GC_PENDING"
}

func hardwareNumber(version string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(version, "vmx-")) // 0 for what is not a version
	return n
}

// osNames are the display names of guest operating systems.
var osNames = map[string]string{
	"ubuntu64Guest":       "Ubuntu Linux (64-bit)",
	"vmwarePhoton64Guest": "VMware Photon OS (64-bit)",
	"otherLinux64Guest":   "Other Linux (64-bit)",
}

func osName(id string) string {
	if n, ok := osNames[id]; ok {
		return n
	}
	return id
}

func vappRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	viewer := viewerOf(r)
	for _, v := range store.Sorted(r.cloud.store.VApps) {
		if !viewer.sees(v) {
			continue
		}
		vdcName := r.cloud.store.VDCName(v.VDCID)
		var cpus, memory, storage int64
		vms := r.cloud.store.VMsOf(v.ID)
		for _, vm := range vms {
			cpus += vm.CPUs
			memory += vm.MemoryMiB
			storage += vm.Storage()
		}
		out = append(out, &record{
			metadata: v.Metadata,
			links:    recordLinks(r.site, "vapp", v.ID),
			attrs: kept([]xmltree.Attr{
				A("name", v.Name),
				A("vdc", r.site.Href("vdc", v.VDCID)),
				A("vdcName", vdcName),
				A("isPublic", false),
				A("isEnabled", true),
				A("isBusy", r.cloud.tasks.busy(v.ID)),
				A("creationDate", v.Created),
				A("status", r.cloud.store.Status(v).Text()),
				A("ownerName", userName(r.cloud.store, v)),
				A("isDeployed", r.cloud.store.Deployed(v)),
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
				A("href", r.site.Href("vapp", v.ID)),
				A("type", wire.Mime("vapp")),
			}),
		})
	}
	return out
}

func vdcRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for i := range o.VDCs {
			v := &o.VDCs[i]
			vms, running := vmsOf(r.cloud).countIn(v.ID)
			out = append(out, &record{
				links: recordLinks(r.site, "vdc", v.ID),
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
					A("org", r.site.Href("org", o.ID)),
					A("isSystemVdc", false),
					A("isBusy", false),
					A("status", "READY"),
					A("numberOfStorageProfiles", len(v.StorageProfiles)),
					A("numberOfVMs", vms),
					A("numberOfRunningVMs", running),
					A("isFastProvisioned", !v.FullClones),
					A("href", r.site.Href("vdc", v.ID)),
					A("type", wire.Mime("vdc")),
				},
			})
		}
	}
	return out
}

func (m vms) countIn(vdcID string) (all, running int) {
	for _, vm := range m.cloud.store.VMs {
		if v := m.cloud.store.VApps[vm.VAppID]; v == nil || v.VDCID != vdcID {
			continue
		}
		all++
		if vm.Status == store.PoweredOn {
			running++
		}
	}
	return all, running
}

func networkRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for i := range o.VDCs {
			v := &o.VDCs[i]
			for j := range v.Networks {
				n := &v.Networks[j]
				linkType := 1
				if n.Type == store.Isolated {
					linkType = 2
				}
				out = append(out, &record{
					links: recordLinks(r.site, "network", n.ID),
					attrs: []xmltree.Attr{
						A("name", n.Name),
						A("defaultGateway", n.Gateway.Addr()),
						A("netmask", netmask(n.Gateway)),
						A("linkType", linkType),
						A("connectedTo", r.cloud.store.GatewayName(n.Edge)),
						A("vdc", r.site.Href("vdc", v.ID)),
						A("isBusy", r.cloud.tasks.busy(n.ID)),
						A("isShared", false),
						A("vdcName", v.Name),
						A("isIpScopeInherited", false),
						A("usedIpCount", len(ipamOf(r.cloud).addressesIn(n.ID))),
						A("href", r.site.Href("network", n.ID)),
						A("type", wire.Mime("network")),
					},
				})
			}
		}
	}
	return out
}

func profileRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for _, v := range o.VDCs {
			for _, p := range v.StorageProfiles {
				out = append(out, &record{
					links: recordLinks(r.site, "vdcstorageProfile", p.ID),
					attrs: []xmltree.Attr{
						A("name", p.Name),
						A("isEnabled", !p.Disabled),
						A("isDefaultStorageProfile", p.Default),
						A("storageUsedMB", r.cloud.store.StorageUsed(p.ID)),
						A("storageLimitMB", p.LimitMiB),
						A("iopsAllocated", 0),
						A("iopsLimit", 0),
						A("numberOfConditions", 0),
						A("vdc", r.site.Href("vdc", v.ID)),
						A("vdcName", v.Name),
						A("isVdcBusy", false),
						A("href", r.site.Href("vdcstorageProfile", p.ID)),
						A("type", wire.Mime("vdcstorageProfile")),
					},
				})
			}
		}
	}
	return out
}

// visibleCatalogs are the catalogs the caller may see.
func visibleCatalogs(r *request) []store.OrgCatalog {
	var out []store.OrgCatalog
	for _, sh := range r.cloud.store.Catalogs() {
		if r.reads(sh) {
			out = append(out, sh)
		}
	}
	return out
}

func catalogRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		out = append(out, &record{
			links: recordLinks(r.site, "catalog", sh.Catalog.ID),
			attrs: []xmltree.Attr{
				A("name", sh.Catalog.Name),
				A("description", sh.Catalog.Description),
				A("isPublished", false),
				A("isShared", true),
				A("creationDate", sh.Catalog.CreatedAt()),
				A("orgName", sh.Org.Name),
				A("org", r.site.Href("org", sh.Org.ID)),
				A("ownerName", "system"),
				A("numberOfVAppTemplates", len(sh.Catalog.Templates)),
				A("numberOfMedia", len(sh.Catalog.Media)),
				A("publishSubscriptionType", "UNPUBLISHED"),
				A("version", 1),
				A("status", "READY"),
				A("isLocal", true),
				A("href", r.site.Href("catalog", sh.Catalog.ID)),
				A("type", wire.Mime("catalog")),
			},
		})
	}
	return out
}

func itemRecords(r *request) []*record {
	var out []*record
	for _, sh := range visibleCatalogs(r) {
		for _, i := range sh.Items() {
			out = append(out, itemRecord(r.site, i))
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
			A("isPublished", false),
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

func templateRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, sh := range visibleCatalogs(r) {
		for i := range sh.Catalog.Templates {
			t := &sh.Catalog.Templates[i]
			v := sh.VDCOf(t)
			out = append(out, &record{
				links: recordLinks(r.site, "vapptemplate", t.ID),
				attrs: []xmltree.Attr{
					A("ownerName", "system"),
					A("catalogName", sh.Catalog.Name),
					A("catalog", r.site.Href("catalog", sh.Catalog.ID)),
					A("catalogItem", r.site.Href("catalogitem", t.ItemID)),
					A("isPublished", false),
					A("name", t.Name),
					A("description", t.Description),
					A("vdc", r.site.Href("vdc", v.ID)),
					A("vdcName", v.Name),
					A("org", r.site.Href("org", sh.Org.ID)),
					A("creationDate", store.Beginning()),
					A("isBusy", false),
					A("isGoldMaster", false),
					A("isEnabled", true),
					A("status", store.TemplateStatus(t)),
					A("isDeployed", false),
					A("isExpired", false),
					A("storageProfileName", r.cloud.store.ProfileName(v.DefaultProfile())),
					A("version", 1),
					A("numberOfVMs", len(t.VMs)),
					A("isInCatalog", true),
					A("href", r.site.Href("vapptemplate", t.ID)),
					A("type", wire.Mime("vapptemplate")),
				},
			})
		}
	}
	return out
}

func taskRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	now := r.cloud.clock.Now()
	viewer := viewerOf(r)
	for _, t := range store.Sorted(r.cloud.store.Tasks) {
		if !viewer.seesTask(t) {
			continue
		}
		orgName := ""
		if org := r.cloud.store.Org(t.OrgID); org != nil {
			orgName = org.Name
		}
		rec := &record{
			links: recordLinks(r.site, "task", t.ID),
			attrs: []xmltree.Attr{
				A("org", r.site.Href("org", t.OrgID)),
				A("orgName", orgName),
				A("name", t.OperationName),
				A("operationFull", t.Operation),
				A("message", taskDetails(r.cloud, t)),
				A("startDate", t.Started),
			},
		}
		if t.Done() {
			rec.attrs = append(rec.attrs, A("endDate", t.Ended))
		}
		rec.attrs = append(rec.attrs, A("status", string(t.Status)), A("progress", t.Progress(now)),
			A("ownerName", t.UserName),
			A("object", r.site.Href(t.Owner.Kind, t.Owner.ID)), A("objectType", t.Owner.Kind), A("objectName", t.Owner.Name),
			A("serviceNamespace", "com.vmware.vcloud"), A("href", r.site.Href("task", t.ID)), A("type", wire.Mime("task")))
		out = append(out, rec)
	}
	return out
}

func diskRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	Opt := xmltree.Opt
	viewer := viewerOf(r)
	for _, d := range store.Sorted(r.cloud.store.Disks) {
		if !viewer.seesDisk(d) {
			continue
		}
		vdcName := r.cloud.store.VDCName(d.VDCID)
		attached := len(d.AttachedTo)
		out = append(out, &record{
			metadata: d.Metadata,
			links:    recordLinks(r.site, "disk", d.ID),
			attrs: kept([]xmltree.Attr{
				A("name", d.Name),
				A("vdc", r.site.Href("vdc", d.VDCID)),
				A("description", d.Description),
				A("sizeMb", d.SizeMiB),
				A("ownerName", r.cloud.store.User(d.OrgID, d.OwnerID)),
				A("vdcName", vdcName),
				A("storageProfile", r.site.Href("vdcstorageProfile", d.StorageProfileID)),
				A("storageProfileName", r.cloud.store.ProfileName(d.StorageProfileID)),
				A("status", d.Status.Text()),
				A("busType", d.BusType),
				A("busTypeDesc", busNames[d.BusType]),
				A("busSubType", d.BusSubType),
				A("isAttached", attached > 0),
				A("attachedVmCount", attached),
				A("isShareable", sharedDisk(d)),
				Opt("sharingType", d.SharingType),
				A("uuid", d.UUID),
				A("encrypted", false),
				A("href", r.site.Href("disk", d.ID)),
				A("type", wire.Mime("disk")),
			}),
		})
	}
	return out
}

func orgRecords(r *request) []*record {
	var out []*record
	A := xmltree.A
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		out = append(out, &record{
			links: recordLinks(r.site, "org", o.ID),
			attrs: []xmltree.Attr{
				A("name", o.Name),
				A("isReadOnly", false),
				A("isEnabled", true),
				A("displayName", o.FullName),
				A("numberOfCatalogs", len(o.Catalogs)),
				A("numberOfVdcs", len(o.VDCs)),
				A("numberOfVApps", vappsOf(r.cloud).countIn(o.ID)),
				A("href", r.site.Href("org", o.ID)),
				A("type", wire.Mime("org")),
			},
		})
	}
	return out
}
