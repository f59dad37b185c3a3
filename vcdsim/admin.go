// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func adminRoutes(add addRoute) {
	add("GET", "/api/admin/org/{id}", with(ownOrg, getAdminOrg), latencyOrg)
	add("GET", "/api/admin/vdc/{id}", getAdminVDC, latencyVDC)
	add("GET", "/api/admin/user/{id}", getUser, latencyLegacy)
	add("GET", "/api/admin/role/{id}", getRole, latencyLegacy)
	add("GET", "/api/admin/right/{id}", getRight, latencyLegacy)
	add("GET", "/api/admin/catalog/{id}", with(ownCatalog, getAdminCatalog), latencyLegacy)
	add("POST", "/api/admin/org/{id}/catalogs", createCatalog, latencyWrite)
	add("PUT", "/api/admin/catalog/{id}", with2(parsed(ownCatalog), putCatalog), latencyWrite)
	add("DELETE", "/api/admin/catalog/{id}", with(ownCatalog, deleteCatalog), latencyWrite)
	add("DELETE", "/api/catalog/{id}", with(ownCatalog, deleteCatalog), latencyWrite)
}

// getRole shows a role with its rights.
func getRole(r *request) (*response, error) {
	for _, d := range r.cloud.store.Documents[rolesPath] {
		if store.Bare(d.ID()) != store.Bare(r.vars["id"]) || !r.session.Sees(d.OrgID) {
			continue
		}
		n := adminRef(r.site, "Role", "role", store.Bare(d.ID()), store.Text(d.Body, "name"))
		n.Add(wire.Namespaces())
		references := xmltree.New("RightReferences")
		for _, x := range rights() {
			if urn := rightURN(r.cloud.ids, x.name); slices.Contains(d.Refs["rights"], urn) {
				references.Add(adminRef(r.site, "RightReference", "right", store.Bare(urn), x.name))
			}
		}
		n.Add([]*xmltree.Node{xmltree.T("Description", store.Text(d.Body, "description")), references})
		return xmlOK(n), nil
	}
	return nil, store.Forbidden("ROLE_VIEW", r.vars["id"])
}

func getRight(r *request) (*response, error) {
	for _, x := range rights() {
		if urn := rightURN(r.cloud.ids, x.name); store.Bare(urn) == store.Bare(r.vars["id"]) {
			n := adminRef(r.site, "Right", "right", store.Bare(urn), x.name)
			n.Add(wire.Namespaces())
			n.Add([]*xmltree.Node{xmltree.T("Description", x.name), xmltree.T("Category", x.category)})
			return xmlOK(n), nil
		}
	}
	return nil, store.Forbidden("RIGHT_VIEW", r.vars["id"])
}

// adminRef is a reference below /api/admin.
func adminRef(site wire.Site, element, kind, id, name string) *xmltree.Node {
	return xmltree.New(element, xmltree.A("href", site.Base()+"/api/admin/"+kind+"/"+id), xmltree.A("id", store.URN(kind, id)),
		xmltree.A("name", name),
		xmltree.A("type", "application/vnd.vmware.admin."+kind+"+xml"))
}

// getAdminOrg shows an organization as its administrators see it.
func getAdminOrg(r *request, o *store.Org) (*response, error) {
	T := xmltree.T
	path := r.site.Base() + "/api/admin/org/" + o.ID
	n := xmltree.New("AdminOrg", wire.Namespaces(), xmltree.A("name", o.Name), xmltree.A("id", store.URN("org", o.ID)),
		xmltree.A("href", path),
		xmltree.A("type", "application/vnd.vmware.admin.organization+xml"))
	n.Add([]*xmltree.Node{
		r.site.Link("alternate", "/api/org/"+o.ID, wire.Mime("org")),
		r.site.Link("add", "/api/admin/org/"+o.ID+"/catalogs", "application/vnd.vmware.admin.catalog+xml"),
		r.site.Link("down", "/api/org/"+o.ID+"/metadata", wire.Mime("metadata")),
		T("Description", o.Description),
		T("FullName", o.FullName),
		T("IsEnabled", !o.Disabled),
		orgSettingsNode(o),
	})
	users := xmltree.New("Users")
	catalogs := xmltree.New("Catalogs")
	vdcs := xmltree.New("Vdcs")
	networks := xmltree.New("Networks")
	for _, u := range o.Users {
		users.Add(adminRef(r.site, "UserReference", "user", u.ID, u.Name))
	}
	for _, c := range o.Catalogs {
		catalogs.Add(adminRef(r.site, "CatalogReference", "catalog", c.ID, c.Name))
	}
	for _, v := range o.VDCs {
		vdcs.Add(adminRef(r.site, "Vdc", "vdc", v.ID, v.Name))
		for _, net := range v.Networks {
			networks.Add(adminRef(r.site, "Network", "network", net.ID, net.Name))
		}
	}
	roles := xmltree.New("RoleReferences")
	for _, d := range r.cloud.store.Documents[rolesPath] {
		if d.OrgID == o.ID {
			roles.Add(adminRef(r.site, "RoleReference", "role", store.Bare(d.ID()), store.Text(d.Body, "name")))
		}
	}
	n.Add([]*xmltree.Node{users, xmltree.New("Groups"), catalogs, vdcs, networks, roles})
	return xmlOK(n), nil
}
