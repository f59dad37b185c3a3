// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
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
	t := ts.cloud.store.Tasks[ts.cloud.store.Locks[id]]
	switch {
	case t != nil && taskMakes(t, id):
		return statePending
	case t != nil:
		return stateConfiguring
	case failed:
		return stateFailed
	}
	return stateRealized
}

// taskMakes reports whether a task makes the entity with an id. Its owner may be another: that of a NAT rule is its
// gateway.
func taskMakes(t *store.Task, id string) bool {
	return t.Work.Creates && store.Bare(cmp.Or(t.Work.Document, t.Owner.ID)) == id
}

// balancing is the state of what a gateway's load balancer has.
func (lb loadBalancing) balancing(d *store.Object) string {
	state := lb.cloud.tasks.realization(store.Bare(d.ID()), d.Failed)
	if state == stateRealized && lb.cloud.assume.BusyGatewayConfiguresAll && lb.cloud.tasks.busy(d.Parent) {
		return stateConfiguring
	}
	return state
}

// scopeOf is the scope of a document, or of the new one that a body describes.
func (c *collection) scopeOf(r *request, body map[string]any, old *store.Object) (scope, error) {
	if old != nil {
		body = old.Body
	}
	return c.scope(r, body)
}

// scoped are the documents the caller sees, below the parent the path names.
func (c *collection) scoped(r *request) []*store.Object {
	var out []*store.Object
	for _, d := range r.cloud.store.Documents[c.path] {
		if (c.within == "" || d.Parent == store.Bare(r.vars[c.within])) && (d.OrgID == "" || r.session.Sees(d.OrgID)) {
			out = append(out, d)
		}
	}
	return out
}

func (c *collection) findScoped(r *request, id string) (*store.Object, error) {
	for _, d := range c.scoped(r) {
		if strings.EqualFold(d.ID(), id) {
			return d, nil
		}
	}
	return nil, store.Forbidden(c.right+"_VIEW", id)
}

// checked completes and validates a body before it is stored.
func (c *collection) checked(r *request, body map[string]any, old *store.Object) (scope, error) {
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
	if err := withinSizes(r.cloud.assume, body); err != nil {
		return p, err
	}
	return p, r.cloud.tasks.checkDocument(p, old)
}

// checkDocument refuses while a task holds an entity of the scope or the document itself.
func (ts *tasks) checkDocument(p scope, d *store.Object) error {
	ids := p.locks
	if d != nil {
		ids = append(slices.Clone(ids), store.Bare(d.ID()))
	}
	return ts.checkIdle(ids...)
}

func (c *collection) createByTask(r *request, body map[string]any) (*response, error) {
	delete(body, "id")
	p, err := c.checked(r, body, nil)
	if err != nil {
		return nil, err
	}
	id := r.cloud.ids.Next(c.kind)
	if body["id"] = store.URN(c.kind, id); c.bare {
		body["id"] = id
	}
	d := r.cloud.store.Documents.Add(c.path, p.orgID, body)
	d.Parent = p.parent
	return r.accepted(c.task(r, "create", d, p, nil)), nil
}

func (c *collection) putByTask(r *request, d *store.Object, body map[string]any) (*response, error) {
	p, err := c.checked(r, body, d)
	if err != nil {
		return nil, err
	}
	return r.accepted(c.task(r, "update", d, p, body)), nil
}

func (c *collection) removeByTask(r *request, d *store.Object) (*response, error) {
	p, err := c.scopeOf(r, d.Body, d)
	if err != nil {
		return nil, err
	}
	if err := r.cloud.tasks.checkDocument(p, d); err != nil {
		return nil, err
	}
	return r.accepted(c.task(r, "delete", d, p, nil)), nil
}

// task begins what makes, changes or removes a document.
func (c *collection) task(r *request, verb string, d *store.Object, p scope, body map[string]any) *store.Task {
	w := store.Work{Op: verb + " " + c.path, Document: d.ID(), Body: body, Creates: verb == "create"}
	owner := store.Entity{Kind: c.kind, ID: store.Bare(d.ID()), Name: cmp.Or(store.Text(d.Body, "name"), d.ID())}
	if c.anonymous {
		owner = store.Entity{Kind: "gateway", ID: p.parent, Name: r.cloud.store.GatewayName(p.parent)}
	}
	return r.startTask(w, owner, append(slices.Clone(p.locks), store.Bare(d.ID())))
}

// collectionOperations are the operations of collections whose changes are tasks.
func collectionOperations(collections []*collection) map[string]operation {
	out := map[string]operation{}
	for _, c := range collections {
		if c.title == "" {
			continue
		}
		for verb, run := range map[string]func(*cloud, *store.Task) error{
			"create": c.commitCreate,
			"update": c.commitUpdate,
			"delete": c.commitRemove,
		} {
			op := networkOperation(verb, c.kind, c.title, run)
			op.reveals = c.reveals && verb == "create"
			out[verb+" "+c.path] = op
		}
	}
	return out
}

// networkOperation names an operation on something of networks as VCD would: urn kind natRule is createNatRule,
// CREATE_NAT_RULE and "Creating NAT Rule".
func networkOperation(verb, kind, title string, run func(*cloud, *store.Task) error) operation {
	doing := map[string]string{"create": "Creating", "update": "Updating", "delete": "Deleting"}[verb]
	return operation{
		name:     verb + strings.ToUpper(kind[:1]) + kind[1:],
		busy:     strings.ToUpper(verb + "_" + strings.ReplaceAll(title, " ", "_")),
		verb:     doing + " " + title,
		duration: durationGateway,
		run:      run,
	}
}

func (c *collection) commitCreate(s *cloud, t *store.Task) error {
	d := s.store.Documents.Find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	c.finished(s, d)
	return nil
}

func (c *collection) commitUpdate(s *cloud, t *store.Task) error {
	d := s.store.Documents.Find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	d.Body = maps.Clone(t.Work.Body)
	d.Failed = false
	d.Version++
	c.finished(s, d)
	return nil
}

func (c *collection) finished(s *cloud, d *store.Object) {
	d.Since = s.clock.Now()
	if c.done != nil {
		c.done(s, d)
	}
}

func (c *collection) commitRemove(s *cloud, t *store.Task) error {
	d := s.store.Documents.Find(c.path, t.Work.Document)
	if d == nil {
		return gone(c.title, t.Work.Document)
	}
	s.store.Documents.Remove(c.path, d)
	return nil
}

// members are the ids in a list of references.
func members(body map[string]any, field string) []string {
	var out []string
	list, _ := body[field].([]any)
	for _, item := range list {
		out = append(out, store.Bare(store.RefID(map[string]any{field: item}, field)))
	}
	return out
}

// inUse is VCD's answer to the deletion of something that is still referred to.
func inUse(kind, name, by string) *store.Refusal {
	return store.Refuse(http.StatusBadRequest, "VALIDATION_ERROR", "Cannot delete the %s %q because it is in use by %s.",
		kind, name, by)
}
