// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// TestServices runs each scenario of Services with each kind of gateway. No scenario may leave objects in the cloud.
func TestServices(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, scenario := range scenarios() {
		for _, gateway := range gatewayNames() {
			name := scenario.name
			if gateway != twoArm {
				name += ", by gateway " + gateway
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario.run(t, w, by(gateway))
			})
		}
	}
	for _, gateway := range gatewayNames() {
		t.Run("pools that were deleted or changed manually are restored, by gateway "+gateway, func(t *testing.T) {
			t.Parallel()
			driftedPools(t, w, by(gateway))
		})
	}
}

// A scenario is a lifecycle of a Service.
type scenario struct {
	name string
	run  func(*testing.T, *fixture, change)
	// needs is a required capability in addition to load balancers. It may be empty.
	needs capability
}

// scenarios returns the scenarios of every cloud with load balancers.
func scenarios() []scenario {
	return []scenario{
		{"a Service with two ports gets one address and leaves nothing", created, ""},
		{"a change to ClusterIP deletes the load balancer, a change back creates it", typeChanged, ""},
		{"a Service that is deleted during its creation leaves nothing", deletedWhilePending, ""},
		{"a requested address is assigned, kept and released", addressRequested, ""},
		{"a renamed port keeps its address and its virtual service", portRenamed, ""},
		{"ports are removed and added", portsReplaced, ""},
		{"two ports swap numbers", portsSwapped, ""},
		{"Services with the same name in two namespaces get two load balancers", duplicateNames, ""},
		{"UDP and TCP share a port number", protocols, ""},
		{"the health check follows the traffic policy", trafficPolicy, healthChecks},
		{"session affinity is enabled and disabled", affinity, ""},
		{"objects that were deleted manually are recreated", drifted, ""},
	}
}

func created(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("http", 80), port("https", 443)))
	addresses := s.awaitServed()
	s.g.Expect(addresses).To(HaveLen(1))
	s.expectUnchanged()

	s.change(ports(port("http", 8080), port("https", 443)))
	s.g.Expect(s.awaitServed()).To(Equal(addresses), "the address should not change")

	s.delete()
}

func typeChanged(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway)
	s.awaitServed()

	s.change(func(svc *corev1.Service) {
		svc.Spec.Type = corev1.ServiceTypeClusterIP
		svc.Spec.LoadBalancerClass = nil
		svc.Spec.Ports[0].NodePort = 0
	})
	s.g.Eventually(func() []string { return s.cloud.leftovers(s.uid) }, timeout, poll).Should(BeEmpty())
	s.g.Eventually(func() ([]string, error) {
		svc, err := s.get()
		return svc.Finalizers, err
	}, timeout, poll).Should(BeEmpty())

	s.change(func(svc *corev1.Service) {
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		if s.class != "" {
			svc.Spec.LoadBalancerClass = &s.class
		}
	})
	s.awaitServed()
}

func deletedWhilePending(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("a", 81), port("b", 82), port("c", 83)))
	s.g.Eventually(func() []string { return s.cloud.leftovers(s.uid) }, timeout, "10ms").ShouldNot(BeEmpty())
	s.delete()
}

func addressRequested(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	probe := w.service(t, "probe", gateway)
	address := probe.awaitServed()[0]
	probe.delete() // This releases the address.

	s := w.service(t, "web", gateway, annotated(w.cloud.addressAnnotation(), address.String()))
	s.g.Expect(s.awaitServed()).To(Equal([]netip.Addr{address}))
	s.change(annotated(w.cloud.addressAnnotation(), "")) // The address is kept without the annotation.
	s.expectUnchanged()
	s.g.Expect(s.awaitServed()).To(Equal([]netip.Addr{address}))
}

func portRenamed(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("http", 80), port("other", 81)))
	addresses := s.awaitServed()
	before := s.cloud.snapshot(s.uid)

	s.change(func(svc *corev1.Service) { svc.Spec.Ports[0].Name = "web" })

	s.expectUnchanged()
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	s.g.Expect(kinds(s.cloud.snapshot(s.uid))).To(Equal(kinds(before)), "no object should be duplicated")
}

func portsReplaced(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("a", 81), port("b", 82)))
	addresses := s.awaitServed()

	s.change(ports(port("b", 82)))
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	s.change(ports(port("b", 82), port("c", 83), port("d", 84)))
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	s.change(ports(port("e", 85)))
	s.g.Expect(s.awaitServed()).To(Equal(addresses), "the address should not change even if all ports do")
}

func portsSwapped(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("a", 81), port("b", 82)))
	addresses := s.awaitServed()

	s.change(func(svc *corev1.Service) {
		p := svc.Spec.Ports
		p[0].Port, p[1].Port = p[1].Port, p[0].Port
	})

	s.g.Expect(s.awaitServed()).To(Equal(addresses))
}

func duplicateNames(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	a := w.service(t, "web", gateway)
	b := w.service(t, "web", gateway)
	first := a.awaitServed()
	second := b.awaitServed()
	a.g.Expect(first).NotTo(Equal(second))

	a.delete()

	b.g.Expect(b.awaitServed()).To(Equal(second))
	b.expectUnchanged()
}

func protocols(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	udp := port("dns-udp", 53)
	udp.Protocol = corev1.ProtocolUDP
	s := w.service(t, "dns", gateway, ports(udp))
	addresses := s.awaitServed()

	s.change(ports(udp, port("dns-tcp", 53)))

	s.g.Expect(s.awaitServed()).To(Equal(addresses))
}

func trafficPolicy(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway)
	addresses := s.awaitServed()
	s.g.Expect(s.cloud.frontends(s.uid)[0].Monitors).To(Equal([]string{"TCP"}))

	s.change(func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	s.expectUnchanged()
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	s.g.Expect(s.cloud.frontends(s.uid)[0].Monitors).To(HaveLen(1), "a monitor should detect nodes without a local pod")

	s.change(func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	s.g.Eventually(func() []string { return s.cloud.frontends(s.uid)[0].Monitors }, timeout,
		poll).Should(Equal([]string{"TCP"}))
}

func affinity(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway)
	s.awaitServed()
	sticky := func() bool { return s.cloud.frontends(s.uid)[0].Sticky }
	s.g.Expect(sticky()).To(BeFalse())

	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Eventually(sticky, timeout, poll).Should(BeTrue())

	s.change(func(svc *corev1.Service) {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityNone
		svc.Spec.SessionAffinityConfig = nil
	})
	s.g.Eventually(sticky, timeout, poll).Should(BeFalse())
	s.awaitServed()
}

func drifted(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("a", 81), port("b", 82)))
	addresses := s.awaitServed()

	w.cloud.deleteFrontends(t, s.uid)
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
}

func driftedPools(t *testing.T, w *fixture, gateway change) {
	t.Helper()
	s := w.service(t, "web", gateway, ports(port("a", 81), port("b", 82)))
	addresses := s.awaitServed()

	v := w.vcd()
	v.deleteByHand(t, s.uid, servicesPath, poolsPath)
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
	// Lists do not contain members, so changes are found when a pool is read for another reason, or by the periodic
	// read.
	v.changeByHand(t, s.uid, poolsPath, func(body map[string]any) {
		body["memberGroupRef"] = nil
		body["members"] = []any{map[string]any{"ipAddress": "10.40.99.99", "port": 9}}
	})
	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Expect(s.awaitServed()).To(Equal(addresses))
}
