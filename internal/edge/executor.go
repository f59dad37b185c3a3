// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Run runs one step on a gateway, given by its URN, and waits until it is done. Writes to a gateway are queued. The
// error wraps [lb.ErrBusy], [lb.ErrRefused] or [lb.ErrUnknown]; after the last, the step may have been done, or may
// still be.
func (d *Driver) Run(ctx context.Context, gateway string, step lb.Step) error {
	g := d.at(gateway)
	release, err := g.queue.acquire(ctx)
	if err != nil {
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	defer release()
	s, err := d.session(ctx)
	if err != nil {
		return classified(err)
	}
	e := &executor{gateway: g, session: s, step: step}
	if err := e.run(ctx); err != nil {
		e.invalidate() // the state in VCD is unknown
		return classified(fmt.Errorf("%s: %w", step, err))
	}
	return nil
}

// An executor runs one step.
type executor struct {
	gateway *gateway
	session *vcd.Session
	step    lb.Step
}

// operations are what can be done with objects of one kind.
type operations interface {
	create(ctx context.Context) error
	update(ctx context.Context) error
	remove(ctx context.Context) error
}

func (e *executor) run(ctx context.Context) error {
	s := e.step
	do, complete := e.operations()
	switch {
	case do == nil, !complete && s.Verb != lb.Delete, s.ID == "" && (s.Verb == lb.Update || s.Verb == lb.Delete):
	case s.Verb == lb.Create:
		return do.create(ctx)
	case s.Verb == lb.Update, s.Verb == lb.Mark && s.Kind == lb.KindAddress:
		return do.update(ctx)
	case s.Verb == lb.Delete:
		return do.remove(ctx)
	}
	return e.update(ctx)
}

// operations returns those of the step's kind, and whether the step has the object to write.
func (e *executor) operations() (do operations, complete bool) {
	switch s := e.step; s.Kind {
	case lb.KindPool:
		return &poolExecutor{e}, s.Pool != nil
	case lb.KindService:
		return &serviceExecutor{e}, s.Service != nil
	case lb.KindSet:
		return &setExecutor{e}, s.Set != nil
	case lb.KindRule:
		return &ruleExecutor{e}, s.Rule != nil
	case lb.KindProfile:
		return &profileExecutor{e}, s.Profile != nil
	case lb.KindAddress:
		return &addressExecutor{e}, s.Address != nil
	case lb.KindCertificate:
		return &certificateExecutor{e}, s.Certificate != nil
	case lb.KindFirewall:
		return &firewallExecutor{e}, s.Firewall != nil
	case lb.KindHost: // only observed
	}
	return nil, false
}

// update refuses the step: some kinds are never updated.
func (e *executor) update(context.Context) error {
	return failed(lb.ErrRefused, "this step cannot be run")
}

// invalidate makes everything that the step may have changed be read anew.
func (e *executor) invalidate() {
	g := e.gateway
	g.details.forget(e.step.ID)
	switch e.step.Kind {
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
	case lb.KindHost: // only observed
	}
}

// wait waits for a task and returns it as it ended.
func (e *executor) wait(ctx context.Context, task vcd.Task, err error) (vcd.Task, error) {
	if err != nil {
		return task, err
	}
	opts := e.gateway.driver.opts
	ended, err := e.session.Tasks.Wait(ctx, task, opts.Clock.After(opts.TaskTimeout))
	switch {
	case err != nil:
		return task, err
	case ended.State == vcd.TaskRunning:
		return task, failed(lb.ErrUnknown, "VCD has not ended the task in %s", opts.TaskTimeout)
	case ended.State == vcd.TaskUnknown:
		return task, failed(lb.ErrUnknown, "VCD does not report what became of the task")
	case ended.State == vcd.TaskFailed:
		return ended, taskFailure(ended)
	}
	return ended, nil
}

// taskFailure is why a task failed. It has ended: the step will not be done later.
func taskFailure(task vcd.Task) error {
	err := fmt.Errorf("the task failed: %w", task.Err)
	if errors.Is(task.Err, vcd.ErrUnavailable) {
		return &failure{lb.ErrBusy, err} // an internal error of VCD; a retry may succeed
	}
	return err
}

// object is that of the step as it is once it is written.
func (e *executor) object(description string) lb.Object {
	return lb.Object{ID: e.step.ID, Name: e.step.Name, Description: description, State: lb.Realized}
}

// sameOwner reports whether the markers of two descriptions name the same owner.
func sameOwner(description, other string) bool {
	a, ok := lb.ParseMarker(description)
	b, _ := lb.ParseMarker(other)
	return ok && a.Owner.Is(b.Owner)
}

// create creates an object, unless the same owner's object of this name exists: then a former run of the step has
// created it. VCD's answer that the name, or the address, is taken may be the first sign of that. It returns the
// object's id if it was created now and VCD shows it.
func create[T any](
	ctx context.Context, e *executor, l *list[T], want T, start func() (vcd.Task, error),
) (id string, err error) {
	o := l.object(&want)
	if found, err := exists(ctx, e, l, o); err != nil || found {
		return "", err
	}
	task, err := start()
	task, err = e.wait(ctx, task, err)
	if is(err, []error{vcd.ErrConflict, vcd.ErrInvalid}) {
		if found, other := existsNow(ctx, e, l, o); other != nil || found {
			return "", other
		}
	}
	switch {
	case err != nil:
		return "", err
	case task.Owner == "":
		l.invalidate() // VCD does not show the id
	default:
		o.ID = e.created(task.Owner)
		l.put(want)
	}
	return o.ID, nil
}

// created is the id of the object whose creation a task shows.
func (e *executor) created(owner string) string {
	if e.step.Kind != lb.KindRule {
		return owner
	}
	if id, isRule := strings.CutPrefix(owner, natRuleURN); isRule {
		return id
	}
	return unnamedRule + e.step.Name // the task is the gateway's: VCD does not show the id
}

// exists reports whether an object of the same name and owner exists. What is cached may be too old to say so.
func exists[T any](ctx context.Context, e *executor, l *list[T], want *lb.Object) (bool, error) {
	if found, err := findSame(l, l.known(), want); err == nil && !found {
		return false, nil
	}
	return existsNow(ctx, e, l, want)
}

// existsNow reports the same from a list that is read now.
func existsNow[T any](ctx context.Context, e *executor, l *list[T], want *lb.Object) (bool, error) {
	items, err := l.get(ctx, e.session, e.fresh())
	if err != nil {
		return false, err
	}
	return findSame(l, items, want)
}

// findSame finds an object by its name. The name may be taken by another owner.
func findSame[T any](l *list[T], items []T, want *lb.Object) (bool, error) {
	for _, item := range items {
		x := l.object(&item)
		switch {
		case x.Name != want.Name:
		case sameOwner(x.Description, want.Description):
			return true, nil
		default:
			return false, failed(lb.ErrRefused, "the name is taken by another owner's object")
		}
	}
	return false, nil
}

// fresh demands a list that is read from now on.
func (e *executor) fresh() demand {
	return demand{maxAge: e.gateway.driver.opts.MaxAge, after: e.gateway.driver.next()}
}

// update changes an object. If it is gone meanwhile, the plan has to be made again.
func update[T any](
	ctx context.Context, e *executor, l *list[T], start func() (vcd.Task, error), edit func(*T),
) error {
	e.gateway.details.forget(e.step.ID)
	if e.step.Repair {
		e.gateway.repairs.begin(e.step.ID)
		defer l.invalidate() // VCD shows whether it is realized now
	}
	task, err := start()
	if _, err = e.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, e, l, e.step.ID, err); other != nil || gone {
			return cmp.Or(other, failed(lb.ErrBusy, "it is gone meanwhile"))
		}
		return err
	}
	l.edit(e.step.ID, edit)
	return nil
}

// remove deletes an object; what is gone already is deleted.
func remove[T any](ctx context.Context, e *executor, l *list[T], start func() (vcd.Task, error)) error {
	e.gateway.details.forget(e.step.ID)
	task, err := start()
	if _, err = e.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, e, l, e.step.ID, err); other != nil || gone {
			return other
		}
		return err
	}
	l.drop(e.step.ID)
	e.gateway.repairs.forget(e.step.ID)
	return nil
}

// isGone finds out by a list whether VCD's "forbidden" means that the object is gone, or that a right is missing.
func isGone[T any](ctx context.Context, e *executor, l *list[T], id string, err error) (bool, error) {
	if !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound}) {
		return false, nil
	}
	items, err := l.get(ctx, e.session, e.fresh())
	return err == nil && !slices.ContainsFunc(items, func(x T) bool { return l.id(x) == id }), err
}

// lost makes a refusal a reason to plan again, if something that the step refers to is gone: cached lists may be
// old, and VCD answers "forbidden" or "invalid" for what is gone.
func lost[T any](ctx context.Context, e *executor, l *list[T], id string, err error) error {
	if id == "" || !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrInvalid}) {
		return err
	}
	gone, other := isGone(ctx, e, l, id, vcd.ErrNotFound)
	switch {
	case other != nil:
		return other
	case gone:
		return failed(lb.ErrBusy, "something that it refers to is gone meanwhile")
	}
	return err
}

// resolve completes a reference that a step has by name only.
func resolve[T any](ctx context.Context, e *executor, l *list[T], to *lb.Ref) error {
	if to.ID != "" || to.Name == "" {
		return nil
	}
	find := func(items []T) bool {
		i := slices.IndexFunc(items, func(x T) bool { return l.object(&x).Name == to.Name })
		if i >= 0 {
			to.ID = l.id(items[i])
		}
		return i >= 0
	}
	if find(l.known()) {
		return nil
	}
	items, err := l.get(ctx, e.session, e.fresh())
	if err == nil && !find(items) {
		err = failed(lb.ErrBusy, "%s, which it refers to, is not there", to.Name)
	}
	return err
}

// A writeQueue lets one writer at a time onto a gateway, as VCD does.
type writeQueue struct {
	token   chan struct{}
	writers *atomic.Int64 // the one that writes and those that wait
	most    int64         // of those that wait
}

func newWriteQueue(maxWaiting int) writeQueue {
	return writeQueue{token: make(chan struct{}, 1), writers: &atomic.Int64{}, most: int64(maxWaiting)}
}

// acquire waits until no one else writes. If too many wait already, it returns [lb.ErrBusy].
func (q writeQueue) acquire(ctx context.Context) (release func(), err error) {
	if n := q.writers.Add(1); n > q.most+1 {
		q.writers.Add(-1)
		return nil, failed(lb.ErrBusy, "%d others wait to write to the edge gateway", n-2)
	}
	select {
	case q.token <- struct{}{}:
		return func() {
			<-q.token
			q.writers.Add(-1)
		}, nil
	case <-ctx.Done():
		q.writers.Add(-1)
		return nil, ctx.Err()
	}
}
