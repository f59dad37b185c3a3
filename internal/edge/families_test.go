// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A frontend is a virtual service as stored in the simulator.
type frontend struct {
	V4 string `json:"virtualIpAddress"`
	V6 string `json:"ipv6VirtualIpAddress"`
}

// frontends returns the virtual services of an owner.
func (w *fixture) frontends(o loadbalancer.Owner) []frontend {
	w.t.Helper()
	var out []frontend
	for _, doc := range w.sim.State().Documents {
		if doc.Path != servicesDocument || !strings.Contains(string(doc.Body), "uid="+o.UID+" ") {
			continue
		}
		var f frontend
		w.Expect(json.Unmarshal(doc.Body, &f)).To(Succeed())
		out = append(out, f)
	}
	return out
}

// families returns d with two families. Its nodes are reachable by the first one.
func families(d lb.Desired, first, second loadbalancer.Family) lb.Desired {
	d.Families = []loadbalancer.Family{first, second}
	d.Members = append(d.Members, netip.MustParseAddr("fd00:100::11"), netip.MustParseAddr("fd00:100::12"))
	return d
}

func TestDualStack(t *testing.T) {
	for _, first := range []loadbalancer.Family{loadbalancer.IPv4, loadbalancer.IPv6} {
		second := map[loadbalancer.Family]loadbalancer.Family{loadbalancer.IPv4: loadbalancer.IPv6, loadbalancer.IPv6: loadbalancer.IPv4}[first]
		t.Run(string(first)+" first", func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.CloudProvider())
			w.opts.SourceRanges = true
			w.restart()
			d := families(desired(service("c1", "web"), 80, 443), first, second)
			plan := w.converge(&d)
			w.Expect(plan.Done()).To(BeTrue())
			w.Expect(plan.Status.Addresses).To(HaveExactElements(
				WithTransform(loadbalancer.FamilyOf, Equal(first)), WithTransform(loadbalancer.FamilyOf, Equal(second)),
			), "in the order of the families")
			have := w.frontends(d.Owner)
			w.Expect(have).To(HaveLen(2))
			w.Expect(have).To(HaveEach(have[0]), "both ports on both addresses")
			w.Expect([]string{have[0].V4, have[0].V6}).To(ConsistOf(plan.Status.Addresses[0].String(),
				plan.Status.Addresses[1].String()))
			w.stands(d, 2)
			seen, err := w.driver.Observe(t.Context(), w.gateway,
				lb.Query{Owner: d.Owner, Facts: lb.FullSets, Fresh: true})
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(seen.Sets).To(ConsistOf(HaveField("Members", HaveEach(WithTransform(loadbalancer.FamilyOf, Equal(first))))),
				"nodes are reached by the first family")

			other := families(desired(service("c2", "web"), 80), loadbalancer.IPv4, loadbalancer.IPv6)
			w.converge(&other)
			w.Expect(w.frontends(other.Owner)).To(ConsistOf(And(HaveField("V4", Not(Equal(have[0].V4))),
				HaveField("V6", Not(Equal(have[0].V6))))))

			d.SourceRanges = []netip.Prefix{
				netip.MustParsePrefix("192.0.2.0/24"),
				netip.MustParsePrefix("2001:db8:1::/48"),
			}
			w.converge(&d)
			rules := map[string][]string{}
			for _, r := range w.firewall() {
				rules[r.Destinations[0]+" "+r.Action] = r.Sources
			}
			w.Expect(rules).To(And(
				HaveLen(4), HaveKeyWithValue(have[0].V4+" ALLOW", []string{"192.0.2.0/24"}),
				HaveKeyWithValue(have[0].V6+" ALLOW", []string{"2001:db8:1::/48"}),
			), "each family has its ranges")

			d.Families = d.Families[:1]
			d.SourceRanges = nil
			w.converge(&d)
			w.Expect(w.frontends(d.Owner)).To(HaveEach(Or(HaveField("V4", BeEmpty()), HaveField("V6", BeEmpty()))),
				"one family fewer")
			w.remove(d, other)
			w.Expect(w.left("")).To(BeEmpty())
			w.Expect(w.firewall()).To(BeEmpty())
			w.Expect(w.sim.Unhandled()).To(BeEmpty())
		})
	}
}

func TestARequestedIPv6Address(t *testing.T) {
	w := newFixture(t, vcdsim.CloudProvider())
	d := families(desired(service("c1", "web"), 80), loadbalancer.IPv6, loadbalancer.IPv4)
	d.Families = d.Families[:1]
	d.Requested = []netip.Addr{netip.MustParseAddr("2001:db8::2a")}
	plan := w.converge(&d)
	w.Expect(plan.Status.Addresses).To(Equal(d.Requested))
	w.Expect(w.frontends(d.Owner)).To(ConsistOf(frontend{V6: "2001:db8::2a"}))

	second := families(desired(service("c2", "web"), 80), loadbalancer.IPv6, loadbalancer.IPv4)
	second.Families = d.Families
	second.Requested = d.Requested
	plan, err := w.plan(&second)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", lb.AddressInUse)))
	second.Requested = []netip.Addr{netip.MustParseAddr("2001:db8::5000")}
	plan, err = w.plan(&second)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", lb.AddressOutOfRange)))

	w.remove(d)
	w.Expect(w.left("")).To(BeEmpty())
}

// withoutIPv6Network returns CloudProvider with a load balancer whose service network only has IPv4.
func withoutIPv6Network() vcdsim.Model {
	m := vcdsim.CloudProvider()
	delete(m.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer.Fields, "ipv6ServiceNetworkDefinition")
	return m
}

func TestALoadBalancerWithoutAnIPv6ServiceNetwork(t *testing.T) {
	w := newFixture(t, withoutIPv6Network())
	d := families(desired(service("c1", "web"), 80), loadbalancer.IPv6, loadbalancer.IPv4)
	plan := w.converge(&d)
	w.Expect(plan.Done()).To(BeTrue())
	w.Expect(plan.Notices).To(ConsistOf(HaveField("Message", HaveSuffix("the load balancer has an IPv4 address only"))))
	w.Expect(w.frontends(d.Owner)).To(ConsistOf(And(HaveField("V4", Not(BeEmpty())), HaveField("V6", BeEmpty()))))

	required := families(desired(service("c1", "both"), 80), loadbalancer.IPv4, loadbalancer.IPv6)
	required.AllFamilies = true
	before := w.left("c1")
	plan, err := w.plan(&required)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Steps).To(BeEmpty())
	w.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", lb.Unsupported),
		HaveField("Message", ContainSubstring("an IPv6 service network")))))
	w.Expect(w.left("c1")).To(Equal(before), "nothing is written")
}

func TestAGatewayWithoutIPv6Addresses(t *testing.T) {
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer.Fields = map[string]any{
		"serviceNetworkDefinition":     "192.168.255.1/25",
		"ipv6ServiceNetworkDefinition": "fd00:255::1/120",
	}
	w := newFixture(t, model)
	d := families(desired(service("c1", "web"), 80), loadbalancer.IPv4, loadbalancer.IPv6)
	plan := w.converge(&d)
	w.Expect(plan.Done()).To(BeTrue())
	w.Expect(plan.Notices).To(ConsistOf(HaveField("Message",
		"the edge gateway has no IPv6 addresses: the load balancer has an IPv4 address only")))
	w.Expect(w.frontends(d.Owner)).To(ConsistOf(And(HaveField("V4", Not(BeEmpty())), HaveField("V6", BeEmpty()))))

	only := families(desired(service("c1", "only"), 80), loadbalancer.IPv6, loadbalancer.IPv4)
	only.Families = only.Families[:1]
	plan, err := w.plan(&only)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", lb.NoFreeAddress),
		HaveField("Message", ContainSubstring("no IPv6 address is free")))))
	w.remove(d)
	w.Expect(w.left("")).To(BeEmpty())
}

// twoSpaces adds an IP Space with two addresses before the usual one.
func twoSpaces() vcdsim.Model {
	m := vcdsim.IPSpaces()
	small := vcdsim.PublicSpace("a-small", "internet")
	small.Internal = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	small.Prefixes = nil
	small.Ranges = []vcdsim.Range{{From: netip.MustParseAddr("192.0.2.10"), To: netip.MustParseAddr("192.0.2.11")}}
	m.IPSpaces = append([]vcdsim.IPSpace{small}, m.IPSpaces...)
	return m
}

func TestSeveralIPSpaces(t *testing.T) {
	inSmall := HavePrefix("192.0.2.")
	text := func(w *fixture, d *lb.Desired) string {
		plan := w.converge(d)
		w.Expect(plan.Done()).To(BeTrue())
		w.Expect(plan.Status.Addresses).To(HaveLen(1))
		return plan.Status.Addresses[0].String()
	}
	t.Run("the next space if the first is full", func(t *testing.T) {
		t.Parallel()
		w := newFixture(t, twoSpaces())
		balancers := make([]lb.Desired, 4)
		small := 0
		for i, name := range []string{"a", "b", "c", "d"} {
			balancers[i] = desired(service("c1", name), 80)
			if strings.HasPrefix(text(w, &balancers[i]), "192.0.2.") {
				small++
			}
		}
		w.Expect(small).To(Equal(2))
		w.remove(balancers...)
		w.Expect(w.left("")).To(BeEmpty())
	})
	t.Run("the next space if the organization's quota of the first is used up", func(t *testing.T) {
		t.Parallel()
		model := twoSpaces()
		model.IPSpaces[0].RangeQuota = 1
		w := newFixture(t, model)
		a := desired(service("c1", "a"), 80)
		b := desired(service("c1", "b"), 80)
		c := desired(service("c1", "c"), 80)
		w.Expect(text(w, &a)).To(inSmall)
		w.Expect(text(w, &b)).NotTo(inSmall)
		w.calls()
		w.Expect(text(w, &c)).NotTo(inSmall)
		_, _, calls := w.calls()
		w.Expect(calls).To(HaveKeyWithValue("POST /cloudapi/1.0.0/ipSpaces/allocate", 1),
			"the first space is not read again at once: %v", calls)
		w.remove(a, b, c)
		w.Expect(w.left("")).To(BeEmpty())
	})
	t.Run("the next space if other organizations use all of the first", func(t *testing.T) {
		t.Parallel()
		model := twoSpaces()
		for _, a := range []string{"192.0.2.10", "192.0.2.11"} {
			model.IPSpaces[0].Allocations = append(model.IPSpaces[0].Allocations,
				vcdsim.IPAllocation{Type: vcdsim.FloatingIP, Value: a, OrgID: "another"})
		}
		w := newFixture(t, model)
		d := desired(service("c1", "web"), 80)
		w.Expect(text(w, &d)).NotTo(inSmall)
		w.remove(d)
		w.Expect(w.left("c1")).To(BeEmpty())
	})
	t.Run("only the named space", func(t *testing.T) {
		t.Parallel()
		w := newFixture(t, twoSpaces())
		named := func(name, space string) lb.Desired {
			d := desired(service("c1", name), 80)
			d.IPSpace = space
			return d
		}
		a := named("a", "public")
		b := named("b", "a-small")
		c := named("c", "a-small")
		d := named("d", "a-small")
		w.Expect(text(w, &a)).NotTo(inSmall)
		w.Expect(text(w, &b)).To(inSmall)
		w.Expect(text(w, &c)).To(inSmall)
		plan, err := w.plan(&d)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(plan.Refusals).To(ConsistOf(HaveField("Message", ContainSubstring(`"a-small"`))))
		w.remove(a, b, c)
		w.Expect(w.left("")).To(BeEmpty())
	})
}
