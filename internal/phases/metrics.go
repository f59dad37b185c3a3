// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a pass over an object can end in, as metrics name it.
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
	// Provisioning observes by kind, in seconds, how long objects took to be provisioned.
	Provisioning = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "capvcd",
		Name:      "provisioning_duration_seconds",
		Help:      "Time from the creation of a VCDCluster or VCDMachine until it is provisioned, in seconds.",
		Buckets:   []float64{5, 15, 30, 60, 120, 180, 300, 450, 600, 900, 1800, 3600},
	}, []string{"kind"})
)

// kindOf is the kind of an object, which readers leave empty.
func kindOf(obj client.Object) string { return reflect.TypeOf(obj).Elem().Name() }

// passed counts a pass that the phase with the condition ended.
func passed(obj client.Object, condition, outcome string) {
	Passes.WithLabelValues(kindOf(obj), condition, outcome).Inc()
}

// ProvisionedAfter counts how long an object took.
func ProvisionedAfter(obj client.Object, now time.Time) {
	Provisioning.WithLabelValues(kindOf(obj)).Observe(now.Sub(obj.GetCreationTimestamp().Time).Seconds())
}
