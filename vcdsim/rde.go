// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// States of a defined entity.
const (
	statePreCreated = "PRE_CREATED"
	stateResolved   = "RESOLVED"
	stateError      = "RESOLUTION_ERROR"
)

func entityRoutes(add addRoute) {
	const base = "/cloudapi/1.0.0/entities"
	add("POST", "/cloudapi/1.0.0/entityTypes/{id}", createEntity, latencyWrite)
	add("GET", base+"/{id}", with(entityByID, getEntity), latencyCloudAPI)
	add("PUT", base+"/{id}", with(entityByID, putEntity), latencyWrite)
	add("DELETE", base+"/{id}", with(entityByID, deleteEntity), latencyWrite)
	add("POST", base+"/{id}/resolve", with(entityByID, resolveEntity), latencyWrite)
	add("GET", base+"/types/{vendor}/{nss}/{version}", listEntities, latencyCloudAPI)
	add("GET", base+"/interfaces/{vendor}/{nss}/{version}", listByInterface, latencyCloudAPI)
	grantRoutes(add)
	entityMetadataRoutes(add)
	behaviourRoutes(add)
}

// rdeType finds an entity type.
func rdeType(st *store.Store, id string) (*store.Object, error) {
	for _, d := range st.Documents[typesPath] {
		if d.ID() == id {
			return d, nil
		}
	}
	return nil, store.Forbidden("DEFINED_ENTITY_TYPE_VIEW", id)
}

// createEntity makes an entity, and a task that runs until it is resolved.
func createEntity(r *request) (*response, error) {
	typ, err := rdeType(r.cloud.store, r.vars["id"])
	if err != nil {
		return nil, err
	}
	if err := mayCreateEntity(r, typ); err != nil {
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
		return nil, store.BadRequest("A defined entity needs a name and an entity.")
	}
	id := store.Text(typ.Body, "vendor") + ":" + store.Text(typ.Body, "nss") + ":" + r.cloud.ids.Next("entity")
	org := r.cloud.store.Org(r.tenant())
	if org == nil {
		return nil, store.Forbidden("DEFINED_ENTITY_CREATE", r.tenant())
	}
	r.cloud.store.Documents.Add(entitiesPath, org.ID, map[string]any{
		"id":          store.URN("entity", id),
		"entityType":  typ.ID(),
		"name":        in.Name,
		"externalId":  in.ExternalID,
		"entity":      in.Entity,
		"state":       statePreCreated,
		"entityState": statePreCreated,
		"owner":       jsonRef("user", r.session.UserID, r.session.User),
		"org":         jsonRef("org", org.ID, org.Name),
	})
	task := r.startTask(store.Work{Op: opCreateEntity}, store.Entity{Kind: "entity", ID: id, Name: in.Name}, nil)
	return &response{status: http.StatusAccepted, header: map[string]string{"Location": r.site.Href("task", task.ID)}}, nil
}

func entityByID(r *request) (*store.Object, error) {
	for _, d := range r.cloud.store.Documents[entitiesPath] {
		if d.ID() == r.vars["id"] && reachesEntity(r, d, neededOfEntity(r)) {
			return d, nil
		}
	}
	return nil, store.Forbidden("DEFINED_ENTITY_VIEW", r.vars["id"])
}

// entityResponse answers with an entity and the ETag of its version.
func entityResponse(d *store.Object) *response {
	return &response{status: http.StatusOK, json: d.Body, header: map[string]string{"ETag": etag(d)}}
}

func etag(d *store.Object) string { return strconv.Quote(strconv.Itoa(d.Version)) }

func getEntity(_ *request, d *store.Object) (*response, error) {
	return entityResponse(d), nil
}

// listEntities lists the entities of a type; a version such as 1 or 1.1 stands for all that begin with it.
func listEntities(r *request) (*response, error) {
	return entitiesOf(r, func(d *store.Object) bool { return entityVersioned(r, store.Text(d.Body, "entityType"), "type") })
}

// listByInterface lists the entities of all types that have an interface.
func listByInterface(r *request) (*response, error) {
	return entitiesOf(r, func(d *store.Object) bool {
		typ, err := rdeType(r.cloud.store, store.Text(d.Body, "entityType"))
		if err != nil {
			return false
		}
		list, _ := typ.Body["interfaces"].([]any)
		return slices.ContainsFunc(list, func(id any) bool { return entityVersioned(r, fmt.Sprint(id), "interface") })
	})
}

// entityVersioned reports whether an id matches the path, which may name only the beginning of a version.
func entityVersioned(r *request, id, kind string) bool {
	want := "urn:vcloud:" + kind + ":" + r.vars["vendor"] + ":" + r.vars["nss"] + ":" + r.vars["version"]
	return id == want || strings.HasPrefix(id, want+".")
}

func entitiesOf(r *request, wanted func(*store.Object) bool) (*response, error) {
	var out []*store.Object
	for _, d := range r.cloud.store.Documents[entitiesPath] {
		if wanted(d) && reachesEntity(r, d, levelRead) {
			out = append(out, d)
		}
	}
	return r.pageOf(out)
}

// putEntity replaces an entity, if the caller has seen its last version. One that is resolved must stay valid.
func putEntity(r *request, d *store.Object) (*response, error) {
	if match := r.Header.Get("If-Match"); match != "" && match != etag(d) {
		return nil, store.Refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED",
			"The entity %s was changed by another request.", d.ID())
	}
	in := map[string]any{}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	entity, ok := in["entity"].(map[string]any)
	if !ok {
		return nil, store.BadRequest("A defined entity needs an entity.")
	}
	if d.Body["state"] == stateResolved {
		if err := validEntity(r.cloud.store, d, entity); err != nil {
			return nil, store.Refuse(http.StatusBadRequest, "RDE_ENTITY_NOT_VALID", "%s", err)
		}
	}
	d.Body["entity"] = entity
	if name := store.Text(in, "name"); name != "" {
		d.Body["name"] = name
	}
	if in["externalId"] != nil {
		d.Body["externalId"] = in["externalId"]
	}
	d.Version++
	return entityResponse(d), nil
}

// validEntity checks the content of an entity against the schema of its type.
func validEntity(st *store.Store, d *store.Object, entity map[string]any) error {
	typ, err := rdeType(st, store.Text(d.Body, "entityType"))
	if err != nil {
		return err
	}
	schema, _ := typ.Body["schema"].(map[string]any)
	return jsonschema.Validate(schema, entity)
}

func resolveEntity(r *request, d *store.Object) (*response, error) {
	entity, _ := d.Body["entity"].(map[string]any)
	state := stateResolved
	message := any(nil)
	if err := validEntity(r.cloud.store, d, entity); err != nil {
		state = stateError
		message = err.Error()
	}
	d.Body["state"] = state
	d.Body["entityState"] = state
	d.Version++
	for _, t := range store.Sorted(r.cloud.store.Tasks) {
		if t.Work.Op == opCreateEntity && store.URN("entity", t.Owner.ID) == d.ID() && !t.Done() {
			r.cloud.tasks.finish(t.ID)
		}
	}
	res := entityResponse(d)
	res.json = map[string]any{"id": d.ID(), "entity": entity, "state": state, "entityState": state, "message": message}
	return res, nil
}

func deleteEntity(r *request, d *store.Object) (*response, error) {
	if d.Body["state"] == statePreCreated {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_ENTITY_NOT_RESOLVED", "The entity %s is not resolved.", d.ID())
	}
	r.cloud.store.Documents[entitiesPath] = slices.DeleteFunc(slices.Clone(r.cloud.store.Documents[entitiesPath]),
		func(x *store.Object) bool { return x == d })
	delete(r.cloud.store.Documents, entitiesPath+"/"+d.ID()+"/accessControls")
	delete(r.cloud.store.Documents, entriesPath(d))
	return noContent(), nil
}
