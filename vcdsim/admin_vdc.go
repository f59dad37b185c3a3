package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// roleNames are the roles every organisation has.
var roleNames = []string{
	"Organization Administrator", "Catalog Author", "vApp Author", "vApp User", "Console Access Only", "Defer to Identity Provider",
}

// getAdminVDC shows a VDC as administrators see it.
func (r *request) getAdminVDC() (*response, error) {
	org, v, err := r.ownVDC()
	if err != nil {
		return nil, err
	}
	A, T := xmltree.A, xmltree.T
	n := xmltree.New("AdminVdc", namespaces(), A("status", 1), A("name", v.Name), A("id", URN("vdc", v.ID)),
		A("href", r.base()+"/api/admin/vdc/"+v.ID), A("type", "application/vnd.vmware.admin.vdc+xml"))
	n.Add([]*xmltree.Node{
		r.link("up", "/api/admin/org/"+org.ID, "application/vnd.vmware.admin.organization+xml"), r.link("alternate", "/api/vdc/"+v.ID, mime("vdc")),
	})
	r.vdcContent(n, org, v)
	n.Add([]*xmltree.Node{T("ResourceGuaranteedMemory", "0.0"), T("ResourceGuaranteedCpu", "0.0"), T("VCpuInMhz", 1000), T("IsThinProvision", true)})
	if r.session.provider() {
		n.Add(xmltree.New("NetworkPoolReference", A("href", r.base()+"/api/admin/extension/networkPool/"+r.sim.poolID()),
			A("id", URN("networkpool", r.sim.poolID())), A("name", providerPool),
			A("type", "application/vnd.vmware.admin.networkPool+xml")))
	}
	n.Add([]*xmltree.Node{
		r.adminRef("ProviderVdcReference", "providervdc", r.sim.providerID(), providerVDC),
		T("UsesFastProvisioning", !v.FullClones), T("OverCommitAllowed", true), T("VmDiscoveryEnabled", false),
		T("IsElastic", false), T("IncludeMemoryOverhead", true),
	})
	return xmlOK(n), nil
}
