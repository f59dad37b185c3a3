// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A list is a cache of one list of what is on a gateway. Concurrent readers share one call, and what is written
// here is applied to the cached list. Slices that were returned never change.
type list[T any] struct {
	driver *Driver
	id     func(T) string
	object func(*T) *lb.Object // nil for what has no name
	alike  func(a, b T) bool   // may be nil
	// idOf is the id of an object with a name whose creation a task shows by its owner; nil: the owner's.
	idOf func(owner, name string) string
	read reader[T]

	mu       sync.Mutex
	items    []T
	valid    bool
	at       time.Time // when the read of items began
	order    uint64    // of that read
	unsure   bool      // a write failed since: items may not be what was written
	inflight *inflight[T]
}

// An inflight is a read on its way, with what is written meanwhile: its answer may be from before.
type inflight[T any] struct {
	order       uint64
	at          time.Time
	done        chan struct{}
	items       []T
	err         error
	changes     []func([]T) []T
	invalidated bool
}

// A demand is how new a list has to be.
type demand struct {
	maxAge time.Duration
	after  uint64 // the read must be a later one; 0: any
}

// get returns the list, read now if the cached one is too old.
func (l *list[T]) get(ctx context.Context, s *vcd.Session, want demand) ([]T, error) {
	for {
		l.mu.Lock()
		if l.fits(want) {
			defer l.mu.Unlock()
			return l.items, nil
		}
		if l.inflight == nil {
			l.begin(ctx, s)
		}
		f := l.inflight
		fits := f.order > want.after && !f.invalidated
		l.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if fits {
			return f.items, f.err
		}
	}
}

func (l *list[T]) fits(want demand) bool {
	return l.valid && l.order > want.after && l.driver.opts.Clock.Now().Sub(l.at) <= want.maxAge
}

// begin starts a read, which goes on when the caller gives up. The lock is held.
func (l *list[T]) begin(ctx context.Context, s *vcd.Session) {
	f := &inflight[T]{order: l.driver.next(), at: l.driver.opts.Clock.Now(), done: make(chan struct{})}
	l.inflight = f
	go func() {
		items, err := l.read(context.WithoutCancel(ctx), s)
		l.finish(f, items, err)
	}()
}

func (l *list[T]) finish(f *inflight[T], items []T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(f.done)
	l.inflight = nil
	f.err = err
	if err != nil {
		return
	}
	for _, change := range f.changes {
		items = change(items)
	}
	// Waiting callers get what was read, even if it was invalidated meanwhile: it is newer than what they asked for.
	f.items = items
	l.items = items
	l.valid = !f.invalidated
	l.at = f.at
	l.order = f.order
}

// change applies a write, also to the answer of a read in flight.
func (l *list[T]) change(f func([]T) []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inflight != nil {
		l.inflight.changes = append(l.inflight.changes, f)
	}
	l.items = f(slices.Clone(l.items))
}

// put adds an item, or replaces the one with its id.
func (l *list[T]) put(item T) {
	l.change(func(items []T) []T {
		items = slices.Clone(items)
		if i := slices.IndexFunc(items, func(x T) bool { return l.same(x, item) }); i >= 0 {
			items[i] = item
			return items
		}
		return append(items, item)
	})
}

// same compares by ids or, where not every item has one, by what else there is.
func (l *list[T]) same(a, b T) bool { return l.id(a) == l.id(b) || l.alike != nil && l.alike(a, b) }

// created is the id of an object whose creation a task shows.
func (l *list[T]) created(task vcd.Task, name string) string {
	if l.idOf == nil {
		return task.Owner
	}
	return l.idOf(task.Owner, name)
}

// edit changes the item with an id.
func (l *list[T]) edit(id string, f func(*T)) {
	l.change(func(items []T) []T {
		items = slices.Clone(items)
		for i := range items {
			if l.id(items[i]) == id {
				f(&items[i])
			}
		}
		return items
	})
}

// drop removes the item with an id.
func (l *list[T]) drop(id string) {
	l.change(func(items []T) []T {
		return slices.DeleteFunc(slices.Clone(items), func(x T) bool { return l.id(x) == id })
	})
}

// invalidate makes the next caller read: the state in VCD is unknown.
func (l *list[T]) invalidate() { l.expire(0) }

// expire makes the next caller read if the list is older than an age, and reports whether it is. With an age of 0,
// a read in flight is invalidated as well.
func (l *list[T]) expire(age time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsure = l.unsure || age == 0
	if age == 0 && l.inflight != nil {
		l.inflight.invalidated = true
	}
	if !l.valid || l.driver.opts.Clock.Now().Sub(l.at) < age {
		return false
	}
	l.valid = false
	return true
}

// since orders the read that the list is of.
func (l *list[T]) since() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order
}

// written returns what was written here, if the list was never read and all writes are known to be done.
func (l *list[T]) written() (items []T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items, l.order == 0 && !l.unsure
}

// known returns the cached list, however old.
func (l *list[T]) known() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items
}

// next returns the number of the next read or query.
func (d *Driver) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sequence++
	return d.sequence
}
