// SPDX-License-Identifier: Apache-2.0

package vdcs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// GetAdminVDC returns the administrator's view of a VDC.
func GetAdminVDC(r *api.Request) (*api.Response, error) {
	org, v, err := OwnVDC(r)
	if err != nil {
		return nil, err
	}
	A := xmltree.A
	T := xmltree.T
	n := xmltree.New("AdminVdc", wire.Namespaces(), A("status", 1), A("name", v.Name), A("id", store.URN("vdc", v.ID)),
		A("href", r.Site.Base()+"/api/admin/vdc/"+v.ID), A("type", "application/vnd.vmware.admin.vdc+xml"))
	n.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/admin/org/"+org.ID, "application/vnd.vmware.admin.organization+xml"),
		r.Site.Link("alternate", "/api/vdc/"+v.ID, wire.Mime("vdc")),
	})
	addVDCContent(r, n, org, v)
	c := &v.Compute
	n.Add([]*xmltree.Node{
		T("ResourceGuaranteedMemory", c.MemoryGuaranteed),
		T("ResourceGuaranteedCpu", c.CPUGuaranteed),
		T("VCpuInMhz", cpuSpeed(c)),
		T("IsThinProvision", !c.ThickDisks),
	})
	if r.Session.Provider() {
		n.Add(poolRef(r))
	}
	n.Add([]*xmltree.Node{
		api.AdminRef(r.Site, "ProviderVdcReference", "providervdc", ProviderID(r.Cloud), ProviderVDC),
		resourcePools(r, v),
		T("UsesFastProvisioning", !v.FullClones),
		T("OverCommitAllowed", !c.NoOvercommit),
		T("VmDiscoveryEnabled", v.DiscoversVMs),
		T("IsElastic", c.Elastic),
		T("IncludeMemoryOverhead", !c.NoMemoryOverhead),
	})
	return api.XML(n), nil
}
