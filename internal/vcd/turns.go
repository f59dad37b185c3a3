package vcd

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// callsPerPass is how many calls somebody who comes back later is expected to make.
	callsPerPass = 4
	// soonestLater and latestLater bound how long somebody is sent away for.
	soonestLater = 500 * time.Millisecond
	latestLater  = 30 * time.Second
	// shortPatience is how long who could still be sent away waits.
	shortPatience = 2 * time.Second
)

// A pass is a piece of work on somebody's behalf that takes several calls.
type pass struct {
	caller string
	// admitted says that a call of it was made: from then on it is not sent away, because what it found out by then would be
	// lost.
	admitted atomic.Bool
}

type passKey struct{}

// As says on whose behalf the calls of a piece of work, such as one reconcile, are made. When there are more calls than a
// site may get, callers take turns. One who has enough calls waiting already gets [ErrLater] for the first call of a piece
// of work, and nothing waits. Calls in other contexts are never sent away: they serve everybody.
func As(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, passKey{}, &pass{caller: caller})
}

// forEverybody is the context of a call whose answer others wait for, too.
func forEverybody(ctx context.Context) context.Context {
	return context.WithValue(ctx, passKey{}, (*pass)(nil))
}

// passOf returns the pass that a call is part of; that of everybody if none.
func passOf(ctx context.Context) *pass {
	if p, ok := ctx.Value(passKey{}).(*pass); ok && p != nil {
		return p
	}
	p := &pass{}
	p.admitted.Store(true)
	return p
}

// turns lets calls to a site through: at a rate, so many at the same time, and of each caller one after the other.
type turns struct {
	clock   Clock
	limiter *rate.Limiter
	limit   int // calls at the same time, and how many may wait for that

	mu      sync.Mutex
	taken   int
	queues  map[string]*queue // by caller
	ring    []string          // callers with calls that wait; the first is next
	alarmed bool              // somebody looks again when the rate allows
}

// A queue is what waits of one caller.
type queue struct {
	waiting []*turn
	later   time.Time // until when others of this caller were sent away
}

// A turn is a call that waits.
type turn struct {
	pass    *pass
	granted chan struct{}
}

func newTurns(limiter *rate.Limiter, limit int, clock Clock) *turns {
	return &turns{clock: clock, limiter: limiter, limit: limit, queues: map[string]*queue{}}
}

// take waits for the turn of a call, and says what it was held by. Whoever takes a turn gives it back.
func (t *turns) take(ctx context.Context) (by string, err error) {
	p := passOf(ctx)
	admitted := p.admitted.Load()
	w, by, err := t.ask(p)
	if w == nil || err != nil {
		return by, err
	}
	patience := patience
	if !admitted {
		patience = shortPatience
	}
	select {
	case <-w.granted:
		return by, nil
	case <-t.clock.After(patience):
		err = errSlow
		if !admitted {
			err = t.sendAway(p)
		}
	case <-ctx.Done():
		err = fmt.Errorf("waiting for a turn: %w", context.Cause(ctx))
	}
	if !t.giveUp(w) {
		t.giveBack() // It was granted in the same moment.
	}
	return by, err
}

// ask grants a turn at once, in which case there is none to wait for, or puts the call in line, or sends it away.
func (t *turns) ask(p *pass) (w *turn, by string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if len(t.ring) == 0 && t.free(now) {
		t.grant(p)
		return nil, "", nil
	}
	by = heldByInFlight
	if t.taken < t.limit {
		by = heldByRateLimit
	}
	q := t.queueOf(p.caller)
	if !p.admitted.Load() && len(q.waiting) >= t.share(p.caller) {
		return nil, by, t.later(q, now)
	}
	w = &turn{pass: p, granted: make(chan struct{})}
	if q.waiting = append(q.waiting, w); len(q.waiting) == 1 {
		t.ring = append(t.ring, p.caller)
	}
	t.serve(now)
	return w, by, nil
}

// share is how many calls of a caller may wait: all places if nobody else waits, and always one.
func (t *turns) share(caller string) int {
	callers := len(t.ring)
	if !slices.Contains(t.ring, caller) {
		callers++
	}
	return max(1, t.limit/callers)
}

func (t *turns) queueOf(caller string) *queue {
	if t.queues[caller] == nil {
		t.queues[caller] = &queue{}
	}
	return t.queues[caller]
}

// free says whether a call may be made now; then it counts for the rate.
func (t *turns) free(now time.Time) bool { return t.taken < t.limit && t.limiter.AllowN(now, 1) }

func (t *turns) grant(p *pass) {
	t.taken++
	p.admitted.Store(true)
}

func (t *turns) sendAway(p *pass) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.later(t.queueOf(p.caller), t.clock.Now())
}

// later sends somebody away. Those of one caller come back one after the other, as fast as there are turns for them.
func (t *turns) later(q *queue, now time.Time) error {
	maps.DeleteFunc(t.queues, func(_ string, other *queue) bool {
		return other != q && len(other.waiting) == 0 && other.later.Before(now)
	})
	step := time.Duration(callsPerPass * float64(max(1, len(t.ring))) / float64(t.limiter.Limit()) * float64(time.Second))
	if soonest := now.Add(soonestLater); q.later.Before(soonest) {
		q.later = soonest
	}
	q.later = q.later.Add(step)
	after := q.later.Sub(now)
	if after > latestLater {
		after = latestLater/2 + rand.N(latestLater/2) //nolint:gosec // spreads load, guards nothing
		q.later = now.Add(latestLater)
	}
	return &laterError{after}
}

// serve grants turns while there are some: one to each caller before the next to any.
func (t *turns) serve(now time.Time) {
	for len(t.ring) > 0 && t.free(now) {
		caller := t.ring[0]
		q := t.queues[caller]
		w := q.waiting[0]
		t.ring, q.waiting = t.ring[1:], q.waiting[1:]
		if len(q.waiting) > 0 {
			t.ring = append(t.ring, caller)
		}
		t.grant(w.pass)
		close(w.granted)
	}
	if len(t.ring) == 0 || t.taken >= t.limit || t.alarmed {
		return
	}
	t.alarmed = true
	r := t.limiter.ReserveN(now, 1)
	after := t.clock.After(cmp.Or(r.DelayFrom(now), time.Millisecond))
	r.CancelAt(now)
	go func() {
		<-after
		t.mu.Lock()
		defer t.mu.Unlock()
		t.alarmed = false
		t.serve(t.clock.Now())
	}()
}

// giveUp takes a call out of line; it fails if its turn was granted already.
func (t *turns) giveUp(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[w.pass.caller]
	if q == nil {
		return false
	}
	i := slices.Index(q.waiting, w)
	if i < 0 {
		return false
	}
	if q.waiting = slices.Delete(q.waiting, i, i+1); len(q.waiting) == 0 {
		t.ring = slices.DeleteFunc(t.ring, func(caller string) bool { return caller == w.pass.caller })
	}
	return true
}

// giveBack ends a turn.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.serve(t.clock.Now())
}
