package edge

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A part is one list of what is on a gateway, kept for all who ask. It is read by one call for all who need it at the same time,
// and changed by what is written here. Lists that were given out never change.
type part[T any] struct {
	driver *Driver
	id     func(T) string
	alike  func(a, b T) bool // may be nil
	read   func(ctx context.Context, s *vcd.Session) ([]T, error)

	mu     sync.Mutex
	items  []T
	valid  bool
	at     time.Time // when the read of items began
	order  uint64    // of that read
	flight *flight[T]
}

// A flight is a read on its way, with what is written meanwhile: its answer may be from before.
type flight[T any] struct {
	order   uint64
	at      time.Time
	done    chan struct{}
	items   []T
	err     error
	changes []func([]T) []T
	doubted bool // somebody called invalidate meanwhile
}

// A demand says how new a list has to be.
type demand struct {
	maxAge time.Duration
	after  uint64 // the read must be a later one; 0: any
}

// get returns the list, read now if the one at hand is too old.
func (p *part[T]) get(ctx context.Context, s *vcd.Session, want demand) ([]T, error) {
	for {
		p.mu.Lock()
		if p.fits(want) {
			defer p.mu.Unlock()
			return p.items, nil
		}
		if p.flight == nil {
			p.begin(ctx, s)
		}
		f := p.flight
		fits := f.order > want.after && !f.doubted
		p.mu.Unlock()
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

func (p *part[T]) fits(want demand) bool {
	return p.valid && p.order > want.after && p.driver.opts.Clock.Now().Sub(p.at) <= want.maxAge
}

// begin starts a read, which goes on when the one who asked first gives up. The lock is held.
func (p *part[T]) begin(ctx context.Context, s *vcd.Session) {
	f := &flight[T]{order: p.driver.next(), at: p.driver.opts.Clock.Now(), done: make(chan struct{})}
	p.flight = f
	go func() {
		items, err := p.read(context.WithoutCancel(ctx), s)
		p.land(f, items, err)
	}()
}

func (p *part[T]) land(f *flight[T], items []T, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(f.done)
	p.flight, f.err = nil, err
	if err != nil {
		return
	}
	for _, change := range f.changes {
		items = change(items)
	}
	// Whoever waits gets what was read, even if somebody doubted it meanwhile: it is newer than what they asked for.
	f.items = items
	p.items, p.valid, p.at, p.order = items, !f.doubted, f.at, f.order
}

// change notes what was written.
func (p *part[T]) change(f func([]T) []T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flight != nil {
		p.flight.changes = append(p.flight.changes, f)
	}
	p.items = f(slices.Clone(p.items))
}

// put notes that an item was written: in place of the one with its id, or as a new one.
func (p *part[T]) put(item T) {
	p.change(func(items []T) []T {
		items = slices.Clone(items)
		if i := slices.IndexFunc(items, func(x T) bool { return p.same(x, item) }); i >= 0 {
			items[i] = item
			return items
		}
		return append(items, item)
	})
}

// same says whether two are the same: by their ids or, where not every item has one, by what else there is.
func (p *part[T]) same(a, b T) bool { return p.id(a) == p.id(b) || p.alike != nil && p.alike(a, b) }

// edit notes that something of the item with an id was written.
func (p *part[T]) edit(id string, f func(*T)) {
	p.change(func(items []T) []T {
		items = slices.Clone(items)
		for i := range items {
			if p.id(items[i]) == id {
				f(&items[i])
			}
		}
		return items
	})
}

// drop notes that the item with an id was deleted.
func (p *part[T]) drop(id string) {
	p.change(func(items []T) []T {
		return slices.DeleteFunc(slices.Clone(items), func(x T) bool { return p.id(x) == id })
	})
}

// invalidate lets the next one who asks read: nobody knows what has been written.
func (p *part[T]) invalidate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.valid = false
	if p.flight != nil {
		p.flight.doubted = true
	}
}

// since orders the read that the list is of.
func (p *part[T]) since() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order
}

// expire lets the next one who asks read, if what is at hand is older than an age. It says whether it is.
func (p *part[T]) expire(age time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.valid || p.driver.opts.Clock.Now().Sub(p.at) < age {
		return false
	}
	p.valid = false
	return true
}

// known returns the list as it is in memory, however old.
func (p *part[T]) known() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.items
}

// next returns the number of the next read or query.
func (d *Driver) next() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sequence++
	return d.sequence
}
