// SPDX-License-Identifier: Apache-2.0

package orgs

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cells"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func orgRoutes(add api.AddRoute) {
	add("GET", "/api/org", listOrgs, cloud.LatencyOrgList)
	add("GET", "/api/org/{id}", api.With(access.OwnOrg, getOrg), cloud.LatencyOrg)
	add("GET", "/api/admin", getAdmin, cloud.LatencyLegacy)
	add("GET", "/cloudapi/1.0.0/orgs", listOrgsJSON, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgs/{id}", api.With(access.OwnOrg, getOrgJSON), cloud.LatencyCloudAPI)
}

func listOrgs(r *api.Request) (*api.Response, error) {
	n := xmltree.New("OrgList", wire.Namespaces(), xmltree.A("href", r.Site.Base()+"/api/org/"),
		xmltree.A("type", wire.Mime("orgList")))
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		n.Add(xmltree.New("Org", xmltree.A("href", r.Site.Href("org", o.ID)), xmltree.A("name", o.Name),
			xmltree.A("type", wire.Mime("org"))))
	}
	return api.XML(n), nil
}

func getOrg(r *api.Request, o *store.Org) (*api.Response, error) {
	site := r.Site
	n := site.Entity("Org", "org", o.ID, o.Name)
	n.Add(queryLinks(r, o))
	for _, v := range o.VDCs {
		n.Add(site.Link("down", "/api/vdc/"+v.ID, wire.Mime("vdc"), v.Name))
	}
	n.Add(site.Link("down", "/api/tasksList/"+o.ID, wire.Mime("tasksList")))
	for _, c := range o.Catalogs {
		n.Add(site.Link("down", "/api/catalog/"+c.ID, wire.Mime("catalog"), c.Name))
		n.Add(site.Link("down", "/api/org/"+o.ID+"/catalog/"+c.ID+"/controlAccess/", wire.Mime("controlAccess")))
	}
	n.Add(site.Link("add", "/api/admin/org/"+o.ID+"/catalogs", "application/vnd.vmware.admin.catalog+xml"))
	for _, v := range o.VDCs {
		for _, net := range v.Networks {
			n.Add(site.Link("down", "/api/network/"+net.ID, wire.Mime("orgNetwork"), net.Name))
		}
	}
	n.Add(site.Link("down", "/api/org/"+o.ID+"/metadata", wire.Mime("metadata")))
	n.Add([]*xmltree.Node{
		xmltree.T("Description", o.Description),
		xmltree.T("FullName", o.FullName),
		xmltree.T("IsEnabled", !o.Disabled),
	})
	return api.XML(n), nil
}

// queryLinks returns links to queries for the VDCs and the catalogs of an organization. It is not known how a VCD filters
// these queries for a provider, who sees all organizations.
func queryLinks(r *api.Request, o *store.Org) []*xmltree.Node {
	filter := ""
	if r.Session.Provider() {
		filter = "&filter=org==" + r.Site.Href("org", o.ID)
	}
	var out []*xmltree.Node
	for _, kind := range []string{"orgVdc", "catalog"} {
		out = append(out, r.Site.Link("down", "/api/query?type="+kind+"&format=records"+filter, wire.Mime("query.records")))
	}
	return out
}

func getAdmin(r *api.Request) (*api.Response, error) {
	highest := api.HighestVersion(r)
	n := xmltree.New("VCloud", wire.Namespaces(), xmltree.A("name", "VMware Cloud Director"),
		xmltree.A("href", r.Site.Base()+"/api/admin/"),
		xmltree.A("type", "application/vnd.vmware.admin.vcloud+xml"),
		xmltree.T("Description", cells.Builds[highest]+" "+r.Cloud.Clock.Now().Format("Mon Jan 02 15:04:05 MST 2006")))
	refs := xmltree.New("OrganizationReferences")
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		refs.Add(xmltree.New("OrganizationReference", xmltree.A("href", r.Site.Base()+"/api/admin/org/"+o.ID),
			xmltree.A("name", o.Name),
			xmltree.A("type", "application/vnd.vmware.admin.organization+xml")))
	}
	n.Add(refs)
	return api.XML(n), nil
}

func orgJSON(s *cloud.Cloud, o *store.Org) map[string]any {
	return map[string]any{
		"id":                      store.URN("org", o.ID),
		"name":                    o.Name,
		"displayName":             o.FullName,
		"description":             o.Description,
		"isEnabled":               !o.Disabled,
		"orgVdcCount":             len(o.VDCs),
		"catalogCount":            len(o.Catalogs),
		"userCount":               len(o.Users),
		"vappCount":               machines.VAppsOf(s).CountIn(o.ID),
		"runningVMCount":          0,
		"diskCount":               0,
		"canManageOrgs":           false,
		"canPublish":              false,
		"maskedEventTaskUsername": "",
		"managedBy":               nil,
		"creationStatus":          "READY",
	}
}

func listOrgsJSON(r *api.Request) (*api.Response, error) {
	var out []any
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		out = append(out, orgJSON(r.Cloud, o))
	}
	return r.Page(out)
}

func getOrgJSON(r *api.Request, o *store.Org) (*api.Response, error) {
	return api.JSON(orgJSON(r.Cloud, o)), nil
}
