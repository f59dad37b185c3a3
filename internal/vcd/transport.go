// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
)

// jsonType is the media type of the JSON API.
const jsonType = "application/json"

const (
	maxBody      = 64 << 20 // of an answer; a VDC with ten thousand VMs is 3 MiB
	maxErrorBody = 1 << 20
	// unnamedPause is how long a site is not called that asks for fewer calls without a delay.
	unnamedPause = 2 * time.Second
)

// A transport carries calls to one site: it waits for the rate limit, limits time and size, counts, logs, and turns
// answers that are no success into errors. It knows no credentials.
type transport struct {
	site    *site
	next    http.RoundTripper
	timeout time.Duration
	agent   string
	log     func() func(Exchange)
	trust   trust
}

// A request is a call of VCD's API before it has credentials and an API version. Its query is raw, because VCD wants the
// operators of filters bare.
type request struct {
	method string
	path   string
	query  string
	json   bool // the JSON API
	header http.Header
	body   []byte
}

// accept returns the media type and version to ask for.
func (r request) accept(version string) string {
	if r.json {
		return jsonType + ";version=" + version
	}
	return "application/*+xml;version=" + version
}

// An answer is what VCD answered, read in full. Its status is 0 if there was none.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// An authority says which certificates a tenant trusts.
type authority struct {
	bundle   []byte // PEM; nil uses the system's roots
	insecure bool   // trusts every certificate
}

// newTransport returns a transport with a connection pool of its own: tenants trust different certificates.
func newTransport(s *site, trusted authority, opts siteOptions, log func() func(Exchange)) (*transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: trusted.insecure} //nolint:gosec // explicit opt-in
	if len(trusted.bundle) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(trusted.bundle) {
			return nil, &failure.LookupError{
				Kind:   "CA bundle",
				Name:   s.base,
				Err:    failure.ErrTLS,
				Reason: "has no certificate in PEM format",
			}
		}
	}
	next := &http.Transport{ // HTTP/1.1, which is what VCD speaks
		DialContext:           opts.Dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   15 * time.Second,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	siteproxy.Use(next)
	return &transport{
		site:    s,
		timeout: opts.RequestTimeout,
		agent:   opts.UserAgent,
		log:     log,
		next:    next,
	}, nil
}

// close closes idle connections.
func (t *transport) close() {
	if next, ok := t.next.(*http.Transport); ok {
		next.CloseIdleConnections()
	}
}

// send sends a request and returns the answer. Every status but success is an error, too.
func (t *transport) send(req *http.Request) (answer, error) {
	op := operation(req.Method, req.URL)
	if "https://"+req.URL.Host != t.site.base {
		return answer{}, failure.Invalid("refusing to call another host than " + t.site.base)
	}
	if err := t.admit(); err != nil {
		return answer{}, err
	}
	leave, err := t.enter(req.Context())
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	out := req.WithContext(ctx)
	if t.agent != "" {
		out.Header.Set("User-Agent", t.agent)
	}
	start := time.Now()
	got, err := t.exchange(out)
	took := time.Since(start)
	t.report(op, out, got, took, err)
	if err != nil {
		err = failure.NewConnectionError(req, t.site.base, err, t.timeout)
	}
	leave(err)
	t.trust.record(err, t.site.clock.Now())
	if err == nil {
		err = t.failure(op, got)
	}
	t.site.metrics.Call(op, took, err)
	return got, err
}

// enter waits until the call may be made.
func (t *transport) enter(ctx context.Context) (leave func(error), err error) {
	asked := t.site.clock.Now()
	leave, by, err := t.site.breaker.enter(ctx)
	switch {
	case errors.Is(err, failure.ErrLater):
		t.site.metrics.Held(by)
	case by != "":
		t.site.metrics.Waits(by, t.site.clock.Now().Sub(asked))
	}
	if errors.Is(err, failure.ErrUnavailable) {
		t.site.metrics.Held(metrics.HeldByOutage)
	}
	return leave, err
}

// admit refuses calls that VCD asked not to make, or would not answer.
func (t *transport) admit() error {
	if err := t.site.breaker.open(); err != nil {
		t.site.metrics.Held(metrics.HeldByOutage)
		return err
	}
	if left := t.site.remainingPause(); left > 0 {
		t.site.metrics.Held(metrics.HeldByVCD)
		return failure.Paused(left)
	}
	return nil
}

// exchange sends the request and reads the answer, up to a limit.
func (t *transport) exchange(req *http.Request) (answer, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	failed := resp.StatusCode >= http.StatusBadRequest
	limit := int64(maxBody)
	if failed {
		limit = maxErrorBody
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case failed: // the part of an error that came is enough
	case err != nil:
		return answer{}, err
	case int64(len(body)) > limit:
		return answer{}, fmt.Errorf("answer is larger than %d MiB", limit>>20)
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

// failure returns the error that an answer stands for, if any. A redirect is one: VCD sends none, and following it
// would send credentials elsewhere.
func (t *transport) failure(op string, got answer) error {
	if got.status < http.StatusMultipleChoices {
		return nil
	}
	if got.status < http.StatusBadRequest {
		return &failure.StatusError{Status: got.status, Operation: op, Message: "the site redirects calls of its API"}
	}
	e := failure.NewStatusError(op, got.status, got.header, got.body, t.site.clock.Now())
	if errors.Is(e, failure.ErrThrottled) {
		t.site.metrics.Held(metrics.HeldByVCD)
		t.site.pause(cmp.Or(failure.RetryAfter(e), unnamedPause))
	}
	return e
}

// report writes a call to the wire log, if it is on.
func (t *transport) report(op string, req *http.Request, got answer, took time.Duration, err error) {
	if log := t.log(); log != nil {
		log(Exchange{
			Operation: op,
			Method:    req.Method,
			URL:       redactURL(req.URL),
			Header:    redactHeader(req.Header),
			Status:    got.status,
			Sent:      int(req.ContentLength),
			Received:  len(got.body),
			Took:      took,
			Err:       err,
		})
	}
}
