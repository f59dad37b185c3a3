// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
)

// siteOptions say how sites are called.
type siteOptions struct {
	Clock             Clock
	UserAgent         string
	RequestsPerSecond float64
	Burst             int
	InFlight          int           // calls at the same time
	RequestTimeout    time.Duration // for one call, with its answer
	Later             []laterCalls

	// Dial connects to a site; nil: by the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A site is one VCD installation: its circuit breaker, and the API version agreed on beside what else is offered. All
// sessions on it share it.
type site struct {
	base    string // https://host[:port]
	breaker *breaker
	clock   Clock
	metrics metrics.Site
	later   []laterCalls

	mu      sync.Mutex
	version string               // agreed API version; empty until asked for
	offered []apiVersion         // what VCD offered when it was asked last, sorted
	asked   time.Time            // when that was
	refused map[string]time.Time // versions that a cell refused: until when they are avoided
	paused  time.Time            // VCD asked for no calls before
}

func newSite(base string, opts siteOptions, m *metrics.Set) *site {
	s := &site{
		base:    base,
		clock:   opts.Clock,
		metrics: m.Of(base),
		breaker: newBreaker(base, opts),
		refused: map[string]time.Time{},
		later:   opts.Later,
	}
	s.breaker.onOutage = s.metrics.Outage
	return s
}

// parseSite checks a configured address and returns it as https://host[:port].
func parseSite(address string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(address, "/"), "/api"))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "", &failure.LookupError{
			Kind:   "site",
			Name:   redactAddress(address),
			Err:    failure.ErrInvalid,
			Reason: "is not an address of the form https://host[:port]",
		}
	case u.Scheme != "https":
		return "", &failure.LookupError{Kind: "site", Name: address, Err: failure.ErrInvalid, Reason: "must be reached by https"}
	}
	return "https://" + strings.ToLower(u.Host), nil
}

// redactAddress keeps a password in an address out of messages.
func redactAddress(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return redacted + address[at:]
	}
	return address
}

// pause notes that VCD asked for no calls for a while.
func (s *site) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := s.clock.Now().Add(d); until.After(s.paused) {
		s.paused = until
	}
}

// remainingPause returns how long VCD does not want to be called.
func (s *site) remainingPause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.paused.Sub(s.clock.Now()))
}

// agreedVersion returns the agreed API version, or the empty string.
func (s *site) agreedVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// negotiate agrees on an API version, by one call for all sessions of the site. The LoginUrl that VCD offers beside
// each version is not looked at: credentials go to the configured site only.
func (t *transport) negotiate(ctx context.Context) (string, error) {
	s := t.site
	if version := s.agreedVersion(); version != "" {
		return version, nil
	}
	ctx, cancel := s.deadline(ctx, min(versionsTimeout, t.timeout))
	defer cancel()
	req, err := s.newRequest(ctx, http.MethodGet, "/api/versions", "text/xml, application/*+xml", nil)
	if err != nil {
		return "", err
	}
	got, err := t.send(req)
	if status, ok := errors.AsType[*failure.StatusError](err); ok && !errors.Is(err, failure.ErrThrottled) {
		// Whatever answers, it is no VCD at work.
		err = failure.Unavailable(s.base + " answers: " + status.Error())
	}
	if err != nil {
		return "", fmt.Errorf("asking for API versions: %w", err)
	}
	version, err := s.agree(got.body)
	if err != nil {
		return "", fmt.Errorf("agreeing on an API version with %s: %w", s.base, err)
	}
	return version, nil
}

// deadline bounds what is done at the site. Running out of time is the site's fault, not the caller's.
func (s *site) deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d,
		failure.Unavailable(fmt.Sprintf("%s did not answer within %s", s.base, d)))
}

// newRequest builds a request to the site.
func (s *site) newRequest(ctx context.Context, method, path, accept string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, failure.Invalid("building a request: " + failure.RootCause(err))
	}
	req.Header.Set("Accept", accept)
	return req, nil
}
