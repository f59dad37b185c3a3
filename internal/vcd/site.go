package vcd

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// API versions this package speaks, inclusive: VMware Cloud Director 10.4.2 to 10.6.
var (
	oldestAPI = apiVersion{37, 2}
	newestAPI = apiVersion{39, 1}
)

// A site is one VCD installation: its guard, and the API version agreed on. All sessions on it share it.
type site struct {
	base    string // https://host[:port]
	guard   *guard
	clock   Clock
	metrics siteMetrics

	mu      sync.Mutex
	version string    // agreed API version; empty until asked for
	paused  time.Time // VCD asked for no calls before
}

func newSite(base string, opts PoolOptions, m *metrics) *site {
	s := &site{
		base: base, clock: opts.Clock, metrics: m.of(base), guard: newGuard(base, opts),
	}
	s.guard.onOutage = s.metrics.outage
	return s
}

// parseSite checks an address that a person wrote and returns it as https://host[:port].
func parseSite(address string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimRight(address, "/"), "/api"))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "", &LookupError{
			Kind: "site", Name: redactAddress(address), Err: ErrInvalid, Reason: "is not an address of the form https://host[:port]",
		}
	case u.Scheme != "https":
		return "", &LookupError{Kind: "site", Name: address, Err: ErrInvalid, Reason: "must be reached by https"}
	}
	return "https://" + strings.ToLower(u.Host), nil
}

// redactAddress keeps a password that somebody wrote into an address out of messages.
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

// remainingPause says how long VCD does not want to be called.
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

// dropVersion forgets the agreed version if it is still the one that was refused.
func (s *site) dropVersion(refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == refused {
		s.version = ""
	}
}

// negotiate agrees on an API version, by one call for all sessions of the site. The LoginUrl that VCD offers beside
// each version is not looked at: credentials go to the configured site only.
func (s *site) negotiate(ctx context.Context, transport http.RoundTripper) (string, error) {
	if version := s.agreedVersion(); version != "" {
		return version, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+"/api/versions", nil)
	if err != nil {
		return "", fmt.Errorf("asking %s for its API versions: %w", s.base, err)
	}
	req.Header.Set("Accept", "text/xml, application/*+xml")
	body, err := roundTrip(req, transport)
	if status, ok := errors.AsType[*StatusError](err); ok && !errors.Is(err, ErrThrottled) {
		err = &connectionError{ErrUnavailable, status.Error()} // whatever answers, it is no VCD at work
	}
	if err != nil {
		return "", fmt.Errorf("asking %s for its API versions: %w", s.base, err)
	}
	version, err := chooseVersion(body)
	if err != nil {
		return "", fmt.Errorf("agreeing on an API version with %s: %w", s.base, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
	return version, nil
}

// chooseVersion takes the oldest version that both sides speak, so that the same wire format is used everywhere.
func chooseVersion(document []byte) (string, error) {
	var offered struct {
		Versions []struct {
			Version string `xml:"Version"`
		} `xml:"VersionInfo"`
	}
	if err := xml.Unmarshal(document, &offered); err != nil {
		return "", &connectionError{ErrUnavailable, "the list of API versions is not an answer of VCD"}
	}
	var usable []apiVersion
	var names []string
	for _, v := range offered.Versions {
		names = append(names, v.Version)
		parsed, ok := parseAPIVersion(v.Version)
		if ok && parsed.compare(oldestAPI) >= 0 && parsed.compare(newestAPI) <= 0 {
			usable = append(usable, parsed)
		}
	}
	if len(usable) == 0 {
		return "", &LookupError{
			Kind: "API version", Name: oldestAPI.String() + " to " + newestAPI.String(), Err: ErrInvalid,
			Reason: "is not offered by this VCD, which speaks: " + strings.Join(names, ", "),
		}
	}
	return slices.MinFunc(usable, apiVersion.compare).String(), nil
}

// An apiVersion is a version of VCD's API, such as 37.2.
type apiVersion struct{ major, minor int }

// parseAPIVersion refuses alpha versions.
func parseAPIVersion(s string) (apiVersion, bool) {
	first, second, ok := strings.Cut(s, ".")
	major, err1 := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return apiVersion{major, minor}, ok && err1 == nil && err2 == nil
}

func (v apiVersion) compare(o apiVersion) int {
	if v.major != o.major {
		return v.major - o.major
	}
	return v.minor - o.minor
}

// String returns the version as VCD writes it.
func (v apiVersion) String() string { return fmt.Sprintf("%d.%d", v.major, v.minor) }
