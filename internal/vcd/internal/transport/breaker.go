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
	// MaxWait is how long a caller waits for another's call, and how long a site may be silent while several calls are
	// in flight before further ones are refused.
	MaxWait = 10 * time.Second
	// maxSilence is how long a site may be silent while any call is in flight: some calls take long.
	maxSilence = 2 * MaxWait
	// several is how many calls without an answer are no coincidence.
	several = 3
	// versionsTimeout bounds the question for API versions, which costs VCD nothing: a wrong address that swallows
	// packets is reported after it.
	versionsTimeout = 8 * time.Second
	// maxOpen is how long a site that gives no answer is not called, give or take half.
	maxOpen = 30 * time.Second
)

// ErrSlow ends the waiting for another caller's call.
var ErrSlow = failure.Unavailable("VCD did not respond to another request for " + MaxWait.String())

// A breaker is the circuit breaker of a site: while the site is silent, calls fail at once, so that workers are free
// for other sites. After an outage, one call at a time tries whether it is over. Calls pass the fair queue of the site
// first.
type breaker struct {
	site     string
	clock    Clock
	timeout  time.Duration // of a call
	queue    *fairQueue
	onOutage func() // called when the site stops answering; may be nil

	mu       sync.Mutex
	calls    int
	heard    time.Time // last answer, or when the first of the calls in flight began
	failures int       // calls without an answer since the last answer
	err      error     // of the last of them
	until    time.Time // no calls before
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

// open returns why the site is not called at the moment, or nil.
func (b *breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openLocked(b.clock.Now())
}

func (b *breaker) openLocked(now time.Time) error {
	silent := now.Sub(b.heard)
	switch {
	case now.Before(b.until):
		return b.err
	case b.calls >= several && silent >= MaxWait, b.calls > 0 && silent >= maxSilence:
		return failure.Unavailable(fmt.Sprintf("%s does not respond to requests", b.site))
	}
	return nil
}

// enter waits until the site may be called and returns what delayed the call. Unless it fails, leave must be called,
// with the error if there was no answer.
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
		b.until = now.Add(b.timeout) // for others: this call tries
	}
	if b.calls == 0 {
		b.heard = now
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
		b.heard = now
		b.failures = 0
		b.until = time.Time{}
	case !errors.Is(err, failure.ErrUnavailable): // cancelled by the caller: no evidence about the site
		b.until = time.Time{}
	default:
		// One call without an answer may be bad luck.
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

// load returns how many calls wait for an answer, and whether the site counts as down.
func (b *breaker) load() (inFlight int, down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls, b.failures > 1 || b.openLocked(b.clock.Now()) != nil
}
