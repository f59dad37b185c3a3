// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
)

const nextAddress = "203.0.113.7"

// atOneAddress returns a load balancer at its own associated address, and another address of the account.
func atOneAddress(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.annotate("address", "203.0.113.5")
	s.converge(false)
	s.sim.Allocate(nextAddress, s.network)
	s.restart()
	return s
}

func TestTheOldAddressIsReleasedOnceTheNewOneServes(t *testing.T) {
	s := atOneAddress(t)
	s.annotate("address", nextAddress)

	s.Expect(withoutIDs(s.steps(false))).To(Equal([]string{
		"create rule au1-tcp-80, 203.0.113.7:80/tcp to node port 30080", "send au1-tcp-80 to node-0, node-1, node-2",
		"open the firewall of 203.0.113.7:80/tcp for 0.0.0.0/0", "tag the new firewall rules of 203.0.113.7",
		"delete firewall rule ID", "delete rule au1-tcp-80, 203.0.113.5:80/tcp", "release the address 203.0.113.5",
	}))
	_, err := s.round(false)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.rules()).To(Equal([]string{"au1-tcp-80 203.0.113.7:80>30080 tcp roundrobin"}), "in one round")
	s.Expect(s.steps(false)).To(BeEmpty())
	s.restart()
	s.Expect(s.steps(false)).To(BeEmpty(), "a new process observes the same")
	for _, r := range s.sim.Objects(cloudstacksim.Rules) {
		s.Expect(s.sim.Members(r["id"].(string))).To(HaveLen(3))
		s.Expect(r["description"]).NotTo(ContainSubstring("keep="))
	}

	s.service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	p := s.converge(false)
	s.Expect(p.Notices).To(BeEmpty())
	s.Expect(s.opened()).To(Equal([]string{"80/tcp 192.0.2.0/24"}))
	s.converge(true)
	s.Expect(s.opened()).To(BeEmpty())
	s.Expect(s.allocated()).To(Equal([]string{nextAddress}), "it now belongs to the account")
}

// If a release takes longer than the wait for its job, CloudStack finishes it.
func TestAnAddressBeingReleasedIsAwaited(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.converge(false)
	set := func(state string) {
		s.sim.Edit(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool {
			if o["state"] != "Free" {
				o["state"] = state
			}
			return true
		})
		s.restart()
	}
	old := s.allocated()[0]
	set("Releasing")
	s.sim.Delete(cloudstacksim.Rules, func(cloudstacksim.Object) bool { return true })
	s.sim.Delete(cloudstacksim.Firewalls, func(cloudstacksim.Object) bool { return true })

	p, err := s.plan(true)

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(p.Steps).To(BeEmpty(), "CloudStack rejects a second release")
	s.Expect(p.Wait).To(ContainSubstring("is being released"))
	p = s.converge(false)
	s.Expect(p.Status.Addresses[0].String()+"*").NotTo(Equal(old), "a recreated Service gets another address")
	s.service.Spec.LoadBalancerIP = strings.TrimSuffix(old, "*")
	p, err = s.plan(false)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(p.Refusals).To(ContainElement(HaveField("Message", ContainSubstring("is being released"))))
	s.service.Spec.LoadBalancerIP = ""
	set("Allocated")
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestTheOldAddressIsKeptWhileTheNewOneCannotServe(t *testing.T) {
	s := atOneAddress(t)
	s.annotate("address", nextAddress)
	s.sim.Fail(cloudstacksim.Fault{Command: "createLoadBalancerRule", Times: -1})

	for range 3 {
		_, err := s.round(false)
		s.Expect(err).To(HaveOccurred())
		s.Expect(s.rules()).To(Equal([]string{"au1-tcp-80 203.0.113.5:80>30080 tcp roundrobin"}))
		s.Expect(s.opened()).To(Equal([]string{"80/tcp 0.0.0.0/0"}))
		s.Expect(s.allocated()).To(Equal([]string{"203.0.113.5*", nextAddress}))
	}

	s.annotate("address", "203.0.113.5")
	s.sim.Heal()
	s.Expect(s.converge(false).Status.Addresses).To(Equal([]netip.Addr{netip.MustParseAddr("203.0.113.5")}))
}

func TestTheServingAddressIsKeptDuringAnAddressChange(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.service = web("u1", 80)
	s.annotate("address", nextAddress)
	s.converge(false)
	s.annotate("address", "203.0.113.5")
	s.sim.Fail(cloudstacksim.Fault{Command: "createLoadBalancerRule"})
	_, err := s.round(false)
	s.Expect(err).To(HaveOccurred())
	s.Expect(s.allocated()).To(Equal([]string{"203.0.113.5*", nextAddress + "*"}))

	s.annotate("address", "")
	s.restart()
	p := s.converge(false)

	s.Expect(p.Status.Addresses).To(Equal([]netip.Addr{netip.MustParseAddr(nextAddress)}))
	s.Expect(s.allocated()).To(Equal([]string{nextAddress + "*"}))
}
