package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Run runs one step on a gateway, given by its URN, and waits until it is done. Writes to a gateway take turns. The error wraps
// [lb.ErrBusy], [lb.ErrRefused] or [lb.ErrUnknown]; after the last, the step may have been done, or may still be.
func (d *Driver) Run(ctx context.Context, gateway string, step lb.Step) error {
	g := d.at(gateway)
	release, err := g.takeTurn(ctx)
	if err != nil {
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	defer release()
	s, err := d.session(ctx)
	if err != nil {
		return classified(err)
	}
	r := &run{gateway: g, session: s, step: step}
	if err := r.do(ctx); err != nil {
		// Nobody knows for sure what there is now.
		r.invalidate()
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	return nil
}

// takeTurn waits until nobody else writes to the gateway.
func (g *gateway) takeTurn(ctx context.Context) (release func(), err error) {
	g.mu.Lock()
	if g.waiting > g.driver.opts.MaxWaiting {
		defer g.mu.Unlock()
		return nil, failed(lb.ErrBusy, "%d others wait to write to the edge gateway", g.waiting-1)
	}
	g.waiting++ // with the one who writes
	g.mu.Unlock()
	leave := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting--
	}
	select {
	case <-g.turn:
		return func() {
			g.turn <- struct{}{}
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// A run is one step being run.
type run struct {
	gateway *gateway
	session *vcd.Session
	step    lb.Step
}

// do finds what runs the step.
func (r *run) do(ctx context.Context) error {
	type deed struct {
		verb lb.Verb
		kind lb.Kind
	}
	deeds := map[deed]func(context.Context) error{
		{lb.Create, lb.KindPool}: r.createPool, {lb.Update, lb.KindPool}: r.updatePool, {lb.Delete, lb.KindPool}: r.deletePool,
		{lb.Create, lb.KindService}: r.createService, {lb.Update, lb.KindService}: r.updateService, {lb.Delete, lb.KindService}: r.deleteService,
		{lb.Create, lb.KindSet}: r.createSet, {lb.Update, lb.KindSet}: r.updateSet, {lb.Delete, lb.KindSet}: r.deleteSet,
		{lb.Create, lb.KindRule}: r.createRule, {lb.Update, lb.KindRule}: r.updateRule, {lb.Delete, lb.KindRule}: r.deleteRule,
		{lb.Create, lb.KindProfile}: r.createProfile, {lb.Update, lb.KindProfile}: r.updateProfile, {lb.Delete, lb.KindProfile}: r.deleteProfile,
		{lb.Create, lb.KindAddress}: r.allocate, {lb.Mark, lb.KindAddress}: r.mark, {lb.Delete, lb.KindAddress}: r.releaseAddress,
		{lb.Create, lb.KindCertificate}: r.importCertificate, {lb.Delete, lb.KindCertificate}: r.deleteCertificate,
		{lb.Create, lb.KindFirewall}: r.createFirewall, {lb.Delete, lb.KindFirewall}: r.deleteFirewall,
	}
	do, ok := deeds[deed{r.step.Verb, r.step.Kind}]
	if !ok || !r.complete() {
		return failed(lb.ErrRefused, "this step cannot be run")
	}
	return do(ctx)
}

// complete says whether a step has what it takes.
func (r *run) complete() bool {
	s := r.step
	if s.Verb == lb.Delete {
		return s.ID != ""
	}
	specified := map[lb.Kind]bool{
		lb.KindPool: s.Pool != nil, lb.KindService: s.Service != nil, lb.KindSet: s.Set != nil, lb.KindRule: s.Rule != nil,
		lb.KindProfile: s.Profile != nil, lb.KindAddress: s.Address != nil, lb.KindCertificate: s.Certificate != nil, lb.KindFirewall: s.Firewall != nil,
	}
	return specified[s.Kind] && (s.Verb != lb.Update || s.ID != "")
}

// invalidate lets what the step may have changed be read anew.
func (r *run) invalidate() {
	g := r.gateway
	g.forget(r.step.ID)
	switch r.step.Kind {
	case lb.KindService:
		g.services.invalidate()
		g.pools.invalidate()
		g.groups.invalidate()
		g.used.invalidate()
	case lb.KindPool:
		g.pools.invalidate()
	case lb.KindSet:
		g.sets.invalidate()
	case lb.KindRule:
		g.rules.invalidate()
		g.used.invalidate()
	case lb.KindProfile:
		g.profiles.invalidate()
	case lb.KindAddress:
		g.claims.invalidate()
	case lb.KindCertificate:
		g.certificates.invalidate()
	case lb.KindFirewall:
		g.firewall.invalidate()
	}
}

// wait waits for a task, with all others of the session, and returns it as it ended.
func (r *run) wait(ctx context.Context, task vcd.Task, err error) (vcd.Task, error) {
	if err != nil || task.State == vcd.TaskSucceeded {
		return task, err
	}
	key := "edge " + task.ID
	ended := make(chan struct{})
	r.session.Tasks.Follow(key, task, func() { close(ended) }) //nolint:contextcheck // the poller is of all who follow tasks, and outlives each
	defer r.session.Tasks.Forget(key)
	if err := r.await(ctx, key, ended); err != nil {
		return task, err
	}
	now, ok := r.session.Tasks.Task(key)
	switch {
	case !ok || now.State == vcd.TaskUnknown:
		return task, failed(lb.ErrUnknown, "VCD does not tell what became of the task")
	case now.State != vcd.TaskSucceeded:
		return now, taskFailure(now)
	}
	return now, nil
}

// await waits until a task that is followed has ended, or nobody follows it any more.
func (r *run) await(ctx context.Context, key string, ended <-chan struct{}) error {
	opts := r.gateway.driver.opts
	tooLong := opts.Clock.After(opts.Patience)
	for {
		select {
		case <-ended:
			return nil
		case <-opts.Clock.After(sessionCheck):
			if _, followed := r.session.Tasks.Task(key); !followed { // a session that is closed tells nobody
				return nil
			}
		case <-tooLong:
			return failed(lb.ErrUnknown, "VCD has not ended the task in %s", opts.Patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sessionCheck is how often somebody who waits for a task makes sure that its session still is followed.
const sessionCheck = 15 * time.Second

// taskFailure is why a task failed. VCD has done with it: it will not be done later.
func taskFailure(task vcd.Task) error {
	err := fmt.Errorf("the task failed: %w", task.Err)
	if errors.Is(task.Err, vcd.ErrUnavailable) {
		return &failure{lb.ErrBusy, err} // something failed inside; once more may do
	}
	return err
}

// owner is who the object of the step belongs to, as its description says.
func (r *run) owner(description string) lb.Owner {
	m, _ := lb.ParseMarker(description)
	return m.Owner
}

// A named is what an object that may be there already is told by.
type named struct {
	id, name, description string
}

// standing finds an object of the step's name in a list. If it is the same owner's, the step was done before; if it is another's,
// the name is taken.
func (r *run) standing(description string, list []named) (found bool, err error) {
	for _, x := range list {
		if x.name != r.step.Name {
			continue
		}
		if m, ok := lb.ParseMarker(x.description); ok && m.Owner.Is(r.owner(description)) {
			return true, nil
		}
		return false, failed(lb.ErrRefused, "the name is taken by something of somebody else")
	}
	return false, nil
}

func listed[T any](items []T, f func(T) named) []named {
	out := make([]named, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

// A creation is how something is made that lists show.
type creation[T any] struct {
	part        *part[T]
	description string
	name        func(T) named
	start       func() (vcd.Task, error)
	made        func(id string) T
}

// create runs a creation, unless that was done before: then it is done. That may become known only when VCD says that the name, or
// the address, is taken.
func create[T any](ctx context.Context, r *run, c creation[T]) error {
	if found, err := stands(ctx, r, c); err != nil || found {
		return err
	}
	task, err := c.start()
	task, err = r.wait(ctx, task, err)
	if is(err, []error{vcd.ErrConflict, vcd.ErrInvalid}) {
		if found, other := again(ctx, r, c); other != nil || found {
			return other
		}
	}
	switch {
	case err != nil:
		return err
	case task.Owner == "":
		c.part.invalidate() // VCD does not tell the id
	default:
		c.part.put(c.made(task.Owner))
	}
	return nil
}

// stands says whether something stands under the name already. What is known of that may be too old.
func stands[T any](ctx context.Context, r *run, c creation[T]) (bool, error) {
	if found, err := r.standing(c.description, listed(c.part.known(), c.name)); err == nil && !found {
		return false, nil
	}
	return again(ctx, r, c)
}

// again looks for what stands under the name in a list that is read now.
func again[T any](ctx context.Context, r *run, c creation[T]) (bool, error) {
	items, err := c.part.get(ctx, r.session, r.fresh())
	if err != nil {
		return false, err
	}
	return r.standing(c.description, listed(items, c.name))
}

// fresh demands a list that is read from now on.
func (r *run) fresh() demand {
	return demand{maxAge: r.gateway.driver.opts.MaxAge, after: r.gateway.driver.next()}
}

// update runs a change. If the object is gone meanwhile, the plan has to be made again.
func update[T any](ctx context.Context, r *run, p *part[T], start func() (vcd.Task, error), edit func(*T)) error {
	r.gateway.forget(r.step.ID)
	if r.step.Repair {
		r.gateway.repairing(r.step.ID)
		defer p.invalidate() // VCD tells whether it has made it now
	}
	task, err := start()
	if _, err = r.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, r, p, err); other != nil || gone {
			return cmp.Or(other, failed(lb.ErrBusy, "it is gone meanwhile"))
		}
		return err
	}
	p.edit(r.step.ID, edit)
	return nil
}

// remove runs a deletion; what is gone already is deleted.
func remove[T any](ctx context.Context, r *run, p *part[T], start func() (vcd.Task, error)) error {
	r.gateway.forget(r.step.ID)
	task, err := start()
	if _, err = r.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, r, p, err); other != nil || gone {
			return other
		}
		return err
	}
	p.drop(r.step.ID)
	r.gateway.repaired(r.step.ID)
	return nil
}

// isGone finds out what VCD means by "forbidden": that the object is gone, or that a right is missing. A list tells.
func isGone[T any](ctx context.Context, r *run, p *part[T], err error) (bool, error) {
	if !errors.Is(err, vcd.ErrForbidden) && !errors.Is(err, vcd.ErrNotFound) {
		return false, nil
	}
	items, err := p.get(ctx, r.session, r.fresh())
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(items, func(x T) bool { return p.id(x) == r.step.ID }), nil
}

// lost makes a refusal a reason to plan again, if something that the step refers to is gone: what lists show is believed for a while, and VCD
// says "forbidden" of what is not there.
func lost[T any](ctx context.Context, r *run, p *part[T], id string, err error) error {
	if id == "" || !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrInvalid}) {
		return err
	}
	items, other := p.get(ctx, r.session, r.fresh())
	switch {
	case other != nil:
		return other
	case !slices.ContainsFunc(items, func(x T) bool { return p.id(x) == id }):
		return failed(lb.ErrBusy, "something that it refers to is gone meanwhile")
	}
	return err
}

// resolve finds the id of an object that a step refers to, by its name if it has to.
func resolve[T any](ctx context.Context, r *run, p *part[T], to lb.Ref, name func(T) named) (string, error) {
	if to.ID != "" || to.Name == "" {
		return to.ID, nil
	}
	find := func(items []T) string {
		for _, item := range items {
			if x := name(item); x.name == to.Name {
				return x.id
			}
		}
		return ""
	}
	if id := find(p.known()); id != "" {
		return id, nil
	}
	items, err := p.get(ctx, r.session, r.fresh())
	if err != nil {
		return "", err
	}
	if id := find(items); id != "" {
		return id, nil
	}
	return "", failed(lb.ErrBusy, "%s, which it refers to, is not there", to.Name)
}
