// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// An access is the list of those an entity is shared with.
type access struct {
	everyone string // level; empty: not shared with all
	subjects []grant
}

// A grant is the level a user, group or organization has.
type grant struct{ kind, id, name, mediaType, level string }

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
func sharedEntity(r *request) (Entity, error) {
	for _, kind := range []string{"vapp", "catalog", "vdc"} {
		if id := r.vars[kind]; id != "" {
			return taggable(r, kind, bare(id))
		}
	}
	return Entity{}, forbidden("CONTROL_ACCESS_VIEW", r.URL.Path)
}

func getAccess(r *request, e Entity) (*response, error) {
	return &response{
		status:      http.StatusOK,
		xml:         accessNode(r, r.sim.store.access[e.ID]),
		contentType: mime("controlAccess"),
	}, nil
}

func accessNode(r *request, a access) *xmltree.Node {
	A := xmltree.A
	T := xmltree.T
	n := xmltree.New("ControlAccessParams", namespaces(), T("IsSharedToEveryone", a.everyone != ""),
		xmltree.OptT("EveryoneAccessLevel", a.everyone))
	if len(a.subjects) == 0 {
		return n
	}
	list := xmltree.New("AccessSettings")
	for _, g := range a.subjects {
		list.Add(xmltree.New("AccessSetting",
			xmltree.New("Subject", A("href", r.base()+"/api/admin/"+g.kind+"/"+g.id), A("name", g.name),
				A("type", g.mediaType)), T("AccessLevel", g.level)))
	}
	n.Add(list)
	return n
}

func setAccess(r *request, e Entity, tree *xmltree.Node) (*response, error) {
	var a access
	if tree.Bool("IsSharedToEveryone") {
		if a.everyone = tree.Str("EveryoneAccessLevel"); a.everyone == "" {
			return nil, badRequest("An access level is needed to share with everyone.")
		}
	}
	for _, s := range tree.At("AccessSettings").All("AccessSetting") {
		g, err := readGrant(r, s)
		if err != nil {
			return nil, err
		}
		a.subjects = append(a.subjects, g)
	}
	r.sim.store.access[e.ID] = a
	return &response{status: http.StatusOK, xml: accessNode(r, a), contentType: mime("controlAccess")}, nil
}

// readGrant reads one setting; its subject must be there.
func readGrant(r *request, s *xmltree.Node) (grant, error) {
	id := bare(s.At("Subject").Attr("href"))
	g := grant{id: id, level: s.Str("AccessLevel")}
	if org := r.sim.store.org(id); org != nil {
		g.kind = "org"
		g.name = org.Name
		g.mediaType = adminOrgType
		return g, nil
	}
	_, u, err := userByID(r, id)
	if err != nil {
		return g, err
	}
	g.kind = "user"
	g.name = u.Name
	g.mediaType = adminUserType
	return g, nil
}
