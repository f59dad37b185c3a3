// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count requests by command and outcome.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics returns metrics and registers them.
func NewMetrics(with prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capvcd_cloudstack_requests_total",
			Help: "Number of requests to CloudStack, by command and status.",
		}, []string{"command", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capvcd_cloudstack_request_duration_seconds",
			Help:    "Duration of requests to CloudStack, by command, in seconds.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15, 60},
		}, []string{"command"}),
	}
	return m, errors.Join(with.Register(m.requests), with.Register(m.duration))
}

var statuses = []struct {
	err  error
	name string
}{
	{ErrUnauthorized, "unauthorized"},
	{ErrForbidden, "forbidden"},
	{ErrNotFound, "not_found"},
	{ErrInvalid, "invalid"},
	{ErrConflict, "conflict"},
	{ErrLimit, "quota"},
	{ErrBusy, "busy"},
	{ErrTLS, "untrusted"},
	{ErrUnavailable, "unavailable"},
}

func (m *Metrics) observe(command string, err error, took time.Duration) {
	if m == nil {
		return
	}
	status := "ok"
	if err != nil {
		status = "other"
		for _, s := range statuses {
			if errors.Is(err, s.err) {
				status = s.name
				break
			}
		}
	}
	m.requests.WithLabelValues(command, status).Inc()
	m.duration.WithLabelValues(command).Observe(took.Seconds())
}
