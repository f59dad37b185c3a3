// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// marksOf returns the descriptions of a cluster's floating IPs.
func (w *fixture) marksOf(cluster string) (out []string) {
	for _, a := range w.sim.State().Model.IPSpaces[0].Allocations {
		if strings.Contains(a.Description, "cluster="+cluster) {
			out = append(out, a.Description)
		}
	}
	return out
}

// share creates two load balancers that share an address, and returns it.
func (w *fixture) share(one, two *lb.Desired) []netip.Addr {
	one.Share = "both"
	two.Share = "both"
	address := w.converge(one).Status.Addresses
	w.Expect(w.converge(two).Status.Addresses).To(Equal(address))
	return address
}

func TestASharedFloatingIPIsKeptForItsOtherUser(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	one := desired(service("c1", "one"), 80)
	two := desired(service("c1", "two"), 81)
	address := w.share(&one, &two)
	gone := absent(one)
	w.converge(&gone)

	w.Expect(w.marksOf("c1")).To(ConsistOf(ContainSubstring("uid=uid-c1-two")))
	w.Expect(w.converge(&two).Status.Addresses).To(Equal(address))

	gone = absent(two)
	w.converge(&gone)
	w.Expect(w.marksOf("c1")).To(BeEmpty())
}

func TestAFloatingIPUsedByForeignRulesIsNotReleased(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	one := desired(service("c1", "one"), 80)
	two := oneArm(service("c1", "two"), 81)
	address := w.share(&one, &two)

	one.Internal = true
	one.Subnet = netip.MustParsePrefix("192.168.77.0/24")

	w.Expect(w.converge(&one).Status.Addresses).NotTo(Equal(address))
	w.Expect(w.marksOf("c1")).To(ConsistOf(ContainSubstring("uid=" + two.Owner.UID)))
	w.Expect(w.converge(&two).Status.Addresses).To(Equal(address))
	w.remove(one, two)
	w.Expect(w.marksOf("c1")).To(BeEmpty())
}

// TestTCPAndUDPOnOnePortShareAnAddress covers a DNS server, which listens on both. Services of both kinds may share an
// address.
func TestTCPAndUDPOnOnePortShareAnAddress(t *testing.T) {
	for name, model := range map[string]func(loadbalancer.Owner, int) lb.Desired{
		"two-arm": func(o loadbalancer.Owner, port int) lb.Desired { return desired(o, port) },
		"one-arm": func(o loadbalancer.Owner, port int) lb.Desired { return oneArm(o, port) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, vcdsim.CloudProvider())
			one := model(service("c1", "one"), 53)
			two := model(service("c1", "two"), 53)
			two.Listeners[0].Protocol = loadbalancer.UDP
			two.Listeners[0].Monitor = lb.MonitorUDP

			address := w.share(&one, &two)

			w.Expect(w.converge(&one).Status.Addresses).To(Equal(address))
			w.Expect(w.converge(&two).Status.Addresses).To(Equal(address))
			both := model(service("c1", "both"), 54)
			both.Listeners = append(both.Listeners, both.Listeners[0])
			both.Listeners[1].Protocol = loadbalancer.UDP
			both.Listeners[1].Monitor = lb.MonitorUDP
			w.Expect(w.converge(&both).Status.Addresses).To(HaveLen(1))
			w.Expect(w.converge(&both).Refusals).To(BeEmpty())
			w.remove(one, two, both)
		})
	}
}
