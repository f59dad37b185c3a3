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

// A writer is the common input of all writes: the gateway with its cached lists, and a session.
type writer struct {
	gateway *gateway
	session *vcd.Session
}

// wait waits for a task and returns it in its final state. It passes on an error of the call that started the task.
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

// taskFailure returns the error of a failed task. The task has ended, so the step will not complete later.
func taskFailure(task vcd.Task) error {
	err := fmt.Errorf("the task failed: %w", task.Err)
	if errors.Is(task.Err, vcd.ErrUnavailable) {
		return &failure{loadbalancer.ErrBusy, err} // an internal error of VCD; a retry may succeed
	}
	return err
}

// fresh returns a demand for a list that is read from now on.
func (w writer) fresh() demand {
	return demand{maxAge: w.gateway.driver.opts.MaxAge, after: w.gateway.driver.next()}
}

// written returns the object of a step in the state after the write.
func written(step lb.Step, description string) lb.Object {
	return lb.Object{ID: step.ID, Name: step.Name, Description: description, State: lb.Realized}
}

// create creates an object, unless an object with this name and owner exists, because a previous run of the step
// created it. A response of VCD that the name or address is taken may be the first sign of that. It returns the
// object's ID if it was created now and VCD shows the ID.
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
		l.invalidate() // VCD does not show the ID
	default:
		o.ID = l.created(task, o.Name)
		l.put(want)
	}
	return o.ID, nil
}

// exists reports whether an object with the same name and owner exists. A match in the cached list is verified.
func exists[T any](ctx context.Context, w writer, l *list[T], want *lb.Object) (bool, error) {
	if found, err := findSame(l, l.known(), want); err == nil && !found {
		return false, nil
	}
	return existsNow(ctx, w, l, want)
}

// existsNow is exists with a list that is read now.
func existsNow[T any](ctx context.Context, w writer, l *list[T], want *lb.Object) (bool, error) {
	items, err := l.get(ctx, w.session, w.fresh())
	if err != nil {
		return false, err
	}
	return findSame(l, items, want)
}

// findSame finds an object by name. It returns an error if the name belongs to another owner.
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

// sameOwner reports whether the markers in two descriptions name the same owner.
func sameOwner(description, other string) bool {
	a, ok := lb.ParseMarker(description)
	b, _ := lb.ParseMarker(other)
	return ok && a.Owner.Is(b.Owner)
}

// An objectUpdate is an update of an object in a list.
type objectUpdate[T any] struct {
	list *list[T]
	step lb.Step
	// start requests the update from VCD.
	start func() (vcd.Task, error)
	// edit applies the update to the cached object.
	edit func(*T)
}

// update changes an object. If the object was deleted in the meantime, it returns an error after which the caller plans
// again.
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

// remove deletes an object. It succeeds if the object is already deleted.
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

// isGone reads a list to determine whether "forbidden" means that the object is deleted, or that a right is missing.
func isGone[T any](ctx context.Context, w writer, l *list[T], id string, err error) (bool, error) {
	if !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound}) {
		return false, nil
	}
	items, err := l.get(ctx, w.session, w.fresh())
	return err == nil && !slices.ContainsFunc(items, func(x T) bool { return l.id(x) == id }), err
}

// resolve adds the ID to a reference that has only a name.
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

// replanIfDeleted converts a refusal to an error after which the caller plans again, if an object that the written
// object refers to is deleted. Cached lists may be outdated, and VCD responds with "forbidden" or "invalid" to a
// reference to a deleted object.
func replanIfDeleted[T any](ctx context.Context, w writer, l *list[T], id string, err error) error {
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
