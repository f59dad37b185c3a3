// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	servicehelpers "k8s.io/cloud-provider/service/helpers"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
)

// States of load balancers in metrics.
const (
	stateReady    = "ready"    // it has an address, and every port is served
	statePartly   = "partly"   // it has an address, and some ports are not served
	statePending  = "pending"  // it has no address yet
	stateLeaving  = "leaving"  // it is being removed
	stateRejected = "rejected" // its Service has an invalid request; the existing load balancer is kept
	stateDryRun   = "dry_run"  // its Service requests only the plan
)

// states returns all states.
func states() []string {
	return []string{stateReady, statePartly, statePending, stateLeaving, stateRejected, stateDryRun}
}

// stateOf returns the state of the load balancer of a Service, as far as the API server shows it. It returns an empty
// string if the Service has none, or if another implementation manages it.
func stateOf(d service.Defaults, s *corev1.Service) string {
	wanted := s.Spec.Type == corev1.ServiceTypeLoadBalancer
	kept := servicehelpers.HasLBFinalizer(s)
	switch {
	case s.Spec.LoadBalancerClass != nil, !wanted && !kept, s.DeletionTimestamp != nil && !kept:
		return ""
	case !wanted, s.DeletionTimestamp != nil:
		return stateLeaving
	case d.Settings(s).DryRun:
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

// balancerMetrics counts load balancers on each scrape.
type balancerMetrics struct {
	balancers       *LoadBalancers
	states, refused *prometheus.Desc
}

// Collector returns a collector for the metrics of load balancers.
func (l *LoadBalancers) Collector() prometheus.Collector {
	return &balancerMetrics{
		balancers: l,
		states: prometheus.NewDesc("capvcd_ccm_load_balancers", "Number of load balancers of Services, by state.",
			[]string{"state"}, nil),
		refused: prometheus.NewDesc("capvcd_ccm_rejected_services",
			"Number of Services with invalid requests, by the reason of their events.", []string{"reason"}, nil),
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
		return // No number is better than a wrong number.
	}
	byState := map[string]int{}
	byReason := map[string]int{}
	for _, s := range all {
		state := stateOf(m.balancers.opts.Defaults, s)
		if state == statePending || state == stateReady || state == statePartly {
			refusals := m.balancers.events.refusalReasons(s.UID)
			for reason := range refusals {
				byReason[reason]++
			}
			if len(refusals) > 0 {
				state = stateRejected
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
