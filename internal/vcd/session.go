package vcd

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// tokenPlaceholder is what the SDK believes to be the token: it never gets to hold the real one.
const tokenPlaceholder = "-"

// A Session is one login, shared by all users of the same Config. It logs in again by itself. What it can do is
// grouped by what it is done to.
type Session struct {
	VDCs      *VDCs
	Networks  *Networks
	Templates *Templates
	Inventory *Inventory
	VApps     *VApps
	VMs       *VMs
	Disks     *Disks
	Tasks     *Tasks
	Gateways  *Gateways
	Balancers *Balancers
	NAT       *NAT
	Firewall  *Firewall
	IPSpaces  *IPSpaces
	Entities  *Entities

	*client

	wire   *wire
	flight singleflight.Group

	mu        sync.Mutex
	current   token
	version   string             // of the credentials
	worked    bool               // the credentials were accepted once
	refused   map[string]refusal // by version of the credentials
	refusals  int                // since they were last accepted
	loggingIn bool
	outage    outage
	lost      outage // holds back logins while VCD forgets sessions that it has just begun
	used      time.Time
}

// newSession returns a session that is not logged in yet.
func newSession(c *client, w *wire) *Session {
	return &Session{
		VDCs:      &VDCs{c},
		Networks:  &Networks{c},
		Templates: &Templates{c},
		Inventory: &Inventory{client: c, vdcs: map[string]*inventory{}},
		VApps:     &VApps{c},
		VMs:       &VMs{c, newDocuments(c.opts.Clock)},
		Disks:     &Disks{c},
		Tasks:     newTasks(c),
		Gateways:  &Gateways{c},
		Balancers: &Balancers{c},
		NAT:       &NAT{c},
		Firewall:  &Firewall{c},
		IPSpaces:  &IPSpaces{c},
		Entities:  &Entities{c},

		client: c, wire: w, used: c.opts.Clock.Now(), refused: map[string]refusal{},
	}
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

func (s *Session) setVersion(version string, accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
	s.worked = s.worked || accepted
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
	now := s.opts.Clock.Now()
	if account := s.config.ServiceAccount; account != nil {
		account.flush(ctx, now) // what was given at the last login works meanwhile
	}
	s.mu.Lock()
	current, refused := s.current, s.refused[s.version].at(now)
	s.mu.Unlock()
	switch {
	case refused != nil:
		return token{}, refused
	case !current.stale(now):
		return current, nil
	}
	return s.renew(ctx, current)
}

// renew replaces the token, unless somebody else has done so: one login for all who need it at the same time. It goes on
// when the first who asked gives up, for the others. Nobody else waits for a login to a site where the last one got no answer.
func (s *Session) renew(ctx context.Context, old token) (token, error) {
	if err := s.doubtful(); err != nil {
		return token{}, err
	}
	result := s.flight.DoChan("login", func() (any, error) {
		current, version, err := s.beginLogin(old)
		if err != nil || current.value != "" {
			return current, err
		}
		ctx, cancel := s.site.deadline(forEverybody(context.WithoutCancel(ctx)), s.loginTimeout())
		defer cancel()
		return s.login(ctx, version)
	})
	select {
	case r := <-result:
		t, _ := r.Val.(token)
		return t, r.Err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// loginTimeout is how long a login may take. The answer to that of a service account is not given up early: the next token is in it.
func (s *Session) loginTimeout() time.Duration {
	if s.config.ServiceAccount != nil {
		return s.opts.RequestTimeout
	}
	return min(loginTimeout, s.opts.RequestTimeout)
}

// doubtful returns the last failure while somebody tries again after it.
func (s *Session) doubtful() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loggingIn {
		return s.outage.err
	}
	return nil
}

// beginLogin says that a login is needed, for which version of the credentials, or returns the token or the refusal that
// somebody else has got meanwhile.
func (s *Session) beginLogin(old token) (token, string, error) {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.value != old.value && !s.current.stale(now) {
		return s.current, "", nil
	}
	if err := s.refused[s.version].at(now); err != nil {
		return token{}, "", err
	}
	for _, o := range []outage{s.outage, s.lost} {
		if now.Before(o.until) {
			return token{}, "", o.err
		}
	}
	s.loggingIn = true
	return token{}, s.version, nil
}

func (s *Session) login(ctx context.Context, version string) (token, error) {
	t, err := login(ctx, s.wire, s.site, s.config)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.loggingIn = t, false
	s.site.metrics.login(err)
	switch {
	case err == nil:
		s.worked, s.refused, s.refusals, s.outage = true, map[string]refusal{}, 0, outage{}
		return t, nil
	case errors.Is(err, ErrUnauthorized):
		s.outage = outage{}
		s.refuse(version, err)
	default:
		s.outage.again(err, s.opts.Clock.Now())
	}
	return token{}, err
}

// close stops following tasks and logs out. A session that somebody still holds logs in again when it is used.
func (s *Session) close(ctx context.Context) error {
	s.Tasks.stop()
	var unwritten error
	if account := s.config.ServiceAccount; account != nil {
		unwritten = account.Rest(ctx, func() error { return nil })
	}
	s.mu.Lock()
	t := s.current
	s.current = token{}
	s.mu.Unlock()
	defer s.wire.close()
	if t.value == "" {
		return unwritten
	}
	if err := logout(ctx, s.wire, s.site, t); err != nil && !errors.Is(err, ErrUnauthorized) {
		return errors.Join(unwritten, err)
	}
	return unwritten
}

// authTransport is the session as the transport of the SDK's client: it adds credentials, logs in again once when they
// are refused, and agrees on another API version when VCD, or one of its cells, no longer takes the one in use. Calls that
// are refused so have done nothing, so they can be made again.
type authTransport Session

// RoundTrip implements http.RoundTripper.
func (a *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := (*Session)(a)
	if !isPolling(req.Context()) {
		s.touch()
	}
	t, err := s.token(req.Context())
	if err != nil {
		return nil, keepFailure(req, err)
	}
	for logins, agreements := 1, maxAgreements; ; {
		version, err := s.versionOf(req)
		if err != nil {
			return nil, keepFailure(req, err)
		}
		resp, err := s.send(req, t, version)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			if t, err = s.another(req.Context(), t, logins); err != nil {
				return nil, keepFailure(req, err)
			}
			logins--
		case http.StatusNotAcceptable:
			if agreements == 0 {
				return resp, nil
			}
			agreements--
			s.site.refuseVersion(version)
		default:
			s.remembered()
			return resp, nil
		}
		_ = keepFailure(req, nil) // forgets the answer
	}
}

// versionOf returns the API version to ask for in a call.
func (s *Session) versionOf(req *http.Request) (string, error) {
	agreed, err := s.site.negotiate(req.Context(), s.wire)
	if err != nil {
		return "", err
	}
	return s.site.versionFor(req.URL.Path, agreed)
}

// another returns a token in place of one that VCD does not know, if there is a login left for the call.
func (s *Session) another(ctx context.Context, t token, logins int) (token, error) {
	if logins == 0 {
		return token{}, s.forgotten(t)
	}
	return s.renew(ctx, t)
}

// forgotten notes that VCD did not know a token that it had just given, and returns what that means: not that the credentials
// are refused. Cells that are restarted one after the other do so.
func (s *Session) forgotten(t token) error {
	err := &connectionError{ErrUnavailable, s.site.base + " forgets sessions that it has just begun"}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.value == t.value {
		s.current = token{}
		s.lost.again(err, s.opts.Clock.Now())
	}
	return err
}

// remembered notes that VCD knew the token of a call.
func (s *Session) remembered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = outage{}
}

// send makes one attempt. Requests built here can always be sent again: their bodies are in memory.
func (s *Session) send(req *http.Request, t token, version string) (*http.Response, error) {
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	out.Header.Set("Accept", strings.Replace(out.Header.Get("Accept"), versionPlaceholder, version, 1))
	authorize(out.Header, t, version)
	return s.wire.RoundTrip(out)
}
