// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ids"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// ProviderVDC is the one provider VDC of all VDCs, with its network pool and its vSphere and NSX objects.
const (
	ProviderVDC      = "provider"
	ProviderPool     = "provider-pool"
	providerCenter   = "vc1"
	ProviderNetworks = "nsx1"
)

// ProviderDatastore is the one datastore of the provider VDC.
const ProviderDatastore = "datastore1"

func providerRoutes(add api.AddRoute) {
	add("GET", "/api/admin/providervdc/{id}", func(r *api.Request) (*api.Response, error) { return getProviderVDC(r, false) },
		cloud.LatencyLegacy)
	add("GET", "/api/admin/extension/providervdc/{id}",
		func(r *api.Request) (*api.Response, error) { return getProviderVDC(r, true) }, cloud.LatencyLegacy)
	add("GET", "/api/admin/extension/networkPool/{id}", getNetworkPool, cloud.LatencyLegacy)
	add("GET", "/api/admin/extension/vimServer/{id}", getVimServer, cloud.LatencyLegacy)
	add("GET", "/api/admin/pvdcStorageProfile/{id}", getProviderProfile, cloud.LatencyLegacy)
	add("GET", "/cloudapi/1.0.0/networkPools/networkPoolSummaries",
		func(r *api.Request) (*api.Response, error) { return r.Page(networkPools(r)) }, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/networkPools/{id}",
		func(r *api.Request) (*api.Response, error) { return access.OneOf(r, networkPools(r), "id") }, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters", listVirtualCenters, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters/{id}",
		func(r *api.Request) (*api.Response, error) {
			return access.OneOf(r, virtualCenters(r.Session, r.Cloud.IDs), "vcId")
		}, cloud.LatencyCloudAPI)
}

// ProviderID returns the id of the provider VDC.
func ProviderID(s *cloud.Cloud) string { return s.IDs.Named("providervdc", ProviderVDC) }

// PoolID returns the id of the network pool.
func PoolID(s *cloud.Cloud) string { return s.IDs.Named("networkPool", ProviderPool) }

// ProviderProfiles are the names of the storage profiles of all VDCs.
func ProviderProfiles(s *cloud.Cloud) []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range s.Store.Model.Orgs {
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

func getProviderVDC(r *api.Request, extended bool) (*api.Response, error) {
	id := store.Bare(r.Vars["id"])
	if err := r.ByProvider("PROVIDER_VDC_VIEW"); err != nil {
		return nil, err
	}
	if id != ProviderID(r.Cloud) {
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
	n := xmltree.New(element, wire.Namespaces(), A("status", 1), A("name", ProviderVDC), A("id", store.URN("providervdc", id)),
		A("href", r.Site.Base()+path+id), A("type", mediaType))
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/admin/", "application/vnd.vmware.admin.vcloud+xml"),
		r.Site.Link("down", path+id+"/metadata", wire.Mime("metadata")),
		T("Description", "All resources"),
		xmltree.New("ComputeCapacity", rootCapacity("Cpu", "MHz"), rootCapacity("Memory", "MB"), T("IsElastic", false),
			T("IsHA", false)),
		xmltree.New("AvailableNetworks"),
		providerProfileRefs(r),
		hardwareVersions(r.Site, id),
		xmltree.New("Vdcs"),
		T("IsEnabled", true),
		xmltree.New("NetworkPoolReferences",
			xmltree.New("NetworkPoolReference", A("href", r.Site.Base()+"/api/admin/extension/networkPool/"+PoolID(r.Cloud)),
				A("id", store.URN("networkpool", PoolID(r.Cloud))), A("name", ProviderPool),
				A("type", "application/vnd.vmware.admin.networkPool+xml"))),
	})
	if extended {
		n.Add([]*xmltree.Node{
			xmltree.New("vmext:DataStoreRefs"),
			xmltree.New("vmext:ResourcePoolRefs"),
			extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", providerCenter),
			T("vmext:HighestSupportedHardwareVersion", "vmx-20"),
			extensionRef(r, "vmext:NsxTManagerReference", "nsxtManagers", "nsxtmanager", ProviderNetworks),
			T("vmext:ComputeProviderScope", providerCenter),
		})
	}
	return api.XML(n), nil
}

// extensionRef is a reference to something vSphere or NSX has.
func extensionRef(r *api.Request, element, path, kind, name string) *xmltree.Node {
	id := r.Cloud.IDs.Named(kind, name)
	return xmltree.New(element, xmltree.A("href", r.Site.Base()+"/api/admin/extension/"+path+"/"+id),
		xmltree.A("id", store.URN(kind, id)), xmltree.A("name", name))
}

func rootCapacity(name, unit string) *xmltree.Node {
	n := xmltree.New(name, xmltree.T("Units", unit))
	for _, f := range []string{"Allocation", "Reserved", "Total", "Used"} {
		n.Add(xmltree.T(f, 0))
	}
	return n
}

func providerProfileRefs(r *api.Request) *xmltree.Node {
	n := xmltree.New("StorageProfiles")
	for _, name := range ProviderProfiles(r.Cloud) {
		n.Add(providerProfile(r.Site, r.Cloud.IDs, "ProviderVdcStorageProfile", name))
	}
	return n
}

func getVimServer(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("VIM_SERVER_VIEW"); err != nil {
		return nil, err
	}
	if store.Bare(r.Vars["id"]) != r.Cloud.IDs.Named("vimserver", providerCenter) {
		return nil, store.Forbidden("VIM_SERVER_VIEW", r.Vars["id"])
	}
	n := extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", providerCenter)
	n.Add(wire.Namespaces())
	n.Add([]*xmltree.Node{
		xmltree.T("vmext:Username", "administrator@vsphere.local"),
		xmltree.T("vmext:Url", "https://"+providerCenter+".example"),
		xmltree.T("vmext:IsEnabled", true),
	})
	return api.XML(n), nil
}

func getProviderProfile(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("PROVIDER_VDC_STORAGE_PROFILE_VIEW"); err != nil {
		return nil, err
	}
	for _, name := range ProviderProfiles(r.Cloud) {
		n := providerProfile(r.Site, r.Cloud.IDs, "ProviderVdcStorageProfile", name)
		if n.Attr("href") != r.Site.Base()+r.URL.Path {
			continue
		}
		n.Add(wire.Namespaces())
		n.Add([]*xmltree.Node{
			xmltree.T("Enabled", true),
			xmltree.T("Units", "MB"),
			xmltree.T("CapacityTotal", 0),
			xmltree.T("CapacityUsed", 0),
		})
		return api.XML(n), nil
	}
	return nil, store.Forbidden("PROVIDER_VDC_STORAGE_PROFILE_VIEW", r.Vars["id"])
}

func getNetworkPool(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("NETWORK_POOL_VIEW"); err != nil {
		return nil, err
	}
	id := store.Bare(r.Vars["id"])
	if id != PoolID(r.Cloud) {
		return nil, store.Forbidden("NETWORK_POOL_VIEW", id)
	}
	return api.XML(xmltree.New("vmext:VMWNetworkPool", wire.Namespaces(),
		xmltree.A("href", r.Site.Base()+"/api/admin/extension/networkPool/"+id), xmltree.A("id", store.URN("networkpool", id)),
		xmltree.A("name", ProviderPool), xmltree.A("type", "application/vnd.vmware.admin.networkPool+xml"),
		xmltree.T("Description", ""))), nil
}

func networkPools(r *api.Request) []any {
	if !r.Session.Provider() {
		return nil
	}
	return []any{map[string]any{
		"id":              store.URN("networkPool", PoolID(r.Cloud)),
		"name":            ProviderPool,
		"description":     "",
		"poolType":        "GENEVE",
		"status":          "REALIZED",
		"promiscuousMode": false,
		"managingOwnerRef": api.Ref("nsxtmanager", r.Cloud.IDs.Named("nsxtmanager", ProviderNetworks),
			ProviderNetworks),
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

func listVirtualCenters(r *api.Request) (*api.Response, error) {
	return r.Page(virtualCenters(r.Session, r.Cloud.IDs))
}
