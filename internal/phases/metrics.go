// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outcomes of a pass, as values of the metric label outcome.
const (
	passComplete = "complete"
	passWaiting  = "waiting"
	passProblem  = "problem"
	passUnknown  = "unknown"
	passError    = "error"
)

var (
	// Passes counts passes by kind, condition and outcome.
	Passes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "capvcd",
		Name:      "passes_total",
		Help:      "Number of reconcile passes, by the condition of their last phase, or Ready.",
	}, []string{"kind", "condition", "outcome"})
	// Provisioning is a histogram, by kind, of the time that objects took to be provisioned, in seconds.
	Provisioning = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "capvcd",
		Name:      "provisioning_duration_seconds",
		Help:      "Time from the creation of a VCDCluster or VCDMachine until it is provisioned, in seconds.",
		Buckets:   []float64{5, 15, 30, 60, 120, 180, 300, 450, 600, 900, 1800, 3600},
	}, []string{"kind"})
)

// kindOf returns the kind of an object from its Go type, because clients leave TypeMeta empty.
func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// countPass counts a pass that ended in the phase with the given condition.
func countPass(obj client.Object, condition, outcome string) {
	Passes.WithLabelValues(kindOf(obj), condition, outcome).Inc()
}

// ProvisionedAfter records how long an object took to be provisioned, from its creation until now.
func ProvisionedAfter(obj client.Object, now time.Time) {
	Provisioning.WithLabelValues(kindOf(obj)).Observe(now.Sub(obj.GetCreationTimestamp().Time).Seconds())
}
