// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/jsonschema"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// States of a defined entity.
const (
	statePreCreated = "PRE_CREATED"
	stateResolved   = "RESOLVED"
	stateError      = "RESOLUTION_ERROR"
)

// Routes adds the routes of defined entities.
func Routes(add api.AddRoute) {
	const base = "/cloudapi/1.0.0/entities"
	add("POST", "/cloudapi/1.0.0/entityTypes/{id}", createEntity, cloud.LatencyWrite)
	add("GET", base+"/{id}", api.With(entityByID, getEntity), cloud.LatencyCloudAPI)
	add("PUT", base+"/{id}", api.With(entityByID, putEntity), cloud.LatencyWrite)
	add("DELETE", base+"/{id}", api.WithCloud(entityByID, deleteEntity), cloud.LatencyWrite)
	add("POST", base+"/{id}/resolve", api.WithCloud(entityByID, resolveEntity), cloud.LatencyWrite)
	add("GET", base+"/types/{vendor}/{nss}/{version}", listEntities, cloud.LatencyCloudAPI)
	add("GET", base+"/interfaces/{vendor}/{nss}/{version}", listByInterface, cloud.LatencyCloudAPI)
	grantRoutes(add)
	entityMetadataRoutes(add)
	behaviorRoutes(add)
}

// rdeType returns the entity type with the given ID.
func rdeType(st *store.Store, id string) (*store.Object, error) {
	for _, d := range st.Documents[access.TypesPath] {
		if d.ID() == id {
			return d, nil
		}
	}
	return nil, store.Forbidden("DEFINED_ENTITY_TYPE_VIEW", id)
}

// createEntity creates an entity, and a task that runs until the entity is resolved.
func createEntity(r *api.Request) (*api.Response, error) {
	typ, err := rdeType(r.Cloud.Store, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	if err := checkMayCreateEntity(r, typ); err != nil {
		return nil, err
	}
	var in struct {
		Name       string         `json:"name"`
		ExternalID any            `json:"externalId"`
		Entity     map[string]any `json:"entity"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	if in.Name == "" || in.Entity == nil {
		return nil, store.BadRequest("A defined entity needs a name and an entity.")
	}
	id := store.Text(typ.Body, "vendor") + ":" + store.Text(typ.Body, "nss") + ":" + r.Cloud.IDs.Next("entity")
	org := r.Cloud.Store.Org(r.Tenant())
	if org == nil {
		return nil, store.Forbidden("DEFINED_ENTITY_CREATE", r.Tenant())
	}
	r.Cloud.Store.Documents.Add(access.EntitiesPath, org.ID, map[string]any{
		"id":          store.URN("entity", id),
		"entityType":  typ.ID(),
		"name":        in.Name,
		"externalId":  in.ExternalID,
		"entity":      in.Entity,
		"state":       statePreCreated,
		"entityState": statePreCreated,
		"owner":       api.Ref("user", r.Session.UserID, r.Session.User),
		"org":         api.Ref("org", org.ID, org.Name),
	})
	task := r.StartTask(store.Work{Op: cloud.OpCreateEntity}, store.Entity{Kind: "entity", ID: id, Name: in.Name}, nil)
	return &api.Response{Status: http.StatusAccepted, Header: map[string]string{"Location": r.Site.Href("task", task.ID)}}, nil
}

func entityByID(r *api.Request) (*store.Object, error) {
	for _, d := range r.Cloud.Store.Documents[access.EntitiesPath] {
		if d.ID() == r.Vars["id"] && canAccessEntity(r, d, neededLevel(r)) {
			return d, nil
		}
	}
	return nil, store.Forbidden("DEFINED_ENTITY_VIEW", r.Vars["id"])
}

// entityResponse returns a response with an entity, and the ETag of its version.
func entityResponse(d *store.Object) *api.Response {
	return &api.Response{Status: http.StatusOK, JSON: d.Body, Header: map[string]string{"ETag": etag(d)}}
}

func etag(d *store.Object) string { return strconv.Quote(strconv.Itoa(d.Version)) }

func getEntity(_ *api.Request, d *store.Object) (*api.Response, error) {
	return entityResponse(d), nil
}

// listEntities lists the entities of a type. A partial version such as 1 or 1.1 matches all versions that start with
// it.
func listEntities(r *api.Request) (*api.Response, error) {
	return listMatching(r, func(d *store.Object) bool { return matchesVersion(r, store.Text(d.Body, "entityType"), "type") })
}

// listByInterface lists the entities of all types that have an interface.
func listByInterface(r *api.Request) (*api.Response, error) {
	return listMatching(r, func(d *store.Object) bool {
		typ, err := rdeType(r.Cloud.Store, store.Text(d.Body, "entityType"))
		if err != nil {
			return false
		}
		list, _ := typ.Body["interfaces"].([]any)
		return slices.ContainsFunc(list, func(id any) bool { return matchesVersion(r, fmt.Sprint(id), "interface") })
	})
}

// matchesVersion reports whether an ID matches the path, which may contain a partial version.
func matchesVersion(r *api.Request, id, kind string) bool {
	want := "urn:vcloud:" + kind + ":" + r.Vars["vendor"] + ":" + r.Vars["nss"] + ":" + r.Vars["version"]
	return id == want || strings.HasPrefix(id, want+".")
}

func listMatching(r *api.Request, wanted func(*store.Object) bool) (*api.Response, error) {
	var out []*store.Object
	for _, d := range r.Cloud.Store.Documents[access.EntitiesPath] {
		if wanted(d) && canAccessEntity(r, d, access.LevelRead) {
			out = append(out, d)
		}
	}
	return r.PageOf(out)
}

// putEntity replaces the content of an entity. It refuses if the If-Match header does not match the current version, or
// if a resolved entity would become invalid.
func putEntity(r *api.Request, d *store.Object) (*api.Response, error) {
	if match := r.Header.Get("If-Match"); match != "" && match != etag(d) {
		return nil, store.Refuse(http.StatusPreconditionFailed, "PRECONDITION_FAILED",
			"The entity %s was changed by another request.", d.ID())
	}
	in := map[string]any{}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	entity, ok := in["entity"].(map[string]any)
	if !ok {
		return nil, store.BadRequest("A defined entity needs an entity.")
	}
	if d.Body["state"] == stateResolved {
		if err := validateEntity(r.Cloud, d, entity); err != nil {
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

// validateEntity validates the content of an entity against the schema of its type.
func validateEntity(c *cloud.Cloud, d *store.Object, entity map[string]any) error {
	typ, err := rdeType(c.Store, store.Text(d.Body, "entityType"))
	if err != nil {
		return err
	}
	schema, _ := typ.Body["schema"].(map[string]any)
	if c.Assume.EntitiesAdmitNull {
		entity, _ = withoutNulls(entity).(map[string]any)
	}
	return jsonschema.Validate(schema, entity)
}

// withoutNulls returns a copy of a JSON value without the fields that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for key, field := range value {
			if field != nil {
				fields[key] = withoutNulls(field)
			}
		}
		return fields
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = withoutNulls(item)
		}
		return items
	}
	return value
}

func resolveEntity(s *cloud.Cloud, d *store.Object) (*api.Response, error) {
	entity, _ := d.Body["entity"].(map[string]any)
	state := stateResolved
	message := any(nil)
	if err := validateEntity(s, d, entity); err != nil {
		state = stateError
		message = err.Error()
	}
	d.Body["state"] = state
	d.Body["entityState"] = state
	d.Version++
	for _, t := range store.Sorted(s.Store.Tasks) {
		if t.Work.Op == cloud.OpCreateEntity && store.URN("entity", t.Owner.ID) == d.ID() && !t.Done() {
			s.Tasks.Finish(t.ID)
		}
	}
	res := entityResponse(d)
	res.JSON = map[string]any{"id": d.ID(), "entity": entity, "state": state, "entityState": state, "message": message}
	return res, nil
}

func deleteEntity(s *cloud.Cloud, d *store.Object) (*api.Response, error) {
	if d.Body["state"] == statePreCreated {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_ENTITY_NOT_RESOLVED", "The entity %s is not resolved.", d.ID())
	}
	s.Store.Documents[access.EntitiesPath] = slices.DeleteFunc(slices.Clone(s.Store.Documents[access.EntitiesPath]),
		func(x *store.Object) bool { return x == d })
	delete(s.Store.Documents, access.EntitiesPath+"/"+d.ID()+"/accessControls")
	delete(s.Store.Documents, entriesPath(d))
	return api.NoContent(), nil
}
