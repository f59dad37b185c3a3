// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// accessPaths are the entities that can be shared.
var accessPaths = []string{
	"/api/vApp/vapp-{vapp}", "/api/catalog/{catalog}", "/api/admin/catalog/{catalog}",
	"/api/org/{org}/catalog/{catalog}", "/api/vdc/{vdc}", "/api/admin/vdc/{vdc}",
}

func accessRoutes(add addRoute) {
	for _, path := range accessPaths {
		add("GET", path+"/controlAccess", with(sharedEntity, getAccess), latencyLegacy)
		add("POST", path+"/action/controlAccess", with2(parsed(sharedEntity), setAccess), latencyWrite)
		add("PUT", path+"/action/controlAccess", with2(parsed(sharedEntity), setAccess), latencyWrite)
	}
}

// sharedEntity finds the entity in the path.
func sharedEntity(r *request) (store.Entity, error) {
	for _, kind := range []string{"vapp", "catalog", "vdc"} {
		if id := r.vars[kind]; id != "" {
			return taggable(r, kind, store.Bare(id))
		}
	}
	return store.Entity{}, store.Forbidden("CONTROL_ACCESS_VIEW", r.URL.Path)
}

func getAccess(r *request, e store.Entity) (*response, error) {
	return &response{
		status:      http.StatusOK,
		xml:         accessNode(r.site, r.cloud.store.Access[e.ID]),
		contentType: wire.Mime("controlAccess"),
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

func setAccess(r *request, e store.Entity, tree *xmltree.Node) (*response, error) {
	a := store.Access{ID: e.ID}
	if tree.Bool("IsSharedToEveryone") {
		if a.Everyone = tree.Str("EveryoneAccessLevel"); a.Everyone == "" {
			return nil, store.BadRequest("An access level is needed to share with everyone.")
		}
	}
	for _, s := range tree.At("AccessSettings").All("AccessSetting") {
		g, err := readGrant(r.session, r.cloud.store, s)
		if err != nil {
			return nil, err
		}
		a.Grants = append(a.Grants, g)
	}
	r.cloud.store.Access[e.ID] = a
	return &response{status: http.StatusOK, xml: accessNode(r.site, a), contentType: wire.Mime("controlAccess")}, nil
}

// readGrant reads one setting; its subject must be there.
func readGrant(session *store.Session, st *store.Store, s *xmltree.Node) (store.Grant, error) {
	id := store.Bare(s.At("Subject").Attr("href"))
	g := store.Grant{ID: id, Level: s.Str("AccessLevel")}
	if org := st.Org(id); org != nil {
		g.Kind = "org"
		g.Name = org.Name
		g.MediaType = adminOrgType
		return g, nil
	}
	_, u, err := userByID(session, st, id)
	if err != nil {
		return g, err
	}
	g.Kind = "user"
	g.Name = u.Name
	g.MediaType = adminUserType
	return g, nil
}
