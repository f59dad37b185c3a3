package vcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vmware/go-vcloud-director/v2/govcd"
	"golang.org/x/sync/singleflight"
)

// tokenPlaceholder is what the SDK believes to be the token: it never gets to hold the real one.
const tokenPlaceholder = "-"

// A Session is one login, shared by all who work with the same Config. It logs in again by itself.
type Session struct {
	site      *site
	wire      *wire
	sdk       govcd.Client // builds requests; never changed after construction
	config    Config
	opts      PoolOptions
	metrics   *metrics
	provider  bool // logged in to the System organisation
	flight    singleflight.Group
	lookups   *cache
	documents *documents
	tasks     *follower

	inventoryMu sync.Mutex
	inventories map[string]*inventory // by URN of the VDC

	mu      sync.Mutex
	current token
	version string           // of the credentials
	refused map[string]error // versions of the credentials that VCD refused
	outage  outage
	used    time.Time
}

// An outage holds back logins to a site that does not answer, so that not everybody comes back in the same moment.
type outage struct {
	failures int
	err      error
	until    time.Time
}

// again notes a failed login. The next may be tried after half a second, doubled up to half a minute, give or take half.
func (o *outage) again(err error, now time.Time) {
	wait := min(30*time.Second, 500*time.Millisecond<<min(o.failures, 6))
	o.failures++
	o.err = err
	o.until = now.Add(wait/2 + rand.N(wait)) //nolint:gosec // spreads load, guards nothing
}

func isSystem(org string) bool { return strings.EqualFold(org, systemOrg) }

// Org returns the name of the organisation that the session works in.
func (s *Session) Org() string { return s.config.Org }

// Site returns the address of the site, https://host[:port].
func (s *Session) Site() string { return s.site.base }

func (s *Session) setVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *Session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = s.opts.Clock.Now()
}

func (s *Session) usedBefore(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used.Before(t)
}

// token returns a token that should work, logging in when there is none or when it is about to expire.
func (s *Session) token(ctx context.Context) (token, error) {
	s.mu.Lock()
	current, refusal := s.current, s.refused[s.version]
	s.mu.Unlock()
	switch {
	case refusal != nil:
		return token{}, refusal
	case !current.stale(s.opts.Clock.Now()):
		return current, nil
	}
	return s.renew(ctx, current)
}

// renew replaces the token, unless somebody else has done so: one login for all who need it at the same time. It goes on
// when the first who asked gives up, for the others.
func (s *Session) renew(ctx context.Context, old token) (token, error) {
	result := s.flight.DoChan("login", func() (any, error) {
		s.mu.Lock()
		current, version, refusal := s.current, s.version, s.refused[s.version]
		now := s.opts.Clock.Now()
		if refusal == nil && now.Before(s.outage.until) {
			refusal = s.outage.err
		}
		s.mu.Unlock()
		switch {
		case current.value != old.value && !current.stale(now):
			return current, nil
		case refusal != nil:
			return token{}, refusal
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*s.opts.RequestTimeout)
		defer cancel()
		return s.login(ctx, version)
	})
	select {
	case r := <-result:
		t, _ := r.Val.(token)
		return t, r.Err
	case <-ctx.Done():
		return token{}, ctx.Err() //nolint:wrapcheck // the caller's own cancellation
	}
}

func (s *Session) login(ctx context.Context, version string) (token, error) {
	agreed := s.site.agreedVersion()
	t, err := login(ctx, s.wire, s.site, s.config)
	if err != nil && agreed != "" && s.site.agreedVersion() == agreed && errors.Is(err, errVersionRefused) {
		s.site.dropVersion(agreed)
		t, err = login(ctx, s.wire, s.site, s.config)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hadToken := s.current.value != ""
	s.current = t
	switch {
	case err == nil:
		s.metrics.logins.WithLabelValues("ok").Inc()
		if !hadToken {
			s.metrics.sessions.Inc()
		}
		s.refused, s.outage = map[string]error{}, outage{}
		return t, nil
	case errors.Is(err, ErrUnauthorized):
		s.metrics.logins.WithLabelValues("refused").Inc()
		s.refused[version] = err
	default:
		s.metrics.logins.WithLabelValues("failed").Inc()
		s.outage.again(err, s.opts.Clock.Now())
	}
	if hadToken {
		s.metrics.sessions.Dec()
	}
	return token{}, err
}

// close stops following tasks and logs out. A session that somebody still holds logs in again when it is used.
func (s *Session) close(ctx context.Context) error {
	s.tasks.stop()
	s.mu.Lock()
	t := s.current
	s.current = token{}
	s.mu.Unlock()
	defer s.wire.close()
	if t.value == "" {
		return nil
	}
	s.metrics.sessions.Dec()
	if err := logout(ctx, s.wire, s.site, t); err != nil && !errors.Is(err, ErrUnauthorized) {
		return err
	}
	return nil
}

// authTransport is the session as the transport of the SDK's client: it adds credentials, logs in again once when they
// are refused, and agrees on another API version once when VCD no longer takes the one in use.
type authTransport Session

// RoundTrip implements http.RoundTripper.
func (a *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := (*Session)(a)
	s.touch()
	t, err := s.token(req.Context())
	if err != nil {
		return nil, keepFailure(req, err)
	}
	version := s.site.agreedVersion()
	resp, err := s.send(req, t, version)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized:
		if t, err = s.renew(req.Context(), t); err != nil {
			return nil, keepFailure(req, err)
		}
	case resp.StatusCode == http.StatusNotAcceptable:
		s.site.dropVersion(version)
		if version, err = s.site.negotiate(req.Context(), s.wire); err != nil {
			return nil, keepFailure(req, err)
		}
	default:
		return resp, nil
	}
	_ = keepFailure(req, nil) // forgets the first answer
	return s.send(req, t, version)
}

// send makes one attempt. Requests built here can always be sent again: their bodies are in memory.
func (s *Session) send(req *http.Request, t token, version string) (*http.Response, error) {
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err //nolint:wrapcheck // cannot happen: the body is in memory
		}
		out.Body = body
	}
	out.Header.Set("Accept", strings.Replace(out.Header.Get("Accept"), versionPlaceholder, version, 1))
	authorize(out.Header, t, version)
	return s.wire.RoundTrip(out)
}
