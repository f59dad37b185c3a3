// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A setting is the one JSON object that an entity has at a path; it always exists, and tasks change it.
type setting struct {
	path  string // with the entity's variable
	kind  string // names its tasks
	title string
	scope func(r *request) (scope, error)
	// initial is its value until it is changed and after it is deleted; nil is an empty object.
	initial func(r *request) map[string]any
	prepare func(r *request, body map[string]any) error
	show    func(r *request, p scope, out map[string]any)
	list    bool // GET answers the values page by page
	plain   bool // it has no version
}

// settingRoutes adds the routes of settings.
func settingRoutes(add addRoute, settings []*setting) {
	for _, s := range settings {
		add("GET", "/cloudapi/"+s.path, s.get, latencyCloudAPI)
		add("PUT", "/cloudapi/"+s.path, s.put, latencyWrite)
		add("DELETE", "/cloudapi/"+s.path, s.remove, latencyWrite)
	}
}

func (x *setting) now(r *request, p scope) (map[string]any, int) {
	for _, d := range r.cloud.store.Documents[x.path] {
		if d.Parent == p.parent {
			return maps.Clone(d.Body), d.Version
		}
	}
	if x.initial == nil {
		return map[string]any{}, 0
	}
	return x.initial(r), 0
}

func (x *setting) get(r *request) (*response, error) {
	p, err := x.scope(r)
	if err != nil {
		return nil, err
	}
	out, version := x.now(r, p)
	if x.list {
		values, _ := out["values"].([]any)
		return r.page(append([]any{}, values...))
	}
	if !x.plain {
		out["version"] = map[string]any{"version": version}
	}
	if x.show != nil {
		x.show(r, p, out)
	}
	return jsonOK(out), nil
}

func (x *setting) put(r *request) (*response, error) {
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	delete(body, "version")
	return x.change(r, body)
}

// remove resets it to its initial value.
func (x *setting) remove(r *request) (*response, error) {
	body := map[string]any{}
	if x.initial != nil {
		body = x.initial(r)
	}
	return x.change(r, body)
}

func (x *setting) change(r *request, body map[string]any) (*response, error) {
	p, err := x.scope(r)
	if err != nil {
		return nil, err
	}
	if err := r.cloud.tasks.checkIdle(p.locks...); err != nil {
		return nil, err
	}
	if x.prepare != nil {
		if err := x.prepare(r, body); err != nil {
			return nil, err
		}
	}
	owner := store.Entity{Kind: "gateway", ID: p.parent, Name: x.title}
	w := store.Work{Op: "update " + x.path, Document: p.parent, Body: body, Name: p.orgID}
	return r.start(w, owner, p.locks), nil
}

func (x *setting) commit(s *cloud, t *store.Task) error {
	x.keep(s, scope{orgID: t.Work.Name, parent: t.Work.Document}, maps.Clone(t.Work.Body))
	return nil
}

func (x *setting) keep(s *cloud, p scope, body map[string]any) {
	for _, d := range s.store.Documents[x.path] {
		if d.Parent == p.parent {
			d.Body = body
			d.Version++
			return
		}
	}
	s.store.Documents.Add(x.path, p.orgID, body).Parent = p.parent
}

// settingOperations are the operations that change settings.
func settingOperations(settings []*setting) map[string]operation {
	out := map[string]operation{}
	for _, x := range settings {
		out["update "+x.path] = networkOperation("update", x.kind, x.title, x.commit)
	}
	return out
}
