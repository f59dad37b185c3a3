// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vdcRoutes(add api.AddRoute) {
	add("GET", "/api/vdc/{id}", api.With2(OwnVDC, getVDC), cloud.LatencyVDC)
	add("GET", "/api/vdc/{id}/hwv/{version}", api.With2(OwnVDC, getHardwareVersion), cloud.LatencyLegacy)
	add("GET", "/api/vdcStorageProfile/{id}", getStorageProfile, cloud.LatencyLegacy)
	add("GET", "/cloudapi/1.0.0/vdcs", listVDCs, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/vdcs/{id}", api.With2(OwnVDC, getVDCJSON), cloud.LatencyCloudAPI)
}

// OwnVDC returns the VDC in the path and its organization.
func OwnVDC(r *api.Request) (*store.Org, *store.VDC, error) {
	org, v := r.Cloud.Store.VDC(store.Bare(r.Vars["id"]))
	if v == nil || !r.Session.Sees(org.ID) {
		return nil, nil, store.Forbidden("VDC_VIEW", r.Vars["id"])
	}
	return org, v, nil
}

// VDCByID returns the VDC with the given ID. It does not check that the caller can see the VDC.
func VDCByID(st *store.Store, id string) (*store.VDC, error) {
	_, v := st.VDC(id)
	if v == nil {
		return nil, store.Forbidden("VDC_VIEW", id)
	}
	return v, nil
}

const allocationFlex = "Flex"

// vdcActions lists the requests that a VDC offers: the path below the VDC, and the type of the body.
var vdcActions = [][2]string{
	{"/action/instantiateVAppTemplate", "instantiateVAppTemplateParams"},
	{"/action/cloneVApp", "cloneVAppParams"},
	{"/action/composeVApp", "composeVAppParams"},
	{"/disk", "diskCreateParams"},
	{"/action/createVm", "CreateVmParams"},
	{"/action/instantiateVmFromTemplate", "instantiateVmTemplateParams"},
}

// AllocationModel returns the allocation model of a VDC.
func AllocationModel(v *store.VDC) string { return api.OrElse(v.AllocationModel, allocationFlex) }

func getVDC(r *api.Request, org *store.Org, v *store.VDC) (*api.Response, error) {
	n := r.Site.Entity("Vdc", "vdc", v.ID, v.Name, xmltree.A("status", 1))
	n.Add(r.Site.Link("up", "/api/org/"+org.ID, wire.Mime("org")))
	addVDCContent(r, n, org, v)
	return api.XML(n), nil
}

// addVDCContent adds the part of a VDC that all callers see.
func addVDCContent(r *api.Request, n *xmltree.Node, org *store.Org, v *store.VDC) {
	path := "/api/vdc/" + v.ID
	n.Add(r.Site.Link("down", path+"/metadata", wire.Mime("metadata")))
	for _, a := range vdcActions {
		n.Add(r.Site.Link("add", path+a[0], wire.Mime(a[1])))
	}
	n.Add([]*xmltree.Node{
		r.Site.Link("edgeGateways", "/api/admin/vdc/"+v.ID+"/edgeGateways",
			"application/vnd.vmware.vcloud.query.records+xml"),
		r.Site.Link("orgVdcNetworks", "/api/admin/vdc/"+v.ID+"/networks", "application/vnd.vmware.vcloud.query.records+xml"),
		r.Site.Link("down", path+"/vmAffinityRules/", wire.Mime("vmaffinityrules")),
		r.Site.Link("add", path+"/vmAffinityRules/", wire.Mime("vmaffinityrule")),
		xmltree.T("Description", v.Description),
		api.TasksNode(r, v.ID),
		xmltree.T("AllocationModel", AllocationModel(v)),
		computeNode(&v.Compute),
		resourceEntities(r, org, v),
		availableNetworks(r.Site, org, v),
		hardwareVersions(r.Site, v.ID),
		xmltree.T("NicQuota", v.NICQuota),
		xmltree.T("NetworkQuota", networkQuota(&v.Compute)),
		xmltree.T("UsedNetworkCount", len(v.Networks)),
		xmltree.T("VmQuota", v.VMQuota),
		xmltree.T("IsEnabled", !v.Disabled),
		storageProfiles(r.Site, r.Session, v, n.Name == "AdminVdc"),
		xmltree.T("VCpuInMhz2", cpuSpeed(&v.Compute)),
	})
	if p := r.Cloud.Store.Policy(r.Cloud.Store.DefaultSizing(v)); p != nil {
		n.Add(policyRef(r.Site, "DefaultComputePolicy", p))
	}
}

func resourceEntities(r *api.Request, org *store.Org, v *store.VDC) *xmltree.Node {
	n := xmltree.New("ResourceEntities")
	add := func(kind, id, name string) {
		n.Add(xmltree.New("ResourceEntity", xmltree.A("href", r.Site.Href(kind, id)), xmltree.A("id", store.URN(kind, id)),
			xmltree.A("name", name), xmltree.A("type", wire.Mime(kind))))
	}
	for i := range org.Catalogs {
		sh := store.OrgCatalog{Org: org, Catalog: &org.Catalogs[i]}
		for t := range sh.Catalog.Templates {
			if tpl := &sh.Catalog.Templates[t]; sh.VDCOf(tpl) == v {
				add("vapptemplate", tpl.ID, tpl.Name)
			}
		}
	}
	viewer := access.ViewerOf(r)
	for _, a := range store.Sorted(r.Cloud.Store.VApps) {
		if a.VDCID == v.ID && viewer.Sees(a) {
			add("vapp", a.ID, a.Name)
		}
	}
	for _, d := range store.Sorted(r.Cloud.Store.Disks) {
		if d.VDCID == v.ID {
			add("disk", d.ID, d.Name)
		}
	}
	return n
}

// availableNetworks returns the networks of a VDC and those that its group shares with it.
func availableNetworks(site wire.Site, org *store.Org, v *store.VDC) *xmltree.Node {
	n := xmltree.New("AvailableNetworks")
	for i := range org.VDCs {
		in := &org.VDCs[i]
		for j := range in.Networks {
			if x := &in.Networks[j]; in == v || org.Shares(x, v) {
				n.Add(xmltree.New("Network", xmltree.A("href", site.Href("network", x.ID)),
					xmltree.A("id", store.URN("network", x.ID)),
					xmltree.A("name", x.Name), xmltree.A("type", "application/vnd.vmware.vcloud.network+xml")))
			}
		}
	}
	return n
}

// storageProfiles returns references to the storage profiles of a VDC. For providers, an AdminVdc refers to the admin
// views, which can be changed.
func storageProfiles(site wire.Site, session *store.Session, v *store.VDC, admin bool) *xmltree.Node {
	n := xmltree.New("VdcStorageProfiles")
	for _, p := range v.StorageProfiles {
		if admin && session.Provider() {
			n.Add(xmltree.New("VdcStorageProfile", xmltree.A("href", site.Base()+"/api/admin/vdcStorageProfile/"+p.ID),
				xmltree.A("id", store.URN("vdcstorageProfile", p.ID)),
				xmltree.A("name", p.Name), xmltree.A("type", "application/vnd.vmware.admin.vdcStorageProfile+xml")))
			continue
		}
		n.Add(site.Ref("VdcStorageProfile", store.Entity{Kind: "vdcstorageProfile", ID: p.ID, Name: p.Name}))
	}
	return n
}

func getStorageProfile(r *api.Request) (*api.Response, error) {
	org, vdc, p := r.Cloud.Store.Profile(store.Bare(r.Vars["id"]))
	if p == nil || !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("VDC_STORAGE_PROFILE_VIEW", r.Vars["id"])
	}
	n := r.Site.Entity("VdcStorageProfile", "vdcstorageProfile", p.ID, p.Name)
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.Site.Link("down", "/api/vdcStorageProfile/"+p.ID+"/metadata", wire.Mime("metadata")),
	})
	addProfileContent(r.Cloud.Store, n, p)
	return api.XML(n), nil
}

// addProfileContent adds the part of a storage profile that all callers see.
func addProfileContent(st *store.Store, n *xmltree.Node, p *store.StorageProfile) {
	n.Add([]*xmltree.Node{
		xmltree.T("Enabled", !p.Disabled),
		xmltree.T("Units", "MB"),
		xmltree.T("Limit", p.LimitMiB),
		xmltree.T("Default", p.Default),
		xmltree.New("IopsSettings", xmltree.T("Enabled", p.IOPS.Enabled), xmltree.T("DiskIopsMax", p.IOPS.DiskMax),
			xmltree.T("DiskIopsDefault", p.IOPS.DiskDefault), xmltree.T("StorageProfileIopsLimit", p.IOPS.Limit),
			xmltree.T("DiskIopsPerGbMax", p.IOPS.PerGB)),
		xmltree.T("StorageUsedMB", st.StorageUsed(p.ID)),
		xmltree.T("IopsAllocated", st.IOPSAllocated(p.ID)),
	})
}

func vdcJSON(org *store.Org, v *store.VDC) map[string]any {
	return map[string]any{
		"id":               store.URN("vdc", v.ID),
		"name":             v.Name,
		"description":      v.Description,
		"org":              api.Ref("org", org.ID, org.Name),
		"allocationType":   "FLEX",
		"maxComputePolicy": nil,
	}
}

func listVDCs(r *api.Request) (*api.Response, error) {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for v := range o.VDCs {
			out = append(out, vdcJSON(o, &o.VDCs[v]))
		}
	}
	return r.Page(out)
}

func getVDCJSON(_ *api.Request, org *store.Org, v *store.VDC) (*api.Response, error) {
	return api.JSON(vdcJSON(org, v)), nil
}
