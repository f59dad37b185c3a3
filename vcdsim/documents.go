package vcdsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A document is an object of cloudapi that is kept as it came, with what the server adds to it.
type document struct {
	orgID   string // whose it is
	body    map[string]any
	version int                 // counts the changes, for ETags
	refs    map[string][]string // ids of what it refers to, by the name of the list
}

func (d *document) id() string { return text(d.body, "id") }

// text is a field of a document as text, empty if it is none.
func text(body map[string]any, field string) string {
	s, _ := body[field].(string)
	return s
}

// A collection is a list of documents at a path. Zero fields ask for nothing special.
type collection struct {
	path     string
	kind     string // of the URN
	right    string // operation named in refusals
	provider bool   // only the provider writes, and everybody sees
	unique   []string
	required []string
	hidden   []string // written, never shown
	fixed    []string // cannot be changed by PUT
	defaults map[string]any
	newID    func(body map[string]any) string
	check    func(r *request, body map[string]any) error
	free     func(r *request, d *document) error // refuses a deletion
}

// collections are all of them.
func collections() []*collection {
	return slices.Concat(roleCollections(), libraryCollections(), typeCollections())
}

func documentRoutes(add addRoute) {
	for _, c := range collections() {
		path := "/cloudapi/" + c.path
		add("GET", path, c.list, latencyCloudAPI)
		add("POST", path, c.create, latencyWrite)
		add("GET", path+"/{id}", c.get, latencyCloudAPI)
		add("PUT", path+"/{id}", c.put, latencyWrite)
		add("DELETE", path+"/{id}", c.remove, latencyWrite)
	}
	roleRoutes(add)
}

// tenant is the organisation a request works in: the caller's own, or for providers the one the header names.
func (r *request) tenant() string {
	if id := bare(r.Header.Get("X-Vmware-Vcloud-Tenant-Context")); id != "" && r.session.provider() {
		return id
	}
	return r.session.OrgID
}

// visible are the documents the request may see.
func (c *collection) visible(r *request) []*document {
	var out []*document
	for _, d := range r.sim.store.documents[c.path] {
		if c.provider || d.orgID == r.tenant() {
			out = append(out, d)
		}
	}
	return out
}

func (c *collection) find(r *request, id string) (*document, error) {
	// Providers find by id what any tenant has.
	for _, d := range append(c.visible(r), r.sim.store.documents[c.path]...) {
		if strings.EqualFold(d.id(), id) && (c.provider || r.sees(d.orgID)) {
			return d, nil
		}
	}
	return nil, forbidden(c.right+"_VIEW", id)
}

// writable refuses those who may only look.
func (c *collection) writable(r *request) error {
	if c.provider && !r.session.provider() {
		return forbidden(c.right+"_MANAGE", r.URL.Path)
	}
	return nil
}

// shown is the document as it is answered.
func (c *collection) shown(d *document) map[string]any {
	out := maps.Clone(d.body)
	for _, field := range c.hidden {
		delete(out, field)
	}
	return out
}

func (c *collection) list(r *request) (*response, error) {
	var out []any
	for _, d := range c.visible(r) {
		out = append(out, c.shown(d))
	}
	return r.page(out)
}

func (c *collection) get(r *request) (*response, error) {
	d, err := c.find(r, r.vars["id"])
	if err != nil {
		return nil, err
	}
	return jsonOK(c.shown(d)), nil
}

func (c *collection) create(r *request) (*response, error) {
	if err := c.writable(r); err != nil {
		return nil, err
	}
	body := map[string]any{}
	if err := r.document(&body); err != nil {
		return nil, err
	}
	if err := c.accept(r, body, nil); err != nil {
		return nil, err
	}
	for k, v := range c.defaults {
		if body[k] == nil || body[k] == "" {
			body[k] = v
		}
	}
	if c.newID != nil {
		body["id"] = c.newID(body)
	} else {
		body["id"] = URN(c.kind, r.sim.ids.next(c.kind))
	}
	d := r.sim.addDocument(c.path, r.tenant(), body)
	return &response{status: http.StatusCreated, json: c.shown(d), header: map[string]string{"Location": r.base() + "/cloudapi/" + c.path + "/" + d.id()}}, nil
}

func (s *Simulator) addDocument(path, orgID string, body map[string]any) *document {
	d := &document{orgID: orgID, body: body, version: 1, refs: map[string][]string{}}
	s.store.documents[path] = append(s.store.documents[path], d)
	return d
}

// accept checks a body that comes in; old is what it replaces.
func (c *collection) accept(r *request, body map[string]any, old *document) error {
	for _, field := range c.required {
		if text(body, field) == "" {
			return badRequest("The field %s must not be empty.", field)
		}
	}
	key := func(b map[string]any) string {
		var parts []string
		for _, field := range c.unique {
			parts = append(parts, text(b, field))
		}
		return strings.Join(parts, "\x00")
	}
	for _, d := range c.visible(r) {
		if d != old && len(c.unique) > 0 && key(d.body) == key(body) {
			return duplicateName(text(body, cmp.Or(c.unique[0], "name")))
		}
	}
	if c.check != nil {
		return c.check(r, body)
	}
	return nil
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
	for _, field := range slices.Concat(c.fixed, []string{"id"}) {
		if d.body[field] != nil {
			body[field] = d.body[field]
		}
	}
	if err := c.accept(r, body, d); err != nil {
		return nil, err
	}
	for _, field := range c.hidden {
		if body[field] == nil && d.body[field] != nil {
			body[field] = d.body[field]
		}
	}
	d.body = body
	d.version++
	return jsonOK(c.shown(d)), nil
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
	r.sim.store.documents[c.path] = slices.DeleteFunc(slices.Clone(r.sim.store.documents[c.path]), func(x *document) bool { return x == d })
	return &response{status: http.StatusNoContent}, nil
}
