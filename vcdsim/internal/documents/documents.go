// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"maps"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A Collection is a list of documents at a path.
type Collection struct {
	Path     string
	Kind     string // kind in the URN
	Right    string // operation named in errors
	Provider bool   // only the provider writes; all callers read
	Unique   []string
	Required []string
	Hidden   []string // write-only fields
	Fixed    []string // immutable fields
	Defaults map[string]any
	NewID    func(body map[string]any) string
	Check    func(r *api.Request, body map[string]any) error
	// MayDelete returns an error if the caller may not delete documents.
	MayDelete func(r *api.Request) error
	Free      func(s *cloud.Cloud, d *store.Object) error // returns an error if it must not be deleted

	// The following fields are for collections whose changes are tasks.

	Title  string // name of a document in tasks; "" means that changes are immediate
	Within string // path variable that names the parent
	Bare   bool   // IDs are UUIDs, not URNs
	Cursor bool   // lists use cursors
	// Unfiltered means that a list with cursors cannot be filtered.
	Unfiltered bool
	Hides      bool // there is no list of whole documents
	// Anonymous means that the gateway owns the tasks, so that they do not reveal the ID of a new document.
	Anonymous bool
	// Reveals means that the details of a task that creates a document are the ID. Clients have no other way to learn
	// it.
	Reveals bool
	// Since maps the fields that are newer than the oldest API version to the versions that introduced them.
	Since map[string]string
	// Scope returns the scope of a new document. Lists show every document that the caller may see, not only those of
	// the caller's organization.
	Scope func(r *api.Request, body map[string]any) (Scope, error)
	// Prepare completes a body before it is stored.
	Prepare func(r *api.Request, body map[string]any, old *store.Object) error
	// Show adds computed fields to a document in a response.
	Show func(r *api.Request, d *store.Object, out map[string]any)
	// done is called after a task succeeded.
	done func(s *cloud.Cloud, d *store.Object)
}

// Routes adds the routes of collections.
func Routes(add api.AddRoute, collections []*Collection) {
	for _, c := range collections {
		path := "/cloudapi/" + c.Path
		if list := c.listHandler(); list != nil {
			add("GET", path, list, cloud.LatencyCloudAPI)
		}
		add("POST", path, c.create, cloud.LatencyWrite)
		add("GET", path+"/{id}", c.get, cloud.LatencyCloudAPI)
		add("PUT", path+"/{id}", c.put, cloud.LatencyWrite)
		add("DELETE", path+"/{id}", c.remove, cloud.LatencyWrite)
	}
}

// listHandler returns the handler of the list, or nil if the collection cannot be listed.
func (c *Collection) listHandler() api.Handler {
	switch {
	case c.Hides:
		return nil
	case c.Cursor:
		return listByCursor(c)
	}
	return c.list
}

// visible returns the documents that the caller may see.
func (c *Collection) visible(r *api.Request) []*store.Object {
	if c.Scope != nil {
		return c.Scoped(r)
	}
	var out []*store.Object
	for _, d := range r.Cloud.Store.Documents[c.Path] {
		if c.Provider || d.OrgID == r.Tenant() {
			out = append(out, d)
		}
	}
	return out
}

// Find returns the document with an ID from those that the caller sees.
func (c *Collection) Find(r *api.Request, id string) (*store.Object, error) {
	if c.Scope != nil {
		return c.FindScoped(r, id)
	}
	// Providers can find documents of all tenants by ID.
	for _, d := range append(c.visible(r), r.Cloud.Store.Documents[c.Path]...) {
		if strings.EqualFold(d.ID(), id) && (c.Provider || r.Session.Sees(d.OrgID)) {
			return d, nil
		}
	}
	return nil, store.Forbidden(c.Right+"_VIEW", id)
}

// Writable returns an error if the caller may only read.
func (c *Collection) Writable(r *api.Request) error {
	if c.Provider && !r.Session.Provider() {
		return store.Forbidden(c.Right+"_MANAGE", r.URL.Path)
	}
	return nil
}

// Shown returns the document as it appears in responses.
func (c *Collection) Shown(r *api.Request, d *store.Object) map[string]any {
	out := maps.Clone(d.Body)
	for _, field := range c.Hidden {
		delete(out, field)
	}
	if c.Show != nil {
		c.Show(r, d, out)
	}
	for field, version := range c.Since {
		r.Newer(version, out, field)
	}
	return out
}

func (c *Collection) list(r *api.Request) (*api.Response, error) {
	var out []any
	for _, d := range c.visible(r) {
		out = append(out, c.Shown(r, d))
	}
	return r.Page(out)
}

func (c *Collection) get(r *api.Request) (*api.Response, error) {
	d, err := c.Find(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	return api.JSON(c.Shown(r, d)), nil
}

func (c *Collection) create(r *api.Request) (*api.Response, error) {
	if err := c.Writable(r); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	if err := c.checkFields(r, body); err != nil {
		return nil, err
	}
	if c.Title != "" {
		return c.createByTask(r, body)
	}
	if err := c.accept(r, body, nil); err != nil {
		return nil, err
	}
	Complete(body, c.Defaults)
	if c.NewID != nil {
		body["id"] = c.NewID(body)
	} else {
		body["id"] = store.URN(c.Kind, r.Cloud.IDs.Next(c.Kind))
	}
	d := r.Cloud.Store.Documents.Add(c.Path, r.Tenant(), body)
	return api.JSON(c.Shown(r, d)).CreatedAt(r.Site.Base() + "/cloudapi/" + c.Path + "/" + d.ID()), nil
}

// accept validates the body of a request. old is the document that it replaces, or nil.
func (c *Collection) accept(r *api.Request, body map[string]any, old *store.Object) error {
	for _, field := range c.Required {
		if store.Text(body, field) == "" {
			return store.BadRequest("The field %s must not be empty.", field)
		}
	}
	if err := c.checkUnique(r, body, old); err != nil {
		return err
	}
	if c.Check != nil {
		return c.Check(r, body)
	}
	return nil
}

// checkUnique returns an error if another document with the same parent has the same unique fields.
func (c *Collection) checkUnique(r *api.Request, body map[string]any, old *store.Object) error {
	if len(c.Unique) == 0 {
		return nil
	}
	parent := ""
	if c.Scope != nil {
		p, err := c.scopeOf(r, body, old)
		if err != nil {
			return err
		}
		parent = p.Parent
	}
	for _, d := range c.visible(r) {
		if d != old && d.Parent == parent && c.key(d.Body) == c.key(body) {
			return store.DuplicateName(store.Text(body, c.Unique[0]))
		}
	}
	return nil
}

// key returns the unique fields of a document as a comparable key.
func (c *Collection) key(body map[string]any) string {
	var parts []string
	for _, field := range c.Unique {
		parts = append(parts, store.Text(body, field))
	}
	return strings.Join(parts, "\x00")
}

// carryOver copies the fields of the old document that a PUT cannot change or that the client cannot know.
func (c *Collection) carryOver(r *api.Request, d *store.Object, body map[string]any) {
	for field, version := range c.Since {
		if r.Version < version && d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
	for _, field := range slices.Concat(c.Fixed, []string{"id"}) {
		if d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
	for _, field := range c.Hidden {
		if body[field] == nil && d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
}

func (c *Collection) put(r *api.Request) (*api.Response, error) {
	if err := c.Writable(r); err != nil {
		return nil, err
	}
	d, err := c.Find(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.Document(&body); err != nil {
		return nil, err
	}
	if err := c.checkFields(r, body); err != nil {
		return nil, err
	}
	c.carryOver(r, d, body)
	if c.Title != "" {
		return c.Change(r, d, body)
	}
	if err := c.accept(r, body, d); err != nil {
		return nil, err
	}
	d.Body = body
	d.Version++
	return api.JSON(c.Shown(r, d)), nil
}

func (c *Collection) remove(r *api.Request) (*api.Response, error) {
	if err := c.Writable(r); err != nil {
		return nil, err
	}
	d, err := c.Find(r, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	if c.MayDelete != nil {
		if err := c.MayDelete(r); err != nil {
			return nil, err
		}
	}
	if c.Free != nil {
		if err := c.Free(r.Cloud, d); err != nil {
			return nil, err
		}
	}
	if c.Title != "" {
		return c.removeByTask(r, d)
	}
	r.Cloud.Store.Documents.Remove(c.Path, d)
	return api.NoContent(), nil
}
