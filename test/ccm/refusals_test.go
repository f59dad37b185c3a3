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

// TestWhatCannotBe creates Services with impossible requests. A Warning reports the reason, no partial load balancer
// stays, and each Service recovers when it is corrected.
func TestWhatCannotBe(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, tc := range []struct {
		name    string
		asked   []change
		warning string
		mended  []change
	}{
		{
			"an unknown certificate",
			[]change{ports(port("https", 443)), annotated(sslPorts, "443", sslAlias, "unknown")},
			"unknown",
			[]change{annotated(sslAlias, certificate)},
		},
		{
			"a Secret with a certificate that is not there",
			[]change{ports(port("https", 443)), annotated(sslPorts, "443", tlsSecret, "missing")},
			"missing",
			[]change{annotated(tlsSecret, "", sslPorts, "")},
		},
		{"an address outside the gateway's", []change{at("192.0.2.1")}, "192.0.2.1", []change{at("")}},
		{"the gateway's own address", []change{at("100.64.1.1")}, "100.64.1.1", []change{at("")}},
		{"what is no address", []change{at("web.example.com")}, "web.example.com", []change{at("")}},
		{
			"SCTP",
			[]change{func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolSCTP }},
			"SCTP",
			[]change{func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolTCP }},
		},
		{"an unknown gateway", []change{by("nowhere")}, "nowhere", []change{by("")}},
		{
			"ports with TLS that are no numbers",
			[]change{annotated(sslPorts, "https")},
			"https",
			[]change{annotated(sslPorts, "")},
		},
		{
			"source ranges, which are switched off",
			[]change{ranges("192.0.2.0/24")},
			"ourceRanges",
			[]change{ranges()},
		},
		{
			"no node ports",
			[]change{func(s *corev1.Service) {
				no := false
				s.Spec.AllocateLoadBalancerNodePorts = &no
			}},
			"ode port",
			[]change{func(s *corev1.Service) {
				yes := true
				s.Spec.AllocateLoadBalancerNodePorts = &yes
			}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := w.service(t, "web", tc.asked...)
			s.refused(tc.warning)

			s.change(tc.mended...)

			s.served()
		})
	}
}

func TestAnAddressThatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	w := shared(t)
	for _, way := range ways() {
		t.Run("by gateway "+way, func(t *testing.T) {
			t.Parallel()
			first := w.service(t, "first", by(way))
			address := first.served()[0]

			second := w.service(t, "second", by(way), at(address.String()), ports(port("other", 81)))
			second.refused(address.String())
			first.served()

			first.delete()
			second.served()
		})
	}
}

func TestTwoServicesShareAnAddressIfTheyAgree(t *testing.T) {
	t.Parallel()
	w := shared(t)
	ns := w.namespace(t)
	share := annotated(shareKey, "both")
	first := w.serviceIn(t, ns, "first", share)
	address := first.served()
	second := w.serviceIn(t, ns, "second", share, ports(port("other", 81)))
	first.g.Expect(second.served()).To(Equal(address))

	t.Log("A port that the other has is refused.")
	second.change(ports(port("other", 81), port("http", 80)))
	first.g.Eventually(second.warnings, patience, poll).Should(ContainElement(ContainSubstring("80")))
	first.served()
	second.change(ports(port("other", 82)))
	first.g.Expect(second.served()).To(Equal(address))

	t.Log("Who stays keeps the address.")
	first.delete()
	second.calm()
	first.g.Expect(second.served()).To(Equal(address))
}

func TestAnInternalLoadBalancerIsNotTranslated(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", by(oneArm), annotated(internalOnly, "true"))
	s.g.Expect(s.served()[0].String()).To(HavePrefix("192.168.8."))
	s.g.Expect(kinds(s.cloud.left(s.uid))).NotTo(HaveKey("NAT rule"))
}

func TestAServiceOfAnotherClassIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := shared(t)
	class := "example.com/of-others"
	s := w.service(t, "web", func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = &class })
	s.g.Consistently(func() ([]string, error) {
		svc, err := s.get()
		return svc.Finalizers, err
	}, pause, poll).Should(BeEmpty())
	s.g.Expect(s.cloud.left(s.uid)).To(BeEmpty())
}

func TestAServiceOfOurClassIsServed(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "ours", fixtureOption{class: "example.com/ours"})
	s := w.service(t, "web")
	s.served()
	svc, err := s.get()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.g.Expect(svc.Spec.LoadBalancerClass).To(HaveValue(Equal("example.com/ours")), "what is stored stays as it is")
	s.delete()
}

func TestDualStackIsServedAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	w := shared(t)
	s := w.service(t, "web", func(svc *corev1.Service) {
		policy := corev1.IPFamilyPolicyPreferDualStack
		svc.Spec.IPFamilyPolicy = &policy
	})
	s.g.Expect(s.served()).To(HaveLen(1), "the cluster has one family")
}

// TestSourceRangesAreRules adds a rule of an administrator to the firewall of the gateway, which must not change.
func TestSourceRangesAreRules(t *testing.T) {
	t.Parallel()
	for _, release := range []vcdsim.Version{vcdsim.Version105, vcdsim.Version106} {
		t.Run("of VCD "+release.Release(), func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, "ranges-"+string(release[:2]), fixtureOption{
				settings: settings{"loadbalancer.sourceRanges": true},
				vcd:      []vcdOption{func(c *vcdsim.Config) { c.Version = release }},
			})
			g := NewWithT(t)
			w.vcd().foreignRule()

			s := w.service(t, "web", ranges("192.0.2.0/24"), ports(port("http", 80), port("https", 443)))
			address := s.served()[0].String()
			g.Expect(w.vcd().firewall()).To(Equal([]string{
				"ALLOW 192.0.2.0/24 to " + address,
				"DROP everybody to " + address,
				"theirs",
			}))
			s.calm()

			s.change(ranges("192.0.2.0/24", "198.51.100.0/25"))
			g.Eventually(w.vcd().firewall, patience, poll).Should(Equal([]string{
				"ALLOW 192.0.2.0/24,198.51.100.0/25 to " + address,
				"DROP everybody to " + address,
				"theirs",
			}))
			s.change(ranges())
			g.Eventually(w.vcd().firewall, patience, poll).Should(Equal([]string{"theirs"}))
			s.served()

			s.change(ranges("192.0.2.0/24"))
			g.Eventually(w.vcd().firewall, patience, poll).Should(HaveLen(3))
			s.delete()
			g.Expect(w.vcd().firewall()).To(Equal([]string{"theirs"}), "the rules go with the Service")
			g.Expect(slices.ContainsFunc(w.vcd().Requests(), func(r vcdsim.Request) bool {
				return r.Method == http.MethodPut && strings.Contains(r.Path, "firewall/rules")
			})).To(BeFalse(), "rules of others are never written")
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
	s.refused("ourceRanges")
	s.g.Expect(w.vcd().firewall()).To(Equal([]string{"theirs"}))

	s.change(ranges())

	s.served()
}

// A mishap is an error on the side of VCD.
type mishap struct {
	name    string
	faults  []vcdsim.Fault
	warning string
	blind   bool // nothing can be read, so nothing can be proved gone
}

// TestMishaps causes errors in VCD, not in a Service. A Warning reports them, no partial load balancer stays, and the
// controller recovers by itself.
func TestMishaps(t *testing.T) {
	t.Parallel()
	for i, tc := range []mishap{
		{
			name: "the right to make pools is missing",
			faults: []vcdsim.Fault{{
				Operation: "POST /cloudapi/1.0.0/loadBalancer/pools",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			}},
			warning: "create lb-pool",
		},
		{
			name: "the right to make virtual services is missing",
			faults: []vcdsim.Fault{{
				Operation: "POST /cloudapi/1.0.0/loadBalancer/virtualServices",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			}},
			warning: "create virtual-service",
		},
		{
			name: "the right to see load balancers is missing",
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
			w := newFixture(t, "mishap"+string(rune('a'+i)), fixtureOption{})
			for _, f := range tc.faults {
				w.vcd().Faults().Add(f)
			}
			s := w.service(t, "web")
			s.refused(tc.warning)

			if other := w.service(t, "other"); !tc.blind {
				other.refused(tc.warning)
				other.delete() // despite the error
			}

			w.vcd().Faults().Clear()
			s.served()
		})
	}
}

// TestNoEngineGroup has no service engine group for virtual services.
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
	first.served()

	second := w.service(t, "second")
	second.refused("engine group")

	first.delete()
	second.served()
}
