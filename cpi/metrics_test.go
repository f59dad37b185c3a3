// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestStates(t *testing.T) {
	now := metav1.Now()
	class := "other"
	problem := "is down"
	tests := []struct {
		name  string
		mod   func(*corev1.Service)
		state string
	}{
		{name: "a new Service waits", mod: func(*corev1.Service) {}, state: statePending},
		{name: "a Service with an address is ready", mod: published, state: stateReady},
		{
			name: "a Service with an unserved port is incomplete",
			mod: func(s *corev1.Service) {
				published(s)
				s.Status.LoadBalancer.Ingress[0].Ports = []corev1.PortStatus{{Port: 80, Error: &problem}}
			},
			state: statePartly,
		},
		{name: "a deleting Service", mod: func(s *corev1.Service) { s.DeletionTimestamp = &now }, state: stateLeaving},
		{
			name: "and is dropped when its finalizer is removed",
			mod: func(s *corev1.Service) {
				s.DeletionTimestamp = &now
				s.Finalizers = nil
			},
		},
		{
			name:  "a Service of another type is dropped",
			mod:   func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP },
			state: stateLeaving,
		},
		{
			name: "and is no longer a load balancer",
			mod: func(s *corev1.Service) {
				s.Spec.Type = corev1.ServiceTypeClusterIP
				s.Finalizers = nil
			},
		},
		{name: "a Service of another class is not counted", mod: func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class }},
		{
			name:  "a dry run does not count",
			mod:   func(s *corev1.Service) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.DryRun, "true") },
			state: stateDryRun,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := balanced("web",
				func(s *corev1.Service) { s.Finalizers = []string{servicehelpers.LoadBalancerCleanupFinalizer} },
				tt.mod)
			NewWithT(t).Expect(stateOf(service.Defaults{Dialect: servicetest.Dialect{}}, s)).To(Equal(tt.state))
		})
	}
}

func TestLoadBalancersAndRefusalsAreCounted(t *testing.T) {
	refused := balanced("refused", published)
	waits := balanced("waits")
	b := newBench(t, refused, waits, balanced("works", published))
	b.balancer.refuse = func(d service.Desired) []loadbalancer.Finding {
		if d.Owner.Name == "refused" {
			return []loadbalancer.Finding{{Reason: "CertificateNotFound", Message: "no certificate: shop"}}
		}
		return nil
	}
	for range 2 {
		_, _ = b.ensure(refused)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.them.Collector())

	b.Expect(testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP capvcd_ccm_load_balancers Number of load balancers of Services, by state.
# TYPE capvcd_ccm_load_balancers gauge
capvcd_ccm_load_balancers{state="dry_run"} 0
capvcd_ccm_load_balancers{state="leaving"} 0
capvcd_ccm_load_balancers{state="partly"} 0
capvcd_ccm_load_balancers{state="pending"} 1
capvcd_ccm_load_balancers{state="ready"} 1
capvcd_ccm_load_balancers{state="rejected"} 1
# HELP capvcd_ccm_rejected_services Number of Services with invalid requests, by the reason of their events.
# TYPE capvcd_ccm_rejected_services gauge
capvcd_ccm_rejected_services{reason="CertificateNotFound"} 1
`))).To(Succeed())

	b.balancer.refuse = nil
	_, err := b.ensure(refused)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(testutil.CollectAndCount(b.them.Collector(), "capvcd_ccm_rejected_services")).To(BeZero(), "it is corrected")
}

func TestTheLastObservationOfALocationIsAMetricIfItSucceeded(t *testing.T) {
	o := newOutage(t)
	down := &heard{}
	o.clock.SetTime(time.Unix(1000, 0))
	w := o.them.Balancer(down)
	_, _ = w.Plan(t.Context(), "dmz", PlanRequest{})
	down.err = errAway
	o.clock.SetTime(time.Unix(2000, 0))
	_, _ = w.Plan(t.Context(), "dmz", PlanRequest{})

	o.Expect(testutil.CollectAndCompare(w, strings.NewReader(`
# HELP capvcd_ccm_last_observation_timestamp_seconds Time of the last successful observation of the load balancers at a location, in seconds since the epoch.
# TYPE capvcd_ccm_last_observation_timestamp_seconds gauge
capvcd_ccm_last_observation_timestamp_seconds{location="dmz"} 1000
`))).To(Succeed())
}
