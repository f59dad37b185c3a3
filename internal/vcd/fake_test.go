// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// fakeClock stands still until it is advanced.
type fakeClock struct {
	mu      sync.Mutex
	now     time.Time
	waiting []alarm
}

type alarm struct {
	at time.Time
	c  chan time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := alarm{c.now.Add(d), make(chan time.Time, 1)}
	c.waiting = append(c.waiting, w)
	c.fire()
	return w.c
}

// Advance advances the clock.
func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

func (c *fakeClock) fire() {
	var left []alarm
	for _, w := range c.waiting {
		if w.at.After(c.now) {
			left = append(left, w)
			continue
		}
		w.c <- c.now
	}
	c.waiting = left
}

// Waiting returns the number of waiters.
func (c *fakeClock) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// fakeVCD responds to logins, and to all other requests with the handlers of a test. It records the requests.
type fakeVCD struct {
	*httptest.Server

	mu        sync.Mutex
	versions  []string
	cells     [][]string // versions of the cells that share the calls; nil: one cell
	turn      int
	loginURL  string
	passwords map[string]string // by user
	valid     map[string]bool   // tokens
	issued    int
	calls     []string
	handlers  map[string]http.HandlerFunc // by operation
	headers   []http.Header
	replaced  *tls.Certificate // nil: the certificate of httptest
}

const (
	testVDC   = "urn:vcloud:vdc:11111111-1111-4111-8111-111111111111"
	testVM    = "urn:vcloud:vm:22222222-2222-4222-8222-222222222222"
	testVApp  = "urn:vcloud:vapp:33333333-3333-4333-8333-333333333333"
	testTask  = "urn:vcloud:task:44444444-4444-4444-8444-444444444444"
	password  = "canary-password"
	apiToken  = "canary-api-token"
	opVM      = "GET /api/vApp/vm-{id}"
	opQueryVM = "GET /api/query?type=vm"
	opLogin   = "POST /cloudapi/1.0.0/sessions"
)

func newFakeVCD(t *testing.T) *fakeVCD {
	t.Helper()
	f := &fakeVCD{
		versions:  []string{"36.3", "37.2", "38.1", "39.0.0-alpha"},
		passwords: map[string]string{"capvcd@acme": password},
		valid:     map[string]bool{},
		handlers:  map[string]http.HandlerFunc{},
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
	f.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: f.tlsConfig}
	f.StartTLS()
	t.Cleanup(f.Close)
	return f
}

func (f *fakeVCD) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *fakeVCD) config() Config {
	return Config{
		Site:        f.URL,
		Org:         "acme",
		CABundle:    f.ca(),
		Version:     "1",
		Credentials: Credentials{Username: "capvcd", Password: password},
	}
}

// on sets the handler of an operation.
func (f *fakeVCD) on(op string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[op] = h
}

// tlsConfig returns nil for the certificate of httptest.
func (f *fakeVCD) tlsConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.replaced == nil {
		return nil, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*f.replaced}}, nil
}

// replaceCertificate changes the certificate of new connections; nil: the first one again.
func (f *fakeVCD) replaceCertificate(c *tls.Certificate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaced = c
	f.CloseClientConnections()
}

// count returns the number of calls of an operation.
func (f *fakeVCD) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, call := range f.calls {
		if call == op {
			n++
		}
	}
	return n
}

// expire invalidates all tokens.
func (f *fakeVCD) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.valid)
}

func (f *fakeVCD) setVersions(versions ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions = versions
}

// setCells distributes calls to cells in turn, each with its own versions.
func (f *fakeVCD) setCells(cells ...[]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cells = cells
}

func (f *fakeVCD) setPassword(value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passwords["capvcd@acme"] = value
}

func (f *fakeVCD) serve(w http.ResponseWriter, r *http.Request) {
	op := transport.Operation(r.Method, r.URL)
	f.mu.Lock()
	f.calls = append(f.calls, op)
	f.headers = append(f.headers, r.Header.Clone())
	if len(f.cells) > 0 {
		f.versions = f.cells[f.turn%len(f.cells)]
		f.turn++
	}
	handler := f.handlers[op]
	f.mu.Unlock()
	open := op == "GET /api/versions" || strings.HasPrefix(op, opLogin) || strings.Contains(op, "/oauth/")
	switch {
	case !open && !f.authenticated(r):
		w.WriteHeader(http.StatusUnauthorized)
	case op != "GET /api/versions" && !f.accepts(r):
		xmlError(w, http.StatusNotAcceptable, "NOT_ACCEPTABLE",
			"The request has invalid accept header: Unknown API version")
	case handler != nil:
		handler(w, r)
	case op == "GET /api/versions":
		f.serveVersions(w)
	case op == opLogin:
		f.serveLogin(w, r)
	default:
		xmlError(w, http.StatusNotFound, "", "no such thing")
	}
}

func (f *fakeVCD) authenticated(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	token := r.Header.Get("X-Vmware-Vcloud-Access-Token")
	return f.valid[token] && len(r.Header.Values("Authorization")) == 1 &&
		r.Header.Get("Authorization") == "Bearer "+token
}

func (f *fakeVCD) accepts(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, version, _ := strings.Cut(r.Header.Get("Accept"), "version=")
	for _, v := range f.versions {
		if v == version {
			return true
		}
	}
	return false
}

func (f *fakeVCD) serveVersions(w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply(w, `<SupportedVersions xmlns="http://www.vmware.com/vcloud/versions">`)
	for _, v := range f.versions {
		reply(w, `<VersionInfo><Version>%s</Version><LoginUrl>%s/cloudapi/1.0.0/sessions</LoginUrl></VersionInfo>`, v,
			f.loginURL)
	}
	reply(w, `</SupportedVersions>`)
}

func (f *fakeVCD) serveLogin(w http.ResponseWriter, r *http.Request) {
	user, given, _ := r.BasicAuth()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passwords[user] != given {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.Header().Set("X-Vmware-Vcloud-Access-Token", f.issue())
}

// issue creates a token. It is short, and the SDK would not send it as a bearer token. The lock is held.
func (f *fakeVCD) issue() string {
	f.issued++
	token := fmt.Sprintf("canary-token-%d", f.issued)
	f.valid[token] = true
	return token
}

// reply writes to a client, which may have disconnected.
func reply(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func xmlError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/vnd.vmware.vcloud.error+xml")
	w.WriteHeader(status)
	reply(w, `<Error xmlns="http://www.vmware.com/vcloud/v1.5" majorErrorCode="%d" minorErrorCode="%s" message="[ 1b2c ] %s"/>`,
		status, code, message)
}

func xmlTask(w http.ResponseWriter, status string) {
	w.WriteHeader(http.StatusAccepted)
	reply(w, `<Task xmlns="http://www.vmware.com/vcloud/v1.5" id="%s" status="%s" operationName="vappUpdateVm"/>`,
		testTask, status)
}

// session logs in to a fake VCD.
func session(t *testing.T, f *fakeVCD, mods ...func(*PoolOptions)) *Session {
	t.Helper()
	opts := PoolOptions{RequestsPerSecond: 10000, Burst: 10000}
	for _, mod := range mods {
		mod(&opts)
	}
	pool := NewPool(opts)
	s, err := pool.Session(t.Context(), f.config())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return s
}
