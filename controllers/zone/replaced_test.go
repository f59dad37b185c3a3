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

func TestADifferentVDCWithTheNameOfAZoneGetsNoMachines(t *testing.T) {
	w := newInLostZone(t)
	admitChanges(t, w)
	w.Sim.Edit(func(e *vcdsim.Editor) { // The VDC of zone b is renamed, and a different VDC gets its name.
		e.VDC("acme-vdc-b").Name = "renamed"
		e.VDC("acme-vdc-c").Name = "acme-vdc-b"
	})
	w.EventuallyZone("b", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("late-b", infrav1.PlacementReadyCondition, infrav1.FailureDomainMismatchReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("late-b"), infrav1.PlacementReadyCondition)).To(And(
		ContainSubstring("spec.ovdc"), ContainSubstring("spec.recordedState.zones.b")))
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(published(w)).NotTo(ContainElement("b"))
	w.Ready("cp-b")

	// A user switches to the new VDC, although a machine remains in the old one.
	w.Record(func(r *infrav1.VCDClusterRecordedState) { delete(r.Zones, "b") })
	w.Ready("late-b")
	recorded := w.VCDCluster().Spec.RecordedState.Zones["b"]
	w.DeleteMachine("cp-b")
	w.Expect(w.VCDCluster().Spec.RecordedState.Zones).To(HaveKeyWithValue("b", recorded))
}

func TestADifferentNetworkWithTheSameNameDoesNotReplaceTheRecordedOne(t *testing.T) {
	w := controllertest.NewInZones(t)
	c := w.VCDCluster()
	c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{Type: infrav1.EndpointExternal}
	c.Spec.ControlPlaneEndpoint.Host = "api.example.com"
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	admitChanges(t, w)
	recorded := w.VCDCluster().Spec.RecordedState.OVDCNetworkID
	w.Expect(recorded).NotTo(BeEmpty())
	other := recorded[:len(recorded)-12] + "0123456789ab"
	// The old network was deleted: its URN is not found.
	w.Record(func(r *infrav1.VCDClusterRecordedState) { r.OVDCNetworkID = other })

	for range 2 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(w.VCDCluster().Spec.RecordedState.OVDCNetworkID).To(Equal(other))
}
