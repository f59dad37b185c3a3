// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A collection is a list of documents at a path.
type collection struct {
	path     string
	kind     string // of the URN
	right    string // operation named in refusals
	provider bool   // only the provider writes; all callers see it
	unique   []string
	required []string
	hidden   []string // written, never shown
	fixed    []string // cannot be changed by PUT
	defaults map[string]any
	newID    func(body map[string]any) string
	check    func(r *request, body map[string]any) error
	free     func(r *request, d *store.Object) error // refuses a deletion

	// What follows makes a collection one whose changes are tasks.

	title  string // what its tasks call a document; empty: changes happen at once
	within string // variable of the path that names the parent
	bare   bool   // ids are UUIDs, not URNs
	cursor bool   // lists have cursors
	// unfiltered: lists with cursors cannot be filtered.
	unfiltered bool
	hides      bool // there is no list of whole documents
	// anonymous: the owner of its tasks is the gateway, so that they do not reveal the id of a new document.
	anonymous bool
	// reveals: the details of the task that makes a document are its id, which clients have no other way to learn.
	reveals bool
	// since are the API versions that fields came with, of those that are newer than the oldest version there is.
	since map[string]string
	// scope returns what a new document belongs to. Lists show what the caller may see, not only what its organization
	// has.
	scope func(r *request, body map[string]any) (scope, error)
	// prepare completes a body before it is stored.
	prepare func(r *request, body map[string]any, old *store.Object) error
	// show adds what is computed to a document that is answered.
	show func(r *request, d *store.Object, out map[string]any)
	// done follows a task's success.
	done func(s *cloud, d *store.Object)
}

// collectionRoutes adds the routes of collections.
func collectionRoutes(add addRoute, collections []*collection) {
	for _, c := range collections {
		path := "/cloudapi/" + c.path
		if list := c.lists(); list != nil {
			add("GET", path, list, latencyCloudAPI)
		}
		add("POST", path, c.create, latencyWrite)
		add("GET", path+"/{id}", c.get, latencyCloudAPI)
		add("PUT", path+"/{id}", c.put, latencyWrite)
		add("DELETE", path+"/{id}", c.remove, latencyWrite)
	}
}

// lists is the handler of the list, nil if there is none.
func (c *collection) lists() handler {
	switch {
	case c.hides:
		return nil
	case c.cursor:
		return listByCursor(c)
	}
	return c.list
}

// tenant is the organization a request works in: the caller's own, or for providers the one the header names.
func (r *request) tenant() string {
	if id := store.Bare(r.Header.Get("X-Vmware-Vcloud-Tenant-Context")); id != "" && r.session.Provider() {
		return id
	}
	return r.session.OrgID
}

// visible are the documents the request may see.
func (c *collection) visible(r *request) []*store.Object {
	if c.scope != nil {
		return c.scoped(r)
	}
	var out []*store.Object
	for _, d := range r.cloud.store.Documents[c.path] {
		if c.provider || d.OrgID == r.tenant() {
			out = append(out, d)
		}
	}
	return out
}

func (c *collection) find(r *request, id string) (*store.Object, error) {
	if c.scope != nil {
		return c.findScoped(r, id)
	}
	// Providers find by id what any tenant has.
	for _, d := range append(c.visible(r), r.cloud.store.Documents[c.path]...) {
		if strings.EqualFold(d.ID(), id) && (c.provider || r.session.Sees(d.OrgID)) {
			return d, nil
		}
	}
	return nil, store.Forbidden(c.right+"_VIEW", id)
}

// writable refuses callers that may only read.
func (c *collection) writable(r *request) error {
	if c.provider && !r.session.Provider() {
		return store.Forbidden(c.right+"_MANAGE", r.URL.Path)
	}
	return nil
}

// shown is the document as answers show it.
func (c *collection) shown(r *request, d *store.Object) map[string]any {
	out := maps.Clone(d.Body)
	for _, field := range c.hidden {
		delete(out, field)
	}
	if c.show != nil {
		c.show(r, d, out)
	}
	for field, version := range c.since {
		r.newer(version, out, field)
	}
	return out
}

func (c *collection) list(r *request) (*response, error) {
	var out []any
	for _, d := range c.visible(r) {
		out = append(out, c.shown(r, d))
	}
	return r.page(out)
}

func (c *collection) get(r *request) (*response, error) {
	d, err := c.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	return jsonOK(c.shown(r, d)), nil
}

func (c *collection) create(r *request) (*response, error) {
	if err := c.writable(r); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	if err := c.known(r, body); err != nil {
		return nil, err
	}
	if c.title != "" {
		return c.createByTask(r, body)
	}
	if err := c.accept(r, body, nil); err != nil {
		return nil, err
	}
	complete(body, c.defaults)
	if c.newID != nil {
		body["id"] = c.newID(body)
	} else {
		body["id"] = store.URN(c.kind, r.cloud.ids.Next(c.kind))
	}
	d := r.cloud.store.Documents.Add(c.path, r.tenant(), body)
	return jsonOK(c.shown(r, d)).createdAt(r.site.Base() + "/cloudapi/" + c.path + "/" + d.ID()), nil
}

// accept checks a body that comes in; old is what it replaces.
func (c *collection) accept(r *request, body map[string]any, old *store.Object) error {
	for _, field := range c.required {
		if store.Text(body, field) == "" {
			return store.BadRequest("The field %s must not be empty.", field)
		}
	}
	if err := c.notTwice(r, body, old); err != nil {
		return err
	}
	if c.check != nil {
		return c.check(r, body)
	}
	return nil
}

// notTwice refuses a duplicate of a document with the same parent.
func (c *collection) notTwice(r *request, body map[string]any, old *store.Object) error {
	if len(c.unique) == 0 {
		return nil
	}
	parent := ""
	if c.scope != nil {
		p, err := c.scopeOf(r, body, old)
		if err != nil {
			return err
		}
		parent = p.parent
	}
	for _, d := range c.visible(r) {
		if d != old && d.Parent == parent && c.key(d.Body) == c.key(body) {
			return store.DuplicateName(store.Text(body, c.unique[0]))
		}
	}
	return nil
}

// key is what no two documents may share.
func (c *collection) key(body map[string]any) string {
	var parts []string
	for _, field := range c.unique {
		parts = append(parts, store.Text(body, field))
	}
	return strings.Join(parts, "\x00")
}

// carry copies what a PUT does not change, and what its client cannot know, from the document it replaces.
func (c *collection) carry(r *request, d *store.Object, body map[string]any) {
	for field, version := range c.since {
		if r.version < version && d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
	for _, field := range slices.Concat(c.fixed, []string{"id"}) {
		if d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
	for _, field := range c.hidden {
		if body[field] == nil && d.Body[field] != nil {
			body[field] = d.Body[field]
		}
	}
}

func (c *collection) put(r *request) (*response, error) {
	if err := c.writable(r); err != nil {
		return nil, err
	}
	d, err := c.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	if err := c.known(r, body); err != nil {
		return nil, err
	}
	c.carry(r, d, body)
	if c.title != "" {
		return c.putByTask(r, d, body)
	}
	if err := c.accept(r, body, d); err != nil {
		return nil, err
	}
	d.Body = body
	d.Version++
	return jsonOK(c.shown(r, d)), nil
}

func (c *collection) remove(r *request) (*response, error) {
	if err := c.writable(r); err != nil {
		return nil, err
	}
	d, err := c.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	if c.free != nil {
		if err := c.free(r, d); err != nil {
			return nil, err
		}
	}
	if c.title != "" {
		return c.removeByTask(r, d)
	}
	r.cloud.store.Documents.Remove(c.path, d)
	return noContent(), nil
}
