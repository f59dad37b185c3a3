// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/catalogs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func adminRoutes(add api.AddRoute) {
	add("GET", "/api/admin/org/{id}", api.With(access.OwnOrg, getAdminOrg), cloud.LatencyOrg)
	add("GET", "/api/admin/vdc/{id}", vdcs.GetAdminVDC, cloud.LatencyVDC)
	add("GET", "/api/admin/user/{id}", getUser, cloud.LatencyLegacy)
	add("GET", "/api/admin/role/{id}", getRole, cloud.LatencyLegacy)
	add("GET", "/api/admin/right/{id}", getRight, cloud.LatencyLegacy)
	add("GET", "/api/admin/catalog/{id}", api.With(catalogs.OwnCatalog, catalogs.GetAdminCatalog), cloud.LatencyLegacy)
	add("POST", "/api/admin/org/{id}/catalogs", catalogs.CreateCatalog, cloud.LatencyWrite)
	add("PUT", "/api/admin/catalog/{id}", api.With2(api.Parsed(catalogs.OwnCatalog), catalogs.PutCatalog), cloud.LatencyWrite)
	add("DELETE", "/api/admin/catalog/{id}", api.With(catalogs.OwnCatalog, catalogs.DeleteCatalog), cloud.LatencyWrite)
	add("DELETE", "/api/catalog/{id}", api.With(catalogs.OwnCatalog, catalogs.DeleteCatalog), cloud.LatencyWrite)
}

// getRole returns a role with its rights.
func getRole(r *api.Request) (*api.Response, error) {
	for _, d := range r.Cloud.Store.Documents[access.RolesPath] {
		if store.Bare(d.ID()) != store.Bare(r.Vars["id"]) || !r.Session.Sees(d.OrgID) {
			continue
		}
		n := api.AdminRef(r.Site, "Role", "role", store.Bare(d.ID()), store.Text(d.Body, "name"))
		n.Add(wire.Namespaces())
		references := xmltree.New("RightReferences")
		for _, x := range access.Rights() {
			if urn := access.RightURN(r.Cloud.IDs, x.Name); slices.Contains(d.Refs["rights"], urn) {
				references.Add(api.AdminRef(r.Site, "RightReference", "right", store.Bare(urn), x.Name))
			}
		}
		n.Add([]*xmltree.Node{xmltree.T("Description", store.Text(d.Body, "description")), references})
		return api.XML(n), nil
	}
	return nil, store.Forbidden("ROLE_VIEW", r.Vars["id"])
}

func getRight(r *api.Request) (*api.Response, error) {
	for _, x := range access.Rights() {
		if urn := access.RightURN(r.Cloud.IDs, x.Name); store.Bare(urn) == store.Bare(r.Vars["id"]) {
			n := api.AdminRef(r.Site, "Right", "right", store.Bare(urn), x.Name)
			n.Add(wire.Namespaces())
			n.Add([]*xmltree.Node{xmltree.T("Description", x.Name), xmltree.T("Category", x.Category)})
			return api.XML(n), nil
		}
	}
	return nil, store.Forbidden("RIGHT_VIEW", r.Vars["id"])
}

// getAdminOrg returns the administrator's view of an organization.
func getAdminOrg(r *api.Request, o *store.Org) (*api.Response, error) {
	T := xmltree.T
	path := r.Site.Base() + "/api/admin/org/" + o.ID
	n := xmltree.New("AdminOrg", wire.Namespaces(), xmltree.A("name", o.Name), xmltree.A("id", store.URN("org", o.ID)),
		xmltree.A("href", path),
		xmltree.A("type", "application/vnd.vmware.admin.organization+xml"))
	n.Add([]*xmltree.Node{
		r.Site.Link("alternate", "/api/org/"+o.ID, wire.Mime("org")),
		r.Site.Link("add", "/api/admin/org/"+o.ID+"/catalogs", "application/vnd.vmware.admin.catalog+xml"),
		r.Site.Link("down", "/api/org/"+o.ID+"/metadata", wire.Mime("metadata")),
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
		users.Add(api.AdminRef(r.Site, "UserReference", "user", u.ID, u.Name))
	}
	for _, c := range o.Catalogs {
		catalogs.Add(api.AdminRef(r.Site, "CatalogReference", "catalog", c.ID, c.Name))
	}
	for _, v := range o.VDCs {
		vdcs.Add(api.AdminRef(r.Site, "Vdc", "vdc", v.ID, v.Name))
		for _, net := range v.Networks {
			networks.Add(api.AdminRef(r.Site, "Network", "network", net.ID, net.Name))
		}
	}
	roles := xmltree.New("RoleReferences")
	for _, d := range r.Cloud.Store.Documents[access.RolesPath] {
		if d.OrgID == o.ID {
			roles.Add(api.AdminRef(r.Site, "RoleReference", "role", store.Bare(d.ID()), store.Text(d.Body, "name")))
		}
	}
	n.Add([]*xmltree.Node{users, xmltree.New("Groups"), catalogs, vdcs, networks, roles})
	return api.XML(n), nil
}
