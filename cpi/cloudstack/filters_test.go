// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

// atAnAddressOfTheAccount returns a Service that requests an address of the account.
func atAnAddressOfTheAccount(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.sim.Allocate("203.0.113.5", s.network)
	s.service.Spec.LoadBalancerIP = "203.0.113.5"
	return s
}

// loseRules deletes all load balancer rules, as a user does.
func (s *scene) loseRules() {
	s.sim.Delete(cloudstacksim.Rules, func(cloudstacksim.Object) bool { return true })
	s.restart()
}

func TestFirewallRulesAreOwnedAfterTheirLoadBalancerRuleVanished(t *testing.T) {
	tests := map[string]func(*scene){
		"created by us":           func(*scene) {},
		"of the original program": func(s *scene) { s.legacy("203.0.113.5", func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) }) },
		"with a lost marker":      func(s *scene) { s.sim.Fail(cloudstacksim.Fault{Command: "createTags"}) },
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			s := atAnAddressOfTheAccount(t)
			before(s)
			if _, err := s.round(false); err != nil {
				s.restart()
			}
			s.converge(false)

			s.loseRules()
			s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			p := s.converge(false)

			s.Expect(p.Notices).To(BeEmpty())
			s.Expect(s.opened()).To(Equal([]string{"80/tcp 192.0.2.0/24"}), "ranges are effective")
			for _, r := range s.sim.Objects(cloudstacksim.Rules) {
				s.Expect(r["description"]).NotTo(ContainSubstring("keep="))
			}
			s.loseRules()
			s.Expect(s.balancer.Owners(t.Context(), s.network)).To(HaveLen(1), "existing rules have an owner")
			s.converge(true)
			s.Expect(s.opened()).To(BeEmpty())
		})
	}
}

func TestClientsAllowedByForeignRules(t *testing.T) {
	const whole = "allows 0.0.0.0/0 to connect to port 80"
	tests := []struct {
		name   string
		tier   bool
		rule   cloudstacksim.Object
		notice string // empty: none
	}{
		{name: "of the original program in a tier", tier: true, rule: cloudstacksim.Object{"startport": "80", "endport": "80", "cidrlist": "0.0.0.0/0"}, notice: whole},
		{name: "a range of ports in a tier", tier: true, rule: cloudstacksim.Object{"startport": "1", "endport": "1024", "cidrlist": "0.0.0.0/0"}, notice: whole},
		{name: "all protocols in a tier", tier: true, rule: cloudstacksim.Object{"protocol": "all", "cidrlist": "0.0.0.0/0"}, notice: whole},
		{name: "no CIDRs in a tier", tier: true, rule: cloudstacksim.Object{"startport": "80", "endport": "80", "cidrlist": ""}, notice: whole},
		{
			name: "another Service's in a tier",
			tier: true,
			rule: cloudstacksim.Object{
				"startport": "80",
				"endport":   "80",
				"cidrlist":  "10.0.0.0/8",
				"reason":    "kubernetes cluster=c1 uid=u2 service=shop/x",
			},
			notice: "allows 10.0.0.0/8 to connect to port 80",
		},
		{name: "some of the ranges in a tier", tier: true, rule: cloudstacksim.Object{"startport": "80", "endport": "80", "cidrlist": "192.0.2.7/32"}},
		{name: "another port in a tier", tier: true, rule: cloudstacksim.Object{"startport": "81", "endport": "90", "cidrlist": "0.0.0.0/0"}},
		{
			name: "another protocol in a tier",
			tier: true,
			rule: cloudstacksim.Object{
				"protocol":  "udp",
				"startport": "80",
				"endport":   "80",
				"cidrlist":  "0.0.0.0/0",
			},
		},
		{
			name: "a deny rule in a tier",
			tier: true,
			rule: cloudstacksim.Object{
				"startport": "80",
				"endport":   "80",
				"cidrlist":  "0.0.0.0/0",
				"action":    "Deny",
			},
		},
		{
			name: "to outside, in a tier",
			tier: true,
			rule: cloudstacksim.Object{
				"startport":   "80",
				"endport":     "80",
				"cidrlist":    "0.0.0.0/0",
				"traffictype": "Egress",
			},
		},
		{name: "a range of ports", rule: cloudstacksim.Object{"startport": 1, "endport": 1024, "cidrlist": "0.0.0.0/0"}, notice: whole},
		{name: "a range of other ports", rule: cloudstacksim.Object{"startport": 81, "endport": 1024, "cidrlist": "0.0.0.0/0"}},
		{name: "some of the ranges", rule: cloudstacksim.Object{"startport": 80, "endport": 80, "cidrlist": "192.0.2.7/32"}},
		{
			name: "a range of ports for the same clients",
			rule: cloudstacksim.Object{"startport": 1, "endport": 1024, "cidrlist": "192.0.2.0/24"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := atAnAddressOfTheAccount(t)
			if tt.tier {
				s = newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
				s.service = web("u1", 80)
			}
			s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
			rule := cloudstacksim.Object{"protocol": "tcp", "state": "Active"}
			kind := cloudstacksim.Firewalls
			if tt.tier {
				kind = cloudstacksim.ACLs
				rule["aclid"] = s.sim.Objects(cloudstacksim.Networks)[0]["aclid"]
				rule["action"] = "Allow"
				rule["traffictype"] = "Ingress"
			} else {
				rule["networkid"] = s.network
				rule["ipaddressid"] = s.addressID("203.0.113.5")
			}
			for key, value := range tt.rule {
				rule[key] = value
			}
			s.sim.Add(kind, rule)
			before := s.opened()

			p := s.converge(false)

			if tt.notice == "" {
				s.Expect(p.Notices).To(BeEmpty())
			} else {
				s.Expect(p.Notices).To(HaveExactElements(And(
					HaveField("Reason", "ConflictingFirewallRule"), HaveField("Message", ContainSubstring(tt.notice)),
				)))
			}
			s.converge(true)
			s.Expect(s.opened()).To(Equal(before), "foreign rules are kept")
		})
	}
}
