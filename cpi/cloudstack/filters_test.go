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

// loseRules deletes all load balancer rules, as a person does.
func (s *scene) loseRules() {
	s.sim.Delete(cloudstacksim.Rules, func(cloudstacksim.Object) bool { return true })
	s.restart()
}

func TestFirewallRulesAreOursThoughTheLoadBalancerRuleVanished(t *testing.T) {
	tests := map[string]func(*scene){
		"made by us":       func(*scene) {},
		"of the original":  func(s *scene) { s.legacy("203.0.113.5", func(p int32) string { return fmt.Sprintf("au1-tcp-%d", p) }) },
		"with a lost mark": func(s *scene) { s.sim.Fail(cloudstacksim.Fault{Command: "createTags"}) },
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
			s.Expect(s.opened()).To(Equal([]string{"80/tcp 192.0.2.0/24"}), "ranges have an effect")
			for _, r := range s.sim.Objects(cloudstacksim.Rules) {
				s.Expect(r["description"]).NotTo(ContainSubstring("keep="))
			}
			s.loseRules()
			s.Expect(s.balancer.Owners(t.Context(), s.network)).To(HaveLen(1), "what stands has an owner")
			s.converge(true)
			s.Expect(s.opened()).To(BeEmpty())
		})
	}
}
