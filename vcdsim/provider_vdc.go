package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// providerVDC is the one provider VDC that all VDCs are on, with its network pool and what it stands on.
const (
	providerVDC      = "provider"
	providerPool     = "provider-pool"
	providerCenter   = "vc1"
	providerNetworks = "nsx1"
)

func providerRoutes(add addRoute) {
	add("GET", "/api/admin/providervdc/{id}", func(r *request) (*response, error) { return r.getProviderVDC(false) }, latencyLegacy)
	add("GET", "/api/admin/extension/providervdc/{id}", func(r *request) (*response, error) { return r.getProviderVDC(true) }, latencyLegacy)
	add("GET", "/cloudapi/1.0.0/networkPools/networkPoolSummaries", func(r *request) (*response, error) { return r.page(r.pools()) }, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/networkPools/{id}", func(r *request) (*response, error) { return r.oneOf(r.pools(), "id") }, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters", (*request).listCenters, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/virtualCenters/{id}", func(r *request) (*response, error) { return r.oneOf(r.centers(), "vcId") }, latencyCloudAPI)
}

func (s *Simulator) providerID() string { return s.ids.named("providervdc", providerVDC) }

func (s *Simulator) poolID() string { return s.ids.named("networkPool", providerPool) }

// providerProfiles are the names of the storage profiles of all VDCs.
func (s *Simulator) providerProfiles() []string {
	var out []string
	seen := map[string]bool{}
	for _, o := range s.store.model.Orgs {
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

func (r *request) getProviderVDC(extended bool) (*response, error) {
	id := bare(r.vars["id"])
	if err := r.byProvider("PROVIDER_VDC_VIEW"); err != nil {
		return nil, err
	}
	if id != r.sim.providerID() {
		return nil, forbidden("PROVIDER_VDC_VIEW", id)
	}
	A, T := xmltree.A, xmltree.T
	element, path, mediaType := "ProviderVdc", "/api/admin/providervdc/", "application/vnd.vmware.admin.providervdc+xml"
	if extended {
		element, path, mediaType = "vmext:VMWProviderVdc", "/api/admin/extension/providervdc/", "application/vnd.vmware.admin.vmwprovidervdc+xml"
	}
	n := xmltree.New(element, namespaces(), A("status", 1), A("name", providerVDC), A("id", URN("providervdc", id)), A("href", r.base()+path+id), A("type", mediaType))
	n.Add([]*xmltree.Node{
		r.link("up", "/api/admin/", "application/vnd.vmware.admin.vcloud+xml"), r.link("down", path+id+"/metadata", mime("metadata")),
		T("Description", "All resources"), xmltree.New("ComputeCapacity", rootCapacity("Cpu", "MHz"), rootCapacity("Memory", "MB"), T("IsElastic", false), T("IsHA", false)),
		xmltree.New("AvailableNetworks"), r.providerProfileRefs(), r.hardwareVersions(id), xmltree.New("Vdcs"), T("IsEnabled", true),
		xmltree.New("NetworkPoolReferences", xmltree.New("NetworkPoolReference", A("href", r.base()+"/api/admin/extension/networkPool/"+r.sim.poolID()),
			A("id", URN("networkpool", r.sim.poolID())), A("name", providerPool), A("type", "application/vnd.vmware.admin.networkPool+xml"))),
	})
	if extended {
		n.Add([]*xmltree.Node{
			xmltree.New("vmext:DataStoreRefs"), xmltree.New("vmext:ResourcePoolRefs"), r.extensionRef("vmext:VimServer", "vimServer", "vimserver", providerCenter),
			T("vmext:HighestSupportedHardwareVersion", "vmx-20"),
			r.extensionRef("vmext:NsxTManagerReference", "nsxtManagers", "nsxtmanager", providerNetworks), T("vmext:ComputeProviderScope", providerCenter),
		})
	}
	return xmlOK(n), nil
}

// extensionRef is a reference to something vSphere or NSX has.
func (r *request) extensionRef(element, path, kind, name string) *xmltree.Node {
	id := r.sim.ids.named(kind, name)
	return xmltree.New(element, xmltree.A("href", r.base()+"/api/admin/extension/"+path+"/"+id), xmltree.A("id", URN(kind, id)), xmltree.A("name", name))
}

func rootCapacity(name, unit string) *xmltree.Node {
	n := xmltree.New(name, xmltree.T("Units", unit))
	for _, f := range []string{"Allocation", "Reserved", "Total", "Used"} {
		n.Add(xmltree.T(f, 0))
	}
	return n
}

func (r *request) providerProfileRefs() *xmltree.Node {
	n := xmltree.New("StorageProfiles")
	for _, name := range r.sim.providerProfiles() {
		n.Add(r.providerProfile("ProviderVdcStorageProfile", name))
	}
	return n
}

func (r *request) providerRecords() []*record {
	A := xmltree.A
	if !r.session.provider() {
		return nil
	}
	vdcs := 0
	for _, o := range r.sim.store.model.Orgs {
		vdcs += len(o.VDCs)
	}
	id := r.sim.providerID()
	rec := &record{attrs: []xmltree.Attr{
		A("name", providerVDC), A("status", "READY"), A("isBusy", false), A("isDeleted", false), A("isEnabled", true),
		A("numberOfDatastores", 1), A("numberOfStorageProfiles", len(r.sim.providerProfiles())), A("numberOfVdcs", vdcs),
		A("href", r.base()+"/api/admin/providervdc/"+id), A("type", "application/vnd.vmware.admin.providervdc+xml"),
	}}
	for _, name := range []string{
		"cpuAllocationMhz", "cpuLimitMhz", "cpuUsedMhz", "memoryAllocationMB", "memoryLimitMB", "memoryUsedMB", "storageAllocationMB", "storageLimitMB", "storageUsedMB",
	} {
		rec.attrs = append(rec.attrs, A(name, 0))
	}
	return []*record{rec}
}

func (r *request) providerProfileRecords() []*record {
	A := xmltree.A
	if !r.session.provider() {
		return nil
	}
	var out []*record
	for _, name := range r.sim.providerProfiles() {
		out = append(out, &record{attrs: []xmltree.Attr{
			A("name", name), A("providerVdc", r.base()+"/api/admin/providervdc/"+r.sim.providerID()), A("isEnabled", true),
			A("storageProvisionedMB", 0), A("storageRequestedMB", 0), A("storageTotalMB", 1<<20), A("storageUsedMB", 0), A("numberOfConditions", 0),
			A("href", r.base()+"/api/admin/pvdcStorageProfile/"+r.sim.ids.named("providerVdcStorageProfile", name)),
			A("type", "application/vnd.vmware.admin.pvdcStorageProfile+xml"),
		}})
	}
	return out
}

// gatewayRecords are the edge gateways.
func (r *request) gatewayRecords() []*record {
	A := xmltree.A
	var out []*record
	for _, o := range r.orgs() {
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
					A("name", g.Name), A("vdc", r.href("vdc", v.ID)), A("orgVdcName", v.Name), A("numberOfExtNetworks", len(g.Uplinks)), A("numberOfOrgNetworks", routed),
					A("isBusy", r.sim.busy(g.ID)), A("gatewayStatus", "READY"), A("haStatus", "DISABLED"),
					A("href", r.edgeHref(g.ID)), A("type", mimeEdge),
				}})
			}
		}
	}
	return out
}

func (r *request) vappNetworkRecords() []*record {
	A, Opt := xmltree.A, xmltree.Opt
	var out []*record
	for _, v := range sorted(r.sim.store.vapps) {
		if !r.sees(v.OrgID) {
			continue
		}
		for _, n := range v.Networks {
			attrs := []xmltree.Attr{A("name", n.Name), A("vApp", r.href("vapp", v.ID)), A("vAppName", v.Name), A("isBusy", r.sim.busy(v.ID)), A("isLinked", n.ParentID != "")}
			gateway := n.Gateway
			if _, _, parent := r.sim.store.network(n.ParentID); parent != nil {
				gateway = parent.Gateway
				attrs = append(attrs, Opt("linkNetworkName", parent.Name))
			}
			if gateway.IsValid() {
				attrs = append(attrs, A("gateway", gateway.Addr()), A("netmask", netmask(gateway)))
			}
			out = append(out, &record{attrs: kept(append(attrs, A("href", r.href("network", n.ID)), A("type", mime("vAppNetwork"))))})
		}
	}
	return out
}

func (r *request) pools() []any {
	if !r.session.provider() {
		return nil
	}
	return []any{map[string]any{
		"id": URN("networkPool", r.sim.poolID()), "name": providerPool, "description": "", "poolType": "GENEVE", "status": "REALIZED", "promiscuousMode": false,
		"managingOwnerRef": jsonRef("nsxtmanager", r.sim.ids.named("nsxtmanager", providerNetworks), providerNetworks), "totalBackingsCount": 0, "usedBackingsCount": 0,
	}}
}

func (r *request) centers() []any {
	if !r.session.provider() {
		return nil
	}
	return []any{map[string]any{
		"vcId": URN("vimserver", r.sim.ids.named("vimserver", providerCenter)),
		"name": providerCenter, "description": "", "username": "administrator@vsphere.local", "url": "https://" + providerCenter + ".example",
		"isEnabled": true, "vsphereWebClientServerUrl": nil, "hasProxy": false, "rootFolder": nil, "vcNoneNetwork": nil,
		"tenantVisibleName": providerCenter, "isConnected": true, "mode": "IAAS", "listenerState": "CONNECTED", "clusterHealthStatus": "GREEN",
		"vcVersion": "8.0.3", "buildNumber": nil, "uuid": r.sim.ids.named("vimserver", providerCenter), "nsxVManager": nil, "proxyConfigurationUrn": nil,
	}}
}

func (r *request) listCenters() (*response, error) { return r.page(r.centers()) }
