// SPDX-License-Identifier: Apache-2.0

package transport

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

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
)

const (
	// callsPerUnit is how many calls a postponed unit of work is expected to make.
	callsPerUnit = 4
	// minDelay and maxDelay bound how long work is postponed.
	minDelay = 500 * time.Millisecond
	maxDelay = 30 * time.Second
	// firstCallWait is how long the first call of a unit of work waits; later ones wait for maxWait.
	firstCallWait = 2 * time.Second
)

// A unit of work, such as one reconcile, makes several calls for one caller.
type unit struct {
	caller string
	// admitted is set by the first call that is made. Later calls are not postponed: what the earlier ones found would
	// be lost.
	admitted atomic.Bool
}

type unitKey struct{}

// As names the caller of a unit of work, such as one reconcile. While there are more calls than a site may get, callers
// are served in rotation. The first call of a unit fails with [failure.ErrLater] at once if enough calls of the caller wait
// already. Calls in other contexts are never postponed: all callers share their answers.
func As(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, unitKey{}, &unit{caller: caller})
}

// Shared is the context of a call whose answer several callers wait for.
func Shared(ctx context.Context) context.Context {
	return context.WithValue(ctx, unitKey{}, (*unit)(nil))
}

// unitOf returns the unit of work that a call is part of; a shared one if there is none.
func unitOf(ctx context.Context) *unit {
	if u, ok := ctx.Value(unitKey{}).(*unit); ok && u != nil {
		return u
	}
	u := &unit{}
	u.admitted.Store(true)
	return u
}

// A fairQueue admits calls to a site: at a rate, a limited number at the same time, and one caller after the other.
type fairQueue struct {
	clock   Clock
	limiter *rate.Limiter
	limit   int // calls at the same time, and how many may wait for that

	mu        sync.Mutex
	inFlight  int
	queues    map[string]*callerQueue
	ring      []string // callers with calls that wait; the first is next
	scheduled bool     // serve is called when the rate allows
}

// A callerQueue holds what waits of one caller.
type callerQueue struct {
	waiting []*waiter
	later   time.Time // until when other work of this caller was postponed
}

// A waiter is a call that waits.
type waiter struct {
	unit    *unit
	granted chan struct{}
}

func newFairQueue(limiter *rate.Limiter, limit int, clock Clock) *fairQueue {
	return &fairQueue{clock: clock, limiter: limiter, limit: limit, queues: map[string]*callerQueue{}}
}

// acquire waits until a call may be made and returns what delayed it. Unless it fails, release must be called.
func (q *fairQueue) acquire(ctx context.Context) (by string, err error) {
	u := unitOf(ctx)
	admitted := u.admitted.Load()
	w, by, err := q.enqueue(u)
	if w == nil || err != nil {
		return by, err
	}
	timeout := MaxWait
	if !admitted {
		timeout = firstCallWait
	}
	select {
	case <-w.granted:
		return by, nil
	case <-q.clock.After(timeout):
		err = ErrSlow
		if !admitted {
			err = q.postpone(u)
		}
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the rate limit: %w", context.Cause(ctx))
	}
	if !q.abandon(w) {
		q.release() // granted in the same moment
	}
	return by, err
}

// enqueue admits the call at once, in which case there is no waiter, or lets it wait, or postpones it.
func (q *fairQueue) enqueue(u *unit) (w *waiter, by string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	if len(q.ring) == 0 && q.free(now) {
		q.grant(u)
		return nil, "", nil
	}
	by = metrics.HeldByInFlight
	if q.inFlight < q.limit {
		by = metrics.HeldByRateLimit
	}
	own := q.of(u.caller)
	if !u.admitted.Load() && len(own.waiting) >= q.share(u.caller) {
		return nil, by, q.delay(own, now)
	}
	w = &waiter{unit: u, granted: make(chan struct{})}
	if own.waiting = append(own.waiting, w); len(own.waiting) == 1 {
		q.ring = append(q.ring, u.caller)
	}
	q.serve(now)
	return w, by, nil
}

// share is how many calls of a caller may wait: the whole limit if no other caller waits, and at least one.
func (q *fairQueue) share(caller string) int {
	callers := len(q.ring)
	if !slices.Contains(q.ring, caller) {
		callers++
	}
	return max(1, q.limit/callers)
}

func (q *fairQueue) of(caller string) *callerQueue {
	if q.queues[caller] == nil {
		q.queues[caller] = &callerQueue{}
	}
	return q.queues[caller]
}

// free reports whether a call may be made now; then it counts for the rate.
func (q *fairQueue) free(now time.Time) bool { return q.inFlight < q.limit && q.limiter.AllowN(now, 1) }

func (q *fairQueue) grant(u *unit) {
	q.inFlight++
	u.admitted.Store(true)
}

func (q *fairQueue) postpone(u *unit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delay(q.of(u.caller), q.clock.Now())
}

// delay postpones a unit of work. Those of one caller come back one after the other, as fast as calls for them are
// admitted.
func (q *fairQueue) delay(own *callerQueue, now time.Time) error {
	maps.DeleteFunc(q.queues, func(_ string, other *callerQueue) bool {
		return other != own && len(other.waiting) == 0 && other.later.Before(now)
	})
	step := time.Duration(callsPerUnit * float64(max(1,
		len(q.ring))) / float64(q.limiter.Limit()) * float64(time.Second))
	if earliest := now.Add(minDelay); own.later.Before(earliest) {
		own.later = earliest
	}
	own.later = own.later.Add(step)
	after := own.later.Sub(now)
	if after > maxDelay {
		after = maxDelay/2 + rand.N(maxDelay/2) //nolint:gosec // spreads load, protects nothing
		own.later = now.Add(maxDelay)
	}
	return failure.Later(after)
}

// serve admits calls while it may: one of each caller before the next of any.
func (q *fairQueue) serve(now time.Time) {
	for len(q.ring) > 0 && q.free(now) {
		caller := q.ring[0]
		own := q.queues[caller]
		w := own.waiting[0]
		q.ring = q.ring[1:]
		own.waiting = own.waiting[1:]
		if len(own.waiting) > 0 {
			q.ring = append(q.ring, caller)
		}
		q.grant(w.unit)
		close(w.granted)
	}
	if len(q.ring) == 0 || q.inFlight >= q.limit || q.scheduled {
		return
	}
	q.scheduled = true
	r := q.limiter.ReserveN(now, 1)
	after := q.clock.After(cmp.Or(r.DelayFrom(now), time.Millisecond))
	r.CancelAt(now)
	go func() {
		<-after
		q.mu.Lock()
		defer q.mu.Unlock()
		q.scheduled = false
		q.serve(q.clock.Now())
	}()
}

// abandon removes a call that waits; it returns false if the call was admitted already.
func (q *fairQueue) abandon(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.queues[w.unit.caller]
	if own == nil {
		return false
	}
	i := slices.Index(own.waiting, w)
	if i < 0 {
		return false
	}
	if own.waiting = slices.Delete(own.waiting, i, i+1); len(own.waiting) == 0 {
		q.ring = slices.DeleteFunc(q.ring, func(caller string) bool { return caller == w.unit.caller })
	}
	return true
}

// release ends a call.
func (q *fairQueue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.serve(q.clock.Now())
}
