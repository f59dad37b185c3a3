// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A scope is what a document belongs to: its organization, the bare id of its parent, and the entities that are busy
// while it changes.
type scope struct {
	orgID  string
	parent string
	locks  []string
}

// States of what NSX realises.
const (
	statePending     = "PENDING"
	stateConfiguring = "CONFIGURING"
	stateRealized    = "REALIZED"
	stateFailed      = "REALIZATION_FAILED"
)

// realization is the state of an entity: a task that makes or changes it may be running.
func (ts *tasks) realization(id string, failed bool) string {
	t := ts.sim.store.Tasks[ts.sim.store.Locks[id]]
	switch {
	case t != nil && t.makes(id):
		return statePending
	case t != nil:
		return stateConfiguring
	case failed:
		return stateFailed
	}
	return stateRealized
}

// makes reports whether a task makes the entity with an id. Its owner may be another: that of a NAT rule is its
// gateway.
func (t *Task) makes(id string) bool {
	return t.Work.Creates && bare(cmp.Or(t.Work.Document, t.Owner.ID)) == id
}

// balancing is the state of what a gateway's load balancer has.
func (lb *loadBalancing) balancing(d *document) string {
	state := lb.sim.tasks.realization(bare(d.id()), d.Failed)
	if state == stateRealized && lb.sim.assume.BusyGatewayConfiguresAll && lb.sim.tasks.busy(d.Parent) {
		return stateConfiguring
	}
	return state
}

// scopeOf is the scope of a document, or of the new one that a body describes.
func (c *collection) scopeOf(r *request, body map[string]any, old *document) (scope, error) {
	if old != nil {
		body = old.Body
	}
	return c.scope(r, body)
}

// scoped are the documents the caller sees, below the parent the path names.
func (c *collection) scoped(r *request) []*document {
	var out []*document
	for _, d := range r.sim.store.Documents[c.path] {
		if (c.within == "" || d.Parent == bare(r.vars[c.within])) && (d.OrgID == "" || r.sees(d.OrgID)) {
			out = append(out, d)
		}
	}
	return out
}

func (c *collection) findScoped(r *request, id string) (*document, error) {
	for _, d := range c.scoped(r) {
		if strings.EqualFold(d.id(), id) {
			return d, nil
		}
	}
	return nil, forbidden(c.right+"_VIEW", id)
}

// checked completes and validates a body before it is stored.
func (c *collection) checked(r *request, body map[string]any, old *document) (scope, error) {
	p, err := c.scopeOf(r, body, old)
	if err != nil {
		return p, err
	}
	complete(body, c.defaults)
	if c.prepare != nil {
		if err := c.prepare(r, body, old); err != nil {
			return p, err
		}
	}
	if err := c.accept(r, body, old); err != nil {
		return p, err
	}
	if err := withinSizes(r.sim.assume, body); err != nil {
		return p, err
	}
	return p, r.sim.tasks.checkDocument(p, old)
}

// checkDocument refuses while a task holds an entity of the scope or the document itself.
func (ts *tasks) checkDocument(p scope, d *document) error {
	ids := p.locks
	if d != nil {
		ids = append(slices.Clone(ids), bare(d.id()))
	}
	return ts.checkIdle(ids...)
}

func (c *collection) createByTask(r *request, body map[string]any) (*response, error) {
	delete(body, "id")
	p, err := c.checked(r, body, nil)
	if err != nil {
		return nil, err
	}
	id := r.sim.ids.next(c.kind)
	if body["id"] = URN(c.kind, id); c.bare {
		body["id"] = id
	}
	d := r.sim.store.Documents.add(c.path, p.orgID, body)
	d.Parent = p.parent
	return r.accepted(c.task(r, "create", d, p, nil)), nil
}

func (c *collection) putByTask(r *request, d *document, body map[string]any) (*response, error) {
	p, err := c.checked(r, body, d)
	if err != nil {
		return nil, err
	}
	return r.accepted(c.task(r, "update", d, p, body)), nil
}

func (c *collection) removeByTask(r *request, d *document) (*response, error) {
	p, err := c.scopeOf(r, d.Body, d)
	if err != nil {
		return nil, err
	}
	if err := r.sim.tasks.checkDocument(p, d); err != nil {
		return nil, err
	}
	return r.accepted(c.task(r, "delete", d, p, nil)), nil
}

// task begins what makes, changes or removes a document.
func (c *collection) task(r *request, verb string, d *document, p scope, body map[string]any) *Task {
	w := Work{Op: verb + " " + c.path, Document: d.id(), Body: body, Creates: verb == "create"}
	owner := Entity{c.kind, bare(d.id()), cmp.Or(text(d.Body, "name"), d.id())}
	if c.anonymous {
		owner = Entity{"gateway", p.parent, r.sim.edges.name(p.parent)}
	}
	return r.sim.tasks.start(r, w, owner, append(slices.Clone(p.locks), bare(d.id())))
}

// documentOperations are the operations of all collections whose changes are tasks.
func documentOperations() map[string]operation {
	out := map[string]operation{}
	for _, c := range collections() {
		if c.title == "" {
			continue
		}
		for verb, run := range map[string]func(*Simulator, *Task) error{
			"create": c.commitCreate,
			"update": c.commitUpdate,
			"delete": c.commitRemove,
		} {
			out[verb+" "+c.path] = networkOperation(verb, c.kind, c.title, run)
		}
	}
	return out
}

// networkOperation names an operation on something of networks as VCD would: urn kind natRule is createNatRule,
// CREATE_NAT_RULE and "Creating NAT Rule".
func networkOperation(verb, kind, title string, run func(*Simulator, *Task) error) operation {
	doing := map[string]string{"create": "Creating", "update": "Updating", "delete": "Deleting"}[verb]
	return operation{
		name:     verb + strings.ToUpper(kind[:1]) + kind[1:],
		busy:     strings.ToUpper(verb + "_" + strings.ReplaceAll(title, " ", "_")),
		verb:     doing + " " + title,
		duration: durationGateway,
		run:      run,
	}
}

// find finds what a task works on.
func (ds documents) find(path, id string) *document {
	for _, d := range ds[path] {
		if d.id() == id {
			return d
		}
	}
	return nil
}

func (c *collection) commitCreate(s *Simulator, t *Task) error {
	d := s.store.Documents.find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	c.finished(s, d)
	return nil
}

func (c *collection) commitUpdate(s *Simulator, t *Task) error {
	d := s.store.Documents.find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	d.Body = maps.Clone(t.Work.Body)
	d.Failed = false
	d.Version++
	c.finished(s, d)
	return nil
}

func (c *collection) finished(s *Simulator, d *document) {
	d.Since = s.clock.Now()
	if c.done != nil {
		c.done(s, d)
	}
}

func (c *collection) commitRemove(s *Simulator, t *Task) error {
	d := s.store.Documents.find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	s.store.Documents.remove(c.path, d)
	return nil
}

// failDocument notes that the creation of a document or network failed.
func failDocument(s *Simulator, t *Task) {
	if !t.Work.Creates {
		return
	}
	_, path, _ := strings.Cut(t.Work.Op, " ")
	if d := s.store.Documents.find(path, t.Work.Document); d != nil {
		d.Failed = true
		return
	}
	failNetwork(s, t.Owner.ID)
}

// members are the ids in a list of references.
func members(body map[string]any, field string) []string {
	var out []string
	list, _ := body[field].([]any)
	for _, item := range list {
		out = append(out, bare(refID(map[string]any{field: item}, field)))
	}
	return out
}

// refID is the id in a reference, empty if there is none.
func refID(body map[string]any, field string) string {
	ref, _ := body[field].(map[string]any)
	return text(ref, "id")
}

// inUse is VCD's answer to the deletion of something that is still referred to.
func inUse(kind, name, by string) *Refusal {
	return refuse(http.StatusBadRequest, "VALIDATION_ERROR", "Cannot delete the %s %q because it is in use by %s.",
		kind, name, by)
}
