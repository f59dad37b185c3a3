// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// threeMachines returns the objects of one machine per zone: cp-a, cp-b and cp-c.
func threeMachines() []client.Object {
	var objects []client.Object
	for _, zone := range []string{"a", "b", "c"} {
		objects = append(objects, controllertest.InZone(zone, "cp-"+zone)...)
	}
	return objects
}

// vmLocations returns the locations of VMs: their names by vApp, followed by the VDC.
func vmLocations(state vcdsim.State) map[string]string {
	vdcs := map[string]string{}
	vApps := map[string]string{}
	for _, org := range state.Model.Orgs {
		for _, vdc := range org.VDCs {
			vdcs[vdc.ID] = vdc.Name
		}
	}
	for _, v := range state.VApps {
		vApps[v.ID] = v.Name + " in " + vdcs[v.VDCID]
	}
	found := map[string]string{}
	for _, vm := range state.VMs {
		found[vm.Name] = vApps[vm.VAppID]
	}
	return found
}

func TestMachinesAreCreatedInTheirZonesAndDeletedWithoutOrphans(t *testing.T) {
	w := controllertest.NewInZones(t, threeMachines()...)
	w.Ready("cp-a", "cp-b", "cp-c")

	w.Expect(vmLocations(w.Sim.State())).To(Equal(map[string]string{
		"cp-a": "c1-a in acme-vdc",
		"cp-b": "c1-b in acme-vdc-b",
		"cp-c": "c1-c in acme-vdc-c",
	}))
	for _, zone := range []string{"a", "b", "c"} {
		w.Expect(w.VCDMachine("cp-" + zone).Status.FailureDomain).To(Equal(zone))
		w.ExpectSettled("cp-" + zone)
	}

	for _, zone := range []string{"a", "b", "c"} {
		w.DeleteMachine("cp-" + zone)
	}
	w.DeleteCluster()
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestZonesArePublishedWithTheirControlPlaneEligibility(t *testing.T) {
	w := controllertest.NewInZones(t)
	w.CreateZone("d", func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
		d.Spec.OVDC = "acme-vdc"
		z.Spec.PlacementConstraint.Catalog = "kubernetes"
		z.Spec.ControlPlane = new(bool)
	})
	w.EventuallyZone("d", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Ready()

	published := w.VCDCluster().Status.FailureDomains
	w.Expect(published).To(HaveLen(4))
	w.Expect(published[0]).To(Equal(clusterv1.FailureDomain{
		Name:         "a",
		ControlPlane: new(true),
		Attributes:   map[string]string{"region": "eu", "zone": "eu-a"},
	}))
	w.Expect(published[3].ControlPlane).To(Equal(new(false)))
}

func TestTwoZonesInOneVDCHaveSeparateVApps(t *testing.T) {
	objects := append(controllertest.InZone("a", "cp-a"), controllertest.InZone("rack", "cp-rack")...)
	w := controllertest.NewInZones(t, objects...)
	w.CreateZone("rack", func(d *infrav1.VCDFailureDomain, z *infrav1.VCDDeploymentZone) {
		d.Spec.OVDC = "acme-vdc"
		d.Spec.PlacementPolicy = "rack-a"
		z.Spec.PlacementConstraint.Catalog = "kubernetes"
	})
	w.EventuallyZone("rack", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Ready("cp-a", "cp-rack")

	w.Expect(vmLocations(w.Sim.State())).To(Equal(map[string]string{
		"cp-a":    "c1-a in acme-vdc",
		"cp-rack": "c1-rack in acme-vdc",
	}))
	w.Expect(w.DeploymentZone("rack").Status.PlacementPolicy.Name).To(Equal("rack-a"))
}

func TestADeselectedZoneKeepsItsMachinesAndGetsNoNewOnes(t *testing.T) {
	w := controllertest.NewInZones(t, append(threeMachines(), controllertest.InZone("c", "late")...)...)
	w.Ready("cp-a", "cp-b", "cp-c")
	z := w.DeploymentZone("c")
	z.Labels["retired"] = "true"
	w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())
	c := w.VCDCluster()
	c.Spec.FailureDomainSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key:      "retired",
		Operator: metav1.LabelSelectorOpDoesNotExist,
	}}}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	w.Ready("cp-a", "cp-b", "cp-c")

	w.Expect(w.VCDCluster().Status.FailureDomains).To(HaveLen(2))
	w.EventuallyMachine("late", infrav1.PlacementReadyCondition, infrav1.FailureDomainNotSelectedReason)
	w.Expect(vmLocations(w.Sim.State())).NotTo(HaveKey("late"))
}

func TestAMachineKeepsItsNetworksWhenThoseOfItsZoneChange(t *testing.T) {
	for name, networks := range map[string][]string{
		"one zone more":      {"nodes", "storage"},
		"another":            {"storage"},
		"one zone fewer":     {"storage", "nodes"},
		"an unsuitable zone": {"nodes", "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.NewInZones(t, controllertest.InZone("a", "cp-a")...)
			w.Ready()
			w.Eventually(func() string {
				_, err := w.ReconcileMachine("cp-a")
				w.Expect(err).NotTo(HaveOccurred())
				return w.VCDMachine("cp-a").Spec.ProviderID
			}).ShouldNot(BeEmpty())
			w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeFalse())

			z := w.DeploymentZone("a")
			z.Spec.PlacementConstraint.Networks = networks
			w.Expect(w.Client.Update(w.Ctx, z)).To(Succeed())

			w.Ready("cp-a")
			w.Expect(w.Sim.State().VMs[0].NICs).To(ConsistOf(HaveField("Network", "nodes")))
			// The warning that guests in the zone's new network have no DNS servers disappears with the first
			// reconcile.
			_, err := w.ReconcileMachine("cp-a")
			w.Expect(err).NotTo(HaveOccurred())
			w.ExpectSettled("cp-a")
		})
	}
}
