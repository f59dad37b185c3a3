package vcdsim

import (
	"net/http"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// An access says whom an entity is shared with.
type access struct {
	everyone string // level, empty for nobody
	subjects []grant
}

// A grant is the level a user, group or organisation has.
type grant struct{ kind, id, name, mediaType, level string }

// accessPaths are the entities that can be shared.
var accessPaths = []string{
	"/api/vApp/vapp-{vapp}", "/api/catalog/{catalog}", "/api/admin/catalog/{catalog}", "/api/org/{org}/catalog/{catalog}", "/api/vdc/{vdc}", "/api/admin/vdc/{vdc}",
}

func accessRoutes(add addRoute) {
	for _, path := range accessPaths {
		add("GET", path+"/controlAccess", (*request).getAccess, latencyLegacy)
		add("POST", path+"/action/controlAccess", (*request).setAccess, latencyWrite)
		add("PUT", path+"/action/controlAccess", (*request).setAccess, latencyWrite)
	}
}

// shared finds the entity in the path.
func (r *request) shared() (Entity, error) {
	for _, kind := range []string{"vapp", "catalog", "vdc"} {
		if id := r.vars[kind]; id != "" {
			return r.taggable(kind, bare(id))
		}
	}
	return Entity{}, forbidden("CONTROL_ACCESS_VIEW", r.URL.Path)
}

func (r *request) getAccess() (*response, error) {
	e, err := r.shared()
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusOK, xml: r.accessNode(r.sim.store.access[e.ID]), contentType: mime("controlAccess")}, nil
}

func (r *request) accessNode(a access) *xmltree.Node {
	A, T := xmltree.A, xmltree.T
	n := xmltree.New("ControlAccessParams", namespaces(), T("IsSharedToEveryone", a.everyone != ""),
		xmltree.OptT("EveryoneAccessLevel", a.everyone))
	if len(a.subjects) == 0 {
		return n
	}
	list := xmltree.New("AccessSettings")
	for _, g := range a.subjects {
		list.Add(xmltree.New("AccessSetting", xmltree.New("Subject", A("href", r.base()+"/api/admin/"+g.kind+"/"+g.id), A("name", g.name),
			A("type", g.mediaType)), T("AccessLevel", g.level)))
	}
	n.Add(list)
	return n
}

func (r *request) setAccess() (*response, error) {
	e, err := r.shared()
	if err != nil {
		return nil, err
	}
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	var a access
	if tree.Bool("IsSharedToEveryone") {
		if a.everyone = tree.Str("EveryoneAccessLevel"); a.everyone == "" {
			return nil, badRequest("An access level is needed to share with everyone.")
		}
	}
	for _, s := range tree.At("AccessSettings").All("AccessSetting") {
		g, err := r.readGrant(s)
		if err != nil {
			return nil, err
		}
		a.subjects = append(a.subjects, g)
	}
	r.sim.store.access[e.ID] = a
	return &response{status: http.StatusOK, xml: r.accessNode(a), contentType: mime("controlAccess")}, nil
}

// readGrant reads one setting; its subject must be there.
func (r *request) readGrant(s *xmltree.Node) (grant, error) {
	id := bare(s.At("Subject").Attr("href"))
	g := grant{id: id, level: s.Str("AccessLevel")}
	if org := r.sim.store.org(id); org != nil {
		g.kind, g.name, g.mediaType = "org", org.Name, adminOrgType
		return g, nil
	}
	_, u, err := r.user(id)
	if err != nil {
		return g, err
	}
	g.kind, g.name, g.mediaType = "user", u.Name, adminUserType
	return g, nil
}
