// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// byDHCP gives the NIC of a machine its address by DHCP.
func byDHCP(m *infrav1.VCDMachine) {
	m.Spec.Networks = []infrav1.NetworkSpec{{AddressSource: infrav1.AddressDHCP}}
}

func TestControlPlanesWithDHCPJoinOnceTheirAddressIsSeen(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()

	for _, name := range []string{"a", "b"} {
		w.Expect(create(w.Ctx, w.Client, controlPlane(name, byDHCP)...)).To(Succeed())
		w.Ready(name)
	}

	w.Expect(w.members()).To(ConsistOf(w.addressOf("a"), w.addressOf("b")))
	leased := netip.MustParsePrefix("192.168.100.128/25")
	w.Expect(w.members()).To(HaveEach(HaveField("Addr()", Satisfy(leased.Contains))))
	w.mark()
	w.DeleteMachine("a")
	_, writes := w.calls()
	w.Expect(writes).To(Equal(1))
	w.Expect(w.members()).To(ConsistOf(w.addressOf("b")))
}

func TestARunningControlPlaneWithAnotherLeaseStaysReady(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.Expect(create(w.Ctx, w.Client, controlPlane("a", byDHCP)...)).To(Succeed())
	w.Ready("a")
	w.Edit("a", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.100.200" })
	w.Later(10 * time.Minute)

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("a")
		w.Expect(err).NotTo(HaveOccurred())
		m := w.VCDMachine("a")
		w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue(), "%s",
			conditions.GetMessage(m, clusterv1.ReadyCondition))
		g.Expect(w.members()).To(ConsistOf(netip.MustParseAddrPort("192.168.100.200:6443")))
	}).Should(Succeed())
}

func TestExtraPortsLeadToTheControlPlanesToo(t *testing.T) {
	w := newWorld(t, instant(), &infrav1.EdgeGatewayEndpoint{
		ExtraPorts: []infrav1.EndpointPort{{Port: 8132}, {Port: 9443, TargetPort: 30443}},
	})
	w.Ready()
	w.add("a")
	w.Ready("a")
	w.mark()

	w.add("b")
	w.Ready("b")

	_, writes := w.calls()
	w.Expect(writes).To(Equal(3), "one for each pool")
	found := endpoint(w.Sim.State())
	a := w.addressOf("a").Addr()
	b := w.addressOf("b").Addr()
	ports := map[int]uint16{6443: 6443, 8132: 8132, 9443: 30443}
	w.Expect(found).To(HaveLen(len(ports)))
	for _, s := range found {
		target := ports[s.Port]
		w.Expect(s.Address.String()).To(Equal(w.VCDCluster().Spec.ControlPlaneEndpoint.Host))
		w.Expect(s.Members).To(ConsistOf(netip.AddrPortFrom(a, target), netip.AddrPortFrom(b, target)))
	}
	w.DeleteMachine("a")
	w.DeleteMachine("b")
	w.DeleteCluster()
	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

func TestThePortsOfClientsAndOfNodesCanBeChosen(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.edit(func(c *infrav1.VCDCluster) { c.Spec.ControlPlaneEndpoint.Port = 443 })
	owner := controllertest.NewCAPICluster()
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
	owner.Spec.ClusterNetwork.APIServerPort = 7443
	w.Expect(w.Client.Update(w.Ctx, owner)).To(Succeed())
	w.Ready()
	w.add("a")
	w.Ready("a")

	w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint.Port).To(BeEquivalentTo(443))
	w.Expect(endpoint(w.Sim.State())).To(ConsistOf(And(HaveField("Port", 443),
		HaveField("Members", ConsistOf(netip.AddrPortFrom(w.addressOf("a").Addr(), 7443))))))
}

func TestAnEndpointOfIPv6(t *testing.T) {
	model := vcdsim.CloudProvider()
	nodes := &model.Orgs[1].VDCs[0].Networks[0]
	nodes.Gateway = nodes.Second.Gateway
	nodes.StaticPool = nodes.Second.StaticPool
	nodes.DHCPPool = nil
	nodes.DNS = []netip.Addr{nodes.Gateway.Addr()}
	nodes.Second = nil
	w := newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model}, nil)
	w.Ready()
	w.add("a")
	w.Ready("a")

	host := netip.MustParseAddr(w.VCDCluster().Spec.ControlPlaneEndpoint.Host)

	w.Expect(netip.MustParsePrefix("2001:db8::/64").Contains(host)).To(BeTrue(), "%s", host)
	w.Expect(w.members()).To(ConsistOf(netip.MustParseAddrPort("[fd00:100::10]:6443")))
	w.DeleteMachine("a")
	w.DeleteCluster()
	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

// dualStackNodes is a world whose nodes get addresses of both families.
func dualStackNodes(t *testing.T, endpoint ...string) *world {
	t.Helper()
	w := newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.CloudProvider()}, nil)
	w.edit(requesting(endpoint...))
	w.bothFamilies()
	return w
}

// bothFamilies makes a cluster one of both families, where its network is.
func (w *world) bothFamilies() {
	owner := controllertest.NewCAPICluster()
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
	owner.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"100.96.0.0/11", "fd6a::/48"}
	w.Expect(w.Client.Update(w.Ctx, owner)).To(Succeed())
}

func TestNodesOfADualStackClusterAreMembersByTheFamilyOfTheFirstAddress(t *testing.T) {
	const (
		v4 = "203.0.113.50"
		v6 = "2001:db8::40"
	)
	for name, tt := range map[string]struct {
		addresses []string
		member    string
	}{
		"IPv6 alone": {[]string{v6}, "[fd00:100::10]:6443"},
		"IPv6 first": {[]string{v6, v4}, "[fd00:100::10]:6443"},
		"IPv4 first": {[]string{v4, v6}, "192.168.100.10:6443"},
		"IPv4 alone": {[]string{v4}, "192.168.100.10:6443"},
	} {
		t.Run(name, func(t *testing.T) {
			w := dualStackNodes(t, tt.addresses...)
			w.Ready()
			w.add("a")
			w.Ready("a")

			w.Expect(w.members()).To(ConsistOf(netip.MustParseAddrPort(tt.member)))
			w.Ready()
			w.mark()
			_, err := w.ReconcileMachine("a")
			w.Expect(err).NotTo(HaveOccurred())
			reads, writes := w.calls()
			w.Expect(reads+writes).To(BeZero(), "at rest")

			w.DeleteMachine("a")
			w.Expect(w.members()).To(BeEmpty())
			w.DeleteCluster()
			w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
		})
	}
}

func TestANodeWithoutAnAddressOfTheFamilyOfTheEndpointIsRefusedBeforeItRuns(t *testing.T) {
	w := newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.CloudProvider()}, nil)
	w.edit(requesting("2001:db8::40"))
	w.Ready()
	w.add("a") // of a cluster of IPv4

	w.EventuallyMachine("a", infrav1.EndpointJoinedCondition, infrav1.EndpointFamilyMismatchReason)

	message := conditions.GetMessage(w.VCDMachine("a"), infrav1.EndpointJoinedCondition)
	w.Expect(message).To(And(ContainSubstring("IPv6"), ContainSubstring("spec.controlPlaneEndpoint")))
	w.Expect(w.Sim.State().VMs[0].Status).To(Equal(vcdsim.PoweredOff))
	w.DeleteMachine("a")
	w.DeleteCluster()
	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

func TestAnEndpointOnAnotherGatewayThanThatOfTheNetwork(t *testing.T) {
	model := vcdsim.TwoGateways()
	w := newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model},
		&infrav1.EdgeGatewayEndpoint{Name: "acme-vdc-gateway-2"})
	w.Ready()
	w.add("a")
	w.Ready("a")

	host := netip.MustParseAddr(w.VCDCluster().Spec.ControlPlaneEndpoint.Host)
	w.Expect(host.Compare(netip.MustParseAddr("203.0.113.100"))).To(BeNumerically(">=", 0), "%s", host)
	second := vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
	w.Expect(w.VCDCluster().Spec.RecordedState.EndpointGatewayID).To(Equal(second))
	w.Expect(w.members()).To(ConsistOf(w.addressOf("a")))
	w.DeleteMachine("a")
	w.DeleteCluster()
	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

// TestAnEndpointCanBeLeftInVCD holds that neither machines nor the cluster touch an endpoint that is to stay, and that
// an event names it.
func TestAnEndpointCanBeLeftInVCD(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")
	before := endpoint(w.Sim.State())
	w.edit(func(c *infrav1.VCDCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.KeepLoadBalancersAnnotation, "true")
	})
	w.EventTexts()
	w.mark()

	w.DeleteMachine("a")
	w.DeleteCluster()

	_, writes := w.calls()
	w.Expect(writes).To(BeZero())
	w.Expect(endpoint(w.Sim.State())).To(Equal(before))
	w.Expect(w.EventTexts()).To(ContainElement(And(ContainSubstring(infrav1.LoadBalancersNotDeletedReason),
		ContainSubstring("6443"))))
}

func TestTheMonitorOfAnEndpointCanBeChosen(t *testing.T) {
	w := newWorld(t, instant(), &infrav1.EdgeGatewayEndpoint{HealthMonitor: infrav1.EndpointMonitorPing})
	w.Ready()
	w.add("a")
	w.Ready("a")
	w.Expect(endpoint(w.Sim.State())[0].Monitor).To(Equal([]string{"PING"}))
	w.add("b")
	w.Ready("b")
	w.Expect(endpoint(w.Sim.State())).To(ConsistOf(HaveField("Monitor", []string{"PING"})))
}

// TestAMemberThatWasRecordedByTheWrongFamilyIsHealed has the record of an earlier version, which took the address of the
// primary NIC whatever its family.
func TestAMemberThatWasRecordedByTheWrongFamilyIsHealed(t *testing.T) {
	w := dualStackNodes(t, "2001:db8::40")
	w.Ready()
	w.add("a", "b")
	w.Ready("a", "b")
	right := []netip.AddrPort{w.addressOf("a"), w.addressOf("b")}
	w.Expect(right).To(HaveEach(HaveField("Addr().Is6()", true)))
	for _, name := range []string{"a", "b"} {
		m := w.VCDMachine(name)
		m.Spec.RecordedState.EndpointMember = m.Status.NICs[0].Address
		w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
		w.Expect(w.addressOf(name).Addr().Is4()).To(BeTrue())
	}
	w.Restart(t, events.NewFakeRecorder(100))
	w.Later(10 * time.Minute)

	w.Eventually(func() []netip.AddrPort {
		for _, name := range []string{"a", "b"} {
			_, err := w.ReconcileMachine(name)
			w.Expect(err).NotTo(HaveOccurred())
		}
		return []netip.AddrPort{w.addressOf("a"), w.addressOf("b")}
	}, controllertest.Patience, "5ms").Should(Equal(right))

	w.Ready("a", "b")
	w.Expect(w.members()).To(ConsistOf(right))
	w.mark()
	_, err := w.ReconcileMachine("a")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.requests()).To(BeEmpty(), "at rest")
}

func TestAMemberKeepsItsRecordedAddressUnlessItsVMHasOneOfTheFamily(t *testing.T) {
	const (
		v4 = "192.168.100.10"
		v6 = "fd00:100::10"
	)
	own := infrav1.NICStatus{Address: v4}
	for name, tt := range map[string]struct {
		endpoint, recorded string
		nics               []infrav1.NICStatus
		addresses          []string
		keeps              bool
	}{
		"an address of the family":                  {endpoint: "2001:db8::40", recorded: v6, nics: []infrav1.NICStatus{own}, addresses: []string{v4, v6}, keeps: true},
		"one of the other family, beside one of it": {endpoint: "2001:db8::40", recorded: v4, nics: []infrav1.NICStatus{own}, addresses: []string{v4, v6}},
		"the reverse":                           {endpoint: "203.0.113.50", recorded: v6, nics: []infrav1.NICStatus{own}, addresses: []string{v4, v6}},
		"one of the other family alone":         {endpoint: "2001:db8::40", recorded: v4, nics: []infrav1.NICStatus{own}, addresses: []string{v4}, keeps: true},
		"any while the endpoint has no address": {recorded: v4, nics: []infrav1.NICStatus{own}, addresses: []string{v4, v6}, keeps: true},
		"one of the family is another NIC's":    {endpoint: "2001:db8::40", recorded: v4, nics: []infrav1.NICStatus{own, {Address: v6}}, addresses: []string{v4, v6}, keeps: true},
		"one of the family before another NIC's": {
			endpoint:  "2001:db8::40",
			recorded:  v4,
			nics:      []infrav1.NICStatus{own, {Address: "10.0.0.9"}},
			addresses: []string{v4, v6, "10.0.0.9"},
		},
		"addresses that were not read":                          {endpoint: "2001:db8::40", recorded: v4, keeps: true},
		"an invalid address in the record of a VM that has one": {endpoint: "2001:db8::40", recorded: "a", nics: []infrav1.NICStatus{own}, addresses: []string{v4, v6}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &infrav1.VCDCluster{}
			c.Spec.ControlPlaneEndpoint.Host = tt.endpoint
			m := &infrav1.VCDMachine{Status: infrav1.VCDMachineStatus{NICs: tt.nics}}
			m.Spec.RecordedState.EndpointMember = tt.recorded
			m.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "node"}}
			for _, address := range tt.addresses {
				m.Status.Addresses = append(m.Status.Addresses,
					clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: address})
			}

			g.Expect(edgeendpoint.KeepsMember(c, m)).To(Equal(tt.keeps))
		})
	}
}
