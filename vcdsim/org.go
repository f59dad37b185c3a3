// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func orgRoutes(add addRoute) {
	add("GET", "/api/org", listOrgs, latencyOrgList)
	add("GET", "/api/org/{id}", with(ownOrg, getOrg), latencyOrg)
	add("GET", "/api/admin", getAdmin, latencyLegacy)
	add("GET", "/cloudapi/1.0.0/orgs", listOrgsJSON, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgs/{id}", with(ownOrg, getOrgJSON), latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/site", getSite, latencyCloudAPI)
}

// visibleOrgs are the organizations the caller may see.
func visibleOrgs(session *store.Session, st *store.Store) []*store.Org {
	var out []*store.Org
	for i := range st.Model.Orgs {
		if o := &st.Model.Orgs[i]; session.Sees(o.ID) {
			out = append(out, o)
		}
	}
	return out
}

func listOrgs(r *request) (*response, error) {
	n := xmltree.New("OrgList", wire.Namespaces(), xmltree.A("href", r.site.Base()+"/api/org/"),
		xmltree.A("type", wire.Mime("orgList")))
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		n.Add(xmltree.New("Org", xmltree.A("href", r.site.Href("org", o.ID)), xmltree.A("name", o.Name),
			xmltree.A("type", wire.Mime("org"))))
	}
	return xmlOK(n), nil
}

func getOrg(r *request, o *store.Org) (*response, error) {
	n := r.site.Entity("Org", "org", o.ID, o.Name)
	for _, v := range o.VDCs {
		n.Add(r.site.Link("down", "/api/vdc/"+v.ID, wire.Mime("vdc"), v.Name))
	}
	n.Add(r.site.Link("down", "/api/tasksList/"+o.ID, wire.Mime("tasksList")))
	for _, c := range o.Catalogs {
		n.Add(r.site.Link("down", "/api/catalog/"+c.ID, wire.Mime("catalog"), c.Name))
		n.Add(r.site.Link("down", "/api/org/"+o.ID+"/catalog/"+c.ID+"/controlAccess/", wire.Mime("controlAccess")))
	}
	n.Add(r.site.Link("add", "/api/admin/org/"+o.ID+"/catalogs", "application/vnd.vmware.admin.catalog+xml"))
	for _, v := range o.VDCs {
		for _, net := range v.Networks {
			n.Add(r.site.Link("down", "/api/network/"+net.ID, wire.Mime("orgNetwork"), net.Name))
		}
	}
	n.Add(r.site.Link("down", "/api/org/"+o.ID+"/metadata", wire.Mime("metadata")))
	n.Add([]*xmltree.Node{
		xmltree.T("Description", o.Description),
		xmltree.T("FullName", o.FullName),
		xmltree.T("IsEnabled", !o.Disabled),
	})
	return xmlOK(n), nil
}

// builds are the releases as VCD describes itself.
var builds = map[string]string{
	"36.3": "10.3.3.19610875",
	"37.2": "10.4.2.21954589",
	"37.3": "10.4.3.22308993",
	"38.1": "10.5.1.22812800",
	"39.0": "10.6.0.24056521",
}

func getAdmin(r *request) (*response, error) {
	highest := highestVersion(r)
	n := xmltree.New("VCloud", wire.Namespaces(), xmltree.A("name", "VMware Cloud Director"),
		xmltree.A("href", r.site.Base()+"/api/admin/"),
		xmltree.A("type", "application/vnd.vmware.admin.vcloud+xml"),
		xmltree.T("Description", builds[highest]+" "+r.cloud.clock.Now().Format("Mon Jan 02 15:04:05 MST 2006")))
	refs := xmltree.New("OrganizationReferences")
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		refs.Add(xmltree.New("OrganizationReference", xmltree.A("href", r.site.Base()+"/api/admin/org/"+o.ID),
			xmltree.A("name", o.Name),
			xmltree.A("type", "application/vnd.vmware.admin.organization+xml")))
	}
	n.Add(refs)
	return xmlOK(n), nil
}

func orgJSON(r *request, o *store.Org) map[string]any {
	return map[string]any{
		"id":                      store.URN("org", o.ID),
		"name":                    o.Name,
		"displayName":             o.FullName,
		"description":             o.Description,
		"isEnabled":               !o.Disabled,
		"orgVdcCount":             len(o.VDCs),
		"catalogCount":            len(o.Catalogs),
		"userCount":               len(o.Users),
		"vappCount":               vappsOf(r.cloud).countIn(o.ID),
		"runningVMCount":          0,
		"diskCount":               0,
		"canManageOrgs":           false,
		"canPublish":              false,
		"maskedEventTaskUsername": "",
		"managedBy":               nil,
		"creationStatus":          "READY",
	}
}

func (va vapps) countIn(orgID string) int {
	n := 0
	for _, v := range va.cloud.store.VApps {
		if v.OrgID == orgID {
			n++
		}
	}
	return n
}

func listOrgsJSON(r *request) (*response, error) {
	var out []any
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		out = append(out, orgJSON(r, o))
	}
	return r.page(out)
}

func getOrgJSON(r *request, o *store.Org) (*response, error) {
	return jsonOK(orgJSON(r, o)), nil
}

func getSite(r *request) (*response, error) {
	return jsonOK(map[string]any{
		"id":                 store.URN("site", r.cloud.ids.Named("site", "site")),
		"name":               "vcdsim",
		"restServiceBaseUri": r.site.Base(),
		"productVersion":     builds[highestVersion(r)],
	}), nil
}
