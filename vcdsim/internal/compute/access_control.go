// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// accessPaths are the paths of the entities that can be shared.
var accessPaths = []string{
	"/api/vApp/vapp-{vapp}", "/api/catalog/{catalog}", "/api/admin/catalog/{catalog}",
	"/api/org/{org}/catalog/{catalog}", "/api/vdc/{vdc}", "/api/admin/vdc/{vdc}",
}

func accessRoutes(add api.AddRoute) {
	for _, path := range accessPaths {
		add("GET", path+"/controlAccess", api.With(sharedEntity, getAccess), cloud.LatencyLegacy)
		add("POST", path+"/action/controlAccess", api.With2(api.Parsed(sharedEntity), setAccess), cloud.LatencyWrite)
		add("PUT", path+"/action/controlAccess", api.With2(api.Parsed(sharedEntity), setAccess), cloud.LatencyWrite)
	}
}

// sharedEntity returns the entity in the path.
func sharedEntity(r *api.Request) (store.Entity, error) {
	for _, kind := range []string{"vapp", "catalog", "vdc"} {
		if id := r.Vars[kind]; id != "" {
			return entityByKind(r, kind, store.Bare(id))
		}
	}
	return store.Entity{}, store.Forbidden("CONTROL_ACCESS_VIEW", r.URL.Path)
}

func getAccess(r *api.Request, e store.Entity) (*api.Response, error) {
	return &api.Response{
		Status:      http.StatusOK,
		XML:         accessNode(r.Site, r.Cloud.Store.Access[e.ID]),
		ContentType: wire.Mime("controlAccess"),
	}, nil
}

func accessNode(site wire.Site, a store.Access) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	n := xmltree.New("ControlAccessParams", wire.Namespaces(), T("IsSharedToEveryone", a.Everyone != ""),
		xmltree.OptT("EveryoneAccessLevel", a.Everyone))
	if len(a.Grants) == 0 {
		return n
	}
	list := xmltree.New("AccessSettings")
	for _, g := range a.Grants {
		list.Add(xmltree.New("AccessSetting",
			xmltree.New("Subject", A("href", site.Base()+"/api/admin/"+g.Kind+"/"+g.ID), A("name", g.Name),
				A("type", g.MediaType)), T("AccessLevel", g.Level)))
	}
	n.Add(list)
	return n
}

func setAccess(r *api.Request, e store.Entity, tree *xmltree.Node) (*api.Response, error) {
	a := store.Access{ID: e.ID}
	if tree.Bool("IsSharedToEveryone") {
		if a.Everyone = tree.Str("EveryoneAccessLevel"); a.Everyone == "" {
			return nil, store.BadRequest("An access level is needed to share with everyone.")
		}
	}
	for _, s := range tree.At("AccessSettings").All("AccessSetting") {
		g, err := readGrant(r.Session, r.Cloud.Store, s)
		if err != nil {
			return nil, err
		}
		a.Grants = append(a.Grants, g)
	}
	r.Cloud.Store.Access[e.ID] = a
	return &api.Response{Status: http.StatusOK, XML: accessNode(r.Site, a), ContentType: wire.Mime("controlAccess")}, nil
}

// readGrant reads one access setting. It returns an error if the subject, an organization or a user, does not exist.
func readGrant(session *store.Session, st *store.Store, s *xmltree.Node) (store.Grant, error) {
	id := store.Bare(s.At("Subject").Attr("href"))
	g := store.Grant{ID: id, Level: s.Str("AccessLevel")}
	if org := st.Org(id); org != nil {
		g.Kind = "org"
		g.Name = org.Name
		g.MediaType = api.AdminOrgType
		return g, nil
	}
	_, u, err := access.UserByID(session, st, id)
	if err != nil {
		return g, err
	}
	g.Kind = "user"
	g.Name = u.Name
	g.MediaType = api.AdminUserType
	return g, nil
}
