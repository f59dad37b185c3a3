// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// behaviours are what an interface declares and a type overrides.
type behaviours struct{ path, kind string }

// noBehaviour is the only execution type that is simulated: it answers with its input.
const noBehaviour = "noop"

func behaviourRoutes(add addRoute) {
	for _, b := range []behaviours{{"interfaces", "interface"}, {"entityTypes", "type"}} {
		list := "/cloudapi/1.0.0/" + b.path + "/{id}/behaviors"
		add("GET", list, b.list, latencyCloudAPI)
		add("POST", list, b.create, latencyWrite)
		add("GET", list+"/{behavior}", b.get, latencyCloudAPI)
		add("PUT", list+"/{behavior}", b.put, latencyWrite)
		add("DELETE", list+"/{behavior}", b.remove, latencyWrite)
	}
	const access = "/cloudapi/1.0.0/entityTypes/{id}/behaviorAccessControls"
	add("GET", access, listBehaviourAccess, latencyCloudAPI)
	add("POST", access, with(behaviourAccess, addBehaviourAccess), latencyWrite)
	add("PUT", access, with(behaviourAccess, putBehaviourAccess), latencyWrite)
	add("POST", "/cloudapi/1.0.0/entities/{id}/behaviors/{behavior}/invocations", with(entityByID, invokeBehaviour),
		latencyWrite)
}

func (b behaviours) key(r *request) string {
	return "1.0.0/" + b.path + "/" + r.vars["id"] + "/behaviors"
}

// owner refuses when the interface or type does not exist.
func (b behaviours) owner(r *request) (*store.Object, error) {
	for _, d := range r.cloud.store.Documents["1.0.0/"+b.path] {
		if d.ID() == r.vars["id"] {
			return d, nil
		}
	}
	return nil, store.Forbidden("BEHAVIOR_VIEW", r.vars["id"])
}

func (b behaviours) list(r *request) (*response, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	return r.pageOf(behavioursOf(r.cloud.store.Documents, owner))
}

// behavioursOf are those of an interface, or those a type overrides and inherits.
func behavioursOf(ds store.Objects, owner *store.Object) []*store.Object {
	path := interfacesPath
	interfaces, ofType := owner.Body["interfaces"].([]any)
	if ofType {
		path = typesPath
	}
	out := slices.Clone(ds[path+"/"+owner.ID()+"/behaviors"])
	for _, id := range interfaces {
		for _, d := range ds[fmt.Sprintf("%s/%v/behaviors", interfacesPath, id)] {
			if !slices.ContainsFunc(out, func(x *store.Object) bool { return x.Body["ref"] == d.Body["ref"] }) {
				out = append(out, d)
			}
		}
	}
	return out
}

// behaviourOf finds one by its id, or by that of the interface's behaviour it overrides.
func behaviourOf(r *request, owner *store.Object) (*store.Object, error) {
	for _, d := range behavioursOf(r.cloud.store.Documents, owner) {
		if d.ID() == r.vars["behavior"] || d.Body["ref"] == r.vars["behavior"] {
			return d, nil
		}
	}
	if _, ofType := owner.Body["interfaces"].([]any); !ofType {
		return nil, store.Forbidden("BEHAVIOR_VIEW", r.vars["behavior"])
	}
	return nil, store.Refuse(http.StatusBadRequest, "RDE_INVALID_BEHAVIOR_SCOPE", "The behavior %s is none of %s.",
		r.vars["behavior"], owner.ID())
}

func (b behaviours) find(r *request) (*store.Object, error) {
	owner, err := b.owner(r)
	if err != nil {
		return nil, err
	}
	return behaviourOf(r, owner)
}

// read takes a behaviour from the body of a provider's request.
func (b behaviours) read(r *request) (owner *store.Object, body map[string]any, err error) {
	if owner, err = b.owner(r); err != nil {
		return nil, nil, err
	}
	if !r.session.Provider() {
		return nil, nil, store.Forbidden("BEHAVIOR_MANAGE", owner.ID())
	}
	err = r.document(&body)
	return owner, body, err
}

func (b behaviours) create(r *request) (*response, error) {
	owner, body, err := b.read(r)
	if err != nil {
		return nil, err
	}
	if store.Text(body, "name") == "" {
		return nil, store.BadRequest("The field name must not be empty.")
	}
	id := "urn:vcloud:behavior-" + b.kind + ":" + store.Text(body, "name") + ":" + strings.TrimPrefix(owner.ID(),
		"urn:vcloud:"+b.kind+":")
	r.vars["behavior"] = id
	if _, err := behaviourOf(r, owner); err == nil {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_BEHAVIOR_ALREADY_EXISTS", "The behavior %s already exists.", id)
	}
	body["id"] = id
	body["ref"] = id
	r.cloud.store.Documents.Add(b.key(r), r.session.OrgID, body)
	return jsonOK(body), nil
}

func (b behaviours) get(r *request) (*response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(d.Body), nil
}

// put changes a behaviour; of a type, one that is inherited becomes the type's own and the interface's stays.
func (b behaviours) put(r *request) (*response, error) {
	owner, body, err := b.read(r)
	if err != nil {
		return nil, err
	}
	d, err := behaviourOf(r, owner)
	if err != nil {
		return nil, err
	}
	body["name"] = d.Body["name"]
	body["id"] = d.Body["id"]
	body["ref"] = d.Body["ref"]
	if !slices.Contains(r.cloud.store.Documents[b.key(r)], d) {
		inherited := strings.TrimPrefix(store.Text(d.Body, "ref"), "urn:vcloud:behavior-interface:"+store.Text(d.Body, "name")+":")
		body["id"] = "urn:vcloud:behavior-type:" + store.Text(d.Body, "name") + ":" + strings.TrimPrefix(owner.ID(),
			"urn:vcloud:type:") + ":" + inherited
		d = r.cloud.store.Documents.Add(b.key(r), r.session.OrgID, body)
	}
	d.Body = body
	return jsonOK(body), nil
}

// remove deletes a behaviour; of a type, what it overrides is the interface's again.
func (b behaviours) remove(r *request) (*response, error) {
	d, err := b.find(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.cloud.store.Documents[b.key(r)], d) {
		return nil, store.Refuse(http.StatusBadRequest, "RDE_INVALID_BEHAVIOR_SCOPE", "The behavior %s is an interface's.",
			d.ID())
	}
	r.cloud.store.Documents.Remove(b.key(r), d)
	return noContent(), nil
}

// behaviourAccess is where the access levels are kept that a type's behaviours take. They are shown; who sees an entity
// may invoke.
func behaviourAccess(r *request) (key string, err error) {
	_, err = rdeType(r.cloud.store, r.vars["id"])
	return typesPath + "/" + r.vars["id"] + "/behaviorAccessControls", err
}

func listBehaviourAccess(r *request) (*response, error) {
	key, err := behaviourAccess(r)
	if err != nil {
		return nil, err
	}
	return r.pageOf(r.cloud.store.Documents[key])
}

func addBehaviourAccess(r *request, key string) (*response, error) {
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	r.cloud.store.Documents.Add(key, r.session.OrgID, body)
	return &response{status: http.StatusCreated, json: body}, nil
}

// putBehaviourAccess replaces all.
func putBehaviourAccess(r *request, key string) (*response, error) {
	var in struct {
		Values []map[string]any `json:"values"`
	}
	if err := r.document(&in); err != nil {
		return nil, err
	}
	r.cloud.store.Documents[key] = nil
	for _, body := range in.Values {
		if body != nil {
			r.cloud.store.Documents.Add(key, r.session.OrgID, body)
		}
	}
	return listBehaviourAccess(r)
}

// invokeBehaviour runs a behaviour of an entity in a task, whose result is what it answers.
func invokeBehaviour(r *request, d *store.Object) (*response, error) {
	typ, err := rdeType(r.cloud.store, store.Text(d.Body, "entityType"))
	if err != nil {
		return nil, err
	}
	behaviour, err := behaviourOf(r, typ)
	if err != nil {
		return nil, err
	}
	in := map[string]any{}
	if len(r.body) > 0 {
		if err := r.document(&in); err != nil {
			return nil, err
		}
	}
	execution, _ := behaviour.Body["execution"].(map[string]any)
	w := store.Work{
		Op:       opInvoke,
		Document: d.ID(),
		Name:     store.Text(execution, "type"),
		Body: map[string]any{
			"entityId":   d.ID(),
			"typeId":     typ.ID(),
			"behaviorId": r.vars["behavior"],
			"arguments":  in["arguments"],
			"metadata":   in["metadata"],
		},
	}
	id := strings.TrimPrefix(d.ID(), "urn:vcloud:entity:")
	return r.start(w, store.Entity{Kind: "entity", ID: id, Name: store.Text(d.Body, "name")}, nil), nil
}

func commitInvoke(s *cloud, t *store.Task) error {
	d := s.store.Documents.Find(entitiesPath, t.Work.Document)
	if d == nil {
		return gone("entity", t.Work.Document)
	}
	if !strings.EqualFold(t.Work.Name, noBehaviour) {
		return store.Refuse(http.StatusInternalServerError, "RDE_BEHAVIOR_EXECUTION_FAILED",
			"A behavior of type %q cannot be executed here.", t.Work.Name)
	}
	t.Work.Body["entity"] = d.Body["entity"]
	out, err := json.Marshal(t.Work.Body)
	t.Result = string(out)
	return err
}

// entityOperations are the operations on defined entities.
func entityOperations() map[string]operation {
	return map[string]operation{
		opCreateEntity: newOperation("createDefinedEntity", "Creating defined entity", 0, nothing),
		opInvoke: newOperation("invokeDefinedEntityBehavior", "Invoking behavior on", durationMetadata,
			commitInvoke),
	}
}
