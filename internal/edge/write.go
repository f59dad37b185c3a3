// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A writer is what every write needs: the gateway with its cached lists, and a session.
type writer struct {
	gateway *gateway
	session *vcd.Session
}

// wait waits for a task and returns it as it ended. It returns an error of the call that started the task as it is.
func (w writer) wait(ctx context.Context, task vcd.Task, err error) (vcd.Task, error) {
	if err != nil {
		return task, err
	}
	opts := w.gateway.driver.opts
	ended, err := w.session.Tasks.Wait(ctx, task, opts.Clock.After(opts.TaskTimeout))
	switch {
	case err != nil:
		return task, err
	case ended.State == vcd.TaskRunning:
		return task, failed(loadbalancer.ErrUnknown, "VCD did not complete the task within %s", opts.TaskTimeout)
	case ended.State == vcd.TaskUnknown:
		return task, failed(loadbalancer.ErrUnknown, "VCD does not report the result of the task")
	case ended.State == vcd.TaskFailed:
		return ended, taskFailure(ended)
	}
	return ended, nil
}

// taskFailure is why a task failed. It has ended: the step will not be done later.
func taskFailure(task vcd.Task) error {
	err := fmt.Errorf("the task failed: %w", task.Err)
	if errors.Is(task.Err, vcd.ErrUnavailable) {
		return &failure{loadbalancer.ErrBusy, err} // an internal error of VCD; a retry may succeed
	}
	return err
}

// fresh demands a list that is read from now on.
func (w writer) fresh() demand {
	return demand{maxAge: w.gateway.driver.opts.MaxAge, after: w.gateway.driver.next()}
}

// written is the object of a step as it is once it is written.
func written(step lb.Step, description string) lb.Object {
	return lb.Object{ID: step.ID, Name: step.Name, Description: description, State: lb.Realized}
}

// create creates an object, unless the same owner's object of this name exists: then a former run of the step has
// created it. VCD's answer that the name, or the address, is taken may be the first sign of that. It returns the
// object's id if it was created now and VCD shows it.
func create[T any](
	ctx context.Context, w writer, l *list[T], want T, start func() (vcd.Task, error),
) (id string, err error) {
	o := l.object(&want)
	if found, err := exists(ctx, w, l, o); err != nil || found {
		return "", err
	}
	task, err := start()
	task, err = w.wait(ctx, task, err)
	if is(err, []error{vcd.ErrConflict, vcd.ErrInvalid}) {
		if found, other := existsNow(ctx, w, l, o); other != nil || found {
			return "", other
		}
	}
	switch {
	case err != nil:
		return "", err
	case task.Owner == "":
		l.invalidate() // VCD does not show the id
	default:
		o.ID = l.created(task, o.Name)
		l.put(want)
	}
	return o.ID, nil
}

// exists reports whether an object of the same name and owner exists. What is cached may be too old to say so.
func exists[T any](ctx context.Context, w writer, l *list[T], want *lb.Object) (bool, error) {
	if found, err := findSame(l, l.known(), want); err == nil && !found {
		return false, nil
	}
	return existsNow(ctx, w, l, want)
}

// existsNow reports the same from a list that is read now.
func existsNow[T any](ctx context.Context, w writer, l *list[T], want *lb.Object) (bool, error) {
	items, err := l.get(ctx, w.session, w.fresh())
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
			return false, failed(loadbalancer.ErrRefused, "an object of another owner has this name")
		}
	}
	return false, nil
}

// sameOwner reports whether the markers of two descriptions name the same owner.
func sameOwner(description, other string) bool {
	a, ok := lb.ParseMarker(description)
	b, _ := lb.ParseMarker(other)
	return ok && a.Owner.Is(b.Owner)
}

// An objectUpdate is an update of an object of a list.
type objectUpdate[T any] struct {
	list *list[T]
	step lb.Step
	// start asks VCD for the update.
	start func() (vcd.Task, error)
	// edit does the same to the cached object.
	edit func(*T)
}

// update changes an object. If it is gone meanwhile, the plan has to be made again.
func update[T any](ctx context.Context, w writer, u objectUpdate[T]) error {
	id := u.step.ID
	w.gateway.details.forget(id)
	if u.step.Repair {
		w.gateway.repairs.begin(id)
		defer u.list.invalidate() // VCD shows whether it is realized now
	}
	task, err := u.start()
	if _, err = w.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, w, u.list, id, err); other != nil || gone {
			return cmp.Or(other, failed(loadbalancer.ErrBusy, "it was deleted in the meantime"))
		}
		return err
	}
	u.list.edit(id, u.edit)
	return nil
}

// remove deletes an object; what is gone already is deleted.
func remove[T any](ctx context.Context, w writer, l *list[T], id string, start func() (vcd.Task, error)) error {
	w.gateway.details.forget(id)
	task, err := start()
	if _, err = w.wait(ctx, task, err); err != nil {
		if gone, other := isGone(ctx, w, l, id, err); other != nil || gone {
			return other
		}
		return err
	}
	l.drop(id)
	w.gateway.repairs.forget(id)
	return nil
}

// isGone finds out by a list whether VCD's "forbidden" means that the object is gone, or that a right is missing.
func isGone[T any](ctx context.Context, w writer, l *list[T], id string, err error) (bool, error) {
	if !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound}) {
		return false, nil
	}
	items, err := l.get(ctx, w.session, w.fresh())
	return err == nil && !slices.ContainsFunc(items, func(x T) bool { return l.id(x) == id }), err
}

// resolve completes a reference that a step has by name only.
func resolve[T any](ctx context.Context, w writer, l *list[T], to *lb.Ref) error {
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
	items, err := l.get(ctx, w.session, w.fresh())
	if err == nil && !find(items) {
		err = failed(loadbalancer.ErrBusy, "%s, to which it refers, does not exist", to.Name)
	}
	return err
}

// lost makes a refusal a reason to plan again, if something that the object refers to is gone: cached lists may be
// old, and VCD answers "forbidden" or "invalid" for what is gone.
func lost[T any](ctx context.Context, w writer, l *list[T], id string, err error) error {
	if id == "" || !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound, vcd.ErrInvalid}) {
		return err
	}
	gone, other := isGone(ctx, w, l, id, vcd.ErrNotFound)
	switch {
	case other != nil:
		return other
	case gone:
		return failed(loadbalancer.ErrBusy, "an object to which it refers was deleted in the meantime")
	}
	return err
}
