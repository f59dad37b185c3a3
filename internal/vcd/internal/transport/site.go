// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
)

// Options configure requests to sites.
type Options struct {
	Clock             Clock
	UserAgent         string
	RequestsPerSecond float64
	Burst             int
	InFlight          int           // limit of concurrent requests
	RequestTimeout    time.Duration // for one request, including its response
	Later             []LaterCalls

	// Dial connects to a site. If it is nil, the network is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Site is one VCD installation, with its circuit breaker and the negotiated API version. All sessions of the
// installation share it.
type Site struct {
	Base    string // https://host[:port]
	breaker *breaker
	Clock   Clock
	Metrics metrics.Site
	later   []LaterCalls

	mu          sync.Mutex
	version     string               // agreed API version; empty until negotiated
	offered     []Version            // versions that VCD offered last, sorted
	offeredAt   time.Time            // time of that offer
	refused     map[string]time.Time // versions that a cell rejected, and until when to avoid them
	pausedUntil time.Time            // VCD accepts no requests before this time
}

// NewSite returns the site at the base URL https://host[:port].
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

// Open returns the reason why no requests are sent to the site at the moment, or nil.
func (s *Site) Open() error { return s.breaker.open() }

// WaitedTooLong returns the error of a caller that has waited for [MaxWait] for the response to a request of another
// caller. While the site responds, the other caller reads something long, such as a list of many pages. A unit of work
// is then postponed, because it will find the result later.
func (s *Site) WaitedTooLong(ctx context.Context) error {
	if err := s.Open(); err != nil {
		return err
	}
	if unitOf(ctx) == nil {
		return errSlow
	}
	return failure.Later(MaxWait/2 + rand.N(MaxWait/2)) //nolint:gosec // spreads load, protects nothing
}

// Load returns the number of requests in flight, and whether the site counts as down.
func (s *Site) Load() (inFlight int, down bool) { return s.breaker.load() }

// ParseSite validates a configured address and returns it in the form https://host[:port].
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

// redactAddress removes user and password from an address for messages.
func redactAddress(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return Redacted + address[at:]
	}
	return address
}

// pause records that VCD accepts no requests for d.
func (s *Site) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := s.Clock.Now().Add(d); until.After(s.pausedUntil) {
		s.pausedUntil = until
	}
}

// remainingPause returns how long VCD still accepts no requests.
func (s *Site) remainingPause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.pausedUntil.Sub(s.Clock.Now()))
}

// AgreedVersion returns the agreed API version, or the empty string.
func (s *Site) AgreedVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Deadline limits the time of an operation on the site. Its cause blames the site, not the caller.
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
