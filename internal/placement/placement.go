// SPDX-License-Identifier: Apache-2.0

// Package placement computes where the VM of a machine is placed and which VCD objects it uses there. It combines the
// VCDMachine with the zone of its Machine, or with the VDC of its cluster if the Machine has no zone. It is pure:
// callers look up in VCD what a placement refers to by name or URN.
package placement

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// A Zone is a VCDDeploymentZone with the VCDFailureDomain that it refers to.
type Zone struct {
	*infrav1.VCDDeploymentZone

	Domain *infrav1.VCDFailureDomain
}

// ControlPlane reports whether control plane machines may be placed in the zone.
func (z Zone) ControlPlane() bool { return ptr.Deref(z.Spec.ControlPlane, true) }

// A Choice is the name or URN of an object in VCD. It is empty if VCD chooses.
type Choice struct {
	Name  string
	Field string // field that sets it, or that may set it, such as "spec.catalog of VCDDeploymentZone a"
}

// A NIC is a NIC of the machine, with its network.
type NIC struct {
	infrav1.NetworkSpec

	Network Choice
}

// A Placement is the place of the VM of a machine, and the VCD objects that it uses.
type Placement struct {
	Zone     string // VCDDeploymentZone; empty: the VDC of the cluster
	Region   string // value of topology.kubernetes.io/region; empty: none
	Topology string // value of topology.kubernetes.io/zone; empty: none

	VDC             Choice
	PlacementPolicy Choice
	StorageProfile  Choice
	SizingPolicy    Choice
	Catalog         Choice
	Template        Choice
	NICs            []NIC
}

// A ConstraintError describes a field that contradicts another field, or a required value that no field sets.
type ConstraintError struct {
	Field   string // path of the field, with the kind of its object
	Message string // the problem and its remedy
}

// Error implements error.
func (e *ConstraintError) Error() string { return e.Field + " " + e.Message }

// Of returns the placement of a machine in a zone, or in the VDC of its cluster if zone is nil. The error joins
// [ConstraintError]s in the order of the fields.
func Of(c *infrav1.VCDCluster, zone *Zone, m *infrav1.VCDMachine) (Placement, error) {
	b := builder{cluster: c, zone: zone, machine: m}
	p := Placement{
		VDC:      Choice{VDCName(c), "spec.ovdc of the VCDCluster"},
		Template: b.own("template", m.Spec.Template),
	}
	var constraint infrav1.PlacementConstraint
	switch {
	case zone != nil:
		p.Zone = zone.Name
		p.Region = zone.Domain.Spec.Region
		p.Topology = zone.Domain.Spec.Zone
		p.VDC = Choice{zone.Domain.Spec.OVDC, "spec.ovdc of VCDFailureDomain " + zone.Domain.Name}
		constraint = zone.Spec.PlacementConstraint
		b.checkRole()
	case c.Spec.OVDC == "":
		b.refuse("spec.failureDomain of the Machine",
			"must be one of the cluster's failure domains, because its VCDCluster has no VDC")
	}
	p.PlacementPolicy = b.policy()
	p.StorageProfile = b.either("storageProfile", m.Spec.StorageProfile, constraint.StorageProfile)
	p.SizingPolicy = b.either("sizingPolicy", m.Spec.SizingPolicy, constraint.SizingPolicy)
	p.Catalog = b.either("catalog", m.Spec.Catalog, constraint.Catalog)
	if p.Catalog.Name == "" && !strings.HasPrefix(p.Template.Name, "urn:") {
		b.refuse("spec.catalog of the VCDMachine",
			"must be the catalog of the template, unless the zone sets it or spec.template is a URN")
	}
	p.NICs = b.nics(constraint.Networks)
	return p, errors.Join(b.problems...)
}

// A builder collects the problems of a placement.
type builder struct {
	cluster  *infrav1.VCDCluster
	zone     *Zone
	machine  *infrav1.VCDMachine
	problems []error
}

func (b *builder) refuse(field, format string, args ...any) {
	b.problems = append(b.problems, &ConstraintError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// own returns the choice that the machine itself makes.
func (b *builder) own(field, name string) Choice {
	return Choice{name, "spec." + field + " of the VCDMachine"}
}

// either returns the choice of the machine or, if it makes none, that of its zone.
func (b *builder) either(field, own, ofZone string) Choice {
	if own != "" || ofZone == "" {
		return b.own(field, own)
	}
	return Choice{ofZone, b.inZone(field)}
}

func (b *builder) inZone(field string) string {
	return "spec.placementConstraint." + field + " of VCDDeploymentZone " + b.zone.Name
}

// checkRole rejects a control plane machine in a zone that does not allow control planes.
func (b *builder) checkRole() {
	if _, is := b.machine.Labels[clusterv1.MachineControlPlaneLabel]; is && !b.zone.ControlPlane() {
		b.refuse("spec.controlPlane of VCDDeploymentZone "+b.zone.Name,
			"does not allow control planes: set it to true, or assign another failure domain to the Machine")
	}
}

// policy returns the placement policy. If the zone defines one, the machine cannot choose another.
func (b *builder) policy() Choice {
	own := b.own("placementPolicy", b.machine.Spec.PlacementPolicy)
	if b.zone == nil || b.zone.Domain.Spec.PlacementPolicy == "" {
		return own
	}
	of := Choice{b.zone.Domain.Spec.PlacementPolicy, "spec.placementPolicy of VCDFailureDomain " + b.zone.Domain.Name}
	if own.Name != "" && own.Name != of.Name {
		b.refuse(own.Field, "is %s, but placement policy %[3]s defines zone %[2]s: remove the field",
			own.Name, b.zone.Name, of.Name)
	}
	return of
}

// nics returns the NICs of the machine. The zone assigns its networks, in order, to NICs without a name. A machine that
// lists no NICs gets one for each network of the zone.
func (b *builder) nics(ofZone []string) []NIC {
	desired := b.machine.Spec.Networks
	if len(desired) == 0 {
		for range max(1, len(ofZone)) {
			desired = append(desired, infrav1.NetworkSpec{AddressSource: infrav1.AddressStaticPool})
		}
	}
	result := make([]NIC, 0, len(desired))
	for i, nic := range desired {
		result = append(result, NIC{nic, b.network(i, nic.Name, ofZone)})
	}
	return result
}

func (b *builder) network(i int, own string, ofZone []string) Choice {
	switch {
	case own != "":
		return b.own(fmt.Sprintf("networks[%d].name", i), own)
	case i < len(ofZone):
		return Choice{ofZone[i], b.inZone(fmt.Sprintf("networks[%d]", i))}
	case i == 0 && b.cluster.Spec.OVDCNetwork != "":
		return Choice{NetworkName(b.cluster), "spec.ovdcNetwork of the VCDCluster"}
	}
	field := fmt.Sprintf("spec.networks[%d].name of the VCDMachine", i)
	if b.zone != nil {
		b.refuse(field, "must be set, or %s must be set", b.inZone("networks"))
	} else {
		b.refuse(field, "must be set to a network")
	}
	return Choice{"", field}
}
