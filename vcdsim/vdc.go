// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func vdcRoutes(add addRoute) {
	add("GET", "/api/vdc/{id}", with2(ownVDC, getVDC), latencyVDC)
	add("GET", "/api/vdc/{id}/hwv/{version}", with2(ownVDC, getHardwareVersion), latencyLegacy)
	add("GET", "/api/vdcStorageProfile/{id}", getStorageProfile, latencyLegacy)
	add("GET", "/cloudapi/1.0.0/vdcs", listVDCs, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/vdcs/{id}", with2(ownVDC, getVDCJSON), latencyCloudAPI)
}

// ownVDC finds the VDC in the path.
func ownVDC(r *request) (*store.Org, *store.VDC, error) {
	org, v := r.cloud.store.VDC(store.Bare(r.vars["id"]))
	if v == nil || !r.session.Sees(org.ID) {
		return nil, nil, store.Forbidden("VDC_VIEW", r.vars["id"])
	}
	return org, v, nil
}

// vdcByID finds the VDC an entity is in.
func vdcByID(st *store.Store, id string) (*store.VDC, error) {
	_, v := st.VDC(id)
	if v == nil {
		return nil, store.Forbidden("VDC_VIEW", id)
	}
	return v, nil
}

const allocationFlex = "Flex"

// vdcActions are the requests a VDC offers: path below the VDC, and type.
var vdcActions = [][2]string{
	{"/action/uploadVAppTemplate", "uploadVAppTemplateParams"},
	{"/media", "media"},
	{"/action/instantiateOvf", "instantiateOvfParams"},
	{"/action/instantiateVAppTemplate", "instantiateVAppTemplateParams"},
	{"/action/cloneVApp", "cloneVAppParams"},
	{"/action/cloneVAppTemplate", "cloneVAppTemplateParams"},
	{"/action/cloneMedia", "cloneMediaParams"},
	{"/action/captureVApp", "captureVAppParams"},
	{"/action/composeVApp", "composeVAppParams"},
	{"/disk", "diskCreateParams"},
	{"/action/createVm", "CreateVmParams"},
	{"/action/instantiateVmFromTemplate", "instantiateVmTemplateParams"},
}

func getVDC(r *request, org *store.Org, v *store.VDC) (*response, error) {
	n := r.site.Entity("Vdc", "vdc", v.ID, v.Name, xmltree.A("status", 1))
	n.Add(r.site.Link("up", "/api/org/"+org.ID, wire.Mime("org")))
	vdcContent(r, n, org, v)
	return xmlOK(n), nil
}

// vdcContent is what a VDC shows to all callers.
func vdcContent(r *request, n *xmltree.Node, org *store.Org, v *store.VDC) {
	path := "/api/vdc/" + v.ID
	n.Add(r.site.Link("down", path+"/metadata", wire.Mime("metadata")))
	for _, a := range vdcActions {
		n.Add(r.site.Link("add", path+a[0], wire.Mime(a[1])))
	}
	n.Add([]*xmltree.Node{
		r.site.Link("edgeGateways", "/api/admin/vdc/"+v.ID+"/edgeGateways",
			"application/vnd.vmware.vcloud.query.records+xml"),
		r.site.Link("add", "/api/admin/vdc/"+v.ID+"/networks", wire.Mime("network")),
		r.site.Link("orgVdcNetworks", "/api/admin/vdc/"+v.ID+"/networks", "application/vnd.vmware.vcloud.query.records+xml"),
		r.site.Link("down", path+"/vmAffinityRules/", wire.Mime("vmaffinityrules")),
		r.site.Link("add", path+"/vmAffinityRules/", wire.Mime("vmaffinityrule")),
		xmltree.T("Description", v.Description),
		tasksNode(r, v.ID),
		xmltree.T("AllocationModel", orElse(v.AllocationModel, allocationFlex)),
		computeNode(&v.Compute),
		resourceEntities(r, org, v),
		availableNetworks(r.site, org, v),
		hardwareVersions(r.site, v.ID),
		xmltree.T("NicQuota", 0),
		xmltree.T("NetworkQuota", networkQuota(&v.Compute)),
		xmltree.T("UsedNetworkCount", len(v.Networks)),
		xmltree.T("VmQuota", v.VMQuota),
		xmltree.T("IsEnabled", !v.Disabled),
		storageProfiles(r.site, r.session, v, n.Name == "AdminVdc"),
		xmltree.T("VCpuInMhz2", cpuSpeed(&v.Compute)),
	})
	if p := r.cloud.store.Policy(r.cloud.store.DefaultSizing(v)); p != nil {
		n.Add(policyRef(r.site, "DefaultComputePolicy", p))
	}
}

func resourceEntities(r *request, org *store.Org, v *store.VDC) *xmltree.Node {
	n := xmltree.New("ResourceEntities")
	add := func(kind, id, name string) {
		n.Add(xmltree.New("ResourceEntity", xmltree.A("href", r.site.Href(kind, id)), xmltree.A("id", store.URN(kind, id)),
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
	viewer := viewerOf(r)
	for _, a := range store.Sorted(r.cloud.store.VApps) {
		if a.VDCID == v.ID && viewer.sees(a) {
			add("vapp", a.ID, a.Name)
		}
	}
	for _, d := range store.Sorted(r.cloud.store.Disks) {
		if d.VDCID == v.ID {
			add("disk", d.ID, d.Name)
		}
	}
	return n
}

// availableNetworks are a VDC's own networks and those of the group it is in.
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

// storageProfiles refers to the storage profiles of a VDC; in an AdminVdc to the admin views, which can be changed.
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

func getStorageProfile(r *request) (*response, error) {
	org, vdc, p := r.cloud.store.Profile(store.Bare(r.vars["id"]))
	if p == nil || !r.session.Sees(org.ID) {
		return nil, store.Forbidden("VDC_STORAGE_PROFILE_VIEW", r.vars["id"])
	}
	n := r.site.Entity("VdcStorageProfile", "vdcstorageProfile", p.ID, p.Name)
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.site.Link("down", "/api/vdcStorageProfile/"+p.ID+"/metadata", wire.Mime("metadata")),
	})
	profileContent(r.cloud.store, n, p)
	return xmlOK(n), nil
}

// profileContent is what a storage profile shows to all callers.
func profileContent(st *store.Store, n *xmltree.Node, p *store.StorageProfile) {
	n.Add([]*xmltree.Node{
		xmltree.T("Enabled", !p.Disabled),
		xmltree.T("Units", "MB"),
		xmltree.T("Limit", p.LimitMiB),
		xmltree.T("Default", p.Default),
		xmltree.New("IopsSettings", xmltree.T("Enabled", false), xmltree.T("DiskIopsMax", 0),
			xmltree.T("DiskIopsDefault", 0),
			xmltree.T("StorageProfileIopsLimit", 0), xmltree.T("DiskIopsPerGbMax", 0)),
		xmltree.T("StorageUsedMB", st.StorageUsed(p.ID)),
		xmltree.T("IopsAllocated", 0),
	})
}

func vdcJSON(org *store.Org, v *store.VDC) map[string]any {
	return map[string]any{
		"id":               store.URN("vdc", v.ID),
		"name":             v.Name,
		"description":      v.Description,
		"org":              jsonRef("org", org.ID, org.Name),
		"allocationType":   "FLEX",
		"maxComputePolicy": nil,
	}
}

func listVDCs(r *request) (*response, error) {
	var out []any
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for v := range o.VDCs {
			out = append(out, vdcJSON(o, &o.VDCs[v]))
		}
	}
	return r.page(out)
}

func getVDCJSON(_ *request, org *store.Org, v *store.VDC) (*response, error) {
	return jsonOK(vdcJSON(org, v)), nil
}

func getCapabilities(r *request) (*response, error) {
	_, _, err := ownVDC(r)
	if _, _, asGroup := ownVDCGroup(r); err != nil && asGroup != nil {
		return nil, err
	}
	return r.page([]any{
		map[string]any{"name": "networkProvider", "value": "NSX_T", "category": "Infra"},
		map[string]any{"name": "crossVdc", "value": false, "category": "VdcGroup"},
		map[string]any{"name": "vdcGroupTypes", "value": []string{"LOCAL"}, "category": "VdcGroup"},
	})
}
