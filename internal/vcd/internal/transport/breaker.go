// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

const (
	// MaxWait is how long a caller waits for a request of another caller. It is also how long a site may be silent
	// while several requests are in flight, before further requests are rejected.
	MaxWait = 10 * time.Second
	// maxSilence is how long a site may be silent while any request is in flight, because some requests take long.
	maxSilence = 2 * MaxWait
	// manyInFlight is the number of unanswered requests that cannot be a coincidence.
	manyInFlight = 3
	// versionsTimeout limits the request for the API versions, which is cheap for VCD. A wrong address that drops
	// packets is reported after this time.
	versionsTimeout = 8 * time.Second
	// maxOpen is the longest time that no requests are sent to a site that does not respond, with a jitter of half of
	// it.
	maxOpen = 30 * time.Second
)

// errSlow is the error of a caller that has waited too long for requests of other callers.
var errSlow = failure.Unavailable("VCD did not complete requests of other callers within " + MaxWait.String())

// A breaker is the circuit breaker of a site. While the site is silent, requests fail at once, so that workers are free
// for other sites. After an outage, one request at a time probes whether the site responds. Requests first pass the
// fair queue of the site.
type breaker struct {
	site     string
	clock    Clock
	timeout  time.Duration // of a request
	queue    *fairQueue
	onOutage func() // called when the site stops responding; may be nil

	mu           sync.Mutex
	calls        int
	lastResponse time.Time // last response, or start of the first request in flight
	failures     int       // requests without a response since the last response
	err          error     // error of the last of them
	until        time.Time // no requests before this time
}

func newBreaker(site string, opts Options) *breaker {
	limiter := rate.NewLimiter(rate.Limit(opts.RequestsPerSecond), opts.Burst)
	return &breaker{
		site:    site,
		clock:   opts.Clock,
		timeout: opts.RequestTimeout,
		queue:   newFairQueue(limiter, opts.InFlight, opts.Clock),
	}
}

// open returns the reason why no requests are sent to the site at the moment, or nil.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openLocked(b.clock.Now())
}

func (b *breaker) openLocked(now time.Time) error {
	silent := now.Sub(b.lastResponse)
	switch {
	case now.Before(b.until):
		return b.err
	case b.calls >= manyInFlight && silent >= MaxWait, b.calls > 0 && silent >= maxSilence:
		return failure.Unavailable(fmt.Sprintf("%s does not respond to requests", b.site))
	}
	return nil
}

// enter waits until a request may be sent and returns what delayed it. Unless enter fails, the caller must call leave,
// with the error if the request got no response.
func (b *breaker) enter(ctx context.Context) (leave func(error), by string, err error) {
	if by, err = b.queue.acquire(ctx); err != nil {
		return nil, by, err
	}
	if err := b.begin(); err != nil {
		b.queue.release()
		return nil, by, err
	}
	return b.leave, by, nil
}

func (b *breaker) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	if err := b.openLocked(now); err != nil {
		return err
	}
	if b.failures > 1 {
		b.until = now.Add(b.timeout) // holds other requests back: this one probes the site
	}
	if b.calls == 0 {
		b.lastResponse = now
	}
	b.calls++
	return nil
}

func (b *breaker) leave(err error) {
	b.queue.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls--
	now := b.clock.Now()
	switch {
	case err == nil, errors.Is(err, failure.ErrTLS):
		b.lastResponse = now
		b.failures = 0
		b.until = time.Time{}
	case !errors.Is(err, failure.ErrUnavailable): // canceled by the caller: no evidence about the site
		b.until = time.Time{}
	default:
		// A single request without a response may be a coincidence.
		if b.failures++; b.failures > 1 {
			if b.failures == 2 && b.onOutage != nil {
				b.onOutage()
			}
			wait := min(maxOpen, 500*time.Millisecond<<min(b.failures, 6))
			b.until = now.Add(wait/2 + rand.N(wait)) //nolint:gosec // spreads load, protects nothing
		}
		b.err = err
	}
}

// load returns the number of requests in flight, and whether the site counts as down.
func (b *breaker) load() (inFlight int, down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls, b.failures > 1 || b.openLocked(b.clock.Now()) != nil
}
