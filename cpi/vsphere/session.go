// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/sts"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

const (
	// refusalAge is how long refused credentials are not retried, because vCenter locks accounts.
	refusalAge = 15 * time.Minute
	// tokenLifetime is the lifetime of the token with which a certificate logs in.
	tokenLifetime = 10 * time.Minute
)

// A VCenter is a vCenter in the configuration.
type VCenter struct {
	Name        string // for users
	Host        string
	Port        int
	Insecure    bool
	CAFile      string
	Thumbprint  string
	RoundTrips  int      // maximum number of attempts per request after network errors
	Datacenters []string // names or paths; empty: all
	// Addresses selects the addresses of Nodes. The zero value uses the settings of all vCenters.
	Addresses AddressPolicy
	// Credentials returns the current credentials, with a version that differs for different credentials.
	Credentials func(context.Context) (Credentials, string, error)
}

// address returns the URL of the API.
func (v VCenter) address() *url.URL {
	port := v.Port
	if port == 0 {
		port = 443
	}
	host := strings.Trim(v.Host, "[]")
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port)), Path: vim25.Path}
}

// Credentials are a user name with a password, a certificate with its key in their place, or a session that another
// service shares.
type Credentials struct {
	User, Password string
	// SharedSession is the URL of a service that returns tickets for its session. SharedToken authenticates to it.
	SharedSession, SharedToken string
}

// certificate returns the certificate in place of the user name, or nil.
func (c Credentials) certificate() (*tls.Certificate, error) {
	if !strings.HasPrefix(strings.TrimSpace(c.User), "-----BEGIN") {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(c.User), []byte(c.Password))
	if err != nil {
		return nil, errors.New("the certificate in the user name and the key in the password do not match")
	}
	return &pair, nil
}

// A connection is a session with a vCenter, and the objects with the same lifetime.
type connection struct {
	client  *vim25.Client
	session *session.Manager
	view    *view.ContainerView
	version string // of the credentials

	login func(context.Context, *rest.Client) error
	mu    sync.Mutex
	tags  *tags.Manager // nil: not needed yet
	rest  *rest.Client
}

// sessions maintain one connection to a vCenter.
type sessions struct {
	VCenter

	clock   clock.PassiveClock
	observe func(vCenter string, err error) // of each request
	agent   string

	mu      sync.Mutex
	current *connection
	refused refused

	tagsMu      sync.Mutex
	refusedTags refused // refused by the tags endpoint, which has a separate login
}

// refused are credentials that were refused, with the time until which they are not retried.
type refused struct {
	version string
	until   time.Time
	err     error
}

// check returns the error of refused credentials that may not be retried yet.
func (r *refused) check(version string, now time.Time) error {
	if r.err != nil && r.version == version && now.Before(r.until) {
		return r.err
	}
	return nil
}

// note records the result of a login.
func (r *refused) note(version string, now time.Time, err error) {
	*r = refused{}
	if errors.Is(err, errCredentials) {
		*r = refused{version, now.Add(refusalAge), err}
	}
}

// use calls f with a connection. If the session has ended, it retries once with a new one.
func (s *sessions) use(ctx context.Context, f func(*connection) error) error {
	for try := 1; ; try++ {
		c, err := s.connect(ctx)
		if err != nil {
			return err
		}
		err = f(c)
		if err == nil || try == 2 || !sessionEnded(err) {
			return err
		}
		s.drop(c)
	}
}

func (s *sessions) drop(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == c {
		s.current = nil
	}
}

// connect returns the connection. It opens one if there is none with the current credentials.
func (s *sessions) connect(ctx context.Context) (*connection, error) {
	credentials, version, err := s.Credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("vCenter %s: %w: %w", s.Name, errCredentials, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.version == version {
		return s.current, nil
	}
	if err := s.refused.check(version, s.clock.Now()); err != nil {
		return nil, err
	}
	if s.current != nil {
		s.current.close(ctx)
		s.current = nil
	}
	c, err := s.open(ctx, credentials)
	if err != nil {
		err = fmt.Errorf("logging in to vCenter %s: %w", s.Name, err)
		s.refused.note(version, s.clock.Now(), err)
		return nil, err
	}
	c.version = version
	s.current = c
	s.refused = refused{}
	return c, nil
}

// loginTags logs in to the tags endpoint, unless it recently refused the same credentials. Each refusal counts towards
// the lockout of the account.
func (s *sessions) loginTags(
	ctx context.Context, c *connection, r *rest.Client, login func(context.Context, *rest.Client) error,
) error {
	s.tagsMu.Lock()
	defer s.tagsMu.Unlock()
	if err := s.refusedTags.check(c.version, s.clock.Now()); err != nil {
		return err
	}
	r.Transport = s.observed(r.Transport)
	err := login(ctx, r)
	if restError(err, http.StatusUnauthorized) || restError(err, http.StatusForbidden) {
		err = fmt.Errorf("%w: %w", errCredentials, err)
	}
	s.refusedTags.note(c.version, s.clock.Now(), err)
	return err
}

// open logs in and creates a view of all VMs.
func (s *sessions) open(ctx context.Context, credentials Credentials) (*connection, error) {
	transport := soap.NewClient(s.address(), s.Insecure)
	siteproxy.Use(transport.DefaultTransport())
	transport.UserAgent = s.agent
	if s.CAFile != "" {
		if err := transport.SetRootCAs(s.CAFile); err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.CAFile, err)
		}
	}
	transport.SetThumbprint(s.address().Host, s.Thumbprint)
	transport.Transport = s.observed(transport.Transport)
	client, err := vim25.NewClient(ctx, transport)
	if err != nil {
		return nil, err
	}
	if s.RoundTrips > 1 {
		client.RoundTripper = vim25.Retry(transport, vim25.RetryTemporaryNetworkError, s.RoundTrips)
	}
	c := &connection{client: client, session: session.NewManager(client)}
	if err := c.authenticate(ctx, credentials); err != nil {
		return nil, err
	}
	c.view, err = view.NewManager(client).CreateContainerView(ctx, client.ServiceContent.RootFolder,
		[]string{"VirtualMachine"}, true)
	if err != nil {
		c.close(ctx)
		return nil, err
	}
	login := c.login
	c.login = func(ctx context.Context, r *rest.Client) error { return s.loginTags(ctx, c, r, login) }
	return c, nil
}

// authenticate logs in, and sets the login function for the tags endpoint.
func (c *connection) authenticate(ctx context.Context, credentials Credentials) error {
	certificate, err := credentials.certificate()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errCredentials, err)
	case credentials.SharedSession != "":
		c.login = func(context.Context, *rest.Client) error { return errShared }
		return c.share(ctx, credentials)
	case certificate != nil:
		c.login = func(ctx context.Context, r *rest.Client) error {
			signer, err := c.token(ctx, certificate)
			if err != nil {
				return err
			}
			return r.LoginByToken(r.WithSigner(ctx, signer))
		}
		signer, err := c.token(ctx, certificate)
		if err != nil {
			return err
		}
		return credentialError(c.session.LoginByToken(c.client.WithHeader(ctx, soap.Header{Security: signer})))
	}
	user := url.UserPassword(credentials.User, credentials.Password)
	c.login = func(ctx context.Context, r *rest.Client) error { return r.Login(ctx, user) }
	return credentialError(c.session.Login(ctx, user))
}

// token requests a token with a certificate.
func (c *connection) token(ctx context.Context, certificate *tls.Certificate) (*sts.Signer, error) {
	client, err := sts.NewClient(ctx, c.client)
	if err != nil {
		return nil, err
	}
	signer, err := client.Issue(ctx, sts.TokenRequest{Certificate: certificate, Lifetime: tokenLifetime})
	switch {
	case tokenRefused(err):
		return nil, fmt.Errorf("requesting a token with the certificate: %w: %w", errCredentials, err)
	case err != nil:
		return nil, fmt.Errorf("requesting a token with the certificate: %w", err)
	}
	return signer, nil
}

// tagManager returns the client for tags after login.
func (c *connection) tagManager(ctx context.Context) (*tags.Manager, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tags != nil {
		return c.tags, nil
	}
	client := rest.NewClient(c.client)
	if err := c.login(ctx, client); err != nil {
		return nil, fmt.Errorf("logging in to read tags: %w", err)
	}
	c.rest = client
	c.tags = tags.NewManager(client)
	return c.tags, nil
}

// resetTags drops the client for tags.
func (c *connection) resetTags() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags = nil
	c.rest = nil
}

// close ends the session. Errors are ignored, because vCenter ends idle sessions.
func (c *connection) close(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest != nil {
		_ = c.rest.Logout(ctx)
	}
	_ = c.session.Logout(ctx)
	c.client.CloseIdleConnections()
}

// alive uses the session so that it does not time out.
func (s *sessions) alive(ctx context.Context) error {
	s.mu.Lock()
	c := s.current
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return s.use(ctx, func(c *connection) error {
		_, err := methods.GetCurrentTime(ctx, c.client)
		return err
	})
}

// observed returns a transport that reports its requests to observe.
func (s *sessions) observed(t http.RoundTripper) http.RoundTripper {
	if t == nil {
		t = http.DefaultTransport
	}
	return observedTransport{t, func(err error) { s.observe(s.Name, err) }}
}

type observedTransport struct {
	http.RoundTripper

	observe func(error)
}

// RoundTrip sends a request. It explains failures of the proxy.
func (t observedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	t.observe(err)
	if proxy, ok := siteproxy.Explain(r, err); ok {
		return nil, proxy
	}
	return response, err
}
