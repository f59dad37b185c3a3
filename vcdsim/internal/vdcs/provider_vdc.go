// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Names of the provider VDC that backs all VDCs, of its network pool, and of its vCenter and NSX manager.
const (
	ProviderVDC      = "provider"
	ProviderPool     = "provider-pool"
	CenterName       = "vc1"
	ProviderNetworks = "nsx1"
)

// ProviderDatastore is the only datastore of the provider VDC.
const ProviderDatastore = "datastore1"

func providerRoutes(add api.AddRoute) {
	add("GET", "/api/admin/providervdc/{id}", func(r *api.Request) (*api.Response, error) { return getProviderVDC(r, false) },
		cloud.LatencyLegacy)
	add("GET", "/api/admin/extension/providervdc/{id}",
		func(r *api.Request) (*api.Response, error) { return getProviderVDC(r, true) }, cloud.LatencyLegacy)
	add("GET", "/api/admin/extension/vimServer/{id}", getVimServer, cloud.LatencyLegacy)
	add("GET", "/api/admin/pvdcStorageProfile/{id}", getProviderProfile, cloud.LatencyLegacy)
}

// ProviderID returns the ID of the provider VDC.
func ProviderID(s *cloud.Cloud) string { return s.IDs.Named("providervdc", ProviderVDC) }

// ProviderProfiles returns the names of the storage profiles of all VDCs.
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
		xmltree.New("NetworkPoolReferences", poolRef(r)),
	})
	if extended {
		n.Add([]*xmltree.Node{
			xmltree.New("vmext:DataStoreRefs"),
			xmltree.New("vmext:ResourcePoolRefs", xmltree.New("vmext:VimObjectRef",
				extensionRef(r, "vmext:VimServerRef", "vimServer", "vimserver", CenterName),
				T("vmext:MoRef", ResourcePools[0].Moref),
				T("vmext:VimObjectType", "RESOURCE_POOL"))),
			extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", CenterName),
			T("vmext:HighestSupportedHardwareVersion", "vmx-20"),
			extensionRef(r, "vmext:NsxTManagerReference", "nsxtManagers", "nsxtmanager", ProviderNetworks),
			T("vmext:ComputeProviderScope", CenterName),
		})
	}
	return api.XML(n), nil
}

// extensionRef returns a reference to a vCenter or an NSX manager.
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
	if store.Bare(r.Vars["id"]) != r.Cloud.IDs.Named("vimserver", CenterName) {
		return nil, store.Forbidden("VIM_SERVER_VIEW", r.Vars["id"])
	}
	n := extensionRef(r, "vmext:VimServer", "vimServer", "vimserver", CenterName)
	n.Add(wire.Namespaces())
	n.Add([]*xmltree.Node{
		xmltree.T("vmext:Username", "administrator@vsphere.local"),
		xmltree.T("vmext:Url", "https://"+CenterName+".example"),
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
