package vcd

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	throttled *prometheus.CounterVec
	logins    *prometheus.CounterVec
	sessions  prometheus.Gauge
	tasks     prometheus.Gauge
}

// newMetrics registers the metrics of a pool. A registry that has them already keeps its own: they are shared.
func newMetrics(registerer prometheus.Registerer) *metrics {
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "capvcd", Subsystem: "vcd", Name: name, Help: help}
	}
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts(opts("calls_total",
			"Calls to VCD by operation and status class.")), []string{"operation", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "capvcd", Subsystem: "vcd", Name: "call_seconds",
			Help: "Time until VCD answered a call, by operation.", Buckets: prometheus.ExponentialBuckets(0.01, 2.5, 9),
		}, []string{"operation"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts(opts("throttled_total",
			"Calls that were held back, by who held them: this process or VCD.")), []string{"by"}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts(opts("logins_total",
			"Logins by result.")), []string{"result"}),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts(opts("sessions", "Sessions that are logged in."))),
		tasks:    prometheus.NewGauge(prometheus.GaugeOpts(opts("tasks_followed", "Running tasks that are polled."))),
	}
	if registerer != nil {
		m.calls = register(registerer, m.calls)
		m.seconds = register(registerer, m.seconds)
		m.throttled = register(registerer, m.throttled)
		m.logins = register(registerer, m.logins)
		m.sessions = register(registerer, m.sessions)
		m.tasks = register(registerer, m.tasks)
	}
	return m
}

func register[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	err := registerer.Register(c)
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return c
}

func (m *metrics) call(operation string, status int, took time.Duration) {
	class := "none" // no answer
	if status > 0 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.calls.WithLabelValues(operation, class).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

var urnSegment = regexp.MustCompile(`urn:vcloud:[^/]+`)

// operation names a call by method and path template: ids and the organisation's name are taken out, so that there
// are as many names as kinds of calls.
func operation(method string, u *url.URL) string {
	path := urnSegment.ReplaceAllString(u.Path, "{id}")
	path = uuidPattern.ReplaceAllString(path, "{id}")
	path = strings.TrimSuffix(path, "/")
	if rest, ok := strings.CutPrefix(path, "/oauth/tenant/"); ok {
		if _, endpoint, found := strings.Cut(rest, "/"); found {
			path = "/oauth/tenant/{org}/" + endpoint
		}
	}
	if path == "/api/query" {
		path += "?type=" + queryType(u.RawQuery)
	}
	return method + " " + path
}

// queryType finds the type of a query. [url.URL.Query] would drop parameters that contain a semicolon.
func queryType(rawQuery string) string {
	for part := range strings.SplitSeq(rawQuery, "&") {
		if value, ok := strings.CutPrefix(part, "type="); ok {
			return value
		}
	}
	return ""
}
