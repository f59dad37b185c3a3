// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A selection is the zones of a manifest that its cluster selects.
type selection struct {
	names    []string          // of all of them
	usable   []placement.Zone  // with the identity of the cluster
	apart    []string          // names of those with another identity
	planes   int64             // those that take control planes
	refused  []*checks.Finding // why the cluster cannot use others
	problems []string
}

// selectZones finds the zones of a cluster. The failure domains are by name.
func selectZones(c *infrav1.VCDCluster, zones []infrav1.VCDDeploymentZone, domains map[string]*infrav1.VCDFailureDomain) (
	selection, error,
) {
	var s selection
	selected, err := placement.Select(c, zones)
	if err != nil {
		return s, err
	}
	for i := range selected {
		zone := &selected[i]
		s.names = append(s.names, zone.Name)
		if ptr.Deref(zone.Spec.ControlPlane, true) {
			s.planes++
		}
		domain, ok := domains[zone.Spec.FailureDomain]
		switch {
		case !ok:
			s.problems = append(s.problems, fmt.Sprintf("VCDDeploymentZone %s refers to VCDFailureDomain %q, "+
				"which is not in the manifest", zone.Name, zone.Spec.FailureDomain))
		case checks.Zone(c, zone) != nil:
			s.refused = append(s.refused, checks.Zone(c, zone))
		case !sharesLogin(c, zone):
			s.apart = append(s.apart, zone.Name)
		default:
			s.usable = append(s.usable, placement.Zone{VCDDeploymentZone: zone, Domain: domain})
		}
	}
	return s, nil
}
