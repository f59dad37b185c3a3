// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// An Authenticator sends requests with the credentials of a session. It logs in if it has no valid token, and once more
// if VCD rejects the token. It negotiates another API version if VCD, or one of its cells, rejects the version.
// Requests that are rejected for these reasons had no effect, so they are repeated.
type Authenticator struct {
	transport *transport.Transport
	site      *transport.Site
	account   Account
	flight    singleflight.Group

	mu        sync.Mutex
	current   token
	version   string             // version of the credentials
	worked    bool               // VCD has accepted the credentials before
	refused   map[string]refusal // rejected logins, by version of the credentials
	refusals  int                // consecutive rejections since the last accepted login
	loggingIn bool
	outage    backoff // of logins while the site does not respond
	lost      backoff // of logins while VCD forgets sessions that it has just created
	used      time.Time
	renewals  renewals
}

// New returns an authenticator without a session.
func New(t *transport.Transport, as Account) *Authenticator {
	return &Authenticator{
		transport: t,
		site:      t.Site,
		account:   as,
		used:      t.Site.Clock.Now(),
		refused:   map[string]refusal{},
	}
}

const (
	// loginTimeout limits the duration of a login, including the negotiation of an API version.
	loginTimeout = 15 * time.Second
	// maxAgreements is how many agreed versions may be rejected for one request: cells of two releases offer different
	// versions.
	maxAgreements = 4
	// renewalDelay is how long a session is still used after a forbidden write. Retries follow later, and an
	// administrator needs time to grant the right.
	renewalDelay = 10 * time.Second
	// firstRenewal and lastRenewal bound the minimum lifetime of the session after a renewed one. It doubles with each
	// renewal.
	firstRenewal = 20 * time.Second
	lastRenewal  = 30 * time.Minute
)

// renewals tracks the sessions that were renewed because VCD forbade a write. A session may keep the rights that its
// user had when it was created, so a right that was granted later takes effect only in the next session.
type renewals struct {
	count int
	until time.Time // earliest end of the next session
}

// renewLater schedules a new session after VCD forbade a write: soon, or when the current session has reached its
// minimum lifetime. It does not renew the session of a service account, because each login changes the token.
func (a *Authenticator) renewLater(method string, status int, t token) {
	if status != http.StatusForbidden || method == http.MethodGet {
		return
	}
	now := a.site.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	d := &a.renewals
	if a.account.ServiceAccount != nil || a.current.value != t.value || a.current.stale(d.until) {
		return
	}
	if now.Sub(d.until) > 2*lastRenewal {
		d.count = 0
	}
	if at := now.Add(renewalDelay); d.until.Before(at) {
		d.until = at
	}
	a.current.expires = d.until
	d.until = d.until.Add(min(lastRenewal, firstRenewal<<min(d.count, 10)))
	d.count++
}

// A backoff delays logins after failures, so that the sessions do not all log in again at the same moment.
type backoff struct {
	failures int
	err      error
	until    time.Time
}

// fail records a failed login and delays the next one. The delay starts at half a second and doubles up to half a
// minute, with a jitter of half the delay.
func (b *backoff) fail(err error, now time.Time) {
	wait := min(30*time.Second, 500*time.Millisecond<<min(b.failures, 6))
	b.failures++
	b.err = err
	b.until = now.Add(wait/2 + rand.N(wait)) //nolint:gosec // spreads load, protects nothing
}

// SetVersion sets the version of the credentials, and whether VCD has accepted them before.
func (a *Authenticator) SetVersion(version string, accepted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version = version
	a.worked = a.worked || accepted
}

// Touch records that the session is in use.
func (a *Authenticator) Touch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = a.site.Clock.Now()
}

// UsedBefore reports whether the session was last used before a time.
func (a *Authenticator) UsedBefore(t time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used.Before(t)
}

// LogIn ensures that there is a session with a token that has not expired.
func (a *Authenticator) LogIn(ctx context.Context) error {
	_, err := a.token(ctx)
	return err
}

// token returns a token that has not expired. It logs in if there is no token or if the token is about to expire.
func (a *Authenticator) token(ctx context.Context) (token, error) {
	now := a.site.Clock.Now()
	if account := a.account.ServiceAccount; account != nil {
		account.flush(ctx, now) // the token of the last login still works
	}
	a.mu.Lock()
	current := a.current
	refused := a.refused[a.version].at(now)
	a.mu.Unlock()
	switch {
	case refused != nil:
		return token{}, refused
	case !current.stale(now):
		return current, nil
	}
	return a.renew(ctx, current)
}

// renew replaces the token, unless another caller has already done so. Concurrent callers share one login, which
// continues when the first caller gives up. While a login is retried after an outage, other callers get the error of
// the last attempt.
func (a *Authenticator) renew(ctx context.Context, old token) (token, error) {
	if err := a.retrying(); err != nil {
		return token{}, err
	}
	result := a.flight.DoChan("login", func() (any, error) {
		current, version, err := a.beginLogin(old)
		if err != nil || current.value != "" {
			return current, err
		}
		ctx, cancel := a.site.Deadline(transport.Shared(context.WithoutCancel(ctx)), a.loginTimeout())
		defer cancel()
		return a.login(ctx, version)
	})
	select {
	case r := <-result:
		t, _ := r.Val.(token)
		return t, r.Err
	case <-ctx.Done():
		return token{}, ctx.Err()
	}
}

// loginTimeout returns the time limit of a login. It is longer for a service account, because the response contains the
// next token.
func (a *Authenticator) loginTimeout() time.Duration {
	if a.account.ServiceAccount != nil {
		return a.transport.Timeout
	}
	return min(loginTimeout, a.transport.Timeout)
}

// retrying returns the error of the last login while another login is in flight.
func (a *Authenticator) retrying() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loggingIn {
		return a.outage.err
	}
	return nil
}

// beginLogin returns the token or the rejection that another login has obtained in the meantime. Otherwise it marks a
// login as in flight and returns the version of the credentials.
func (a *Authenticator) beginLogin(old token) (token, string, error) {
	now := a.site.Clock.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current.value != old.value && !a.current.stale(now) {
		return a.current, "", nil
	}
	if err := a.refused[a.version].at(now); err != nil {
		return token{}, "", err
	}
	for _, b := range []backoff{a.outage, a.lost} {
		if now.Before(b.until) {
			return token{}, "", b.err
		}
	}
	a.loggingIn = true
	return token{}, a.version, nil
}

func (a *Authenticator) login(ctx context.Context, version string) (token, error) {
	t, err := login(ctx, a.transport, a.account)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current = t
	a.loggingIn = false
	a.site.Metrics.Login(err)
	switch {
	case err == nil:
		a.worked = true
		a.refused = map[string]refusal{}
		a.refusals = 0
		a.outage = backoff{}
		return t, nil
	case errors.Is(err, failure.ErrUnauthorized):
		a.outage = backoff{}
		a.refuse(version, err)
	default:
		a.outage.fail(err, a.site.Clock.Now())
	}
	return token{}, err
}

// Close logs out.
func (a *Authenticator) Close(ctx context.Context) error {
	var unwritten error
	if account := a.account.ServiceAccount; account != nil {
		unwritten = account.Rest(ctx, func() error { return nil })
	}
	a.mu.Lock()
	t := a.current
	a.current = token{}
	a.mu.Unlock()
	defer a.transport.Close()
	if t.value == "" {
		return unwritten
	}
	if err := logout(ctx, a.transport, t); err != nil && !errors.Is(err, failure.ErrUnauthorized) {
		return errors.Join(unwritten, err)
	}
	return unwritten
}

// Send sends a request with the credentials.
func (a *Authenticator) Send(ctx context.Context, r transport.Request) (transport.Answer, error) {
	if !isUnattended(ctx) {
		a.Touch()
	}
	t, err := a.token(ctx)
	if err != nil {
		return transport.Answer{}, err
	}
	for logins, agreements := 1, maxAgreements; ; {
		version, err := a.versionFor(ctx, r)
		if err != nil {
			return transport.Answer{}, err
		}
		got, err := a.try(ctx, r, t, version)
		switch {
		case got.Status == http.StatusUnauthorized:
			if t, err = a.replace(ctx, t, logins); err != nil {
				return transport.Answer{}, err
			}
			logins--
		case got.Status == http.StatusNotAcceptable && r.Version == "" && agreements > 0:
			agreements--
			a.site.RefuseVersion(version)
		default:
			a.answered(got.Status)
			a.renewLater(r.Method, got.Status, t)
			return got, err
		}
	}
}

// try makes one attempt at a request.
func (a *Authenticator) try(ctx context.Context, r transport.Request, t token, version string) (transport.Answer, error) {
	req, err := a.site.NewRequest(ctx, r.Method, r.Path, r.Accept(version), r.Body)
	if err != nil {
		return transport.Answer{}, err
	}
	req.URL.RawQuery = r.Query
	maps.Copy(req.Header, r.Header)
	authorize(req.Header, t)
	return a.transport.Send(req)
}

// versionFor returns the API version of a request.
func (a *Authenticator) versionFor(ctx context.Context, r transport.Request) (string, error) {
	if r.Version != "" {
		return r.Version, nil
	}
	agreed, err := a.transport.Negotiate(ctx)
	if err != nil {
		return "", err
	}
	return a.site.VersionFor(r.Path, agreed)
}

// replace returns a new token for one that VCD does not accept, if the request has a login left.
func (a *Authenticator) replace(ctx context.Context, t token, logins int) (token, error) {
	if logins == 0 {
		return token{}, a.forgotten(t)
	}
	return a.renew(ctx, t)
}

// forgotten records that VCD did not accept a token that it had just issued, and returns the resulting error. The
// credentials do not count as rejected. Cells that restart one after the other cause this.
func (a *Authenticator) forgotten(t token) error {
	err := failure.Unavailable(a.site.Base + " does not accept a session that it has just created")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current.value == t.value {
		a.current = token{}
		a.lost.fail(err, a.site.Clock.Now())
	}
	return err
}

// answered records that VCD accepted the token of a request, if the status shows that.
func (a *Authenticator) answered(status int) {
	if status == 0 || status == http.StatusNotAcceptable {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = backoff{}
}

// State reports whether the session is logged in, and whether VCD currently rejects its credentials.
func (a *Authenticator) State(now time.Time) (loggedIn, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.current.value != "", a.refused[a.version].at(now) != nil
}

type unattendedKey struct{}

// Unattended returns a context for requests that no reconcile waits for, such as those of a poller. They do not keep a
// session alive.
func Unattended(ctx context.Context) context.Context {
	return context.WithValue(ctx, unattendedKey{}, true)
}

func isUnattended(ctx context.Context) bool { return ctx.Value(unattendedKey{}) != nil }
