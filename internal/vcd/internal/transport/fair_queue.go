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
	// callsPerUnit is the expected number of requests of a postponed unit of work.
	callsPerUnit = 4
	// minDelay and maxDelay bound how long work is postponed.
	minDelay = 500 * time.Millisecond
	maxDelay = 30 * time.Second
	// firstCallWait is how long the first request of a unit of work waits. Later ones wait for [MaxWait].
	firstCallWait = 2 * time.Second
)

// A unit of work, such as one reconcile, sends several requests for one caller.
type unit struct {
	caller string
	// admitted is set by the first request that is sent. Later requests are not postponed, because the results of the
	// earlier ones would be lost.
	admitted atomic.Bool
}

type unitKey struct{}

// As returns a context for a unit of work of a caller, such as one reconcile. While there are more requests than a site
// may get, callers are served in rotation. The first request of a unit fails with [failure.ErrLater] at once if enough
// requests of the caller are already waiting. Requests in other contexts are never postponed, because all callers share
// their responses.
func As(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, unitKey{}, &unit{caller: caller})
}

// Shared returns a context for a request whose response several callers wait for.
func Shared(ctx context.Context) context.Context {
	return context.WithValue(ctx, unitKey{}, (*unit)(nil))
}

// unitOf returns the unit of work that a request belongs to, or nil.
func unitOf(ctx context.Context) *unit {
	u, _ := ctx.Value(unitKey{}).(*unit)
	return u
}

// unitToAdmit returns the unit of work that a request belongs to, or a new one that is already admitted.
func unitToAdmit(ctx context.Context) *unit {
	if u := unitOf(ctx); u != nil {
		return u
	}
	u := &unit{}
	u.admitted.Store(true)
	return u
}

// A fairQueue admits requests to a site. It limits their rate and their concurrency, and serves callers in rotation.
type fairQueue struct {
	clock   Clock
	limiter *rate.Limiter
	limit   int // concurrent requests, and also how many may wait

	mu        sync.Mutex
	inFlight  int
	queues    map[string]*callerQueue
	ring      []string // callers with waiting requests; the first is next
	scheduled bool     // a call of serve is scheduled
}

// A callerQueue holds the waiting requests of one caller.
type callerQueue struct {
	waiting        []*waiter
	postponedUntil time.Time // time until which work of this caller is postponed
}

// A waiter is a waiting request.
type waiter struct {
	unit    *unit
	granted chan struct{}
}

func newFairQueue(limiter *rate.Limiter, limit int, clock Clock) *fairQueue {
	return &fairQueue{clock: clock, limiter: limiter, limit: limit, queues: map[string]*callerQueue{}}
}

// acquire waits until a request may be sent and returns what delayed it. Unless acquire fails, the caller must call
// release.
func (q *fairQueue) acquire(ctx context.Context) (by string, err error) {
	u := unitToAdmit(ctx)
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
		err = errSlow
		if !admitted {
			err = q.postpone(u)
		}
	case <-ctx.Done():
		err = fmt.Errorf("waiting for the rate limit: %w", context.Cause(ctx))
	}
	if !q.abandon(w) {
		q.release() // granted at the same moment
	}
	return by, err
}

// enqueue admits a request at once, in which case w is nil, or lets it wait, or postpones it.
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

// share returns how many requests of a caller may wait: the whole limit if no other caller is waiting, and at least
// one.
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

// free reports whether a request may be sent now. If so, the request counts toward the rate.
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

// delay postpones a unit of work. Postponed units of one caller return one after the other, at the rate at which their
// requests can be admitted.
func (q *fairQueue) delay(own *callerQueue, now time.Time) error {
	maps.DeleteFunc(q.queues, func(_ string, other *callerQueue) bool {
		return other != own && len(other.waiting) == 0 && other.postponedUntil.Before(now)
	})
	step := time.Duration(callsPerUnit * float64(max(1,
		len(q.ring))) / float64(q.limiter.Limit()) * float64(time.Second))
	if earliest := now.Add(minDelay); own.postponedUntil.Before(earliest) {
		own.postponedUntil = earliest
	}
	own.postponedUntil = own.postponedUntil.Add(step)
	after := own.postponedUntil.Sub(now)
	if after > maxDelay {
		after = maxDelay/2 + rand.N(maxDelay/2) //nolint:gosec // spreads load, protects nothing
		own.postponedUntil = now.Add(maxDelay)
	}
	return failure.Later(after)
}

// serve admits requests within the limits, one per caller and round.
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

// abandon removes a waiting request. It returns false if the request has already been admitted.
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

// release ends a request.
func (q *fairQueue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight--
	q.serve(q.clock.Now())
}
