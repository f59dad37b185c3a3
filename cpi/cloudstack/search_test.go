// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack/cloudstacksim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// moveDefaultNICs adds a NIC in a new network to each machine, makes it the default NIC, and returns the ID of that
// network.
func (s *scene) moveDefaultNICs(name, vpc string) string {
	network := s.sim.AddNetwork(name, vpc)
	s.sim.Edit(cloudstacksim.VMs, func(o cloudstacksim.Object) bool {
		nics, _ := o["nic"].([]cloudstacksim.Object)
		for _, nic := range nics {
			nic["isdefault"] = false
		}
		o["nic"] = append(nics, cloudstacksim.Object{"networkid": network, "ipaddress": "10.3.0.1", "isdefault": true})
		return true
	})
	return network
}

// ofOriginal returns the name of the original program's rule for a Service.
func ofOriginal(uid string) func(int32) string {
	return func(p int32) string { return fmt.Sprintf("a%s-tcp-%d", uid, p) }
}

// TestRulesOfTheOriginalInTheNetworkOfTheFirstNICAreAdopted covers the network of the first NIC, which the original
// program used. It need not be the network of the default NIC.
func TestRulesOfTheOriginalInTheNetworkOfTheFirstNICAreAdopted(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.moveDefaultNICs("storage", "")
	s.legacy("203.0.113.5", ofOriginal("u1"))
	s.restart()

	network, err := s.balancer.Locate(t.Context(), "")

	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(network).To(Equal(s.network))
	s.Expect(s.converge(false).Status.Addresses).To(HaveLen(1))
	s.Expect(s.allocated()).To(Equal([]string{"203.0.113.5*"}), "clients keep the address")
	s.converge(true)
	s.Expect(s.left()).To(BeZero())
}

func TestRulesOfAnotherClusterDoNotSelectTheNetwork(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	storage := s.moveDefaultNICs("storage", "")
	s.legacy("203.0.113.5", ofOriginal("u9"))
	s.restart()

	s.Expect(s.balancer.Locate(t.Context(), "")).To(Equal(storage))
}

func TestLocationsOfAService(t *testing.T) {
	owner := loadbalancer.Owner{Cluster: "c1", Namespace: "shop", Name: "web", UID: "u1"}
	for name, vpc := range map[string]string{"in an isolated network": "", "in a tier of a VPC": cloudstacksim.VPCID} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, cloudstacksim.Options{}, vpc)
			s.sim.AddNetwork("empty", "")
			s.neighbor()
			s.Expect(s.balancer.Search(t.Context(), owner, true)).To(BeEmpty(), "it has nothing yet")
			s.converge(false)
			remove := func(kinds ...string) {
				for _, kind := range kinds {
					s.sim.Delete(kind, func(o cloudstacksim.Object) bool { return o["state"] != "Free" })
				}
			}

			s.Expect(s.balancer.Search(t.Context(), owner, true)).To(Equal([]string{s.network}))
			remove(cloudstacksim.Rules)
			s.Expect(s.balancer.Search(t.Context(), owner, true)).To(Equal([]string{s.network}), "an address or a filter")
			remove(cloudstacksim.Addresses)
			s.Expect(s.balancer.Search(t.Context(), owner, true)).To(Equal([]string{s.network}), "a filter")
			remove(cloudstacksim.Firewalls, cloudstacksim.ACLs)
			s.Expect(s.balancer.Search(t.Context(), owner, true)).To(BeEmpty())
		})
	}
}

func TestAnAddressWithoutRulesIsFoundInItsVPC(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, cloudstacksim.VPCID)
	s.converge(false)
	for _, kind := range []string{cloudstacksim.Rules, cloudstacksim.ACLs} {
		s.sim.Delete(kind, func(cloudstacksim.Object) bool { return true })
	}
	s.sim.Edit(cloudstacksim.Addresses, func(o cloudstacksim.Object) bool {
		delete(o, "associatednetworkid")
		return true
	})

	s.Expect(s.balancer.Search(t.Context(), s.owned()[0], true)).To(Equal([]string{s.network}))
	s.sim.Delete(cloudstacksim.Networks, func(cloudstacksim.Object) bool { return true })
	_, err := s.balancer.Search(t.Context(), s.owned()[0], true)
	s.Expect(err).To(MatchError(ContainSubstring("release it")))
}

// TestAllServicesShareTheSearchForTheDefaultNetwork checks that waiting Services share one search. Each of them
// requests it every few seconds until the network is known.
func TestAllServicesShareTheSearchForTheDefaultNetwork(t *testing.T) {
	s := newScene(t, cloudstacksim.Options{}, "")
	s.nodes = nil
	s.sim.AddNetwork("other", "")
	s.sim.Calls()

	for range 100 {
		_, err := s.balancer.Locate(t.Context(), "")
		s.Expect(err).To(MatchError(loadbalancer.ErrBusy))
	}

	s.Expect(s.sim.Calls()).To(ConsistOf("listNetworks", "listLoadBalancerRules", "listVirtualMachines"))
}
