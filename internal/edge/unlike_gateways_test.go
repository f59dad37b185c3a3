// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestPremiumFeaturesOnAStandardGatewayAreRejectedBeforeAnyWrite(t *testing.T) {
	model := vcdsim.K8sTenant()
	model.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer.Fields = map[string]any{"supportedFeatureSet": "STANDARD"}
	w := newFixture(t, model)
	d := desired(service("c1", "web"), 80)
	d.Algorithm = "LEAST_LOAD"
	w.calls()

	plan, err := w.round(&d)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", lb.Unsupported),
		HaveField("Message", ContainSubstring("LEAST_LOAD requires the feature set PREMIUM")))))
	_, writes, all := w.calls()
	w.Expect(writes).To(BeZero(), "%v", all)
	for _, standard := range []string{"ROUND_ROBIN", "LEAST_CONNECTIONS", "CONSISTENT_HASH"} {
		d.Algorithm = standard
		w.Expect(w.converge(&d).Done()).To(BeTrue(), standard)
	}
}

// VCD keeps the virtual IP of a virtual service that shares it.
func TestVirtualServicesThatShareAnAddressMoveToAnother(t *testing.T) {
	elsewhere := func(d *lb.Desired) { d.Requested = []netip.Addr{netip.MustParseAddr("203.0.113.77")} }
	for name, tt := range map[string]struct {
		desired lb.Desired
		change  func(*lb.Desired)
	}{
		"two ports":           {desired(service("c1", "web"), 80, 443), elsewhere},
		"TCP and UDP":         {withUDP(desired(service("c1", "web"), 80)), elsewhere},
		"out of one-arm mode": {oneArm(service("c1", "web"), 80, 443), func(d *lb.Desired) { d.OneArm = nil }},
		"into one-arm mode": {
			desired(service("c1", "web"), 80, 443),
			func(d *lb.Desired) { *d = oneArm(d.Owner, 80, 443) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, vcdsim.K8sTenant(), sharedVIPStays)
			d := tt.desired
			d.Published = w.converge(&d).Status.Addresses
			pools := w.idsOf("loadBalancer/pools")
			before := d
			tt.change(&d)
			d.Published = before.Published
			d.Intent = before.Intent

			done := w.written(&d)

			w.Expect(w.idsOf("loadBalancer/pools")).To(Equal(pools), "pools are kept")
			w.Expect(done).To(ContainElement(HavePrefix("delete virtual-service")))
			ruleDeleted := slices.IndexFunc(done, func(s string) bool { return strings.HasPrefix(s, "delete dnat-rule") })
			hadRule := before.OneArm != nil
			if !hadRule {
				w.Expect(ruleDeleted).To(Equal(-1))
			} else {
				w.Expect(ruleDeleted).NotTo(Equal(-1))
				w.Expect(done[ruleDeleted:]).NotTo(ContainElement(HavePrefix("create virtual-service")),
					"a rule is deleted when all virtual services have moved")
			}
			w.restart()
			plan := w.converge(&d)
			w.Expect(plan.Status.Addresses).To(Equal(append(d.Requested, d.Published...)[:1]))
			w.remove(d)
			w.Expect(w.left("")).To(BeEmpty())
		})
	}
}

// written returns the steps until none remain.
func (w *fixture) written(d *lb.Desired) []string {
	w.t.Helper()
	var done []string
	w.Eventually(func() bool {
		plan, err := w.plan(d)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(plan.Refusals).To(BeEmpty())
		d.Intent = append(d.Intent, plan.Intent...)
		for _, step := range plan.Steps {
			if err := w.driver.Run(w.t.Context(), w.gateway, step); err != nil {
				w.Expect(err).To(MatchError(loadbalancer.ErrBusy))
				return false
			}
			done = append(done, step.String())
		}
		return len(plan.Steps) == 0 && plan.Wait == ""
	}).Should(BeTrue())
	return done
}

func sharedVIPStays(c *vcdsim.Config) {
	c.Assumptions = ptr(vcdsim.DefaultAssumptions())
	c.Assumptions.SharedVIPStays = true
}

// A rejection for another reason is not a reason to delete a virtual service.
func TestAVirtualServiceIsNotDeletedForAnotherRefusal(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80, 443)
	w.converge(&d)
	before := w.idsOf("loadBalancer/virtualServices")
	w.sim.Faults().Add(vcdsim.Fault{
		Operation: "PUT /cloudapi/1.0.0/loadBalancer/virtualServices*",
		Status:    400,
		Message:   "no",
	})
	d.Requested = []netip.Addr{netip.MustParseAddr("203.0.113.77")}
	d.Listeners[0].Application = lb.HTTP

	for range 3 {
		_, err := w.round(&d)
		w.Expect(err).To(MatchError(loadbalancer.ErrRefused))
	}

	w.Expect(w.idsOf("loadBalancer/virtualServices")).To(Equal(before))
}

func withUDP(d lb.Desired) lb.Desired {
	d.Listeners = append(d.Listeners,
		lb.Listener{Name: "dns", Protocol: loadbalancer.UDP, Application: lb.L4, Port: 80, NodePort: 30053})
	return d
}

// idsOf returns the sorted IDs of the objects of a kind.
func (w *fixture) idsOf(path string) []string {
	var out []string
	for _, doc := range w.sim.State().Documents {
		if strings.HasSuffix(doc.Path, path) {
			var body struct{ ID string }
			w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
			out = append(out, body.ID)
		}
	}
	slices.Sort(out)
	return out
}

// In a VDC group, IP sets belong to the group: the IP sets of all its gateways are in one list, with unique names.
func TestIPSetsOfTwoGatewaysInAVDCGroup(t *testing.T) {
	model := vcdsim.VDCGroupTenant()
	second := model.Orgs[1].VDCs[0].EdgeGateways[0]
	second.Name = "acme-vdc-gateway-2"
	second.Uplinks = []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Addresses: []vcdsim.Range{{
				From: netip.MustParseAddr("203.0.113.100"),
				To:   netip.MustParseAddr("203.0.113.120"),
			}},
		}},
	}}
	model.Orgs[1].VDCs[0].EdgeGateways = append(model.Orgs[1].VDCs[0].EdgeGateways, second)
	w := newFixture(t, model)
	other := *w
	other.gateway = vcdsim.URN("gateway", w.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
	one := desired(service("c1", "one"), 80)
	two := desired(service("c1", "two"), 80)

	w.Expect(w.converge(&one).Done()).To(BeTrue())
	w.Expect(other.converge(&two).Done()).To(BeTrue())

	w.Expect(w.sets()).To(ConsistOf(
		And(ContainSubstring("acme-vdc-gateway-"), Not(ContainSubstring("acme-vdc-gateway-2"))),
		ContainSubstring("acme-vdc-gateway-2-"),
	))
	members := func(d *lb.Desired) { d.Members = append(d.Members, netip.MustParseAddr("192.168.100.13")) }
	members(&one)
	members(&two)
	w.converge(&one)
	other.converge(&two)
	w.Expect(w.sets()).To(HaveEach(ContainSubstring("192.168.100.13")))

	purge := func(gateway string, gone bool) error {
		return w.driver.Purge(t.Context(), gateway, edge.PurgeOptions{Cluster: "c1", Gone: gone})
	}
	w.Expect(purge(w.gateway, false)).To(Succeed(), "objects of the other gateway are not included")
	w.Expect(w.sets()).To(ConsistOf(ContainSubstring("acme-vdc-gateway-2-")))
	w.Expect(other.converge(&two).Done()).To(BeTrue())

	w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteGateway(other.gateway) })
	w.Expect(purge(other.gateway, true)).To(Succeed(), "the gateway is gone, and its IP set remains in the group")
	w.Expect(w.sets()).To(BeEmpty())
}

// sets returns the names and addresses of all IP sets.
func (w *fixture) sets() []string {
	var out []string
	for _, doc := range w.sim.State().Documents {
		if strings.HasSuffix(doc.Path, "firewallGroups") {
			var body struct {
				Name        string
				IPAddresses []string
			}
			w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
			out = append(out, fmt.Sprint(body.Name, body.IPAddresses))
		}
	}
	return out
}
