// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAnInheritedOneArmRangeMeansRules(t *testing.T) {
	g := NewWithT(t)
	c := &infrav1.VCDCluster{}
	c.Spec.RecordedState.InheritedLoadBalancer.VIPSubnet = "203.0.113.0/24"
	g.Expect(usesNAT(c)).To(BeFalse())

	c.Spec.RecordedState.InheritedLoadBalancer.OneArm = infrav1.AddressRange{
		StartIP: "192.168.8.2",
		EndIP:   "192.168.8.100",
	}
	g.Expect(usesNAT(c)).To(BeTrue())
}
