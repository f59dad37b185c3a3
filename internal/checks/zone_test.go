// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
)

func TestAZoneMustBeInTheSiteAndOrganizationOfItsCluster(t *testing.T) {
	t.Parallel()
	const site = "https://vcd.example.com"
	tests := []struct {
		name   string
		site   string
		org    string
		remedy string // empty: no finding
	}{
		{"the same", site, "acme", ""},
		{"the same site, written in another way", "https://VCD.example.com:443/", "acme", ""},
		{"another site", "https://vcd.example.org", "acme", "use a zone of the same site"},
		{"another organization", site, "other", "use a zone of the same organization"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			c := &infrav1.VCDCluster{Spec: infrav1.VCDClusterSpec{Site: site, Org: "acme"}}
			z := &infrav1.VCDDeploymentZone{Spec: infrav1.VCDDeploymentZoneSpec{Site: tt.site, Org: tt.org}}

			found := checks.Zone(c, z)

			if tt.remedy == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).To(HaveValue(And(HaveField("Reason", infrav1.FailureDomainMismatchReason),
				HaveField("Remedy", tt.remedy))))
		})
	}
}
