package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// roleNames are the roles every organisation has.
var roleNames = []string{
	"Organization Administrator", "Catalog Author", "vApp Author", "vApp User", "Console Access Only", "Defer to Identity Provider",
}

// providerVDC is the one provider VDC that all VDCs are on, and its network pool.
const (
	providerVDC  = "provider"
	providerPool = "provider-pool"
)

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
		n.Add(xmltree.New("NetworkPoolReference", A("href", r.base()+"/api/admin/extension/networkPool/"+r.sim.ids.named("networkPool", providerPool)),
			A("id", URN("networkpool", r.sim.ids.named("networkPool", providerPool))), A("name", providerPool),
			A("type", "application/vnd.vmware.admin.networkPool+xml")))
	}
	n.Add([]*xmltree.Node{
		r.adminRef("ProviderVdcReference", "providervdc", r.sim.ids.named("providervdc", providerVDC), providerVDC),
		T("UsesFastProvisioning", true), T("OverCommitAllowed", true), T("VmDiscoveryEnabled", false),
		T("IsElastic", false), T("IncludeMemoryOverhead", true),
	})
	return xmlOK(n), nil
}

// getUser shows a user of an organisation.
func (r *request) getUser() (*response, error) {
	id := bare(r.vars["id"])
	for _, o := range r.orgs() {
		for i := range o.Users {
			if u := &o.Users[i]; u.ID == id {
				return xmlOK(r.userNode(o, u)), nil
			}
		}
	}
	return nil, forbidden("USER_VIEW", id)
}

func (r *request) userNode(o *Org, u *User) *xmltree.Node {
	A, T := xmltree.A, xmltree.T
	path := "/api/admin/user/" + u.ID
	n := xmltree.New("User", namespaces(), A("name", u.Name), A("id", URN("user", u.ID)), A("href", r.base()+path),
		A("type", "application/vnd.vmware.admin.user+xml"))
	n.Add([]*xmltree.Node{
		r.link("up", "/api/admin/org/"+o.ID, "application/vnd.vmware.admin.organization+xml"),
		r.link("edit", path, "application/vnd.vmware.admin.user+xml"), r.link("remove", path, ""),
		T("Description", ""), T("FullName", u.FullName), T("EmailAddress", ""), T("Telephone", ""), T("IsEnabled", true), T("IsLocked", false),
		T("IM", ""), T("NameInSource", u.Name), T("IsExternal", false), T("ProviderType", "INTEGRATED"), T("IsGroupRole", false),
		T("StoredVmQuota", 0), T("DeployedVmQuota", 0),
		r.adminRef("Role", "role", r.sim.ids.named("role", u.Role), u.Role), xmltree.New("GroupReferences"),
	})
	return n
}
