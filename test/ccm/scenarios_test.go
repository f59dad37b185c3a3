// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// TestServices runs the scenarios of Services, each with every kind of gateway. All must leave nothing.
func TestServices(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, scenario := range scenarios() {
		for _, way := range ways() {
			name := scenario.name
			if way != twoArm {
				name += ", by gateway " + way
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario.run(t, w, by(way))
			})
		}
	}
	for _, way := range ways() {
		t.Run("pools that were deleted or changed by hand come back, by gateway "+way, func(t *testing.T) {
			t.Parallel()
			driftedPools(t, w, by(way))
		})
	}
}

// A scenario is the life of a Service.
type scenario struct {
	name string
	run  func(*testing.T, *fixture, change)
	// needs is a capability that not every cloud has, in addition to load balancers; empty for none.
	needs capability
}

// scenarios returns the scenarios of every cloud with load balancers.
func scenarios() []scenario {
	return []scenario{
		{"a Service with two ports gets one address, and leaves nothing", created, ""},
		{"what becomes a ClusterIP leaves nothing, and comes back", retyped, ""},
		{"a Service that is deleted while it is made leaves nothing", deletedWhilePending, ""},
		{"an address that was asked for is given, kept and given back", addressAsked, ""},
		{"a port that is renamed keeps its address and its virtual service", portRenamed, ""},
		{"ports that are removed and added are followed", portsReplaced, ""},
		{"two ports that swap numbers serve each other's clients", portsSwapped, ""},
		{"the same name in two namespaces is two load balancers", duplicateNames, ""},
		{"UDP and TCP share a port number", protocols, ""},
		{"a health check of its own follows the traffic policy", trafficPolicy, healthChecks},
		{"session affinity is switched on and off", affinity, ""},
		{"what was deleted by hand comes back", drifted, ""},
	}
}

func created(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("http", 80), port("https", 443)))
	addresses := s.served()
	s.g.Expect(addresses).To(HaveLen(1))
	s.calm()

	s.change(ports(port("http", 8080), port("https", 443)))
	s.g.Expect(s.served()).To(Equal(addresses), "the address stays")

	s.delete()
}

func retyped(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way)
	s.served()

	s.change(func(svc *corev1.Service) {
		svc.Spec.Type = corev1.ServiceTypeClusterIP
		svc.Spec.LoadBalancerClass = nil
		svc.Spec.Ports[0].NodePort = 0
	})
	s.g.Eventually(func() []string { return s.cloud.left(s.uid) }, patience, poll).Should(BeEmpty())
	s.g.Eventually(func() ([]string, error) {
		svc, err := s.get()
		return svc.Finalizers, err
	}, patience, poll).Should(BeEmpty())

	s.change(func(svc *corev1.Service) {
		svc.Spec.Type = corev1.ServiceTypeLoadBalancer
		if s.class != "" {
			svc.Spec.LoadBalancerClass = &s.class
		}
	})
	s.served()
}

func deletedWhilePending(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("a", 81), port("b", 82), port("c", 83)))
	s.g.Eventually(func() []string { return s.cloud.left(s.uid) }, patience, "10ms").ShouldNot(BeEmpty())
	s.delete()
}

func addressAsked(t *testing.T, w *fixture, way change) {
	t.Helper()
	probe := w.service(t, "probe", way)
	address := probe.served()[0]
	probe.delete() // Its address is free now.

	s := w.service(t, "web", way, annotated(w.cloud.addressAnnotation(), address.String()))
	s.g.Expect(s.served()).To(Equal([]netip.Addr{address}))
	s.change(annotated(w.cloud.addressAnnotation(), "")) // The address is kept without the annotation.
	s.calm()
	s.g.Expect(s.served()).To(Equal([]netip.Addr{address}))
}

func portRenamed(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("http", 80), port("other", 81)))
	addresses := s.served()
	before := s.cloud.mark(s.uid)

	s.change(func(svc *corev1.Service) { svc.Spec.Ports[0].Name = "web" })

	s.calm()
	s.g.Expect(s.served()).To(Equal(addresses))
	s.g.Expect(kinds(s.cloud.mark(s.uid))).To(Equal(kinds(before)), "nothing is made twice")
}

func portsReplaced(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("a", 81), port("b", 82)))
	addresses := s.served()

	s.change(ports(port("b", 82)))
	s.g.Expect(s.served()).To(Equal(addresses))
	s.change(ports(port("b", 82), port("c", 83), port("d", 84)))
	s.g.Expect(s.served()).To(Equal(addresses))
	s.change(ports(port("e", 85)))
	s.g.Expect(s.served()).To(Equal(addresses), "the address stays also when no port does")
}

func portsSwapped(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("a", 81), port("b", 82)))
	addresses := s.served()

	s.change(func(svc *corev1.Service) {
		p := svc.Spec.Ports
		p[0].Port, p[1].Port = p[1].Port, p[0].Port
	})

	s.g.Expect(s.served()).To(Equal(addresses))
}

func duplicateNames(t *testing.T, w *fixture, way change) {
	t.Helper()
	a := w.service(t, "web", way)
	b := w.service(t, "web", way)
	first := a.served()
	second := b.served()
	a.g.Expect(first).NotTo(Equal(second))

	a.delete()

	b.g.Expect(b.served()).To(Equal(second))
	b.calm()
}

func protocols(t *testing.T, w *fixture, way change) {
	t.Helper()
	udp := port("dns-udp", 53)
	udp.Protocol = corev1.ProtocolUDP
	s := w.service(t, "dns", way, ports(udp))
	addresses := s.served()

	s.change(ports(udp, port("dns-tcp", 53)))

	s.g.Expect(s.served()).To(Equal(addresses))
}

func trafficPolicy(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way)
	addresses := s.served()
	s.g.Expect(s.cloud.fronts(s.uid)[0].Monitors).To(Equal([]string{"TCP"}))

	s.change(func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
	s.calm()
	s.g.Expect(s.served()).To(Equal(addresses))
	s.g.Expect(s.cloud.fronts(s.uid)[0].Monitors).To(HaveLen(1), "nodes without a pod are found out")

	s.change(func(svc *corev1.Service) { svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
	s.g.Expect(s.served()).To(Equal(addresses))
	s.g.Eventually(func() []string { return s.cloud.fronts(s.uid)[0].Monitors }, patience,
		poll).Should(Equal([]string{"TCP"}))
}

func affinity(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way)
	s.served()
	sticky := func() bool { return s.cloud.fronts(s.uid)[0].Sticky }
	s.g.Expect(sticky()).To(BeFalse())

	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Eventually(sticky, patience, poll).Should(BeTrue())

	s.change(func(svc *corev1.Service) {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityNone
		svc.Spec.SessionAffinityConfig = nil
	})
	s.g.Eventually(sticky, patience, poll).Should(BeFalse())
	s.served()
}

func drifted(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("a", 81), port("b", 82)))
	addresses := s.served()

	w.cloud.ruin(t, s.uid)
	s.g.Expect(s.served()).To(Equal(addresses))
}

func driftedPools(t *testing.T, w *fixture, way change) {
	t.Helper()
	s := w.service(t, "web", way, ports(port("a", 81), port("b", 82)))
	addresses := s.served()

	v := w.vcd()
	v.deleteByHand(t, s.uid, servicesPath, poolsPath)
	s.g.Expect(s.served()).To(Equal(addresses))
	// Lists do not contain members: changes are found when a pool is read for another reason, or by the periodic
	// read.
	v.changeByHand(t, s.uid, poolsPath, func(body map[string]any) {
		body["memberGroupRef"] = nil
		body["members"] = []any{map[string]any{"ipAddress": "10.40.99.99", "port": 9}}
	})
	s.change(func(svc *corev1.Service) { svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	s.g.Expect(s.served()).To(Equal(addresses))
}
