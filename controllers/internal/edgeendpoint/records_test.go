// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// secondGateway is the URN of the second edge gateway of [vcdsim.TwoGateways].
func (w *world) secondGateway() string {
	return vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
}

// loseRecords removes all annotations, as tools do that replace objects.
func (w *world) loseRecords() {
	w.edit(func(c *infrav1.VCDCluster) { c.Spec.RecordedState = infrav1.VCDClusterRecordedState{} })
}

// onSecond returns a world whose endpoint is on another gateway than that of the network.
func onSecond(t *testing.T) *world {
	t.Helper()
	return newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.TwoGateways()},
		&infrav1.EdgeGatewayEndpoint{Name: "acme-vdc-gateway-2"})
}

func TestTheGatewayOfAnEndpointIsRecordedAgain(t *testing.T) {
	w := onSecond(t)
	w.Ready()
	w.mark()

	w.loseRecords()
	_, err := w.ReconcileCluster()

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDCluster().Spec.RecordedState.EndpointGatewayID).To(Equal(w.secondGateway()))
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	_, writes := w.calls()
	w.Expect(writes).To(BeZero())
}

func TestAnEndpointGoesWithItsClusterThoughItsGatewayIsNotRecorded(t *testing.T) {
	onFirst := func(t *testing.T) *world {
		t.Helper()
		return newWorld(t, instant(), nil)
	}
	for name, world := range map[string]func(t *testing.T) *world{
		"the gateway of the network": onFirst,
		"another one":                onSecond,
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t)
			w.Ready()
			w.Expect(endpoint(w.Sim.State())).NotTo(BeEmpty())

			w.loseRecords()
			w.DeleteCluster()

			w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
			w.Expect(w.Sim.State().Documents).NotTo(ContainElement(HaveField("Body", ContainSubstring("cluster="))))
		})
	}
}

func TestControlPlanesWaitForTheGatewayOfTheirEndpoint(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")
	w.add("b")
	gone := w.addressOf("a")

	w.loseRecords()
	w.EventuallyMachine("b", infrav1.EndpointJoinedCondition, infrav1.EndpointPendingReason)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.EventuallyMachine("a", infrav1.RemovedFromEndpointCondition, infrav1.EndpointPendingReason)
	w.Expect(w.members()).To(ConsistOf(gone), "its VM stays as long as it is a member")
	w.Expect(w.Sim.State().VMs).To(HaveLen(2))

	w.Ready()
	w.DeleteMachine("a")
	w.Ready("b")
	w.Expect(w.members()).To(ConsistOf(w.addressOf("b")))
}

func TestMachinesGoWithTheirClusterThoughItsGatewayIsNotRecorded(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")

	w.loseRecords()
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.DeleteMachine("a")
	w.DeleteCluster()

	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

func TestRecordsOfACopiedManifestAreNotBelieved(t *testing.T) {
	w := onSecond(t)
	first := vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	w.edit(func(c *infrav1.VCDCluster) {
		c.Spec.RecordedState.EndpointGatewayID = first
		c.Spec.RecordedState.EndpointAddresses = []string{"203.0.113.12"}
	})

	w.Ready()

	w.Expect(w.VCDCluster().Spec.RecordedState.EndpointGatewayID).To(Equal(w.secondGateway()))
	found := endpoint(w.Sim.State())
	w.Expect(found).To(HaveLen(1))
	w.Expect(found[0].Address.Compare(netip.MustParseAddr("203.0.113.100"))).To(BeNumerically(">=", 0))
}

// TestAGatewayThatIsNotFoundHoldsOnlyAnEndpointThatStands renames the gateway whose URN is not recorded.
func TestAGatewayThatIsNotFoundHoldsOnlyAnEndpointThatStands(t *testing.T) {
	rename := func(w *world) {
		w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].EdgeGateways[1].Name = "renamed" })
	}
	t.Run("one that stands", func(t *testing.T) {
		w := onSecond(t)
		w.Ready()
		w.loseRecords()
		rename(w)
		w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())

		w.EventuallyCluster(infrav1.EndpointDeletedCondition, infrav1.EdgeGatewayNotFoundReason)

		w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.EndpointDeletedCondition)).To(
			ContainSubstring(infrav1.KeepLoadBalancersAnnotation + "=true"))
	})
	t.Run("one that was never made", func(t *testing.T) {
		w := onSecond(t)
		w.edit(func(c *infrav1.VCDCluster) { c.Spec.InfraID = "0dd1f8c2-6b52-4d2a-8f4c-2f1b7a4c5d6e" })
		rename(w)
		w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.EdgeGatewayNotFoundReason)

		w.DeleteCluster()
	})
}

// TestMachinesOfACopyTakeNoneOfTheOriginalsOut deletes the copy of a control plane, in a copy of its cluster.
func TestMachinesOfACopyTakeNoneOfTheOriginalsOut(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")
	before := w.members()
	owner := controllertest.NewCAPICluster()
	c := w.VCDCluster()
	m := w.VCDMachine("a")
	owner.Name = "copy"
	owner.UID = "uid-of-the-copys-owner"
	owner.Spec.InfrastructureRef.Name = "copy"
	c.Name = "copy"
	c.UID = "uid-of-the-copy"
	c.ResourceVersion = ""
	c.Status = infrav1.VCDClusterStatus{}
	m.Name = "copy-a"
	m.UID = "uid-of-copy-a"
	m.ResourceVersion = ""
	m.Labels[clusterv1.ClusterNameLabel] = "copy"
	w.Expect(create(w.Ctx, w.Client, owner, c, m)).To(Succeed())

	w.DeleteMachine("copy-a")

	w.Expect(w.members()).To(Equal(before))
}

func TestAConcurrentlyAllocatedFloatingIPIsNotTaken(t *testing.T) {
	w := newWorld(t, onSpaces(), nil)
	intended := func() string { return strings.Join(w.VCDCluster().Spec.RecordedState.EndpointAddresses, ",") }
	for range 20 {
		if intended() != "" {
			break
		}
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}
	address := intended()
	w.Expect(address).NotTo(BeEmpty())
	w.Expect(w.Sim.State().Model.IPSpaces[0].Allocations).To(BeEmpty())
	org := w.Sim.State().Model.Orgs[1].ID
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.Model.IPSpaces[0].Allocations = []vcdsim.IPAllocation{{Type: vcdsim.FloatingIP, Value: address, OrgID: org}}
	})
	byHand := And(HaveField("Value", address), HaveField("Description", ""))

	w.Ready()

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Host).NotTo(Equal(address))
	w.Expect(w.Sim.State().Model.IPSpaces[0].Allocations).To(ContainElement(byHand))
	w.DeleteCluster()
	w.Expect(w.Sim.State().Model.IPSpaces[0].Allocations).To(ConsistOf(byHand))
}
