// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func answerVM(w http.ResponseWriter, _ *http.Request) {
	reply(w, `<Vm xmlns="http://www.vmware.com/vcloud/v1.5" id="%s" name="cp-0" status="8" deployed="false"/>`, testVM)
}

func TestAnExpiredTokenIsReplacedAndTheCallRepeated(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on("POST /api/vApp/vapp-{id}/action/recomposeVApp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), "cp-0") {
			xmlError(w, http.StatusBadRequest, "BAD_REQUEST", "the body is gone")
			return
		}
		xmlTask(w, "queued")
	})
	s := session(t, f)
	f.expire()

	task, err := s.VApps.AddVMs(t.Context(), testVApp, []VMSpec{{Name: "cp-0"}})

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(task).To(Equal(Task{ID: testTask, Operation: "vappUpdateVm", State: TaskRunning}))
	g.Expect(f.count(opLogin)).To(Equal(2))
	g.Expect(f.count("POST /api/vApp/vapp-{id}/action/recomposeVApp")).To(Equal(2))
}

func TestManyCallsWithAnExpiredTokenLogInOnce(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.expire()

	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.VMs.VM(t.Context(), testVM) })
	}
	wg.Wait()

	g.Expect(errors.Join(errs...)).To(Succeed())
	g.Expect(f.count(opLogin)).To(Equal(2))
}

func TestADroppedAPIVersionIsNegotiatedAgain(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
	f.setVersions("38.1", "39.0")

	got, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Name).To(Equal("cp-0"))
	g.Expect(f.count("GET /api/versions")).To(Equal(2))
	g.Expect(s.transport.Site.AgreedVersion()).To(Equal("38.1"))
}

func TestThrottlingStopsAllCallsToTheSite(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })

	_, first := s.VMs.VM(t.Context(), testVM)
	clock.Advance(10 * time.Second)
	_, second := s.VMs.VM(t.Context(), testVM)
	clock.Advance(20 * time.Second)
	f.on(opVM, answerVM)
	_, third := s.VMs.VM(t.Context(), testVM)

	g.Expect(first).To(MatchError(ErrThrottled))
	g.Expect(RetryAfter(first)).To(Equal(30 * time.Second))
	g.Expect(second).To(MatchError(ErrThrottled))
	g.Expect(RetryAfter(second)).To(Equal(20 * time.Second))
	g.Expect(third).NotTo(HaveOccurred())
	g.Expect(f.count(opVM)).To(Equal(2))
}

// raw responds with text that need not be HTTP.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

func TestFailuresKeepTheirKind(t *testing.T) {
	tests := []struct {
		name    string
		handler http.HandlerFunc
		kind    error
		text    string
	}{
		{
			name:    "busy, in VCD's words",
			handler: func(w http.ResponseWriter, _ *http.Request) { xmlError(w, 400, "BUSY_ENTITY", "The entity is busy.") },
			kind:    ErrBusy,
			text:    "The entity is busy. (HTTP 400 BUSY_ENTITY)",
		},
		{
			name: "a proxy's HTML",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				reply(w, "<html><body>Bad Gateway</body></html>")
			},
			kind: ErrUnavailable,
			text: "not a response from VCD: content type text/html (HTTP 502)",
		},
		{
			name: "an empty 500",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
			},
			kind: ErrUnavailable,
			text: "Internal Server Error (HTTP 500)",
		},
		{
			name:    "a success that is not XML",
			handler: func(w http.ResponseWriter, _ *http.Request) { reply(w, "<html>please log in") },
			kind:    ErrUnavailable,
			text:    "the response is not XML from VCD",
		},
		{
			name:    "a greeting of another protocol",
			handler: raw("* OK canary ready\r\n"),
			kind:    ErrUnavailable,
			text:    "cannot be reached: malformed HTTP status code […]",
		},
		{
			name:    "an invalid header line",
			handler: raw("HTTP/1.1 200 OK\r\ncanary\r\n\r\n"),
			kind:    ErrUnavailable,
			text:    "cannot be reached: the response header is not HTTP",
		},
		{
			name:    "an invalid length",
			handler: raw("HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n"),
			kind:    ErrUnavailable,
			text:    "cannot be reached: bad Content-Length […]",
		},
		{
			name: "a redirect",
			handler: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "https://elsewhere.example/")
				w.WriteHeader(http.StatusFound)
			},
			kind: ErrUnavailable,
			text: "the site redirects API requests (HTTP 302)",
		},
		{
			name:    "an interrupted connection",
			handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			kind:    ErrUnavailable,
			text:    "cannot be reached: connection closed before a response was received",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.on("POST /api/vApp/vm-{id}/power/action/powerOn", tt.handler)
			f.on(opVM, tt.handler)
			s := session(t, f)

			_, err := s.VMs.VM(t.Context(), testVM)

			g.Expect(err).To(MatchError(tt.kind))
			g.Expect(err.Error()).To(HaveSuffix(tt.text))
		})
	}
}

func TestAHangingSiteIsUnavailable(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	done := make(chan struct{})
	f.on(opVM, func(http.ResponseWriter, *http.Request) { <-done })
	defer close(done)
	s := session(t, f)
	s.transport.Timeout = 50 * time.Millisecond

	_, err := s.VMs.VM(t.Context(), testVM)

	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(Equal(f.URL + " did not respond within 50ms"))
}

func TestACanceledCallIsNotASiteFailure(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	s := session(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	_, err := s.VMs.VM(ctx, testVM)

	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(err).NotTo(MatchError(ErrUnavailable))
}

func TestUntrustedCertificates(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	other := newFakeVCD(t)
	config := f.config()

	config.CABundle = nil
	_, err := NewPool(PoolOptions{}).Session(t.Context(), config)
	g.Expect(err).To(MatchError(ErrTLS))
	g.Expect(err.Error()).To(ContainSubstring("unknown authority"))

	config.CABundle = []byte("not a certificate")
	_, err = NewPool(PoolOptions{}).Session(t.Context(), config)
	g.Expect(err).To(MatchError(ErrTLS))

	config.CABundle = nil
	config.Insecure = true
	_, err = NewPool(PoolOptions{}).Session(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.count(opLogin)).To(BeZero())
}

func TestCredentialsAreSentOnlyToTheSite(t *testing.T) {
	g := NewWithT(t)
	thief := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another host was called")
	}))
	defer thief.Close()
	f := newFakeVCD(t)
	f.loginURL = thief.URL
	s := session(t, f)

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, thief.URL+"/api/org", nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.transport.Send(req)

	g.Expect(err).To(MatchError(ErrInvalid))
}

func TestNoSecretInErrorsAndWireLog(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on("POST /oauth/tenant/{org}/token", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = r.ParseForm()
		reply(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, f.issue())
	})
	pool := NewPool(PoolOptions{})
	var log strings.Builder
	pool.SetWireLog(func(e Exchange) { fmt.Fprintf(&log, "%+v\n", e) })
	config := f.config()
	config.Credentials.APIToken = apiToken

	s, err := pool.Session(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.VMs.VM(t.Context(), testVM)
	g.Expect(err).To(MatchError(ErrNotFound))
	pool.SetWireLog(nil)
	size := log.Len()
	_, _ = s.VMs.VM(t.Context(), testVM)

	g.Expect(log.Len()).To(Equal(size))
	g.Expect(log.String()).To(ContainSubstring("POST /oauth/tenant/{org}/token"))
	g.Expect(log.String() + err.Error()).NotTo(ContainSubstring("canary"))
}

func TestTheRateIsLimitedPerSite(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	start := time.Now()
	s := session(t, f, func(o *PoolOptions) {
		o.RequestsPerSecond = 50
		o.Burst = 3
	})

	for range 10 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(time.Since(start)).To(BeNumerically(">=", 150*time.Millisecond)) // 12 calls, of which 3 are free
}

func TestAReplacedCertificateEndsTheSession(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	clock := newFakeClock()
	pool := NewPool(PoolOptions{RequestsPerSecond: 1e4, Burst: 1e4, Clock: clock})
	open := func() (*Session, error) { return pool.Session(t.Context(), f.config()) }
	s, err := open()
	g.Expect(err).NotTo(HaveOccurred())

	f.replaceCertificate(foreignCertificate(t))
	_, err = s.VMs.VM(t.Context(), testVM)
	g.Expect(err).To(MatchError(ErrTLS))

	for range 3 {
		_, err = open()
		g.Expect(err).To(MatchError(ErrTLS), "a successful login would hide the problem")
	}
	clock.Advance(time.Minute)
	_, err = open()
	g.Expect(err).To(MatchError(ErrTLS), "the certificate still differs")

	f.replaceCertificate(nil)
	clock.Advance(time.Minute)
	s, err = open()
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
}

// foreignCertificate returns a self-signed certificate.
func foreignCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}
