package cpi

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// What load balancers of Services can be in, as metrics name it.
const (
	stateReady   = "ready"   // it has an address, and every port is served
	statePartly  = "partly"  // it has an address, and not every port is served
	statePending = "pending" // it has no address yet
	stateLeaving = "leaving" // it is being removed
	stateRefused = "refused" // its Service asks for what it cannot have; what stood before stays
	stateDryRun  = "dry_run" // its Service asks to be told only
)

// states are all of them.
func states() []string {
	return []string{stateReady, statePartly, statePending, stateLeaving, stateRefused, stateDryRun}
}

// stateOf is what the API server knows of the load balancer of a Service; empty if the Service has none, or another's.
func stateOf(s *corev1.Service) string {
	wanted, kept := s.Spec.Type == corev1.ServiceTypeLoadBalancer, servicehelpers.HasLBFinalizer(s)
	switch {
	case s.Spec.LoadBalancerClass != nil, !wanted && !kept, s.DeletionTimestamp != nil && !kept:
		return ""
	case !wanted, s.DeletionTimestamp != nil:
		return stateLeaving
	case s.Annotations[service.DryRunAnnotation] == "true":
		return stateDryRun
	case len(s.Status.LoadBalancer.Ingress) == 0:
		return statePending
	}
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		for _, p := range ingress.Ports {
			if p.Error != nil {
				return statePartly
			}
		}
	}
	return stateReady
}

// balancerMetrics count load balancers when they are asked for: what is gone is gone from them, too.
type balancerMetrics struct {
	balancers       *LoadBalancers
	states, refused *prometheus.Desc
}

// Collector returns the metrics of load balancers.
func (l *LoadBalancers) Collector() prometheus.Collector {
	return &balancerMetrics{
		balancers: l,
		states:    prometheus.NewDesc("capvcd_ccm_load_balancers", "Load balancers of Services, by what they are in.", []string{"state"}, nil),
		refused:   prometheus.NewDesc("capvcd_ccm_refusals", "Services that ask for what they cannot have, by the reason that their events tell.", []string{"reason"}, nil),
	}
}

// Describe implements [prometheus.Collector].
func (m *balancerMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.states
	descs <- m.refused
}

// Collect implements [prometheus.Collector].
func (m *balancerMetrics) Collect(to chan<- prometheus.Metric) {
	all, err := m.balancers.opts.Services.List(labels.Everything())
	if err != nil {
		return // No number is better than a wrong one.
	}
	byState, byReason := map[string]int{}, map[string]int{}
	for _, s := range all {
		state := stateOf(s)
		if state == statePending || state == stateReady || state == statePartly {
			refusals := m.balancers.teller.refusalsOf(s)
			for reason := range refusals {
				byReason[reason]++
			}
			if len(refusals) > 0 {
				state = stateRefused
			}
		}
		byState[state]++
	}
	for _, state := range states() {
		to <- prometheus.MustNewConstMetric(m.states, prometheus.GaugeValue, float64(byState[state]), state)
	}
	for reason, n := range byReason {
		to <- prometheus.MustNewConstMetric(m.refused, prometheus.GaugeValue, float64(n), reason)
	}
}

// refusalsOf are the reasons for which a Service does not have what it asks for.
func (t *teller) refusalsOf(s *corev1.Service) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	reasons := map[string]bool{}
	for text, refused := range t.told[s.UID] {
		if reason, _, ok := strings.Cut(text, ": "); ok && refused {
			reasons[reason] = true
		}
	}
	return reasons
}

// A Watched is a balancer with a metric of when each place was last looked at.
type Watched struct {
	Balancer

	clock clock.PassiveClock
	desc  *prometheus.Desc

	mu   sync.Mutex
	last map[string]time.Time // by place
}

// Watch returns a balancer that works as b does; a nil clock is real time.
func Watch(b Balancer, c clock.PassiveClock) *Watched {
	if c == nil {
		c = clock.RealClock{}
	}
	return &Watched{Balancer: b, clock: c, last: map[string]time.Time{}, desc: prometheus.NewDesc("capvcd_ccm_last_look_timestamp_seconds",
		"When what load balancers have at a gateway was last looked at with success, since the epoch.", []string{"place"}, nil)}
}

// Plan notes when there was a plan.
func (w *Watched) Plan(ctx context.Context, place string, request PlanRequest) (lb.Plan, error) {
	plan, err := w.Balancer.Plan(ctx, place, request)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last[place] = w.clock.Now()
	}
	return plan, err
}

// Describe implements [prometheus.Collector].
func (w *Watched) Describe(descs chan<- *prometheus.Desc) { descs <- w.desc }

// Collect implements [prometheus.Collector].
func (w *Watched) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for place, at := range w.last {
		to <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(at.UnixMilli())/1000, place)
	}
}
