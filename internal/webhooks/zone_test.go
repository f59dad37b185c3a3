// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

const someVDC = "urn:vcloud:vdc:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e"

func TestFailureDomainWithWhatCannotBeIsRefused(t *testing.T) {
	g := NewWithT(t)

	_, err := failureDomainValidator().ValidateCreate(request(false), &infrav1.VCDFailureDomain{
		Spec: infrav1.VCDFailureDomainSpec{
			Region: "r 1",
			Zone:   "z1",
			OVDC:   "urn:vcloud:vapp:0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e",
		},
	})

	g.Expect(refusedFields(g, err)).To(ConsistOf("spec.ovdc", "spec.region"))
}

func TestZoneWithWhatCannotBeIsRefused(t *testing.T) {
	g := NewWithT(t)
	z := &infrav1.VCDDeploymentZone{}
	z.Name = strings.Repeat("z", 64)
	z.Spec.PlacementConstraint = infrav1.PlacementConstraint{
		Networks:       []string{"nodes", someVDC},
		StorageProfile: someVDC,
		SizingPolicy:   someVDC,
		Catalog:        someVDC,
	}

	_, err := deploymentZoneValidator().ValidateCreate(request(false), z)

	g.Expect(refusedFields(g, err)).To(ConsistOf("metadata.name", "spec.placementConstraint.networks[1]",
		"spec.placementConstraint.storageProfile", "spec.placementConstraint.sizingPolicy",
		"spec.placementConstraint.catalog"))
}
