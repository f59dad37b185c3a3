// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// selectZones finds the zones of the cluster.
func (m *manifest) selectZones() error {
	selected, err := placement.Select(m.plan.Cluster, m.zones)
	if err != nil {
		return err
	}
	var names []string
	for i := range selected {
		zone := &selected[i]
		names = append(names, zone.Name)
		if ptr.Deref(zone.Spec.ControlPlane, true) {
			m.plan.planes++
		}
		domain, ok := m.domains[zone.Spec.FailureDomain]
		switch {
		case !ok:
			m.problem("VCDDeploymentZone %s is of VCDFailureDomain %q, which the manifest has not", zone.Name,
				zone.Spec.FailureDomain)
		case !m.sameLogin(zone):
			m.plan.apart = append(m.plan.apart, zone.Name)
		default:
			m.plan.zones = append(m.plan.zones, placement.Zone{VCDDeploymentZone: zone, Domain: domain})
		}
	}
	m.checkDomains(names)
	return nil
}

// checkDomains reports machines in failure domains that are none of the cluster's zones, given by name. A cluster
// without any has its zones elsewhere.
func (m *manifest) checkDomains(names []string) {
	for _, machines := range m.plan.Machines {
		if at := machines.failureDomain; at != "" && len(names) > 0 && !slices.Contains(names, at) {
			m.problem("machines of VCDMachineTemplate %s have failure domain %q, which is no zone that the VCDCluster "+
				"selects", machines.Name, at)
		}
	}
}
