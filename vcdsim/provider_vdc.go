// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// providerVDC is the one provider VDC of all VDCs, with its network pool and its vSphere and NSX objects.
const (
	providerVDC      = "provider"
	providerPool     = "provider-pool"
	providerCenter   = "vc1"
	providerNetworks = "nsx1"
)

func providerRoutes(add addRoute) {
	add("GET", "/api/admin/providervdc/{id}", func(r *request) (*response, error) { return getProviderVDC(r, false) },
		latencyLegacy)
	add("GET", "/api/admin/extension/providervdc/{id}",
		func(r *request) (*response, error) { return getProviderVDC(r, true) }, latencyLegacy)
	add("GET", "/api/admin/extension/networkPool/{id}", getNetworkPool, latencyLegacy)
	add("GET", "/api/admin/extension/vimServer/{id}", getVimServer, latencyLegacy)
	add("GET", "/api/admin/pvdcStorageProfile/{id}", getProviderProfile, latencyLegacy)
	add("GET", "/cloudapi/1.0.0/networkPools/networkPoolSummaries",
		func(r *request) (*response, error) { return r.page(networkPools(r)) }, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/networkPools/{id}",
		func(r *request) (*response, error) { return oneOf(r, networkPools(r), "id") }, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters", listVirtualCenters, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters/{id}",
		func(r *request) (*response, error) { return oneOf(r, virtualCenters(r.session, r.cloud.ids), "vcId") }, latencyCloudAPI)
}

func providerID(s *cloud) string { return s.ids.Named("providervdc", providerVDC) }

func poolID(s *cloud) string { return s.ids.Named("networkPool", providerPool) }

// providerProfiles are the names of the storage profiles of all VDCs.
func providerProfiles(s *cloud) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range s.store.Model.Orgs {
		for _, v := range o.VDCs {
			for _, p := range v.StorageProfiles {
				if !seen[p.Name] {
					seen[p.Name] = true
					out = append(out, p.Name)
				}
			}
		}
	}
	return out
}

func getProviderVDC(r *request, extended bool) (*response, error) {
	id := store.Bare(r.vars["id"])
	if err := r.byProvider("PROVIDER_VDC_VIEW"); err != nil {
		return nil, err
	}
	if id != providerID(r.cloud) {
		return nil, store.Forbidden("PROVIDER_VDC_VIEW", id)
	}
	A := xmltree.A
	T := xmltree.T
	element := "ProviderVdc"
	path := "/api/admin/providervdc/"
	mediaType := "application/vnd.vmware.admin.providervdc+xml"
	if extended {
		element = "vmext:VMWProviderVdc"
		path = "/api/admin/extension/providervdc/"
		mediaType = "application/vnd.vmware.admin.vmwprovidervdc+xml"
	}
	n := xmltree.New(element, wire.Namespaces(), A("status", 1), A("name", providerVDC), A("id", store.URN("providervdc", id)),
		A("href", r.site.Base()+path+id), A("type", mediaType))
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/admin/", "application/vnd.vmware.admin.vcloud+xml"),
		r.site.Link("down", path+id+"/metadata", wire.Mime("metadata")),
		T("Description", "All resources"),
		xmltree.New("ComputeCapacity", rootCapacity("Cpu", "MHz"), rootCapacity("Memory", "MB"), T("IsElastic", false),
			T("IsHA", false)),
		xmltree.New("AvailableNetworks"),
		providerProfileRefs(r),
		hardwareVersions(r.site, id),
		xmltree.New("Vdcs"),
		T("IsEnabled", true),
		xmltree.New("NetworkPoolReferences",
			xmltree.New("NetworkPoolReference", A("href", r.site.Base()+"/api/admin/extension/networkPool/"+poolID(r.cloud)),
				A("id", store.URN("networkpool", poolID(r.cloud))), A("name", providerPool),
				A("type", "application/vnd.vmware.admin.networkPool+xml"))),
	})
	if extended {
		n.Add([]*xmltree.Node{
			xmltree.New("vmext:DataStoreRefs"),
			xmltree.New("vmext:ResourcePoolRefs"),
			extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", providerCenter),
			T("vmext:HighestSupportedHardwareVersion", "vmx-20"),
			extensionRef(r, "vmext:NsxTManagerReference", "nsxtManagers", "nsxtmanager", providerNetworks),
			T("vmext:ComputeProviderScope", providerCenter),
		})
	}
	return xmlOK(n), nil
}

// extensionRef is a reference to something vSphere or NSX has.
func extensionRef(r *request, element, path, kind, name string) *xmltree.Node {
	id := r.cloud.ids.Named(kind, name)
	return xmltree.New(element, xmltree.A("href", r.site.Base()+"/api/admin/extension/"+path+"/"+id),
		xmltree.A("id", store.URN(kind, id)), xmltree.A("name", name))
}

func rootCapacity(name, unit string) *xmltree.Node {
	n := xmltree.New(name, xmltree.T("Units", unit))
	for _, f := range []string{"Allocation", "Reserved", "Total", "Used"} {
		n.Add(xmltree.T(f, 0))
	}
	return n
}

func providerProfileRefs(r *request) *xmltree.Node {
	n := xmltree.New("StorageProfiles")
	for _, name := range providerProfiles(r.cloud) {
		n.Add(providerProfile(r.site, r.cloud.ids, "ProviderVdcStorageProfile", name))
	}
	return n
}

func providerRecords(r *request) []*record {
	A := xmltree.A
	if !r.session.Provider() {
		return nil
	}
	count := 0
	for _, o := range r.cloud.store.Model.Orgs {
		count += len(o.VDCs)
	}
	id := providerID(r.cloud)
	rec := &record{attrs: []xmltree.Attr{
		A("name", providerVDC),
		A("status", "READY"),
		A("isBusy", false),
		A("isDeleted", false),
		A("isEnabled", true),
		A("numberOfDatastores", 1),
		A("numberOfStorageProfiles", len(providerProfiles(r.cloud))),
		A("numberOfVdcs", count),
		A("href", r.site.Base()+"/api/admin/providervdc/"+id),
		A("type", "application/vnd.vmware.admin.providervdc+xml"),
	}}
	for _, name := range []string{
		"cpuAllocationMhz", "cpuLimitMhz", "cpuUsedMhz", "memoryAllocationMB", "memoryLimitMB", "memoryUsedMB",
		"storageAllocationMB", "storageLimitMB", "storageUsedMB",
	} {
		rec.attrs = append(rec.attrs, A(name, 0))
	}
	return []*record{rec}
}

func providerProfileRecords(r *request) []*record {
	A := xmltree.A
	if !r.session.Provider() {
		return nil
	}
	var out []*record
	for _, name := range providerProfiles(r.cloud) {
		out = append(out, &record{attrs: []xmltree.Attr{
			A("name", name),
			A("providerVdc", r.site.Base()+"/api/admin/providervdc/"+providerID(r.cloud)),
			A("isEnabled", true),
			A("storageProvisionedMB", 0),
			A("storageRequestedMB", 0),
			A("storageTotalMB", 1<<20),
			A("storageUsedMB", 0),
			A("numberOfConditions", 0),
			A("href", r.site.Base()+"/api/admin/pvdcStorageProfile/"+r.cloud.ids.Named("providerVdcStorageProfile", name)),
			A("type", "application/vnd.vmware.admin.pvdcStorageProfile+xml"),
		}})
	}
	return out
}

// gatewayRecords are the edge gateways.
func gatewayRecords(r *request) []*record {
	A := xmltree.A
	var out []*record
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for i := range o.VDCs {
			v := &o.VDCs[i]
			for _, g := range v.EdgeGateways {
				routed := 0
				for _, n := range v.Networks {
					if n.Edge == g.ID {
						routed++
					}
				}
				out = append(out, &record{attrs: []xmltree.Attr{
					A("name", g.Name),
					A("vdc", r.site.Href("vdc", v.ID)),
					A("orgVdcName", v.Name),
					A("numberOfExtNetworks", len(g.Uplinks)),
					A("numberOfOrgNetworks", routed),
					A("isBusy", r.cloud.tasks.busy(g.ID)),
					A("gatewayStatus", "READY"),
					A("haStatus", "DISABLED"),
					A("href", edgeHref(r.site, g.ID)),
					A("type", mimeEdge),
				}})
			}
		}
	}
	return out
}

func vappNetworkRecords(r *request) []*record {
	A := xmltree.A
	Opt := xmltree.Opt
	var out []*record
	viewer := viewerOf(r)
	for _, v := range store.Sorted(r.cloud.store.VApps) {
		if !viewer.sees(v) {
			continue
		}
		for _, n := range v.Networks {
			attrs := []xmltree.Attr{
				A("name", n.Name),
				A("vApp", r.site.Href("vapp", v.ID)),
				A("vAppName", v.Name),
				A("isBusy", r.cloud.tasks.busy(v.ID)),
				A("isLinked", n.ParentID != ""),
			}
			gateway := n.Gateway
			if _, _, parent := r.cloud.store.Network(n.ParentID); parent != nil {
				gateway = parent.Gateway
				attrs = append(attrs, Opt("linkNetworkName", parent.Name))
			}
			if gateway.IsValid() {
				attrs = append(attrs, A("gateway", gateway.Addr()), A("netmask", netmask(gateway)))
			}
			out = append(out, &record{attrs: kept(append(attrs, A("href", r.site.Href("network", n.ID)),
				A("type", wire.Mime("vAppNetwork"))))})
		}
	}
	return out
}

func getVimServer(r *request) (*response, error) {
	if err := r.byProvider("VIM_SERVER_VIEW"); err != nil {
		return nil, err
	}
	if store.Bare(r.vars["id"]) != r.cloud.ids.Named("vimserver", providerCenter) {
		return nil, store.Forbidden("VIM_SERVER_VIEW", r.vars["id"])
	}
	n := extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", providerCenter)
	n.Add(wire.Namespaces())
	n.Add([]*xmltree.Node{
		xmltree.T("vmext:Username", "administrator@vsphere.local"),
		xmltree.T("vmext:Url", "https://"+providerCenter+".example"),
		xmltree.T("vmext:IsEnabled", true),
	})
	return xmlOK(n), nil
}

func getProviderProfile(r *request) (*response, error) {
	if err := r.byProvider("PROVIDER_VDC_STORAGE_PROFILE_VIEW"); err != nil {
		return nil, err
	}
	for _, name := range providerProfiles(r.cloud) {
		n := providerProfile(r.site, r.cloud.ids, "ProviderVdcStorageProfile", name)
		if n.Attr("href") != r.site.Base()+r.URL.Path {
			continue
		}
		n.Add(wire.Namespaces())
		n.Add([]*xmltree.Node{
			xmltree.T("Enabled", true),
			xmltree.T("Units", "MB"),
			xmltree.T("CapacityTotal", 0),
			xmltree.T("CapacityUsed", 0),
		})
		return xmlOK(n), nil
	}
	return nil, store.Forbidden("PROVIDER_VDC_STORAGE_PROFILE_VIEW", r.vars["id"])
}

func getNetworkPool(r *request) (*response, error) {
	if err := r.byProvider("NETWORK_POOL_VIEW"); err != nil {
		return nil, err
	}
	id := store.Bare(r.vars["id"])
	if id != poolID(r.cloud) {
		return nil, store.Forbidden("NETWORK_POOL_VIEW", id)
	}
	return xmlOK(xmltree.New("vmext:VMWNetworkPool", wire.Namespaces(),
		xmltree.A("href", r.site.Base()+"/api/admin/extension/networkPool/"+id), xmltree.A("id", store.URN("networkpool", id)),
		xmltree.A("name", providerPool), xmltree.A("type", "application/vnd.vmware.admin.networkPool+xml"),
		xmltree.T("Description", ""))), nil
}

func networkPools(r *request) []any {
	if !r.session.Provider() {
		return nil
	}
	return []any{map[string]any{
		"id":              store.URN("networkPool", poolID(r.cloud)),
		"name":            providerPool,
		"description":     "",
		"poolType":        "GENEVE",
		"status":          "REALIZED",
		"promiscuousMode": false,
		"managingOwnerRef": jsonRef("nsxtmanager", r.cloud.ids.Named("nsxtmanager", providerNetworks),
			providerNetworks),
		"totalBackingsCount": 0,
		"usedBackingsCount":  0,
	}}
}

func virtualCenters(session *store.Session, source *ids.Source) []any {
	if !session.Provider() {
		return nil
	}
	return []any{map[string]any{
		"vcId":                      store.URN("vimserver", source.Named("vimserver", providerCenter)),
		"name":                      providerCenter,
		"description":               "",
		"username":                  "administrator@vsphere.local",
		"url":                       "https://" + providerCenter + ".example",
		"isEnabled":                 true,
		"vsphereWebClientServerUrl": nil,
		"hasProxy":                  false,
		"rootFolder":                nil,
		"vcNoneNetwork":             nil,
		"tenantVisibleName":         providerCenter,
		"isConnected":               true,
		"mode":                      "IAAS",
		"listenerState":             "CONNECTED",
		"clusterHealthStatus":       "GREEN",
		"vcVersion":                 "8.0.3",
		"buildNumber":               nil,
		"uuid":                      source.Named("vimserver", providerCenter),
		"nsxVManager":               nil,
		"proxyConfigurationUrn":     nil,
	}}
}

func listVirtualCenters(r *request) (*response, error) {
	return r.page(virtualCenters(r.session, r.cloud.ids))
}
