// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
)

const (
	vdcURN     = "urn:vcloud:vdc:00000000-0000-0000-0000-000000000001"
	networkURN = "urn:vcloud:network:00000000-0000-0000-0000-000000000002"
)

// objects are a cluster, a zone and a machine that match.
type objects struct {
	cluster *infrav1.VCDCluster
	zone    *placement.Zone
	machine *infrav1.VCDMachine
}

func agreeing() *objects {
	o := &objects{
		cluster: &infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c1"}},
		zone: &placement.Zone{
			VCDDeploymentZone: &infrav1.VCDDeploymentZone{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "a"}},
			Domain:            &infrav1.VCDFailureDomain{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "fd-a"}},
		},
		machine: &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m"}},
	}
	o.zone.Domain.Spec = infrav1.VCDFailureDomainSpec{Region: "eu", Zone: "eu-a", OVDC: "vdc-a"}
	o.zone.Spec.PlacementConstraint = infrav1.PlacementConstraint{
		Networks:       []string{"nodes-a"},
		StorageProfile: "gold",
		SizingPolicy:   "large",
		Catalog:        "images-a",
	}
	o.machine.Spec.Template = "ubuntu"
	return o
}

// withoutZone places the machine in the cluster's own VDC.
func withoutZone(o *objects) {
	o.zone = nil
	o.cluster.Spec.OVDC = "vdc"
	o.cluster.Spec.OVDCNetwork = "nodes"
	o.machine.Spec.Catalog = "images"
}

func TestPlacementSelection(t *testing.T) {
	zoneField := func(field string) string { return "spec.placementConstraint." + field + " of VCDDeploymentZone a" }
	for _, tc := range []struct {
		name   string
		change func(*objects)
		want   func(placement.Placement) placement.Choice
		choice placement.Choice
	}{
		{
			name:   "the VDC comes from the failure domain",
			change: func(*objects) {},
			want:   func(p placement.Placement) placement.Choice { return p.VDC },
			choice: placement.Choice{Name: "vdc-a", Field: "spec.ovdc of VCDFailureDomain fd-a"},
		},
		{
			name:   "the VDC of the cluster is ignored in a zone",
			change: func(o *objects) { o.cluster.Spec.OVDC = "vdc" },
			want:   func(p placement.Placement) placement.Choice { return p.VDC },
			choice: placement.Choice{Name: "vdc-a", Field: "spec.ovdc of VCDFailureDomain fd-a"},
		},
		{
			name:   "without a zone the VDC comes from the cluster",
			change: withoutZone,
			want:   func(p placement.Placement) placement.Choice { return p.VDC },
			choice: placement.Choice{Name: "vdc", Field: "spec.ovdc of the VCDCluster"},
		},
		{
			name: "a VDC recorded for the cluster takes precedence over its name",
			change: func(o *objects) {
				withoutZone(o)
				o.cluster.Spec.InfraID = "00000000-0000-0000-0000-000000000003"
				o.cluster.Spec.RecordedState.OVDCID = vdcURN
			},
			want:   func(p placement.Placement) placement.Choice { return p.VDC },
			choice: placement.Choice{Name: vdcURN, Field: "spec.ovdc of the VCDCluster"},
		},
		{
			name: "records of the original cluster do not count for a copy",
			change: func(o *objects) {
				withoutZone(o)
				o.cluster.Spec.RecordedState.OVDCNetworkID = networkURN
			},
			want:   func(p placement.Placement) placement.Choice { return p.NICs[0].Network },
			choice: placement.Choice{Name: "nodes", Field: "spec.ovdcNetwork of the VCDCluster"},
		},
		{
			name:   "the zone selects the catalog",
			change: func(*objects) {},
			want:   func(p placement.Placement) placement.Choice { return p.Catalog },
			choice: placement.Choice{Name: "images-a", Field: zoneField("catalog")},
		},
		{
			name:   "the machine's choice takes precedence over the zone's",
			change: func(o *objects) { o.machine.Spec.StorageProfile = "silver" },
			want:   func(p placement.Placement) placement.Choice { return p.StorageProfile },
			choice: placement.Choice{Name: "silver", Field: "spec.storageProfile of the VCDMachine"},
		},
		{
			name:   "the zone selects the sizing policy",
			change: func(*objects) {},
			want:   func(p placement.Placement) placement.Choice { return p.SizingPolicy },
			choice: placement.Choice{Name: "large", Field: zoneField("sizingPolicy")},
		},
		{
			name:   "VCD decides if neither does",
			change: func(o *objects) { o.zone.Spec.PlacementConstraint.SizingPolicy = "" },
			want:   func(p placement.Placement) placement.Choice { return p.SizingPolicy },
			choice: placement.Choice{Field: "spec.sizingPolicy of the VCDMachine"},
		},
		{
			name:   "the placement policy comes from the failure domain",
			change: func(o *objects) { o.zone.Domain.Spec.PlacementPolicy = "rack-1" },
			want:   func(p placement.Placement) placement.Choice { return p.PlacementPolicy },
			choice: placement.Choice{Name: "rack-1", Field: "spec.placementPolicy of VCDFailureDomain fd-a"},
		},
		{
			name:   "a machine may have a placement policy in a failure domain that is a whole VDC",
			change: func(o *objects) { o.machine.Spec.PlacementPolicy = "licensed" },
			want:   func(p placement.Placement) placement.Choice { return p.PlacementPolicy },
			choice: placement.Choice{Name: "licensed", Field: "spec.placementPolicy of the VCDMachine"},
		},
		{
			name:   "the zone sets the network of the first NIC",
			change: func(*objects) {},
			want:   func(p placement.Placement) placement.Choice { return p.NICs[0].Network },
			choice: placement.Choice{Name: "nodes-a", Field: zoneField("networks[0]")},
		},
		{
			name: "a zone without networks uses the network of the cluster, such as one of a VDC group",
			change: func(o *objects) {
				o.zone.Spec.PlacementConstraint.Networks = nil
				o.cluster.Spec.OVDCNetwork = "stretched"
			},
			want:   func(p placement.Placement) placement.Choice { return p.NICs[0].Network },
			choice: placement.Choice{Name: "stretched", Field: "spec.ovdcNetwork of the VCDCluster"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			o := agreeing()
			tc.change(o)

			p, err := placement.Of(o.cluster, o.zone, o.machine)

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(tc.want(p)).To(Equal(tc.choice))
		})
	}
}

func TestTopologyComesFromTheFailureDomain(t *testing.T) {
	g := NewWithT(t)
	o := agreeing()

	p, err := placement.Of(o.cluster, o.zone, o.machine)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{p.Zone, p.Region, p.Topology}).To(Equal([]string{"a", "eu", "eu-a"}))
}

func TestMachineWithoutNICsGetsOnePerNetworkOfItsZone(t *testing.T) {
	g := NewWithT(t)
	o := agreeing()
	o.zone.Spec.PlacementConstraint.Networks = []string{"nodes-a", "storage-a"}

	p, err := placement.Of(o.cluster, o.zone, o.machine)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.NICs).To(HaveLen(2))
	g.Expect(p.NICs[1].Network.Name).To(Equal("storage-a"))
	g.Expect(p.NICs[1].AddressSource).To(Equal(infrav1.AddressStaticPool))
}

func TestConflictsNameFieldAndRemedy(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*objects)
		field  string
		remedy string
	}{
		{
			name: "a machine without a zone in a cluster without a VDC",
			change: func(o *objects) {
				o.zone = nil
				o.machine.Spec.Catalog = "images"
				o.cluster.Spec.OVDCNetwork = "nodes"
			},
			field:  "spec.failureDomain of the Machine",
			remedy: "must be one of the cluster's failure domains",
		},
		{
			name: "another placement policy than that of the zone",
			change: func(o *objects) {
				o.zone.Domain.Spec.PlacementPolicy = "rack-1"
				o.machine.Spec.PlacementPolicy = "rack-2"
			},
			field:  "spec.placementPolicy of the VCDMachine",
			remedy: "remove the field",
		},
		{
			name: "a control plane in a zone for workers",
			change: func(o *objects) {
				o.zone.Spec.ControlPlane = ptr.To(false)
				o.machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			},
			field:  "spec.controlPlane of VCDDeploymentZone a",
			remedy: "another failure domain",
		},
		{
			name:   "no catalog",
			change: func(o *objects) { o.zone.Spec.PlacementConstraint.Catalog = "" },
			field:  "spec.catalog of the VCDMachine",
			remedy: "unless the zone sets it",
		},
		{
			name:   "no network",
			change: func(o *objects) { o.zone.Spec.PlacementConstraint.Networks = nil },
			field:  "spec.networks[0].name of the VCDMachine",
			remedy: "networks of VCDDeploymentZone a must",
		},
		{
			name:   "a second NIC, although the zone has one network",
			change: func(o *objects) { o.machine.Spec.Networks = make([]infrav1.NetworkSpec, 2) },
			field:  "spec.networks[1].name of the VCDMachine",
			remedy: "must be set, or ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			o := agreeing()
			tc.change(o)

			_, err := placement.Of(o.cluster, o.zone, o.machine)

			problem, ok := errors.AsType[*placement.ConstraintError](err)
			g.Expect(ok).To(BeTrue(), "%v", err)
			g.Expect(problem.Field).To(Equal(tc.field))
			g.Expect(problem.Message).To(ContainSubstring(tc.remedy))
		})
	}
}

func TestZonesAreSelectedByLabelInTheNamespaceOfTheCluster(t *testing.T) {
	zone := func(namespace, name, tier string) infrav1.VCDDeploymentZone {
		return infrav1.VCDDeploymentZone{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name,
			Labels:    map[string]string{"tier": tier},
		}}
	}
	all := []infrav1.VCDDeploymentZone{
		zone("team-a", "b", "prod"),
		zone("team-a", "a", "prod"),
		zone("team-a", "c", "test"),
		zone("team-b", "d", "prod"),
	}
	for _, tc := range []struct {
		name     string
		selector *metav1.LabelSelector
		want     []string
	}{
		{"no zone without a selector", nil, nil},
		{"all zones with an empty selector", &metav1.LabelSelector{}, []string{"a", "b", "c"}},
		{"some zones by label", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}, []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			o := agreeing()
			o.cluster.Spec.FailureDomainSelector = tc.selector

			selected, err := placement.Select(o.cluster, all)

			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, z := range selected {
				names = append(names, z.Name)
			}
			g.Expect(names).To(Equal(tc.want))
		})
	}
}
