// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

// parts splits the plan into one for each VDC: that of the cluster and that of each zone.
func (p Plan) parts() []Plan {
	if p.Cluster == nil || p.Cluster.Spec.FailureDomainSelector == nil || len(p.zones) == 0 {
		return []Plan{p}
	}
	var parts []Plan
	if p.VDC != "" {
		parts = append(parts, p.part(nil))
	}
	for i := range p.zones {
		parts = append(parts, p.part(&p.zones[i]))
	}
	return parts
}

// part returns the part of the plan for a zone, or for the cluster's VDC if zone is nil.
func (p Plan) part(zone *placement.Zone) Plan {
	part := p
	part.zone = zone
	part.Machines = nil
	if zone != nil {
		part.VDC = zone.Domain.Spec.OVDC
		if networks := zone.Spec.PlacementConstraint.Networks; len(networks) > 0 {
			part.Cluster = p.Cluster.DeepCopy()
			part.Cluster.Spec.OVDCNetwork = networks[0]
		}
	}
	for _, m := range p.Machines {
		if count, here := p.share(m, zone); here {
			m.Count = count
			m.Spec = p.placed(m, zone)
			part.Machines = append(part.Machines, m)
		}
	}
	return part
}

// share returns the largest number of machines that a zone can get, and whether it can get any. Control planes are
// spread over all zones that accept them.
func (p Plan) share(m Machines, zone *placement.Zone) (count int64, here bool) {
	switch {
	case !m.controlPlane:
		return m.Count, zone == nil && m.failureDomain == "" || zone != nil && m.failureDomain == zone.Name
	case zone == nil || !zone.ControlPlane():
		return 0, false
	}
	return (m.Count + p.controlPlaneZones - 1) / p.controlPlaneZones, true
}

// machine returns a VCDMachine like those that will be created.
func (m Machines) machine() *infrav1.VCDMachine {
	machine := &infrav1.VCDMachine{Spec: m.Spec}
	if m.controlPlane {
		machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	}
	return machine
}

// placed returns the spec of machines with the settings of a zone.
func (p Plan) placed(m Machines, zone *placement.Zone) infrav1.VCDMachineSpec {
	spec := *m.Spec.DeepCopy()
	found, _ := placement.Of(p.Cluster, zone, m.machine()) // misplaced reports contradictions
	spec.PlacementPolicy = found.PlacementPolicy.Name
	spec.StorageProfile = found.StorageProfile.Name
	spec.SizingPolicy = found.SizingPolicy.Name
	spec.Catalog = found.Catalog.Name
	spec.Networks = nil
	for _, nic := range found.NICs {
		nic.Name = nic.Network.Name
		spec.Networks = append(spec.Networks, nic.NetworkSpec)
	}
	return spec
}

// misplaced returns the reasons why machines cannot be placed in the zones of the plan.
func (p Plan) misplaced() []string {
	var problems []string
	for i := range p.zones {
		zone := &p.zones[i]
		for _, m := range p.Machines {
			if _, here := p.share(m, zone); !here {
				continue
			}
			if _, err := placement.Of(p.Cluster, zone, m.machine()); err != nil {
				problems = append(problems, fmt.Sprintf("in zone %s, machines of VCDMachineTemplate %s: %s", zone.Name,
					m.Name, oneLine(err)))
			}
		}
	}
	return problems
}

// oneLine returns the text of the first constraint error, or of err if it contains none.
func oneLine(err error) string {
	if found, ok := errors.AsType[*placement.ConstraintError](err); ok {
		return found.Error()
	}
	return err.Error()
}
