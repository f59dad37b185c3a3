// SPDX-License-Identifier: Apache-2.0

package query

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func managerRecords(r *api.Request) []*record {
	if !r.Session.Provider() {
		return nil
	}
	A := xmltree.A
	id := r.Cloud.IDs.Named("nsxtmanager", vdcs.ProviderNetworks)
	return []*record{{attrs: []xmltree.Attr{
		A("name", vdcs.ProviderNetworks),
		A("url", "https://"+vdcs.ProviderNetworks+".example"),
		A("username", "admin"),
		A("vc", ""),
		A("href", r.Site.Base()+"/api/admin/extension/nsxtManagers/"+id),
		A("type", "application/vnd.vmware.admin.nsxTmanager+xml"),
	}}}
}

func poolRecords(r *api.Request) []*record {
	if !r.Session.Provider() {
		return nil
	}
	A := xmltree.A
	var out []*record
	for _, d := range vdcs.Pools(r.Cloud) {
		id := store.Bare(d.ID())
		out = append(out, &record{attrs: []xmltree.Attr{
			A("name", store.Text(d.Body, "name")),
			A("isBusy", r.Cloud.Tasks.Busy(id)),
			A("networkPoolType", vdcs.PoolNumber(d)),
			A("href", vdcs.PoolHref(r.Site, id)),
			A("type", vdcs.MimePool),
		}})
	}
	return out
}

// resourcePoolRecords returns the resource pool of the provider VDC.
func resourcePoolRecords(r *api.Request) []*record {
	if !r.Session.Provider() {
		return nil
	}
	A := xmltree.A
	pool := vdcs.ResourcePools[0]
	return []*record{{attrs: []xmltree.Attr{
		A("name", pool.Name),
		A("moref", pool.Moref),
		A("isDeleted", false),
		A("vc", r.Site.Base()+"/api/admin/extension/vimServer/"+vdcs.CenterID(r.Cloud.IDs)),
		A("vcName", vdcs.CenterName),
		A("providerVdc", r.Site.Base()+"/api/admin/extension/providervdc/"+vdcs.ProviderID(r.Cloud)),
		A("providerName", vdcs.ProviderVDC),
		A("isEnabled", true),
		A("isPrimary", true),
		A("clusterMoref", vdcs.ClusterMoref),
		A("isKubernetesEnabled", false),
	}}}
}

// vmGroupRecords returns the VM groups of the cluster.
func vmGroupRecords(r *api.Request) []*record {
	if !r.Session.Provider() {
		return nil
	}
	A := xmltree.A
	var out []*record
	for _, name := range vdcs.VMGroups {
		out = append(out, &record{attrs: []xmltree.Attr{
			A("vmGroupId", r.Cloud.IDs.Named("vmGroup", name)),
			A("vmGroupName", name),
			A("clusterMoref", vdcs.ClusterMoref),
			A("clusterName", vdcs.ClusterName),
			A("vcId", vdcs.CenterID(r.Cloud.IDs)),
			A("namedVmGroupId", vdcs.NamedGroupID(r.Cloud, name)),
		}})
	}
	return out
}

func providerRecords(r *api.Request) []*record {
	A := xmltree.A
	if !r.Session.Provider() {
		return nil
	}
	count := 0
	for _, o := range r.Cloud.Store.Model.Orgs {
		count += len(o.VDCs)
	}
	id := vdcs.ProviderID(r.Cloud)
	rec := &record{attrs: []xmltree.Attr{
		A("name", vdcs.ProviderVDC),
		A("status", "READY"),
		A("isBusy", false),
		A("isDeleted", false),
		A("isEnabled", true),
		A("numberOfDatastores", 1),
		A("numberOfStorageProfiles", len(vdcs.ProviderProfiles(r.Cloud))),
		A("numberOfVdcs", count),
		A("href", r.Site.Base()+"/api/admin/providervdc/"+id),
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

func providerProfileRecords(r *api.Request) []*record {
	A := xmltree.A
	if !r.Session.Provider() {
		return nil
	}
	var out []*record
	for _, name := range vdcs.ProviderProfiles(r.Cloud) {
		out = append(out, &record{attrs: []xmltree.Attr{
			A("name", name),
			A("providerVdc", r.Site.Base()+"/api/admin/providervdc/"+vdcs.ProviderID(r.Cloud)),
			A("isEnabled", true),
			A("storageProvisionedMB", 0),
			A("storageRequestedMB", 0),
			A("storageTotalMB", 1<<20),
			A("storageUsedMB", 0),
			A("numberOfConditions", 0),
			A("href", r.Site.Base()+"/api/admin/pvdcStorageProfile/"+r.Cloud.IDs.Named("providerVdcStorageProfile", name)),
			A("type", "application/vnd.vmware.admin.pvdcStorageProfile+xml"),
		}})
	}
	return out
}

// gatewayRecords returns the edge gateways.
func gatewayRecords(r *api.Request) []*record {
	A := xmltree.A
	var out []*record
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
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
					A("vdc", r.Site.Href("vdc", v.ID)),
					A("orgVdcName", v.Name),
					A("numberOfExtNetworks", len(g.Uplinks)),
					A("numberOfOrgNetworks", routed),
					A("isBusy", r.Cloud.Tasks.Busy(g.ID)),
					A("gatewayStatus", "READY"),
					A("haStatus", "DISABLED"),
					A("href", gateways.EdgeHref(r.Site, g.ID)),
					A("type", gateways.MimeEdge),
				}})
			}
		}
	}
	return out
}

func vappNetworkRecords(r *api.Request) []*record {
	A := xmltree.A
	Opt := xmltree.Opt
	var out []*record
	viewer := access.ViewerOf(r)
	for _, v := range store.Sorted(r.Cloud.Store.VApps) {
		if !viewer.Sees(v) {
			continue
		}
		for _, n := range v.Networks {
			attrs := []xmltree.Attr{
				A("name", n.Name),
				A("vApp", r.Site.Href("vapp", v.ID)),
				A("vAppName", v.Name),
				A("isBusy", r.Cloud.Tasks.Busy(v.ID)),
				A("isLinked", n.ParentID != ""),
			}
			gateway := n.Gateway
			if _, _, parent := r.Cloud.Store.Network(n.ParentID); parent != nil {
				gateway = parent.Gateway
				attrs = append(attrs, Opt("linkNetworkName", parent.Name))
			}
			if gateway.IsValid() {
				attrs = append(attrs, A("gateway", gateway.Addr()), A("netmask", ovf.Netmask(gateway)))
			}
			out = append(out, &record{attrs: dropEmpty(append(attrs, A("href", r.Site.Href("network", n.ID)),
				A("type", wire.Mime("vAppNetwork"))))})
		}
	}
	return out
}
