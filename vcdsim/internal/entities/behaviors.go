// SPDX-License-Identifier: Apache-2.0

package entities

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// behaviors serves the behaviors that interfaces declare or types override.
type behaviors struct{ path, kind string }

// noopExecution is the only execution type that the simulator runs. It returns its input.
const noopExecution = "noop"

func behaviorRoutes(add api.AddRoute) {
	for _, b := range []behaviors{{"interfaces", "interface"}, {"entityTypes", "type"}} {
		list := "/cloudapi/1.0.0/" + b.path + "/{id}/behaviors"
		add("GET", list, b.list, cloud.LatencyCloudAPI)
		add("POST", list, b.create, cloud.LatencyWrite)
		add("GET", list+"/{behavior}", b.get, cloud.LatencyCloudAPI)
		add("PUT", list+"/{behavior}", b.put, cloud.LatencyWrite)
		add("DELETE", list+"/{behavior}", b.remove, cloud.LatencyWrite)
	}
	const access = "/cloudapi/1.0.0/entityTypes/{id}/behaviorAccessControls"
	add("GET", access, listBehaviorAccess, cloud.LatencyCloudAPI)
	add("POST", access, api.With(behaviorAccess, addBehaviorAccess), cloud.LatencyWrite)
	add("PUT", access, api.With(behaviorAccess, putBehaviorAccess), cloud.LatencyWrite)
	add("POST", "/cloudapi/1.0.0/entities/{id}/behaviors/{behavior}/invocations", api.With(entityByID, invokeBehavior),
		cloud.LatencyWrite)
}

func (b behaviors) key(r *api.Request) string {
	return "1.0.0/" + b.path + "/" + r.Vars["id"] + "/behaviors"
}

// owner returns the interface or type in the path.
func (b behaviors) owner(r *api.Request) (*store.Object, error) {
	for _, d := range r.Cloud.Store.Documents["1.0.0/"+b.path] {
		if d.ID() == r.Vars["id"] {
			return d, nil
		}
	}
	return nil, store.Forbidden("BEHAVIOR_VIEW", r.Vars["id"])
}

func (b behaviors) list(r *api.Request) (*api.Response, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	return r.PageOf(behaviorsOf(r.Cloud.Store.Documents, owner))
}

// behaviorsOf returns the behaviors of an interface, or the behaviors that a type overrides or inherits.
func behaviorsOf(ds store.Objects, owner *store.Object) []*store.Object {
	path := access.InterfacesPath
	interfaces, ofType := owner.Body["interfaces"].([]any)
	if ofType {
		path = access.TypesPath
	}
	out := slices.Clone(ds[path+"/"+owner.ID()+"/behaviors"])
	for _, id := range interfaces {
		for _, d := range ds[fmt.Sprintf("%s/%v/behaviors", access.InterfacesPath, id)] {
			if !slices.ContainsFunc(out, func(x *store.Object) bool { return x.Body["ref"] == d.Body["ref"] }) {
				out = append(out, d)
			}
		}
	}
	return out
}

// behaviorInPath returns the behavior in the path. The path has either its ID or the ID of the interface's behavior
// that it overrides.
func behaviorInPath(r *api.Request, owner *store.Object) (*store.Object, error) {
	for _, d := range behaviorsOf(r.Cloud.Store.Documents, owner) {
		if d.ID() == r.Vars["behavior"] || d.Body["ref"] == r.Vars["behavior"] {
			return d, nil
		}
	}
	if _, ofType := owner.Body["interfaces"].([]any); !ofType {
		return nil, store.Forbidden("BEHAVIOR_VIEW", r.Vars["behavior"])
	}
	return nil, store.Refuse(http.StatusBadRequest, "RDE_INVALID_BEHAVIOR_SCOPE", "The behavior %s is none of %s.",
		r.Vars["behavior"], owner.ID())
}

func (b behaviors) find(r *api.Request) (*store.Object, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	return behaviorInPath(r, owner)
}

// read reads a behavior from the body. It refuses callers other than providers.
func (b behaviors) read(r *api.Request) (owner *store.Object, body map[string]any, err error) {
	if owner, err = b.owner(r); err != nil {
		return nil, nil, err
	}
	if !r.Session.Provider() {
		return nil, nil, store.Forbidden("BEHAVIOR_MANAGE", owner.ID())
	}
	err = r.Document(&body)
	return owner, body, err
}

func (b behaviors) create(r *api.Request) (*api.Response, error) {
	owner, body, err := b.read(r)
	if err != nil {
		return nil, err
	}
	if store.Text(body, "name") == "" {
		return nil, store.BadRequest("The field name must not be empty.")
	}
	id := "urn:vcloud:behavior-" + b.kind + ":" + store.Text(body, "name") + ":" + strings.TrimPrefix(owner.ID(),
		"urn:vcloud:"+b.kind+":")
	r.Vars["behavior"] = id
	if _, err := behaviorInPath(r, owner); err == nil {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_BEHAVIOR_ALREADY_EXISTS", "The behavior %s already exists.", id)
	}
	body["id"] = id
	body["ref"] = id
	r.Cloud.Store.Documents.Add(b.key(r), r.Session.OrgID, body)
	return api.JSON(body), nil
}

func (b behaviors) get(r *api.Request) (*api.Response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	return api.JSON(d.Body), nil
}

// put changes a behavior. If a type inherits the behavior, put adds an override to the type and leaves the interface
// unchanged.
func (b behaviors) put(r *api.Request) (*api.Response, error) {
	owner, body, err := b.read(r)
	if err != nil {
		return nil, err
	}
	d, err := behaviorInPath(r, owner)
	if err != nil {
		return nil, err
	}
	body["name"] = d.Body["name"]
	body["id"] = d.Body["id"]
	body["ref"] = d.Body["ref"]
	if !slices.Contains(r.Cloud.Store.Documents[b.key(r)], d) {
		inherited := strings.TrimPrefix(store.Text(d.Body, "ref"), "urn:vcloud:behavior-interface:"+store.Text(d.Body, "name")+":")
		body["id"] = "urn:vcloud:behavior-type:" + store.Text(d.Body, "name") + ":" + strings.TrimPrefix(owner.ID(),
			"urn:vcloud:type:") + ":" + inherited
		d = r.Cloud.Store.Documents.Add(b.key(r), r.Session.OrgID, body)
	}
	d.Body = body
	return api.JSON(body), nil
}

// remove deletes a behavior. After an override is removed, the type inherits the behavior of the interface.
func (b behaviors) remove(r *api.Request) (*api.Response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.Cloud.Store.Documents[b.key(r)], d) {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_INVALID_BEHAVIOR_SCOPE", "The behavior %s is an interface's.",
			d.ID())
	}
	r.Cloud.Store.Documents.Remove(b.key(r), d)
	return api.NoContent(), nil
}

// behaviorAccess returns the key of the access levels that the behaviors of a type require. The levels are only stored
// and shown: every caller who can change an entity can invoke its behaviors.
func behaviorAccess(r *api.Request) (key string, err error) {
	_, err = rdeType(r.Cloud.Store, r.Vars["id"])
	return access.TypesPath + "/" + r.Vars["id"] + "/behaviorAccessControls", err
}

func listBehaviorAccess(r *api.Request) (*api.Response, error) {
	key, err := behaviorAccess(r)
	if err != nil {
		return nil, err
	}
	return r.PageOf(r.Cloud.Store.Documents[key])
}

func addBehaviorAccess(r *api.Request, key string) (*api.Response, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	r.Cloud.Store.Documents.Add(key, r.Session.OrgID, body)
	return &api.Response{Status: http.StatusCreated, JSON: body}, nil
}

// putBehaviorAccess replaces all access levels of a type.
func putBehaviorAccess(r *api.Request, key string) (*api.Response, error) {
	var in struct {
		Values []map[string]any `json:"values"`
	}
	if err := r.Document(&in); err != nil {
		return nil, err
	}
	r.Cloud.Store.Documents[key] = nil
	for _, body := range in.Values {
		if body != nil {
			r.Cloud.Store.Documents.Add(key, r.Session.OrgID, body)
		}
	}
	return listBehaviorAccess(r)
}

// invokeBehavior starts a task that runs a behavior of an entity. The result of the task is the output of the behavior.
func invokeBehavior(r *api.Request, d *store.Object) (*api.Response, error) {
	typ, err := rdeType(r.Cloud.Store, store.Text(d.Body, "entityType"))
	if err != nil {
		return nil, err
	}
	behavior, err := behaviorInPath(r, typ)
	if err != nil {
		return nil, err
	}
	in := map[string]any{}
	if len(r.Content) > 0 {
		if err := r.Document(&in); err != nil {
			return nil, err
		}
	}
	execution, _ := behavior.Body["execution"].(map[string]any)
	w := store.Work{
		Op:       cloud.OpInvoke,
		Document: d.ID(),
		Name:     store.Text(execution, "type"),
		Body: map[string]any{
			"entityId":   d.ID(),
			"typeId":     typ.ID(),
			"behaviorId": r.Vars["behavior"],
			"arguments":  in["arguments"],
			"metadata":   in["metadata"],
		},
	}
	id := strings.TrimPrefix(d.ID(), "urn:vcloud:entity:")
	return r.Start(w, store.Entity{Kind: "entity", ID: id, Name: store.Text(d.Body, "name")}, nil), nil
}

func commitInvoke(s *cloud.Cloud, t *store.Task) error {
	d := s.Store.Documents.Find(access.EntitiesPath, t.Work.Document)
	if d == nil {
		return cloud.Gone("entity", t.Work.Document)
	}
	if !strings.EqualFold(t.Work.Name, noopExecution) {
		return store.Refuse(http.StatusInternalServerError, "RDE_BEHAVIOR_EXECUTION_FAILED",
			"A behavior of type %q cannot be executed here.", t.Work.Name)
	}
	t.Work.Body["entity"] = d.Body["entity"]
	out, err := json.Marshal(t.Work.Body)
	t.Result = string(out)
	return err
}

// Operations returns the operations on defined entities.
func Operations() map[string]cloud.Operation {
	return map[string]cloud.Operation{
		cloud.OpCreateEntity: cloud.NewOperation("createDefinedEntity", "Creating defined entity", 0, cloud.Nothing),
		cloud.OpInvoke: cloud.NewOperation("invokeDefinedEntityBehavior", "Invoking behavior on", cloud.DurationMetadata,
			commitInvoke),
	}
}
