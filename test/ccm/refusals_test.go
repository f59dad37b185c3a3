// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestUnsupportedServicesAreRejected creates Services with invalid or unsupported settings. A Warning reports the reason, no partial load
// balancer stays, and each Service is served after it is corrected.
func TestUnsupportedServicesAreRejected(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, tc := range []struct {
		name    string
		changes []change
		warning string
		fixes   []change
	}{
		{
			name:    "an unknown certificate",
			changes: []change{ports(port("https", 443)), annotated(sslPorts, "443", sslAlias, "unknown")},
			warning: "unknown",
			fixes:   []change{annotated(sslAlias, certificate)},
		},
		{
			name:    "a missing Secret with a certificate",
			changes: []change{ports(port("https", 443)), annotated(sslPorts, "443", tlsSecret, "missing")},
			warning: "missing",
			fixes:   []change{annotated(tlsSecret, "", sslPorts, "")},
		},
		{name: "an address outside the ranges of the gateway", changes: []change{at("192.0.2.1")}, warning: "192.0.2.1", fixes: []change{at("")}},
		{name: "the address of the gateway", changes: []change{at("100.64.1.1")}, warning: "100.64.1.1", fixes: []change{at("")}},
		{name: "an invalid address", changes: []change{at("web.example.com")}, warning: "web.example.com", fixes: []change{at("")}},
		{
			name:    "SCTP",
			changes: []change{func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }},
			warning: "SCTP",
			fixes:   []change{func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolTCP }},
		},
		{name: "an unknown gateway", changes: []change{by("nowhere")}, warning: "nowhere", fixes: []change{by("")}},
		{
			name:    "non-numeric TLS ports",
			changes: []change{annotated(sslPorts, "https")},
			warning: "https",
			fixes:   []change{annotated(sslPorts, "")},
		},
		{
			name:    "source ranges while they are disabled",
			changes: []change{ranges("192.0.2.0/24")},
			warning: "ourceRanges",
			fixes:   []change{ranges()},
		},
		{
			name: "no node ports",
			changes: []change{func(s *corev1.Service) {
				no := false
				s.Spec.AllocateLoadBalancerNodePorts = &no
			}},
			warning: "ode port",
			fixes: []change{func(s *corev1.Service) {
				yes := true
				s.Spec.AllocateLoadBalancerNodePorts = &yes
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := w.service(t, "web", tc.changes...)
			s.expectRefused(tc.warning)

			s.change(tc.fixes...)

			s.awaitServed()
		})
	}
}

func TestAnAddressThatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, gateway := range gatewayNames() {
		t.Run("by gateway "+gateway, func(t *testing.T) {
			t.Parallel()
			first := w.service(t, "first", by(gateway))
			address := first.awaitServed()[0]

			second := w.service(t, "second", by(gateway), at(address.String()), ports(port("other", 81)))
			second.expectRefused(address.String())
			first.awaitServed()

			first.delete()
			second.awaitServed()
		})
	}
}

func TestTwoServicesShareAnAddressIfTheyAgree(t *testing.T) {
	t.Parallel()
	w := shared(t)
	ns := w.namespace(t)
	share := annotated(shareKey, "both")
	first := w.serviceIn(t, ns, "first", share)
	address := first.awaitServed()
	second := w.serviceIn(t, ns, "second", share, ports(port("other", 81)))
	first.g.Expect(second.awaitServed()).To(Equal(address))

	t.Log("A port that the other Service uses is refused.")
	second.change(ports(port("other", 81), port("http", 80)))
	first.g.Eventually(second.warnings, timeout, poll).Should(ContainElement(ContainSubstring("80")))
	first.awaitServed()
	second.change(ports(port("other", 82)))
	first.g.Expect(second.awaitServed()).To(Equal(address))

	t.Log("The remaining Service keeps the address.")
	first.delete()
	second.expectUnchanged()
	first.g.Expect(second.awaitServed()).To(Equal(address))
}

func TestAnInternalLoadBalancerIsNotTranslated(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", by(oneArm), annotated(internalOnly, "true"))
	s.g.Expect(s.awaitServed()[0].String()).To(HavePrefix("192.168.8."))
	s.g.Expect(kinds(s.cloud.leftovers(s.uid))).NotTo(HaveKey("NAT rule"))
}

func TestServiceOfAnotherClassIsIgnored(t *testing.T) {
	t.Parallel()
	w := shared(t)
	class := "example.com/of-others"
	s := w.service(t, "web", func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = &class })
	s.g.Consistently(func() ([]string, error) {
		svc, err := s.get()
		return svc.Finalizers, err
	}, quietPeriod, poll).Should(BeEmpty())
	s.g.Expect(s.cloud.leftovers(s.uid)).To(BeEmpty())
}

func TestServiceOfOurClassIsServed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "ours", fixtureOption{class: "example.com/ours"})
	s := w.service(t, "web")
	s.awaitServed()
	svc, err := s.get()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(svc.Spec.LoadBalancerClass).To(HaveValue(Equal("example.com/ours")), "the class should not change")
	s.delete()
}

func TestDualStackIsServedAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", func(svc *corev1.Service) {
		policy := corev1.IPFamilyPolicyPreferDualStack
		svc.Spec.IPFamilyPolicy = &policy
	})
	s.g.Expect(s.awaitServed()).To(HaveLen(1), "the cluster has one IP family")
}

// TestSourceRangesAreRules checks the firewall rules of source ranges. An administrator's rule must not change.
func TestSourceRangesAreRules(t *testing.T) {
	t.Parallel()
	for _, release := range []vcdsim.Version{vcdsim.Version105, vcdsim.Version106} {
		t.Run("VCD "+release.Release(), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "ranges-"+string(release[:2]), fixtureOption{
				settings: settings{"loadbalancer.sourceRanges": true},
				vcd:      []vcdOption{func(c *vcdsim.Config) { c.Version = release }},
			})
			g := NewWithT(t)
			w.vcd().foreignRule()

			s := w.service(t, "web", ranges("192.0.2.0/24"), ports(port("http", 80), port("https", 443)))
			address := s.awaitServed()[0].String()
			g.Expect(w.vcd().firewall()).To(Equal([]string{
				"ALLOW 192.0.2.0/24 to " + address,
				"DROP everybody to " + address,
				"theirs",
			}))
			s.expectUnchanged()

			s.change(ranges("192.0.2.0/24", "198.51.100.0/25"))
			g.Eventually(w.vcd().firewall, timeout, poll).Should(Equal([]string{
				"ALLOW 192.0.2.0/24,198.51.100.0/25 to " + address,
				"DROP everybody to " + address,
				"theirs",
			}))
			s.change(ranges())
			g.Eventually(w.vcd().firewall, timeout, poll).Should(Equal([]string{"theirs"}))
			s.awaitServed()

			s.change(ranges("192.0.2.0/24"))
			g.Eventually(w.vcd().firewall, timeout, poll).Should(HaveLen(3))
			s.delete()
			g.Expect(w.vcd().firewall()).To(Equal([]string{"theirs"}), "the rules should be deleted with the Service")
			g.Expect(slices.ContainsFunc(w.vcd().Requests(), func(r vcdsim.Request) bool {
				return r.Method == http.MethodPut && strings.Contains(r.Path, "firewall/rules")
			})).To(BeFalse(), "the whole list, with the rules of others, is never written")
		})
	}
}

func TestSourceRangesAreRefusedBeforeVCD1051(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "noranges", fixtureOption{
		settings: settings{"loadbalancer.sourceRanges": true},
		vcd:      []vcdOption{func(c *vcdsim.Config) { c.Version = vcdsim.Version104 }},
	})
	w.vcd().foreignRule()
	s := w.service(t, "web", ranges("192.0.2.0/24"))
	s.expectRefused("ourceRanges")
	s.g.Expect(w.vcd().firewall()).To(Equal([]string{"theirs"}))

	s.change(ranges())

	s.awaitServed()
}

// A vcdFailure is a set of faults in VCD.
type vcdFailure struct {
	name    string
	faults  []vcdsim.Fault
	warning string
	blind   bool // reads fail, so no object can be proved gone
}

// TestFailuresOfVCDAreReported injects faults into VCD. A Warning reports them, no partial load balancer stays, and the
// controller recovers without intervention.
func TestFailuresOfVCDAreReported(t *testing.T) {
	t.Parallel()
	for i, tc := range []vcdFailure{
		{
			name: "the right to create pools is missing",
			faults: []vcdsim.Fault{{
				Operation: "POST /cloudapi/1.0.0/loadBalancer/pools",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			}},
			warning: "create lb-pool",
		},
		{
			name: "the right to create virtual services is missing",
			faults: []vcdsim.Fault{{
				Operation: "POST /cloudapi/1.0.0/loadBalancer/virtualServices",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			}},
			warning: "create virtual-service",
		},
		{
			name: "the right to view load balancers is missing",
			faults: []vcdsim.Fault{{
				Operation: "GET /cloudapi/1.0.0/edgeGateways/loadBalancer/*",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			}},
			warning: "rights",
			blind:   true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "failure"+string(rune('a'+i)), fixtureOption{})
			for _, f := range tc.faults {
				w.vcd().Faults().Add(f)
			}
			s := w.service(t, "web")
			s.expectRefused(tc.warning)

			if other := w.service(t, "other"); !tc.blind {
				other.expectRefused(tc.warning)
				other.delete() // despite the error
			}

			w.vcd().Faults().Clear()
			s.awaitServed()
		})
	}
}

// TestNoEngineGroup exhausts the only service engine group. Later Services must wait for free capacity.
func TestNoEngineGroup(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "engines", fixtureOption{
		vcd: []vcdOption{func(c *vcdsim.Config) {
			c.Model.ServiceEngineGroups[0].MaxService = 1
			c.Model.Orgs[1].VDCs[0].EdgeGateways = c.Model.Orgs[1].VDCs[0].EdgeGateways[:1:1]
			c.Model.Orgs[1].VDCs[0].Networks = c.Model.Orgs[1].VDCs[0].Networks[:2:2]
		}},
		settings: settings{"loadbalancer.gateways": nil},
	})
	first := w.service(t, "first")
	first.awaitServed()

	second := w.service(t, "second")
	second.expectRefused("engine group")

	first.delete()
	second.awaitServed()
}
