// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestANetworkThatDoesNotExistIsNamed: the original crashed. A Service waits, with the reason as its event, also after a
// restart, and gets its address once the network is there.
func TestANetworkThatDoesNotExistIsNamed(t *testing.T) {
	later := network("", "later")
	c := newCluster(t, vcdsim.K8sTenant(), later)
	s := c.service("shop")

	for range 3 {
		_, err := c.them.EnsureLoadBalancer(t.Context(), "", s, nil)
		c.Expect(err).To(MatchError(ContainSubstring("see its events")))
		c.Expect(c.events.Events).To(Receive(And(ContainSubstring(`"later"`), ContainSubstring("does not exist in the cluster's VDCs"))))
		c.configure(t, later)
		c.node("a", "192.168.100.11")
		c.Expect(c.services.Update(s.DeepCopy())).To(Succeed())
	}
	c.Expect(c.writes()).To(BeZero())

	c.sim.Edit(func(e *vcdsim.Editor) { e.VDC("acme-vdc").Networks[0].Name = "later" })
	c.Expect(c.ensured(t, s)).NotTo(BeEmpty())
}
