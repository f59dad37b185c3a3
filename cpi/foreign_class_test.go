// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	servicehelpers "k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cpitest/servicetest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestAServiceThatChangedItsClassDuringDowntimeIsReleased(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	_, err := b.ensure(s)
	b.Expect(err).NotTo(HaveOccurred())
	stored := func() *corev1.Service {
		now, err := b.client.CoreV1().Services("shop").Get(t.Context(), "web", metav1.GetOptions{})
		b.Expect(err).NotTo(HaveOccurred())
		return now
	}
	// After a restart it belongs to another controller.
	theirs := stored()
	theirs.Spec.LoadBalancerClass = ptr.To("example.com/theirs")
	published(theirs)
	b.services.add(theirs.DeepCopy())
	b.them.states.forget(s.UID)

	for range 2 {
		b.them.foreignClasses().release(t.Context())
	}

	b.Expect(b.balancer.left()).To(Equal(2), "clients still use it")
	b.Expect(b.newEvents()).To(ConsistOf(And(HavePrefix("Warning LoadBalancerOrphaned"),
		ContainSubstring("203.0.113.10"))))

	theirs.Status.LoadBalancer.Ingress[0].IP = "198.51.100.1"
	b.services.add(theirs.DeepCopy())
	b.them.foreignClasses().release(t.Context())

	b.Expect(b.balancer.left()).To(BeZero())
	b.Expect(b.recordOf(s)).To(BeZero(), "it is not searched again")
	b.Expect(stored().Finalizers).To(ContainElement(servicehelpers.LoadBalancerCleanupFinalizer), "it may belong to the other controller")
}

// foreign returns a Service whose class changed to another implementation's after it had load balancers at locations.
func (b *bench) foreign(s *corev1.Service, locations ...string) {
	s.Spec.LoadBalancerClass = ptr.To("example.com/theirs")
	b.record(s, locations...)
	for _, location := range locations {
		b.balancer.at(location, string(s.UID))["tcp-80"] = "from before"
	}
	b.services.add(s)
}

func TestAPublishedHostnameKeepsTheLoadBalancer(t *testing.T) {
	s := balanced("web", func(s *corev1.Service) {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.Hostname, "web.example.com")
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "web.example.com"}}
	})
	b := newBench(t, s)
	b.foreign(s, "main")

	b.them.foreignClasses().release(t.Context())
	b.Expect(b.balancer.left()).To(Equal(1), "clients still use its name")
	b.Expect(b.newEvents()).To(ConsistOf(ContainSubstring("203.0.113.10")))

	other := s.DeepCopy()
	other.Status.LoadBalancer.Ingress[0].Hostname = "elsewhere.example.com"
	b.services.add(other)
	b.them.foreignClasses().release(t.Context())
	b.Expect(b.balancer.left()).To(BeZero())
}

func TestAnAdoptedServiceIsNotReleased(t *testing.T) {
	listed := balanced("web")
	b := newBench(t, listed)
	b.foreign(listed, "main")
	b.services.add(balanced("web"))

	b.Expect(b.them.foreignClasses().releaseOne(t.Context(), listed)).To(Succeed())

	b.Expect(b.balancer.left()).To(Equal(1), "it was created for the current Service")
}

func TestRecordsOfAnotherClusterAreKept(t *testing.T) {
	s := balanced("web", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("example.com/theirs") })
	b := newBench(t, s)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, servicetest.OlderLocations, "main=90c1f7a2e4b85d36")
	published(s)
	b.Expect(b.client.CoreV1().Services("shop").Update(t.Context(), s, metav1.UpdateOptions{})).NotTo(BeNil())
	b.services.add(s)

	b.them.foreignClasses().release(t.Context())
	looks := b.balancer.looks
	b.them.foreignClasses().release(t.Context())

	b.Expect(b.now(s).Annotations).To(HaveKey(servicetest.OlderLocations))
	b.Expect(b.balancer.looks).To(Equal(looks), "it is not searched repeatedly")
}

func TestLoadBalancersOfAnotherClassAreKept(t *testing.T) {
	const class = "example.com/b"
	for name, tt := range map[string]struct{ ours, theirs, shown string }{
		"of a class":                {"", class, class},
		"of no class":               {class, "", otherClass},
		"that cannot be determined": {class, "example.com/c", otherClass},
	} {
		t.Run(name, func(t *testing.T) {
			s := balanced("web")
			b := newBench(t, s)
			b.configure(func(o *LoadBalancerOptions) { o.Defaults.Class = tt.theirs })
			b.record(s, "main")
			b.configure(func(o *LoadBalancerOptions) { o.Defaults.Class = tt.ours })
			s.Spec.LoadBalancerClass = &tt.shown
			b.balancer.at("main", string(s.UID))["tcp-80"] = "half of it"
			b.services.add(s)

			b.them.foreignClasses().release(t.Context())

			b.Expect(b.balancer.left()).To(Equal(1))
			b.configure(func(o *LoadBalancerOptions) { o.Defaults.Class = tt.theirs })
			b.Expect(b.recordOf(s).Locations).To(Equal([]string{"main"}), "each process has its own records")
		})
	}
}

func TestAnInvisibleLocationDoesNotBlockReleasesElsewhere(t *testing.T) {
	s := balanced("web")
	b := newBench(t, s)
	b.foreign(s, "slow", "main")
	b.balancer.gone = map[string]error{"slow": loadbalancer.ErrUnknown}

	b.them.foreignClasses().release(t.Context())
	b.Expect(b.balancer.at("main", "web-uid")).To(BeEmpty())
	b.Expect(b.balancer.at("slow", "web-uid")).To(HaveLen(1))

	b.balancer.gone = nil
	b.them.foreignClasses().release(t.Context())
	b.Expect(b.balancer.left()).To(BeZero(), "it is retried")
}

func TestServicesThatWereNeverOwnedAreNotSearched(t *testing.T) {
	foreign := balanced("foreign", recordedAt("main"))
	ours := balanced("ours", recordedAt("main"))
	foreign.Annotations = nil
	foreign.Spec.LoadBalancerClass = ptr.To("example.com/theirs")
	b := newBench(t, foreign, ours)
	_, err := b.ensure(ours)
	b.Expect(err).NotTo(HaveOccurred())
	looks := b.balancer.looks

	b.them.foreignClasses().release(t.Context())

	b.Expect(b.balancer.looks).To(Equal(looks))
	b.Expect(b.balancer.left()).To(Equal(2))
}
