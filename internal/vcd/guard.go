package vcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// patience is how long somebody waits for a call of somebody else, and how long a site may be silent while it is called
	// by several before others are turned away.
	patience = 10 * time.Second
	// silence is how long a site may be silent while it is called by anybody: some calls just take long.
	silence = 2 * patience
	// several is how many calls without an answer are no coincidence.
	several = 3
	// loginTimeout is how long a login may take, with the agreement on an API version.
	loginTimeout = 15 * time.Second
	// maxHold is how long a site that gives no answer is left alone, give or take half.
	maxHold = 30 * time.Second
)

// errSlow ends the waiting for a call of somebody else.
var errSlow = &connectionError{ErrUnavailable, "VCD takes longer than " + patience.String() + " to answer somebody else"}

// A guard keeps a site that hangs from holding up everybody: workers are few, and other sites have work for them. It lets
// calls take turns, and turns them away at once while the site is silent. After an outage, one call at a time finds out
// whether it is over.
type guard struct {
	site    string
	clock   Clock
	timeout time.Duration // of a call
	turns   *turns
	// onOutage is told when the site stops answering; nil for nobody.
	onOutage func()

	mu       sync.Mutex
	calls    int
	heard    time.Time // last answer, or when the first of the calls in flight began
	failures int       // calls without an answer since the last answer
	err      error     // of the last of them
	until    time.Time // nobody calls before
}

func newGuard(site string, opts PoolOptions) *guard {
	limiter := rate.NewLimiter(rate.Limit(opts.RequestsPerSecond), opts.Burst)
	return &guard{site: site, clock: opts.Clock, timeout: opts.RequestTimeout, turns: newTurns(limiter, opts.InFlight, opts.Clock)}
}

// hanging returns why the site is not worth a call at the moment, or nil.
func (g *guard) hanging() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hangingLocked(g.clock.Now())
}

func (g *guard) hangingLocked(now time.Time) error {
	silent := now.Sub(g.heard)
	switch {
	case now.Before(g.until):
		return g.err
	case g.calls >= several && silent >= patience, g.calls > 0 && silent >= silence:
		return &connectionError{ErrUnavailable, fmt.Sprintf("%s does not answer calls", g.site)}
	}
	return nil
}

// enter waits for its turn to call the site, and says what it was held by. Whoever may call has to leave, with the reason if
// there was no answer.
func (g *guard) enter(ctx context.Context) (leave func(error), by string, err error) {
	if by, err = g.turns.take(ctx); err != nil {
		return nil, by, err
	}
	if err := g.begin(); err != nil {
		g.turns.giveBack()
		return nil, by, err
	}
	return g.leave, by, nil
}

func (g *guard) begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if err := g.hangingLocked(now); err != nil {
		return err
	}
	if g.failures > 1 {
		g.until = now.Add(g.timeout) // for the others: this call finds out
	}
	if g.calls == 0 {
		g.heard = now
	}
	g.calls++
	return nil
}

func (g *guard) leave(err error) {
	g.turns.giveBack()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	now := g.clock.Now()
	switch {
	case err == nil, errors.Is(err, ErrTLS):
		g.heard, g.failures, g.until = now, 0, time.Time{}
	case !errors.Is(err, ErrUnavailable): // given up by the caller, which says nothing of the site
		g.until = time.Time{}
	default:
		// One call without an answer may be bad luck.
		if g.failures++; g.failures > 1 {
			if g.failures == 2 && g.onOutage != nil {
				g.onOutage()
			}
			wait := min(maxHold, 500*time.Millisecond<<min(g.failures, 6))
			g.until = now.Add(wait/2 + rand.N(wait)) //nolint:gosec // spreads load, guards nothing
		}
		g.err = err
	}
}

// deadline bounds what is done at the site. Running out of time is the site's fault, not the caller's.
func (s *site) deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &connectionError{ErrUnavailable, fmt.Sprintf("%s did not answer within %s", s.base, d)})
}
