// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// roleNames are the roles every organization has.
var roleNames = []string{
	"Organization Administrator", "Catalog Author", "vApp Author", "vApp User", "Console Access Only",
	"Defer to Identity Provider",
}

// getAdminVDC shows a VDC as administrators see it.
func getAdminVDC(r *request) (*response, error) {
	org, v, err := ownVDC(r)
	if err != nil {
		return nil, err
	}
	A := xmltree.A
	T := xmltree.T
	n := xmltree.New("AdminVdc", wire.Namespaces(), A("status", 1), A("name", v.Name), A("id", store.URN("vdc", v.ID)),
		A("href", r.site.Base()+"/api/admin/vdc/"+v.ID), A("type", "application/vnd.vmware.admin.vdc+xml"))
	n.Add([]*xmltree.Node{
		r.site.Link("up", "/api/admin/org/"+org.ID, "application/vnd.vmware.admin.organization+xml"),
		r.site.Link("alternate", "/api/vdc/"+v.ID, wire.Mime("vdc")),
	})
	vdcContent(r, n, org, v)
	c := &v.Compute
	n.Add([]*xmltree.Node{
		T("ResourceGuaranteedMemory", c.MemoryGuaranteed),
		T("ResourceGuaranteedCpu", c.CPUGuaranteed),
		T("VCpuInMhz", cpuSpeed(c)),
		T("IsThinProvision", !c.ThickDisks),
	})
	if r.session.Provider() {
		n.Add(xmltree.New("NetworkPoolReference", A("href", r.site.Base()+"/api/admin/extension/networkPool/"+poolID(r.cloud)),
			A("id", store.URN("networkpool", poolID(r.cloud))), A("name", providerPool),
			A("type", "application/vnd.vmware.admin.networkPool+xml")))
	}
	n.Add([]*xmltree.Node{
		adminRef(r.site, "ProviderVdcReference", "providervdc", providerID(r.cloud), providerVDC),
		resourcePools(r, v),
		T("UsesFastProvisioning", !v.FullClones),
		T("OverCommitAllowed", !c.NoOvercommit),
		T("VmDiscoveryEnabled", false),
		T("IsElastic", c.Elastic),
		T("IncludeMemoryOverhead", !c.NoMemoryOverhead),
	})
	return xmlOK(n), nil
}
