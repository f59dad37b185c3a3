// SPDX-License-Identifier: Apache-2.0

package zone_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAnotherVDCOfTheNameOfAZonesGetsNoMachines(t *testing.T) {
	w := newInLostZone(t)
	admitChanges(t, w)
	w.Sim.Edit(func(e *vcdsim.Editor) { // The VDC of zone b is renamed, and another one gets its name.
		e.VDC("acme-vdc-b").Name = "renamed"
		e.VDC("acme-vdc-c").Name = "acme-vdc-b"
	})
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("late-b", infrav1.PlacementReadyCondition, infrav1.FailureDomainMismatchReason)

	note := infrav1.ZoneVAppsAnnotationPrefix + "b"
	w.Expect(conditions.GetMessage(w.VCDMachine("late-b"), infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("spec.ovdc"), ContainSubstring(note)))
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(published(w)).NotTo(ContainElement("b"))
	w.Ready("cp-b")

	c := w.VCDCluster() // A person has the new VDC used, although a machine is left in the other.
	delete(c.Annotations, note)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("late-b")
	recorded := w.VCDCluster().Annotations[note]
	w.DeleteMachine("cp-b")
	w.Expect(w.VCDCluster().Annotations).To(HaveKeyWithValue(note, recorded))
}

func TestAnotherNetworkOfTheNameLeavesTheRecordedOne(t *testing.T) {
	w := controllertest.NewInZones(t)
	c := w.VCDCluster()
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
	c.Spec.ControlPlaneEndpoint.Host = "api.example.com"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	admitChanges(t, w)
	recorded := w.VCDCluster().Annotations[infrav1.OVDCNetworkIDAnnotation]
	w.Expect(recorded).NotTo(BeEmpty())
	other := recorded[:len(recorded)-12] + "0123456789ab"
	c = w.VCDCluster() // The network of then is gone: its URN is not found any more.
	c.Annotations[infrav1.OVDCNetworkIDAnnotation] = other
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())

	for range 2 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(w.VCDCluster().Annotations).To(HaveKeyWithValue(infrav1.OVDCNetworkIDAnnotation, other))
}
