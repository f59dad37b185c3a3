// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"context"
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

// Options say how sites are called.
type Options struct {
	Clock             Clock
	UserAgent         string
	RequestsPerSecond float64
	Burst             int
	InFlight          int           // calls at the same time
	RequestTimeout    time.Duration // for one call, with its answer
	Later             []LaterCalls

	// Dial connects to a site; nil: by the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Site is one VCD installation: its circuit breaker, and the API version agreed on beside what else is offered. All
// sessions on it share it.
type Site struct {
	Base    string // https://host[:port]
	breaker *breaker
	Clock   Clock
	Metrics metrics.Site
	later   []LaterCalls

	mu      sync.Mutex
	version string               // agreed API version; empty until asked for
	offered []Version            // what VCD offered when it was asked last, sorted
	asked   time.Time            // when that was
	refused map[string]time.Time // versions that a cell refused: until when they are avoided
	paused  time.Time            // VCD asked for no calls before
}

// NewSite returns a site that was not called yet, at https://host[:port].
func NewSite(base string, opts Options, m *metrics.Set) *Site {
	s := &Site{
		Base:    base,
		Clock:   opts.Clock,
		Metrics: m.Of(base),
		breaker: newBreaker(base, opts),
		refused: map[string]time.Time{},
		later:   opts.Later,
	}
	s.breaker.onOutage = s.Metrics.Outage
	return s
}

// Open returns why the site is not called at the moment, or nil.
func (s *Site) Open() error { return s.breaker.open() }

// Load returns how many calls wait for an answer, and whether the site counts as down.
func (s *Site) Load() (inFlight int, down bool) { return s.breaker.load() }

// ParseSite checks a configured address and returns it as https://host[:port].
func ParseSite(address string) (string, error) {
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
		return "", &failure.LookupError{Kind: "site", Name: address, Err: failure.ErrInvalid, Reason: "must use https"}
	}
	return "https://" + strings.ToLower(u.Host), nil
}

// redactAddress keeps a password in an address out of messages.
func redactAddress(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return Redacted + address[at:]
	}
	return address
}

// pause notes that VCD asked for no calls for a while.
func (s *Site) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := s.Clock.Now().Add(d); until.After(s.paused) {
		s.paused = until
	}
}

// remainingPause returns how long VCD does not want to be called.
func (s *Site) remainingPause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.paused.Sub(s.Clock.Now()))
}

// AgreedVersion returns the agreed API version, or the empty string.
func (s *Site) AgreedVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Deadline bounds what is done at the site. Running out of time is the site's fault, not the caller's.
func (s *Site) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d,
		failure.Unavailable(fmt.Sprintf("%s did not respond within %s", s.Base, d)))
}

// NewRequest builds a request to the site.
func (s *Site) NewRequest(ctx context.Context, method, path, accept string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, failure.Invalid("building a request: " + failure.RootCause(err))
	}
	req.Header.Set("Accept", accept)
	return req, nil
}
