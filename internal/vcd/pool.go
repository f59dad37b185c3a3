// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// PoolOptions configure a Pool. The zero value is usable.
type PoolOptions struct {
	Metrics           prometheus.Registerer // nil: metrics are not exported
	UserAgent         string
	RequestsPerSecond float64       // per site; 0: 20
	Burst             int           // per site; 0: 40
	InFlight          int           // concurrent requests per site; 0: 8
	TaskPoll          time.Duration // interval between task queries of a session; 0: 2 s
	RequestTimeout    time.Duration // for one request, including its response; 0: 60 s
	LookupTTL         time.Duration // how long lookups are cached; 0: 10 min
	IdleTimeout       time.Duration // logs out sessions that are unused for longer; 0: 30 min
	Clock             Clock         // nil: real time

	// Dial connects to a site. If it is nil, the network is used. Tests use sites in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o PoolOptions) withDefaults() PoolOptions {
	if o.UserAgent == "" {
		o.UserAgent = "cluster-api-provider-vcd"
	}
	setDefault(&o.RequestsPerSecond, 20)
	setDefault(&o.Burst, 40)
	setDefault(&o.InFlight, 8)
	setDefault(&o.TaskPoll, 2*time.Second)
	setDefault(&o.RequestTimeout, time.Minute)
	setDefault(&o.LookupTTL, 10*time.Minute)
	setDefault(&o.IdleTimeout, 30*time.Minute)
	if o.Clock == nil {
		o.Clock = transport.RealClock{}
	}
	return o
}

// site returns the options for requests to a site.
func (o PoolOptions) site() transport.Options {
	return transport.Options{
		Clock:             o.Clock,
		UserAgent:         o.UserAgent,
		RequestsPerSecond: o.RequestsPerSecond,
		Burst:             o.Burst,
		InFlight:          o.InFlight,
		RequestTimeout:    o.RequestTimeout,
		Later:             laterCalls,
		Dial:              o.Dial,
	}
}

func setDefault[T comparable](value *T, fallback T) {
	if *value == *new(T) {
		*value = fallback
	}
}

// Clock returns the clock of the pool.
func (p *Pool) Clock() Clock { return p.opts.Clock }

// A Pool holds the sessions of a process. Users of the same site, organization and credentials share one session.
type Pool struct {
	opts    PoolOptions
	metrics *metrics.Set
	forget  func() // removes the pool from the gauges
	wireLog atomic.Pointer[func(Exchange)]

	mu       sync.Mutex
	sites    map[string]*transport.Site
	sessions map[sessionKey]*Session
}

// NewPool returns an empty pool.
func NewPool(opts PoolOptions) *Pool {
	p := &Pool{
		opts:     opts.withDefaults(),
		metrics:  metrics.New(opts.Metrics),
		sites:    map[string]*transport.Site{},
		sessions: map[sessionKey]*Session{},
	}
	p.forget = metrics.Register(opts.Metrics, metrics.NewGauges()).Add(p.measure)
	return p
}

// SetWireLog reports every request to log, without secrets and bodies, until it is called with nil. It may be called at
// any time.
func (p *Pool) SetWireLog(log func(Exchange)) { p.wireLog.Store(&log) }

func (p *Pool) currentWireLog() func(Exchange) {
	if log := p.wireLog.Load(); log != nil {
		return *log
	}
	return nil
}

// Session returns the session for config, and logs in if there is no valid one. Rejected credentials are not retried
// before config.Version changes, or, if they worked before, for some time. If the site does not respond, Session fails
// at once with [ErrUnavailable].
func (p *Pool) Session(ctx context.Context, config Config) (*Session, error) {
	p.evictIdle(ctx)
	s, err := p.sessionFor(config)
	if err != nil {
		return nil, err
	}
	s.auth.SetVersion(config.Version, config.Accepted)
	s.auth.Touch()
	if err := s.transport.Site.Open(); err != nil {
		return nil, err
	}
	if err := s.transport.Trusted(ctx); err != nil {
		return nil, err
	}
	if err := s.auth.LogIn(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (p *Pool) sessionFor(config Config) (*Session, error) {
	base, err := transport.ParseSite(config.Site)
	if err != nil {
		return nil, err
	}
	key := newSessionKey(base, config)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.sessions[key]; ok {
		return s, nil
	}
	where, ok := p.sites[base]
	if !ok {
		where = transport.NewSite(base, p.opts.site(), p.metrics)
	}
	trusted := transport.Authority{Bundle: config.CABundle, Insecure: config.Insecure}
	t, err := transport.New(where, trusted, p.opts.site(), p.currentWireLog)
	if err != nil {
		return nil, err
	}
	s := newSession(t, config, p.opts)
	p.sites[base] = where
	p.sessions[key] = s
	return s, nil
}

// A sessionKey is a hash of the settings that configs must have in common to share a session.
type sessionKey [sha256.Size]byte

func newSessionKey(base string, c Config) sessionKey {
	hash := sha256.New()
	account := ""
	if c.ServiceAccount != nil { // its token changes with each login; its version when a user stores a new one
		account = fmt.Sprintf("%p/%s", c.ServiceAccount, c.Version)
	}
	for _, part := range []string{
		base,
		c.Org,
		c.Credentials.Username,
		c.Credentials.Password,
		c.Credentials.APIToken,
		string(c.CABundle),
		strconv.FormatBool(c.Insecure),
		account,
	} {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) // writes to a hash do not fail
	}
	return sessionKey(hash.Sum(nil))
}

// evictIdle logs out sessions that were not used for a while, such as those of a changed password. It removes sites
// without sessions.
func (p *Pool) evictIdle(ctx context.Context) {
	deadline := p.opts.Clock.Now().Add(-p.opts.IdleTimeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	inUse := map[*transport.Site]bool{}
	defer func() { maps.DeleteFunc(p.sites, func(_ string, s *transport.Site) bool { return !inUse[s] }) }()
	for key, s := range p.sessions {
		if s.auth.UsedBefore(deadline) {
			p.drop(ctx, key)
		} else {
			inUse[s.transport.Site] = true
		}
	}
}

// Logout logs out the sessions with the site and credentials of config, in all organizations, because they are no
// longer needed. It keeps sessions with followed tasks, because others use the same credentials. It does not wait for
// VCD.
func (p *Pool) Logout(ctx context.Context, config Config) {
	base, err := transport.ParseSite(config.Site)
	if err != nil {
		return // no session has an invalid site
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, s := range p.sessions {
		if s.transport.Site.Base == base && s.config.Credentials == config.Credentials &&
			s.config.ServiceAccount == config.ServiceAccount && s.Tasks.running() == 0 {
			p.drop(ctx, key)
		}
	}
}

// drop removes a session and logs it out in the background. The caller holds the lock.
func (p *Pool) drop(ctx context.Context, key sessionKey) {
	s := p.sessions[key]
	delete(p.sessions, key)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.RequestTimeout)
		defer cancel()
		_ = s.close(ctx) // VCD also ends idle sessions by itself
	}()
}

// Close logs out all sessions and stops following tasks, without waking their followers.
func (p *Pool) Close(ctx context.Context) error {
	defer p.forget()
	p.mu.Lock()
	sessions := p.sessions
	p.sites = map[string]*transport.Site{}
	p.sessions = map[sessionKey]*Session{}
	p.mu.Unlock()
	var wg sync.WaitGroup
	errs := make(chan error, len(sessions))
	for _, s := range sessions {
		wg.Go(func() {
			if err := s.close(ctx); err != nil {
				errs <- fmt.Errorf("logging out of %s: %w", s.transport.Site.Base, err)
			}
		})
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// measure adds the values of the pool to the states in found, by site.
func (p *Pool) measure(found map[string]*metrics.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, where := range p.sites {
		s, ok := found[where.Metrics.Label]
		if !ok {
			s = &metrics.State{}
			found[where.Metrics.Label] = s
		}
		inFlight, down := where.Load()
		s.InFlight += inFlight
		if down {
			s.Down++
		}
	}
	now := p.opts.Clock.Now()
	for _, session := range p.sessions {
		if s, ok := found[session.transport.Site.Metrics.Label]; ok {
			session.measure(s, now)
		}
	}
}

func (s *Session) measure(state *metrics.State, now time.Time) {
	loggedIn, refused := s.auth.State(now)
	if loggedIn {
		state.Sessions++
	}
	if refused {
		state.Refused++
	}
	state.Tasks += s.Tasks.running()
	if age, ok := s.Inventory.age(now); ok {
		state.Inventoried = true
		state.InventoryAge = max(state.InventoryAge, age)
	}
}

// A Clock returns the time. Tests use their own clocks.
type Clock = transport.Clock

// An Exchange is a request and its response as they may be logged: without credentials, and without bodies, which
// contain bootstrap data.
type Exchange = transport.Exchange

// As returns a context for a unit of work of a caller, such as one reconcile. While there are more requests than a site
// may get, callers are served in rotation. The first request of a unit fails with [ErrLater] at once if enough requests
// of the caller are already waiting. Requests in other contexts are never postponed, because all callers share their
// responses.
func As(ctx context.Context, caller string) context.Context { return transport.As(ctx, caller) }
