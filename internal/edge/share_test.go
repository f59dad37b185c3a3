// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// marksOf are the descriptions of floating IPs that a cluster has.
func (w *fixture) marksOf(cluster string) (out []string) {
	for _, a := range w.sim.State().Model.IPSpaces[0].Allocations {
		if strings.Contains(a.Description, "cluster="+cluster) {
			out = append(out, a.Description)
		}
	}
	return out
}

// share makes two load balancers that share an address, and returns it.
func (w *fixture) share(one, two *lb.Desired) []netip.Addr {
	one.Share = "both"
	two.Share = "both"
	address := w.insist(one).Status.Addresses
	w.Expect(w.insist(two).Status.Addresses).To(Equal(address))
	return address
}

func TestAFloatingIPThatTwoShareStaysWithTheOther(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	one := desired(service("c1", "one"), 80)
	two := desired(service("c1", "two"), 81)
	address := w.share(&one, &two)
	gone := absent(one)
	w.insist(&gone)

	w.Expect(w.marksOf("c1")).To(ConsistOf(ContainSubstring("uid=uid-c1-two")))
	w.Expect(w.insist(&two).Status.Addresses).To(Equal(address))

	gone = absent(two)
	w.insist(&gone)
	w.Expect(w.marksOf("c1")).To(BeEmpty())
}

func TestAFloatingIPThatAnotherUsesByRulesIsNotGivenBack(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	one := desired(service("c1", "one"), 80)
	two := oneArm(service("c1", "two"), 81)
	address := w.share(&one, &two)

	one.Internal = true
	one.Subnet = netip.MustParsePrefix("192.168.77.0/24")

	w.Expect(w.insist(&one).Status.Addresses).NotTo(Equal(address))
	w.Expect(w.marksOf("c1")).To(ConsistOf(ContainSubstring("uid=" + two.Owner.UID)))
	w.Expect(w.insist(&two).Status.Addresses).To(Equal(address))
	w.remove(one, two)
	w.Expect(w.marksOf("c1")).To(BeEmpty())
}
