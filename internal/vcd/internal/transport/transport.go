// SPDX-License-Identifier: Apache-2.0

package transport

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

// JSONType is the media type of the JSON API.
const JSONType = "application/json"

const (
	maxBody      = 64 << 20 // of a response; a VDC with ten thousand VMs is 3 MiB
	maxErrorBody = 1 << 20
	// unnamedPause is the pause after a site throttles requests without a Retry-After.
	unnamedPause = 2 * time.Second
)

// A Transport sends requests to one site. It waits for the rate limit, limits time and size, counts, logs, and turns
// unsuccessful responses into errors. It has no access to credentials.
type Transport struct {
	Site    *Site
	next    http.RoundTripper
	Timeout time.Duration
	agent   string
	log     func() func(Exchange)
	trust   trust
}

// A Request is a request to VCD's API, without credentials and API version. Its query is raw because VCD expects the
// operators of filters unescaped.
type Request struct {
	Method string
	Path   string
	Query  string
	JSON   bool // uses the JSON API instead of the XML API
	Header http.Header
	Body   []byte
	// Version is the API version to request; empty means the agreed one. Another version is requested only to probe how
	// VCD responds.
	Version string
}

// Accept returns the Accept header for an API version.
func (r Request) Accept(version string) string {
	if r.JSON {
		return JSONType + ";version=" + version
	}
	return "application/*+xml;version=" + version
}

// An Answer is a response of VCD, read in full. Its status is 0 if there was no response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// An Authority determines which certificates a tenant trusts.
type Authority struct {
	Bundle   []byte // PEM; nil: the system's roots
	Insecure bool   // trusts every certificate
}

// New returns a transport with a separate connection pool, because tenants trust different certificates.
func New(s *Site, trusted Authority, opts Options, log func() func(Exchange)) (*Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: trusted.Insecure} //nolint:gosec // explicit opt-in
	if len(trusted.Bundle) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(trusted.Bundle) {
			return nil, &failure.LookupError{
				Kind:   "CA bundle",
				Name:   s.Base,
				Err:    failure.ErrTLS,
				Reason: "has no certificate in PEM format",
			}
		}
	}
	next := &http.Transport{ // HTTP/1.1, the version that VCD supports
		DialContext:           opts.Dial,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   15 * time.Second,
		MaxIdleConnsPerHost:   8,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	siteproxy.Use(next)
	return &Transport{
		Site:    s,
		Timeout: opts.RequestTimeout,
		agent:   opts.UserAgent,
		log:     log,
		next:    next,
	}, nil
}

// Close closes idle connections.
func (t *Transport) Close() {
	if next, ok := t.next.(*http.Transport); ok {
		next.CloseIdleConnections()
	}
}

// Send sends a request and returns the response. A response with any status but success is also returned as an error.
func (t *Transport) Send(req *http.Request) (Answer, error) {
	op := Operation(req.Method, req.URL)
	if "https://"+req.URL.Host != t.Site.Base {
		return Answer{}, failure.Invalid("rejected a request to a host other than " + t.Site.Base)
	}
	if err := t.admit(); err != nil {
		return Answer{}, err
	}
	leave, err := t.enter(req.Context())
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), t.Timeout)
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
		err = failure.NewConnectionError(req, t.Site.Base, err, t.Timeout)
	}
	leave(err)
	t.trust.record(err, t.Site.Clock.Now())
	if err == nil {
		err = t.failure(op, got)
	}
	t.Site.Metrics.Call(op, took, err)
	return got, err
}

// enter waits until the request may be sent.
func (t *Transport) enter(ctx context.Context) (leave func(error), err error) {
	entered := t.Site.Clock.Now()
	leave, by, err := t.Site.breaker.enter(ctx)
	switch {
	case errors.Is(err, failure.ErrLater):
		t.Site.Metrics.Held(by)
	case by != "":
		t.Site.Metrics.Waits(by, t.Site.Clock.Now().Sub(entered))
	}
	if errors.Is(err, failure.ErrUnavailable) {
		t.Site.Metrics.Held(metrics.HeldByOutage)
	}
	return leave, err
}

// admit rejects requests while VCD throttles them or does not respond.
func (t *Transport) admit() error {
	if err := t.Site.breaker.open(); err != nil {
		t.Site.Metrics.Held(metrics.HeldByOutage)
		return err
	}
	if left := t.Site.remainingPause(); left > 0 {
		t.Site.Metrics.Held(metrics.HeldByVCD)
		return failure.Paused(left)
	}
	return nil
}

// exchange sends the request and reads the response, up to a size limit.
func (t *Transport) exchange(req *http.Request) (Answer, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	failed := resp.StatusCode >= http.StatusBadRequest
	limit := int64(maxBody)
	if failed {
		limit = maxErrorBody
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case failed: // a partial error document is enough
	case err != nil:
		return Answer{}, err
	case int64(len(body)) > limit:
		return Answer{}, fmt.Errorf("the response is larger than %d MiB", limit>>20)
	}
	return Answer{resp.StatusCode, resp.Header, body}, nil
}

// failure returns the error of a response, or nil. A redirect is an error: VCD sends none, and following it would send
// the credentials elsewhere.
func (t *Transport) failure(op string, got Answer) error {
	if got.Status < http.StatusMultipleChoices {
		return nil
	}
	if got.Status < http.StatusBadRequest {
		return &failure.StatusError{Status: got.Status, Operation: op, Message: "the site redirects API requests"}
	}
	e := failure.NewStatusError(op, got.Status, got.Header, got.Body, t.Site.Clock.Now())
	if errors.Is(e, failure.ErrThrottled) {
		t.Site.Metrics.Held(metrics.HeldByVCD)
		t.Site.pause(cmp.Or(failure.RetryAfter(e), unnamedPause))
	}
	return e
}

// report writes a request to the wire log, if it is enabled.
func (t *Transport) report(op string, req *http.Request, got Answer, took time.Duration, err error) {
	if log := t.log(); log != nil {
		log(Exchange{
			Operation: op,
			Method:    req.Method,
			URL:       redactURL(req.URL),
			Header:    redactHeader(req.Header),
			Status:    got.Status,
			Sent:      int(req.ContentLength),
			Received:  len(got.Body),
			Took:      took,
			Err:       err,
		})
	}
}
