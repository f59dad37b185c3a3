// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

// stickiness returns the policies of all rules, by port, sorted by rule.
func (s *scene) stickiness() []string {
	var out []string
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		for _, p := range s.sim.Objects(cloudstacksim.Policies) {
			if p["lbruleid"] == r["id"] {
				out = append(out, fmt.Sprintf("%v/%v %v %v %v", r["publicport"], r["protocol"], p["name"], p["methodname"], p["params"]))
			}
		}
	}
	return out
}

func TestStickinessIsSetChangedAndRemoved(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.service.Spec.Ports = append(s.service.Spec.Ports, corev1.ServicePort{Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053})
	s.annotate("stickiness", "lbcookie cookie-name=shop, nocache")
	s.converge(false)
	s.Expect(s.stickiness()).To(Equal([]string{"80/tcp kubernetes LbCookie map[cookie-name:shop nocache:true]"}), "UDP has no stickiness")
	s.restart()
	s.Expect(s.steps(false)).To(BeEmpty(), "a new process observes the same")

	s.annotate("stickiness", "SourceBased expire=30m")
	s.Expect(s.steps(false)).To(Equal([]string{"set the stickiness of au1-tcp-80 to SourceBased"}))
	s.converge(false)
	s.Expect(s.stickiness()).To(Equal([]string{"80/tcp kubernetes SourceBased map[expire:30m]"}))

	s.service.Spec.Ports[0].NodePort = 31000
	s.converge(false)
	s.Expect(s.stickiness()).To(HaveLen(1), "a recreated rule has it, too")

	s.annotate("stickiness", "")
	s.restart()
	s.Expect(s.steps(false)).To(Equal([]string{
		"remove the stickiness of au1-tcp-80",
		"change rule au1-tcp-80: description kubernetes cluster=c1 uid=u1 service=shop/web",
	}))
	s.converge(false)
	s.Expect(s.stickiness()).To(BeEmpty())
	s.Expect(s.steps(false)).To(BeEmpty())
	s.sim.Calls()
	s.restart()
	s.Expect(s.steps(false)).To(BeEmpty())
	s.Expect(s.sim.Calls()).NotTo(ContainElement("listLBStickinessPolicies"), "unknown rules are not read")
}

func TestManuallySetStickinessIsKept(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.converge(false)
	rule := s.sim.Objects(cloudstacksim.Rules)[0]["id"]
	s.sim.Add(cloudstacksim.Policies, cloudstacksim.Object{
		"lbruleid":   rule,
		"name":       "mine",
		"methodname": "LbCookie",
		"params":     cloudstacksim.Object{},
		"state":      "Active",
	})
	s.restart()
	s.converge(false)
	s.Expect(s.stickiness()).To(Equal([]string{"80/tcp mine LbCookie map[]"}))

	s.annotate("stickiness", "SourceBased")
	s.converge(false)
	s.Expect(s.stickiness()).To(Equal([]string{"80/tcp kubernetes SourceBased map[]"}), "a rule has one policy")
	s.sim.Delete(cloudstacksim.Policies, func(cloudstacksim.Object) bool { return true })
	s.restart()
	s.converge(false)
	s.Expect(s.stickiness()).To(HaveLen(1), "a manually removed policy is restored")
}

func TestStickinessSurvivesEachFault(t *testing.T) {
	for _, done := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			for skip := range 40 {
				if !stickyLife(t, cloudstacksim.Fault{Skip: skip, Done: done}, restarts) {
					break
				}
			}
		}
	}
}

// stickyLife sets and removes stickiness, each with the fault, and reports whether the fault occurred.
func stickyLife(t *testing.T, f cloudstacksim.Fault, restarts bool) (met bool) {
	t.Helper()
	s := newScene(t, cloudstacksim.Options{}, "")
	live := func(absent bool) {
		s.sim.Fail(f)
		for range 12 {
			p, err := s.round(absent)
			if err != nil {
				met = true
				if restarts {
					s.restart()
				}
				continue
			}
			if p.Done() {
				s.sim.Heal()
				s.converge(absent)
				return
			}
		}
		t.Fatalf("fault %+v: it does not converge", f)
	}
	s.annotate("stickiness", "SourceBased")
	live(false)
	s.Expect(s.stickiness()).To(HaveLen(2), "fault %+v", f)
	s.annotate("stickiness", "")
	live(false)
	s.Expect(s.stickiness()).To(BeEmpty(), "fault %+v", f)
	s.annotate("stickiness", "LbCookie")
	live(false)
	live(true)
	s.Expect(s.left()).To(BeZero(), "fault %+v", f)
	s.Expect(s.sim.Objects(cloudstacksim.Policies)).To(BeEmpty(), "fault %+v", f)
	return met
}

func TestInvalidStickiness(t *testing.T) {
	for value, says := range map[string]string{
		"Cookie":                  `"Cookie" is not a stickiness method: use LbCookie, AppCookie, SourceBased`,
		"LbCookie cookie-name=":   `"cookie-name=" is not a parameter: use name=value`,
		"SourceBased =x expire=1": `"=x" is not a parameter`,
	} {
		t.Run(value, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, "")
			s.annotate("stickiness", value)

			s.Expect(s.requestOf(s.service, nil).Refusals).To(ContainElement(HaveField("Message", ContainSubstring(says))))
		})
	}
	s := newScene(t, cloudstacksim.Options{}, "")
	s.annotate("stickiness", "SourceBased bad=1")
	_, err := s.round(false)
	s.Expect(err).To(MatchError(ContainSubstring("bad is not a parameter of the method")), "CloudStack supports its parameters")
	s.annotate("stickiness", "SourceBased")
	s.converge(false)
	s.Expect(s.stickiness()).To(HaveLen(2))
}
