package vcdsim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
)

// States of a defined entity.
const (
	statePreCreated = "PRE_CREATED"
	stateResolved   = "RESOLVED"
	stateError      = "RESOLUTION_ERROR"
)

func entityRoutes(add addRoute) {
	const base = "/cloudapi/1.0.0/entities"
	add("POST", "/cloudapi/1.0.0/entityTypes/{id}", (*request).createEntity, latencyWrite)
	add("GET", base+"/{id}", (*request).getEntity, latencyCloudAPI)
	add("PUT", base+"/{id}", (*request).putEntity, latencyWrite)
	add("DELETE", base+"/{id}", (*request).deleteEntity, latencyWrite)
	add("POST", base+"/{id}/resolve", (*request).resolveEntity, latencyWrite)
	add("GET", base+"/types/{vendor}/{nss}/{version}", (*request).listEntities, latencyCloudAPI)
	grantRoutes(add)
	for path, kind := range map[string]string{"interfaces": "interface", "entityTypes": "type"} {
		b := behaviours{path: path, kind: kind}
		list := "/cloudapi/1.0.0/" + path + "/{id}/behaviors"
		add("GET", list, b.list, latencyCloudAPI)
		add("POST", list, b.create, latencyWrite)
		add("GET", list+"/{behavior}", b.get, latencyCloudAPI)
		add("PUT", list+"/{behavior}", b.put, latencyWrite)
		add("DELETE", list+"/{behavior}", b.remove, latencyWrite)
	}
}

// rdeType finds an entity type.
func (r *request) rdeType(id string) (*document, error) {
	for _, d := range r.sim.store.documents[typesPath] {
		if d.id() == id {
			return d, nil
		}
	}
	return nil, forbidden("DEFINED_ENTITY_TYPE_VIEW", id)
}

// createEntity makes an entity, and a task that runs until it is resolved.
func (r *request) createEntity() (*response, error) {
	typ, err := r.rdeType(r.vars["id"])
	if err != nil {
		return nil, err
	}
	var in struct {
		Name       string         `json:"name"`
		ExternalID any            `json:"externalId"`
		Entity     map[string]any `json:"entity"`
	}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	if in.Name == "" || in.Entity == nil {
		return nil, badRequest("A defined entity needs a name and an entity.")
	}
	id := text(typ.body, "vendor") + ":" + text(typ.body, "nss") + ":" + r.sim.ids.next("entity")
	org := r.sim.store.org(r.tenant())
	if org == nil {
		return nil, forbidden("DEFINED_ENTITY_CREATE", r.tenant())
	}
	r.sim.addDocument(entitiesPath, org.ID, map[string]any{
		"id": URN("entity", id), "entityType": typ.id(), "name": in.Name, "externalId": in.ExternalID, "entity": in.Entity, "state": statePreCreated, "entityState": statePreCreated,
		"owner": jsonRef("user", r.session.UserID, r.session.User), "org": jsonRef("org", org.ID, org.Name),
	})
	task := r.sim.startTask(r, Work{Op: opCreateEntity}, Entity{Kind: "entity", ID: id, Name: in.Name}, nil)
	return &response{status: http.StatusAccepted, header: map[string]string{"Location": r.href("task", task.ID)}}, nil
}

func (r *request) entityByID() (*document, error) {
	for _, d := range r.sim.store.documents[entitiesPath] {
		if d.id() == r.vars["id"] && r.sees(d.orgID) {
			return d, nil
		}
	}
	return nil, forbidden("DEFINED_ENTITY_VIEW", r.vars["id"])
}

// entityResponse answers with an entity and the ETag of its version.
func entityResponse(d *document) *response {
	return &response{status: http.StatusOK, json: d.body, header: map[string]string{"ETag": d.etag()}}
}

func (d *document) etag() string { return strconv.Quote(strconv.Itoa(d.version)) }

func (r *request) getEntity() (*response, error) {
	d, err := r.entityByID()
	if err != nil {
		return nil, err
	}
	return entityResponse(d), nil
}

func (r *request) listEntities() (*response, error) {
	id := "urn:vcloud:type:" + r.vars["vendor"] + ":" + r.vars["nss"] + ":" + r.vars["version"]
	var out []any
	for _, d := range r.sim.store.documents[entitiesPath] {
		if d.body["entityType"] == id && r.sees(d.orgID) {
			out = append(out, d.body)
		}
	}
	return r.page(out)
}

// putEntity replaces an entity, if the caller has seen its last version. One that is resolved must stay valid.
func (r *request) putEntity() (*response, error) {
	d, err := r.entityByID()
	if err != nil {
		return nil, err
	}
	if match := r.Header.Get("If-Match"); match != "" && match != d.etag() {
		return nil, refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED", "The entity %s was changed by another request.", d.id())
	}
	in := map[string]any{}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	entity, ok := in["entity"].(map[string]any)
	if !ok {
		return nil, badRequest("A defined entity needs an entity.")
	}
	if d.body["state"] == stateResolved {
		if err := r.valid(d, entity); err != nil {
			return nil, refuse(http.StatusBadRequest, "RDE_ENTITY_NOT_VALID", "%s", err)
		}
	}
	d.body["entity"] = entity
	if name := text(in, "name"); name != "" {
		d.body["name"] = name
	}
	if in["externalId"] != nil {
		d.body["externalId"] = in["externalId"]
	}
	d.version++
	return entityResponse(d), nil
}

// valid checks the content of an entity against the schema of its type.
func (r *request) valid(d *document, entity map[string]any) error {
	typ, err := r.rdeType(text(d.body, "entityType"))
	if err != nil {
		return err
	}
	schema, _ := typ.body["schema"].(map[string]any)
	return jsonschema.Validate(schema, entity)
}

func (r *request) resolveEntity() (*response, error) {
	d, err := r.entityByID()
	if err != nil {
		return nil, err
	}
	entity, _ := d.body["entity"].(map[string]any)
	state, message := stateResolved, any(nil)
	if err := r.valid(d, entity); err != nil {
		state, message = stateError, err.Error()
	}
	d.body["state"], d.body["entityState"] = state, state
	d.version++
	for _, t := range sorted(r.sim.store.tasks) {
		if t.Owner.Kind == "entity" && URN("entity", t.Owner.ID) == d.id() && !t.done() {
			r.sim.finish(t.ID)
		}
	}
	res := entityResponse(d)
	res.json = map[string]any{"id": d.id(), "entity": entity, "state": state, "entityState": state, "message": message}
	return res, nil
}

func (r *request) deleteEntity() (*response, error) {
	d, err := r.entityByID()
	if err != nil {
		return nil, err
	}
	if d.body["state"] == statePreCreated {
		return nil, refuse(http.StatusBadRequest, "RDE_ENTITY_NOT_RESOLVED", "The entity %s is not resolved.", d.id())
	}
	r.sim.store.documents[entitiesPath] = slices.DeleteFunc(slices.Clone(r.sim.store.documents[entitiesPath]), func(x *document) bool { return x == d })
	delete(r.sim.store.documents, entitiesPath+"/"+d.id()+"/accessControls")
	return &response{status: http.StatusNoContent}, nil
}

// behaviours are what an interface declares and a type overrides.
type behaviours struct{ path, kind string }

func (b behaviours) key(r *request) string {
	return "1.0.0/" + b.path + "/" + r.vars["id"] + "/behaviors"
}

// owner refuses when the interface or type is not there.
func (b behaviours) owner(r *request) (*document, error) {
	for _, d := range r.sim.store.documents["1.0.0/"+b.path] {
		if d.id() == r.vars["id"] {
			return d, nil
		}
	}
	return nil, forbidden("BEHAVIOR_VIEW", r.vars["id"])
}

func (b behaviours) list(r *request) (*response, error) {
	all, err := b.all(r)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, d := range all {
		out = append(out, d.body)
	}
	return r.page(out)
}

// all are the behaviours of an interface, or those a type overrides and inherits.
func (b behaviours) all(r *request) ([]*document, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(r.sim.store.documents[b.key(r)])
	interfaces, _ := owner.body["interfaces"].([]any)
	for _, id := range interfaces {
		for _, d := range r.sim.store.documents[fmt.Sprintf("%s/%v/behaviors", interfacesPath, id)] {
			if !slices.ContainsFunc(out, func(x *document) bool { return x.body["ref"] == d.body["ref"] }) {
				out = append(out, d)
			}
		}
	}
	return out, nil
}

func (b behaviours) find(r *request) (*document, error) {
	all, err := b.all(r)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if d.id() == r.vars["behavior"] || d.body["ref"] == r.vars["behavior"] {
			return d, nil
		}
	}
	return nil, forbidden("BEHAVIOR_VIEW", r.vars["behavior"])
}

func (b behaviours) create(r *request) (*response, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	if !r.session.provider() {
		return nil, forbidden("BEHAVIOR_MANAGE", owner.id())
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	id := "urn:vcloud:behavior-" + b.kind + ":" + text(body, "name") + ":" + strings.TrimPrefix(owner.id(), "urn:vcloud:"+b.kind+":")
	r.vars["behavior"] = id
	if _, err := b.find(r); err == nil {
		return nil, refuse(http.StatusBadRequest, "RDE_BEHAVIOR_ALREADY_EXISTS", "The behavior %s already exists.", id)
	}
	body["id"], body["ref"] = id, id
	r.sim.addDocument(b.key(r), r.session.OrgID, body)
	return jsonOK(body), nil
}

func (b behaviours) get(r *request) (*response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(d.body), nil
}

func (b behaviours) put(r *request) (*response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	for _, field := range []string{"id", "ref", "name"} {
		body[field] = d.body[field]
	}
	d.body = body
	return jsonOK(body), nil
}

func (b behaviours) remove(r *request) (*response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	key := b.key(r)
	r.sim.store.documents[key] = slices.DeleteFunc(slices.Clone(r.sim.store.documents[key]), func(x *document) bool { return x == d })
	return &response{status: http.StatusNoContent}, nil
}
