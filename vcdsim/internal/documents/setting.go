// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"maps"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Setting is a JSON object at a path. Each entity has exactly one, which always exists. Tasks change it.
type Setting struct {
	Path  string // contains a variable for the entity
	Kind  string // kind in the names of its tasks
	Title string
	Scope func(r *api.Request) (Scope, error)
	// Initial returns the value before the first change and after a deletion. Nil means an empty object.
	Initial func(r *api.Request) map[string]any
	Prepare func(r *api.Request, body map[string]any) error
	Show    func(r *api.Request, p Scope, out map[string]any)
	List    bool // GET returns the values in pages
	Plain   bool // it has no version
}

// SettingRoutes adds the routes of settings.
func SettingRoutes(add api.AddRoute, settings []*Setting) {
	for _, s := range settings {
		add("GET", "/cloudapi/"+s.Path, s.get, cloud.LatencyCloudAPI)
		add("PUT", "/cloudapi/"+s.Path, s.put, cloud.LatencyWrite)
		add("DELETE", "/cloudapi/"+s.Path, s.Remove, cloud.LatencyWrite)
	}
}

// Now returns the current value of a setting and its version.
func (x *Setting) Now(r *api.Request, p Scope) (map[string]any, int) {
	for _, d := range r.Cloud.Store.Documents[x.Path] {
		if d.Parent == p.Parent {
			return maps.Clone(d.Body), d.Version
		}
	}
	if x.Initial == nil {
		return map[string]any{}, 0
	}
	return x.Initial(r), 0
}

func (x *Setting) get(r *api.Request) (*api.Response, error) {
	p, err := x.Scope(r)
	if err != nil {
		return nil, err
	}
	out, version := x.Now(r, p)
	if x.List {
		values, _ := out["values"].([]any)
		return r.Page(append([]any{}, values...))
	}
	if !x.Plain {
		out["version"] = map[string]any{"version": version}
	}
	if x.Show != nil {
		x.Show(r, p, out)
	}
	return api.JSON(out), nil
}

func (x *Setting) put(r *api.Request) (*api.Response, error) {
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	delete(body, "version")
	return x.Change(r, body)
}

// Remove resets the setting to its initial value.
func (x *Setting) Remove(r *api.Request) (*api.Response, error) {
	body := map[string]any{}
	if x.Initial != nil {
		body = x.Initial(r)
	}
	return x.Change(r, body)
}

// Change starts a task that sets a setting.
func (x *Setting) Change(r *api.Request, body map[string]any) (*api.Response, error) {
	p, err := x.Scope(r)
	if err != nil {
		return nil, err
	}
	if err := r.Cloud.Tasks.CheckIdle(p.Locks...); err != nil {
		return nil, err
	}
	if x.Prepare != nil {
		if err := x.Prepare(r, body); err != nil {
			return nil, err
		}
	}
	owner := store.Entity{Kind: "gateway", ID: p.Parent, Name: x.Title}
	w := store.Work{Op: "update " + x.Path, Document: p.Parent, Body: body, Name: p.OrgID}
	return r.Start(w, owner, p.Locks), nil
}

func (x *Setting) commit(s *cloud.Cloud, t *store.Task) error {
	x.keep(s, Scope{OrgID: t.Work.Name, Parent: t.Work.Document}, maps.Clone(t.Work.Body))
	return nil
}

func (x *Setting) keep(s *cloud.Cloud, p Scope, body map[string]any) {
	for _, d := range s.Store.Documents[x.Path] {
		if d.Parent == p.Parent {
			d.Body = body
			d.Version++
			return
		}
	}
	s.Store.Documents.Add(x.Path, p.OrgID, body).Parent = p.Parent
}

// SettingOperations returns the operations that change settings.
func SettingOperations(settings []*Setting) map[string]cloud.Operation {
	out := map[string]cloud.Operation{}
	for _, x := range settings {
		out["update "+x.Path] = cloud.NewChange("update", x.Kind, x.Title, x.commit)
	}
	return out
}
