// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Scope identifies the owner of a document: its organization, the bare ID of its parent, and the entities that are
// busy while the document changes.
type Scope struct {
	OrgID  string
	Parent string
	Locks  []string
}

// States of objects that NSX realizes.
const (
	StatePending     = "PENDING"
	StateConfiguring = "CONFIGURING"
	StateRealized    = "REALIZED"
	stateFailed      = "REALIZATION_FAILED"
)

// Realization returns the state of an entity, considering a running task that creates or changes it.
func Realization(ts *cloud.Tasks, id string, failed bool) string {
	t := ts.Cloud.Store.Tasks[ts.Cloud.Store.Locks[id]]
	switch {
	case t != nil && taskCreates(t, id):
		return StatePending
	case t != nil:
		return StateConfiguring
	case failed:
		return stateFailed
	}
	return StateRealized
}

// taskCreates reports whether a task creates the entity with an ID. The owner of the task may be another entity: for a
// NAT rule it is the gateway.
func taskCreates(t *store.Task, id string) bool {
	return t.Work.Creates && store.Bare(cmp.Or(t.Work.Document, t.Owner.ID)) == id
}

// scopeOf returns the scope of a document, or of a new document with this body.
func (c *Collection) scopeOf(r *api.Request, body map[string]any, old *store.Object) (Scope, error) {
	if old != nil {
		body = old.Body
	}
	return c.Scope(r, body)
}

// Scoped returns the documents that the caller sees, limited to the parent in the path.
func (c *Collection) Scoped(r *api.Request) []*store.Object {
	var out []*store.Object
	for _, d := range r.Cloud.Store.Documents[c.Path] {
		if (c.Within == "" || d.Parent == store.Bare(r.Vars[c.Within])) && (d.OrgID == "" || r.Session.Sees(d.OrgID)) {
			out = append(out, d)
		}
	}
	return out
}

// FindScoped returns the document with an ID from those that Scoped returns.
func (c *Collection) FindScoped(r *api.Request, id string) (*store.Object, error) {
	for _, d := range c.Scoped(r) {
		if strings.EqualFold(d.ID(), id) {
			return d, nil
		}
	}
	return nil, store.Forbidden(c.Right+"_VIEW", id)
}

// checked completes and validates a body before it is stored.
func (c *Collection) checked(r *api.Request, body map[string]any, old *store.Object) (Scope, error) {
	p, err := c.scopeOf(r, body, old)
	if err != nil {
		return p, err
	}
	Complete(body, c.Defaults)
	if c.Prepare != nil {
		if err := c.Prepare(r, body, old); err != nil {
			return p, err
		}
	}
	if err := c.accept(r, body, old); err != nil {
		return p, err
	}
	if err := WithinSizes(r.Cloud.Assume, body); err != nil {
		return p, err
	}
	return p, checkDocument(r.Cloud.Tasks, p, old)
}

// checkDocument returns an error if a task holds the document or an entity of its scope.
func checkDocument(ts *cloud.Tasks, p Scope, d *store.Object) error {
	ids := p.Locks
	if d != nil {
		ids = append(slices.Clone(ids), store.Bare(d.ID()))
	}
	return ts.CheckIdle(ids...)
}

func (c *Collection) createByTask(r *api.Request, body map[string]any) (*api.Response, error) {
	delete(body, "id")
	p, err := c.checked(r, body, nil)
	if err != nil {
		return nil, err
	}
	id := r.Cloud.IDs.Next(c.Kind)
	if body["id"] = store.URN(c.Kind, id); c.Bare {
		body["id"] = id
	}
	d := r.Cloud.Store.Documents.Add(c.Path, p.OrgID, body)
	d.Parent = p.Parent
	return r.Accepted(c.task(r, "create", d, p, nil)), nil
}

// Change starts a task that replaces the body of a document.
func (c *Collection) Change(r *api.Request, d *store.Object, body map[string]any) (*api.Response, error) {
	p, err := c.checked(r, body, d)
	if err != nil {
		return nil, err
	}
	return r.Accepted(c.task(r, "update", d, p, body)), nil
}

func (c *Collection) removeByTask(r *api.Request, d *store.Object) (*api.Response, error) {
	p, err := c.scopeOf(r, d.Body, d)
	if err != nil {
		return nil, err
	}
	if err := checkDocument(r.Cloud.Tasks, p, d); err != nil {
		return nil, err
	}
	return r.Accepted(c.task(r, "delete", d, p, nil)), nil
}

// task starts a task that creates, updates or deletes a document.
func (c *Collection) task(r *api.Request, verb string, d *store.Object, p Scope, body map[string]any) *store.Task {
	w := store.Work{Op: verb + " " + c.Path, Document: d.ID(), Body: body, Creates: verb == "create"}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if verb == "create" {
		path += "/" + d.ID()
	}
	owner := store.Entity{
		Kind: c.Kind,
		ID:   store.Bare(d.ID()),
		Name: cmp.Or(store.Text(d.Body, "name"), d.ID()),
		Path: path,
	}
	if c.Anonymous {
		owner = store.Entity{Kind: "gateway", ID: p.Parent, Name: r.Cloud.Store.GatewayName(p.Parent)}
	}
	return r.StartTask(w, owner, append(slices.Clone(p.Locks), store.Bare(d.ID())))
}

// Operations returns the operations of collections whose changes are tasks.
func Operations(collections []*Collection) map[string]cloud.Operation {
	out := map[string]cloud.Operation{}
	for _, c := range collections {
		if c.Title == "" {
			continue
		}
		for verb, run := range map[string]func(*cloud.Cloud, *store.Task) error{
			"create": c.commitCreate,
			"update": c.commitUpdate,
			"delete": c.commitRemove,
		} {
			op := cloud.NewChange(verb, c.Kind, c.Title, run)
			op.Reveals = c.Reveals && verb == "create"
			out[verb+" "+c.Path] = op
		}
	}
	return out
}

func (c *Collection) commitCreate(s *cloud.Cloud, t *store.Task) error {
	d := s.Store.Documents.Find(c.Path, t.Work.Document)
	if d == nil {
		return cloud.Gone(c.Title, t.Work.Document)
	}
	c.finished(s, d)
	return nil
}

func (c *Collection) commitUpdate(s *cloud.Cloud, t *store.Task) error {
	d := s.Store.Documents.Find(c.Path, t.Work.Document)
	if d == nil {
		return cloud.Gone(c.Title, t.Work.Document)
	}
	d.Body = maps.Clone(t.Work.Body)
	d.Failed = false
	d.Version++
	c.finished(s, d)
	return nil
}

func (c *Collection) finished(s *cloud.Cloud, d *store.Object) {
	d.Since = s.Clock.Now()
	if c.done != nil {
		c.done(s, d)
	}
}

func (c *Collection) commitRemove(s *cloud.Cloud, t *store.Task) error {
	d := s.Store.Documents.Find(c.Path, t.Work.Document)
	if d == nil {
		return cloud.Gone(c.Title, t.Work.Document)
	}
	s.Store.Documents.Remove(c.Path, d)
	RemoveDocumentsOf(s, store.Bare(d.ID())) // such as the HTTP policies of a virtual service
	return nil
}

// Members returns the IDs in a list of references.
func Members(body map[string]any, field string) []string {
	var out []string
	list, _ := body[field].([]any)
	for _, item := range list {
		out = append(out, store.Bare(store.RefID(map[string]any{field: item}, field)))
	}
	return out
}

// InUse returns VCD's error for the deletion of an object that is still referenced.
func InUse(kind, name, by string) *store.Refusal {
	return store.Refuse(http.StatusBadRequest, "VALIDATION_ERROR", "Cannot delete the %s %q because it is in use by %s.",
		kind, name, by)
}
