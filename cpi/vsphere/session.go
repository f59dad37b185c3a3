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
	// refusedFor is how long credentials that were refused are not tried again: vCenter locks accounts.
	refusedFor = 15 * time.Minute
	// tokenLifetime is that of the token by which a certificate logs in.
	tokenLifetime = 10 * time.Minute
)

// A VCenter is a vCenter as configured.
type VCenter struct {
	Name        string // for users
	Host        string
	Port        int
	Insecure    bool
	CAFile      string
	Thumbprint  string
	RoundTrips  int      // how often a request is sent until the network carries it
	Datacenters []string // names or paths; none: all
	// Families of addresses; none: those of all vCenters.
	Addresses AddressPolicy
	// Credentials returns them as they are now, with a version that differs between any two.
	Credentials func(context.Context) (Credentials, string, error)
}

// address returns the address of the API.
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
	// SharedSession is the URL of a service that returns tickets for its session; SharedToken authenticates to it.
	SharedSession, SharedToken string
}

// certificate returns the certificate that is given instead of a user name.
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

// A connection is a session with a vCenter, and what lives as long as that.
type connection struct {
	client  *vim25.Client
	session *session.Manager
	view    *view.ContainerView
	version string // of the credentials

	login func(context.Context, *rest.Client) error
	mu    sync.Mutex
	tags  *tags.Manager // nil: there was no need for one
	rest  *rest.Client
}

// sessions keep one connection to a vCenter.
type sessions struct {
	VCenter

	clock   clock.PassiveClock
	observe func(vCenter string, err error) // of each request
	agent   string

	mu      sync.Mutex
	current *connection
	refused refused

	tagsMu sync.Mutex
	noTags refused // by the endpoint of tags, which has a login of its own
}

// refused are credentials that were refused.
type refused struct {
	version string
	until   time.Time
	err     error
}

// check returns the error of credentials that are not tried again yet.
func (r *refused) check(version string, now time.Time) error {
	if r.err != nil && r.version == version && now.Before(r.until) {
		return r.err
	}
	return nil
}

// note notes how a login ended.
func (r *refused) note(version string, now time.Time, err error) {
	*r = refused{}
	if errors.Is(err, errCredentials) {
		*r = refused{version, now.Add(refusedFor), err}
	}
}

// use calls f with a connection, and with a new one if the session has ended.
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

// connect returns the connection, which is made if there is none with the current credentials.
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

// loginTags logs in to the endpoint of tags, unless it refused the same credentials a while ago: each refusal counts
// for the lock of the account.
func (s *sessions) loginTags(
	ctx context.Context, c *connection, r *rest.Client, login func(context.Context, *rest.Client) error,
) error {
	s.tagsMu.Lock()
	defer s.tagsMu.Unlock()
	if err := s.noTags.check(c.version, s.clock.Now()); err != nil {
		return err
	}
	r.Transport = s.observed(r.Transport)
	err := login(ctx, r)
	if restError(err, http.StatusUnauthorized) || restError(err, http.StatusForbidden) {
		err = fmt.Errorf("%w: %w", errCredentials, err)
	}
	s.noTags.note(c.version, s.clock.Now(), err)
	return err
}

// open logs in and makes the view of all VMs.
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

// authenticate logs in, and notes how the endpoint of tags is logged in to.
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
		return refusal(c.session.LoginByToken(c.client.WithHeader(ctx, soap.Header{Security: signer})))
	}
	user := url.UserPassword(credentials.User, credentials.Password)
	c.login = func(ctx context.Context, r *rest.Client) error { return r.Login(ctx, user) }
	return refusal(c.session.Login(ctx, user))
}

// token asks for the token of a certificate.
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

// tagManager returns the client for tags, logged in.
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

// resetTags forgets the client for tags.
func (c *connection) resetTags() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags = nil
	c.rest = nil
}

// close ends the session. That it cannot be ended does no harm: vCenter ends it.
func (c *connection) close(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest != nil {
		_ = c.rest.Logout(ctx)
	}
	_ = c.session.Logout(ctx)
	c.client.CloseIdleConnections()
}

// alive keeps the session from ending for want of use.
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

// observed returns a transport whose requests are counted.
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

// RoundTrip sends a request. A failure of the proxy is explained.
func (t observedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	t.observe(err)
	if proxy, ok := siteproxy.Explain(r, err); ok {
		return nil, proxy
	}
	return response, err
}
