// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAnAddressThatAServiceReleasedIsNoLongerRecorded(t *testing.T) {
	c := newCluster(t, vcdsim.K8sTenant(), network("", "nodes"))
	s := c.service("shop")
	first := c.ensured(t, s)
	c.Expect(c.records(t)[s.UID]).To(ContainSubstring(first))
	s.Spec.LoadBalancerIP = "203.0.113.33"
	c.Expect(c.services.Update(s)).To(Succeed())

	c.Expect(c.ensured(t, s)).To(Equal("203.0.113.33"))

	c.Expect(c.records(t)[s.UID]).NotTo(ContainSubstring("addresses"),
		"an address that is asked for by name need not be recorded")
}
