package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func adminRoutes(add addRoute) {
	add("GET", "/api/admin/org/{id}", (*request).getAdminOrg, latencyOrg)
	add("GET", "/api/admin/vdc/{id}", (*request).getAdminVDC, latencyVDC)
	add("GET", "/api/admin/user/{id}", (*request).getUser, latencyLegacy)
	add("GET", "/api/admin/catalog/{id}", (*request).getAdminCatalog, latencyLegacy)
	add("POST", "/api/admin/org/{id}/catalogs", (*request).createCatalog, latencyWrite)
	add("PUT", "/api/admin/catalog/{id}", (*request).putCatalog, latencyWrite)
	add("DELETE", "/api/admin/catalog/{id}", (*request).deleteCatalog, latencyWrite)
	add("DELETE", "/api/catalog/{id}", (*request).deleteCatalog, latencyWrite)
}

// adminRef is a reference below /api/admin.
func (r *request) adminRef(element, kind, id, name string) *xmltree.Node {
	return xmltree.New(element, xmltree.A("href", r.base()+"/api/admin/"+kind+"/"+id), xmltree.A("id", URN(kind, id)), xmltree.A("name", name),
		xmltree.A("type", "application/vnd.vmware.admin."+kind+"+xml"))
}

// getAdminOrg shows an organisation as its administrators see it.
func (r *request) getAdminOrg() (*response, error) {
	o, err := r.ownOrg()
	if err != nil {
		return nil, err
	}
	T := xmltree.T
	path := r.base() + "/api/admin/org/" + o.ID
	n := xmltree.New("AdminOrg", namespaces(), xmltree.A("name", o.Name), xmltree.A("id", URN("org", o.ID)), xmltree.A("href", path),
		xmltree.A("type", "application/vnd.vmware.admin.organization+xml"))
	n.Add([]*xmltree.Node{
		r.link("alternate", "/api/org/"+o.ID, mime("org")),
		r.link("add", "/api/admin/org/"+o.ID+"/catalogs", "application/vnd.vmware.admin.catalog+xml"), r.link("down", "/api/org/"+o.ID+"/metadata", mime("metadata")),
		T("Description", o.Description), T("FullName", o.FullName), T("IsEnabled", !o.Disabled), o.settingsNode(),
	})
	users, catalogs, vdcs, networks := xmltree.New("Users"), xmltree.New("Catalogs"), xmltree.New("Vdcs"), xmltree.New("Networks")
	for _, u := range o.Users {
		users.Add(r.adminRef("UserReference", "user", u.ID, u.Name))
	}
	for _, c := range o.Catalogs {
		catalogs.Add(r.adminRef("CatalogReference", "catalog", c.ID, c.Name))
	}
	for _, v := range o.VDCs {
		vdcs.Add(r.adminRef("Vdc", "vdc", v.ID, v.Name))
		for _, net := range v.Networks {
			networks.Add(r.adminRef("Network", "network", net.ID, net.Name))
		}
	}
	roles := xmltree.New("RoleReferences")
	for _, d := range r.sim.store.documents[rolesPath] {
		if d.orgID == o.ID {
			roles.Add(r.adminRef("RoleReference", "role", bare(d.id()), text(d.body, "name")))
		}
	}
	n.Add([]*xmltree.Node{users, xmltree.New("Groups"), catalogs, vdcs, networks, roles})
	return xmlOK(n), nil
}
