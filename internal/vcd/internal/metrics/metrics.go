// SPDX-License-Identifier: Apache-2.0

// Package metrics counts requests, logins, tasks and inventory queries by site. It limits the number of label values.
// Its callers name the operations and results.
package metrics

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
)

// Limits of the number of label values. Further values are counted as otherLabel. Otherwise a tenant who creates
// identities for more and more sites could exhaust the memory of the process.
const (
	maxSites      = 50
	maxOperations = 100
	otherLabel    = "other"
)

// Reasons why a request is delayed or rejected, as values of the label "by".
const (
	HeldByRateLimit = "rate_limit" // our rate limit, per site
	HeldByInFlight  = "in_flight"  // our limit of concurrent requests
	HeldByVCD       = "vcd"        // VCD throttles requests
	HeldByOutage    = "outage"     // the site does not respond
)

// shortestWait is the shortest delay that counts as waiting.
const shortestWait = time.Millisecond

// A Set holds the metrics that all pools of a registry share.
type Set struct {
	calls       *prometheus.CounterVec
	seconds     *prometheus.HistogramVec
	siteSeconds *prometheus.CounterVec
	throttled   *prometheus.CounterVec
	waited      *prometheus.CounterVec
	outages     *prometheus.CounterVec
	logins      *prometheus.CounterVec
	tasks       *prometheus.CounterVec
	taskSeconds *prometheus.HistogramVec
	inventories *prometheus.CounterVec

	sites, operations, taskOperations *labels
}

// New registers the metrics of a pool. If the registry already has them, the pool shares the existing ones.
func New(registerer prometheus.Registerer) *Set {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return Register(registerer, prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: "capvcd", Subsystem: "vcd", Name: name, Help: help}, labels))
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return Register(registerer, prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: "capvcd", Subsystem: "vcd", Name: name, Help: help, Buckets: buckets},
			labels))
	}
	return &Set{
		calls: counter("calls_total", "Number of requests to VCD.", "site", "operation", "status"),
		seconds: histogram("call_duration_seconds", "Duration of requests to VCD, including the response, in seconds.",
			[]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "operation", "status"),
		siteSeconds: counter("call_seconds_total", "Total duration of requests to a site, in seconds.", "site"),
		throttled:   counter("throttled_total", "Number of requests that were delayed or rejected before they were sent.", "site", "by"),
		waited:      counter("wait_seconds_total", "Total time that requests waited before they were sent, in seconds.", "site", "by"),
		outages:     counter("outages_total", "Number of outages of a site.", "site"),
		logins:      counter("logins_total", "Logins.", "site", "result"),
		tasks: counter("tasks_total", "Number of finished VCD tasks that this program started.", "site", "operation",
			"result"),
		taskSeconds: histogram("task_duration_seconds", "Duration of VCD tasks by the clock of VCD, in seconds.",
			[]float64{1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1200, 3600}, "operation", "result"),
		inventories: counter("inventory_queries_total", "Number of queries for the VMs of clusters in a VDC.", "site", "result"),

		sites:          newLabels(maxSites),
		operations:     newLabels(maxOperations),
		taskOperations: newLabels(maxOperations),
	}
}

// Register registers a collector. If the registry already has it, Register returns the existing one. A nil registerer
// is allowed.
func Register[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	if registerer == nil {
		return c
	}
	err := registerer.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return c
}

// labels limits the values of a label to the first limit values.
type labels struct {
	limit int

	mu   sync.Mutex
	seen map[string]bool
}

func newLabels(limit int) *labels { return &labels{limit: limit, seen: map[string]bool{}} }

// value returns v if it is within the limit, otherwise otherLabel.
func (l *labels) value(v string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[v] && len(l.seen) >= l.limit {
		return otherLabel
	}
	l.seen[v] = true
	return v
}

// A Site holds the metrics of one site.
type Site struct {
	metrics *Set
	Label   string // the value of the label
}

// Of returns the metrics of the site at https://host[:port].
func (m *Set) Of(base string) Site {
	return Site{
		metrics: m,
		Label:   m.sites.value(strings.TrimPrefix(base, "https://")),
	}
}

// Call counts a request that was sent, by its result.
func (m Site) Call(operation string, took time.Duration, err error) {
	operation = m.metrics.operations.value(operation)
	status := callStatus(err)
	m.metrics.calls.WithLabelValues(m.Label, operation, status).Inc()
	m.metrics.seconds.WithLabelValues(operation, status).Observe(took.Seconds())
	m.metrics.siteSeconds.WithLabelValues(m.Label).Add(took.Seconds())
}

// Held counts a request that was delayed or rejected before it was sent.
func (m Site) Held(by string) { m.metrics.throttled.WithLabelValues(m.Label, by).Inc() }

// Waits adds the time that a request waited, if it is at least shortestWait.
func (m Site) Waits(by string, d time.Duration) {
	if d >= shortestWait {
		m.Held(by)
		m.metrics.waited.WithLabelValues(m.Label, by).Add(d.Seconds())
	}
}

// Outage counts an outage of the site.
func (m Site) Outage() { m.metrics.outages.WithLabelValues(m.Label).Inc() }

// Login counts a login, by its result.
func (m Site) Login(err error) {
	result := "success"
	switch {
	case errors.Is(err, failure.ErrUnauthorized):
		result = "rejected"
	case err != nil:
		result = "failure"
	}
	m.metrics.logins.WithLabelValues(m.Label, result).Inc()
}

// TaskEnded counts a finished task. A zero time means that its start or end is unknown.
func (m Site) TaskEnded(operation, result string, started, ended time.Time) {
	operation = m.metrics.taskOperations.value(operation)
	m.metrics.tasks.WithLabelValues(m.Label, operation, result).Inc()
	if !started.IsZero() && !ended.Before(started) { // both may be the same millisecond
		m.metrics.taskSeconds.WithLabelValues(operation, result).Observe(ended.Sub(started).Seconds())
	}
}

// InventoryQueried counts a query for all VMs of a VDC.
func (m Site) InventoryQueried(err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.metrics.inventories.WithLabelValues(m.Label, result).Inc()
}

// callStatuses maps the kinds of errors to values of the label "status".
var callStatuses = []struct {
	kind error
	name string
}{
	{failure.ErrNotFound, "not_found"},
	{failure.ErrForbidden, "forbidden"},
	{failure.ErrBusy, "busy"},
	{failure.ErrThrottled, "throttled"},
	{failure.ErrUnauthorized, "unauthorized"},
	{failure.ErrInvalid, "invalid"},
	{failure.ErrQuota, "quota"},
	{failure.ErrConflict, "conflict"},
	{failure.ErrUnavailable, "unavailable"},
	{failure.ErrTLS, "untrusted"},
	{context.Canceled, "cancelled"}, // by the caller
}

func callStatus(err error) string {
	if err == nil {
		return "ok"
	}
	for _, s := range callStatuses {
		if errors.Is(err, s.kind) {
			return s.name
		}
	}
	return otherLabel
}
