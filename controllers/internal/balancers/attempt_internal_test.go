// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAnInheritedOneArmRangeMeansRules(t *testing.T) {
	for note, want := range map[string]bool{
		"":                                       false,
		`{"vipSubnet":"203.0.113.0/24"}`:         false,
		`{"oneArm":"192.168.8.2-192.168.8.100"}`: true,
		"not JSON":                               true,
	} {
		c := &infrav1.VCDCluster{}
		c.Annotations = map[string]string{infrav1.CloudProviderInheritedAnnotation: note}

		NewWithT(t).Expect(usesNAT(c)).To(Equal(want), note)
	}
}
