// SPDX-License-Identifier: Apache-2.0

package checks

import (
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
)

// Zone reports a zone that a cluster cannot use, because it is in another site or organization.
func Zone(c *infrav1.VCDCluster, z *infrav1.VCDDeploymentZone) *Finding {
	switch {
	case !sites.Same(z.Spec.Site, c.Spec.Site):
		return finding(infrav1.FailureDomainMismatchReason, "use a zone of the same site",
			"spec.site of VCDDeploymentZone %s is %q, spec.site of the VCDCluster is %q", z.Name, z.Spec.Site, c.Spec.Site)
	case z.Spec.Org != c.Spec.Org:
		return finding(infrav1.FailureDomainMismatchReason, "use a zone of the same organization",
			"spec.org of VCDDeploymentZone %s is %q, spec.org of the VCDCluster is %q", z.Name, z.Spec.Org, c.Spec.Org)
	}
	return nil
}
