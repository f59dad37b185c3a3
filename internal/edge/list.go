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

// A list caches one list of objects on a gateway. Concurrent readers share one request. Writes of this process are
// applied to the cached list. Returned slices are never modified.
type list[T any] struct {
	driver *Driver
	id     func(T) string
	object func(*T) *lb.Object // nil for items without a name
	alike  func(a, b T) bool   // may be nil
	// idOf returns the ID of an object with a name from the owner of the task that created it. Nil means that the owner
	// is the ID.
	idOf func(owner, name string) string
	read reader[T]

	mu          sync.Mutex
	items       []T
	valid       bool
	at          time.Time // start of the read of items
	order       uint64    // number of that read
	writeFailed bool      // a write failed since, so items may be wrong
	inflight    *inflight[T]
}

// An inflight is a read in flight. It collects writes in the meantime, because its response may be older.
type inflight[T any] struct {
	order       uint64
	at          time.Time
	done        chan struct{}
	items       []T
	err         error
	changes     []func([]T) []T
	invalidated bool
}

// A demand is the required freshness of a list.
type demand struct {
	maxAge time.Duration
	after  uint64 // the read must have a higher number; 0: any
}

// get returns the list. It reads it if the cached one is too old.
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

// begin starts a read, which continues if the caller gives up. The caller holds the lock.
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
	// Waiting callers get the result even if it was invalidated in the meantime, because it is newer than they require.
	f.items = items
	l.items = items
	l.valid = !f.invalidated
	l.at = f.at
	l.order = f.order
}

// change applies a write to the cached list, and to the result of a read in flight.
func (l *list[T]) change(f func([]T) []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inflight != nil {
		l.inflight.changes = append(l.inflight.changes, f)
	}
	l.items = f(slices.Clone(l.items))
}

// put adds an item, or replaces the one with the same ID.
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

// same reports whether two items have the same ID or, if an item may have no ID, are alike.
func (l *list[T]) same(a, b T) bool { return l.id(a) == l.id(b) || l.alike != nil && l.alike(a, b) }

// created returns the ID of an object from the task that created it.
func (l *list[T]) created(task vcd.Task, name string) string {
	if l.idOf == nil {
		return task.Owner
	}
	return l.idOf(task.Owner, name)
}

// edit changes the item with an ID.
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

// drop removes the item with an ID.
func (l *list[T]) drop(id string) {
	l.change(func(items []T) []T {
		return slices.DeleteFunc(slices.Clone(items), func(x T) bool { return l.id(x) == id })
	})
}

// invalidate forces a read on the next get, because the state in VCD is unknown.
func (l *list[T]) invalidate() { l.expire(0) }

// expire forces a read on the next get if the list is older than an age, and reports whether it is. With an age of 0,
// it also invalidates a read in flight.
func (l *list[T]) expire(age time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writeFailed = l.writeFailed || age == 0
	if age == 0 && l.inflight != nil {
		l.inflight.invalidated = true
	}
	if !l.valid || l.driver.opts.Clock.Now().Sub(l.at) < age {
		return false
	}
	l.valid = false
	return true
}

// since returns the number of the last read.
func (l *list[T]) since() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.order
}

// written returns the items that this process wrote, if the list was never read and no write failed.
func (l *list[T]) written() (items []T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items, l.order == 0 && !l.writeFailed
}

// known returns the cached list, regardless of its age.
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
