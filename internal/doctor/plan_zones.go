// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"k8s.io/utils/ptr"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// A selection holds the zones of a manifest that its cluster selects.
type selection struct {
	names             []string          // names of all selected zones
	usable            []placement.Zone  // zones with the identity of the cluster
	otherIdentity     []string          // names of zones with another identity
	controlPlaneZones int64             // number of zones for control planes
	refused           []*checks.Finding // reasons why the cluster cannot use other zones
	problems          []string
}

// selectZones returns the zones that a cluster selects. The keys of domains are their names.
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
			s.controlPlaneZones++
		}
		domain, ok := domains[zone.Spec.FailureDomain]
		switch {
		case !ok:
			s.problems = append(s.problems, fmt.Sprintf("VCDDeploymentZone %s refers to VCDFailureDomain %q, which is not in the manifest", zone.Name, zone.Spec.FailureDomain))
		case checks.Zone(c, zone) != nil:
			s.refused = append(s.refused, checks.Zone(c, zone))
		case !sharesLogin(c, zone):
			s.otherIdentity = append(s.otherIdentity, zone.Name)
		default:
			s.usable = append(s.usable, placement.Zone{VCDDeploymentZone: zone, Domain: domain})
		}
	}
	return s, nil
}
