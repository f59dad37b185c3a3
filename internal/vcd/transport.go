package vcd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	maxBody      = 64 << 20 // of an answer; a VDC with ten thousand VMs is 3 MiB
	maxErrorBody = 1 << 20
	// unnamedPause is how long a site is left alone that asks for fewer calls, but does not say for how long.
	unnamedPause = 2 * time.Second
)

// A wire carries calls to one site: it waits for the rate limit, bounds time and size, counts, logs, and keeps what a
// failure says, which go-vcloud-director loses. It knows no credentials.
type wire struct {
	site    *site
	next    http.RoundTripper
	timeout time.Duration
	agent   string
	log     func() func(Exchange)
}

// newWire returns the wire for a config, with a connection pool of its own: what one tenant trusts, another may not.
func newWire(s *site, config Config, opts PoolOptions, log func() func(Exchange)) (*wire, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: config.Insecure} //nolint:gosec // explicit opt-in
	if len(config.CABundle) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(config.CABundle) {
			return nil, &LookupError{Kind: "CA bundle", Name: s.base, Err: ErrTLS, Reason: "has no certificate in PEM format"}
		}
	}
	return &wire{
		site: s, timeout: opts.RequestTimeout, agent: opts.UserAgent, log: log,
		next: &http.Transport{ // HTTP/1.1, which is what VCD speaks
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           opts.Dial,
			TLSClientConfig:       tlsConfig,
			TLSHandshakeTimeout:   15 * time.Second,
			MaxIdleConnsPerHost:   8,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
	}, nil
}

// close lets go of idle connections.
func (w *wire) close() {
	if t, ok := w.next.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. The answer is read in full before it returns.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	op := operation(req.Method, req.URL)
	if "https://"+req.URL.Host != w.site.base {
		return nil, keepFailure(req, &connectionError{ErrInvalid, "refusing to call another host than " + w.site.base})
	}
	if err := w.admit(); err != nil {
		return nil, keepFailure(req, err)
	}
	leave, err := w.enter(req.Context())
	if err != nil {
		return nil, keepFailure(req, err)
	}
	ctx, cancel := context.WithTimeout(req.Context(), w.timeout)
	defer cancel()
	out := req.Clone(ctx)
	if w.agent != "" {
		out.Header.Set("User-Agent", w.agent)
	}
	start := time.Now()
	resp, body, err := w.exchange(out)
	took := time.Since(start)
	w.exchanged(op, out, resp, body, took, err)
	if err != nil {
		err = newConnectionError(req.Context(), w.site.base, err, w.timeout)
		w.site.metrics.call(op, took, err)
		leave(err)
		return nil, keepFailure(req, err)
	}
	leave(nil)
	if err = w.failure(op, resp, body); err != nil {
		_ = keepFailure(req, err)
	}
	w.site.metrics.call(op, took, err)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// enter waits for the turn of a call.
func (w *wire) enter(ctx context.Context) (leave func(error), err error) {
	asked := w.site.clock.Now()
	leave, by, err := w.site.guard.enter(ctx)
	switch {
	case errors.Is(err, ErrLater):
		w.site.metrics.held(by)
	case by != "":
		w.site.metrics.waits(by, w.site.clock.Now().Sub(asked))
	}
	if errors.Is(err, ErrUnavailable) {
		w.site.metrics.held(heldByOutage)
	}
	return leave, err
}

// admit turns calls away that VCD does not want, or would not answer.
func (w *wire) admit() error {
	if err := w.site.guard.hanging(); err != nil {
		w.site.metrics.held(heldByOutage)
		return err
	}
	if left := w.site.remainingPause(); left > 0 {
		w.site.metrics.held(heldByVCD)
		return &StatusError{Status: http.StatusTooManyRequests, Message: "VCD asked to be called less often", retryAfter: left}
	}
	return nil
}

// exchange sends the request and reads the answer, up to a limit.
func (w *wire) exchange(req *http.Request) (*http.Response, []byte, error) {
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	limit := int64(maxBody)
	if resp.StatusCode >= http.StatusBadRequest {
		limit = maxErrorBody
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil && resp.StatusCode < http.StatusBadRequest:
		return nil, nil, err
	case int64(len(body)) > limit && resp.StatusCode < http.StatusBadRequest:
		return nil, nil, fmt.Errorf("answer is larger than %d MiB", limit>>20)
	}
	return resp, body, nil // of an error, what came is enough
}

// failure says what went wrong, if anything did. A redirect did: VCD sends none, and following it would carry credentials away.
func (w *wire) failure(op string, resp *http.Response, body []byte) error {
	if resp.StatusCode < http.StatusMultipleChoices {
		return nil
	}
	if resp.StatusCode < http.StatusBadRequest {
		return &StatusError{Status: resp.StatusCode, Operation: op, Message: "the site redirects calls of its API"}
	}
	e := newStatusError(op, resp, body, w.site.clock.Now())
	if errors.Is(e, ErrThrottled) {
		w.site.metrics.held(heldByVCD)
		w.site.pause(cmp.Or(e.retryAfter, unnamedPause))
	}
	return e
}

// exchanged tells the wire log of a call, if it is on.
func (w *wire) exchanged(op string, req *http.Request, resp *http.Response, body []byte, took time.Duration, err error) {
	status := 0
	if resp != nil {
		status = resp.StatusCode
	}
	if log := w.log(); log != nil {
		log(Exchange{
			Operation: op, Method: req.Method, URL: redactURL(req.URL), Header: redactHeader(req.Header),
			Status: status, Sent: int(req.ContentLength), Received: len(body), Took: took, Err: err,
		})
	}
}

type failureKey struct{}

// A failureKeeper carries a failure past code that would flatten it, in the context of the request.
type failureKeeper struct{ err error }

func withFailureKeeper(ctx context.Context) (context.Context, *failureKeeper) {
	keeper := &failureKeeper{}
	return context.WithValue(ctx, failureKey{}, keeper), keeper
}

// keepFailure notes err for whoever made the request, and returns it.
func keepFailure(req *http.Request, err error) error {
	if keeper, ok := req.Context().Value(failureKey{}).(*failureKeeper); ok {
		keeper.err = err
	}
	return err
}

// roundTrip sends a request and returns the body of the answer, or why there is none.
func roundTrip(req *http.Request, transport http.RoundTripper) ([]byte, error) {
	_, body, err := roundTripHeader(req, transport)
	return body, err
}

func roundTripHeader(req *http.Request, transport http.RoundTripper) (http.Header, []byte, error) {
	ctx, keeper := withFailureKeeper(req.Context())
	resp, err := transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if keeper.err != nil {
			err = keeper.err
		}
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusMultipleChoices && keeper.err != nil {
		return nil, nil, keeper.err
	}
	body, err := io.ReadAll(resp.Body)
	return resp.Header, body, err
}
