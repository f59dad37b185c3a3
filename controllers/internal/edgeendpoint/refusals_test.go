// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// other makes the endpoint of another cluster, on an address, as another program does.
func (w *world) other(t *testing.T, address string) {
	t.Helper()
	session := w.Admin(t)
	driver := edge.New(func(context.Context) (*vcd.Session, error) { return session, nil }, edge.Options{})
	gateway := vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	want := lb.Desired{
		Desired: loadbalancer.Desired{
			Owner:     loadbalancer.EndpointOf("another"),
			Families:  []loadbalancer.Family{loadbalancer.IPv4},
			Requested: []netip.Addr{netip.MustParseAddr(address)},
		},
		OwnMembers: true,
		Listeners:  []lb.Listener{{Protocol: loadbalancer.TCP, Application: lb.L4, Port: 6443, NodePort: 6443}},
	}
	plan, err := driver.Plan(t.Context(), gateway, want, edge.PlanOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	for _, step := range plan.Steps {
		w.Expect(driver.Run(t.Context(), gateway, step)).To(Succeed())
	}
}

func (w *world) model(change func(*vcdsim.EdgeGateway)) {
	w.Sim.Edit(func(e *vcdsim.Editor) { change(&e.Model.Orgs[1].VDCs[0].EdgeGateways[0]) })
}

func on(spec infrav1.EdgeGatewayEndpoint) func(*infrav1.VCDCluster) {
	return func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint.Host = ""
		c.Spec.ControlPlaneLoadBalancer.EdgeGateway = &spec
	}
}

// TestInvalidConfigurationsAreReportedWithoutChanges holds that a spec that cannot work is refused with its field before anything
// is created or made immutable, and that the endpoint comes up by itself once the cause is gone.
func TestInvalidConfigurationsAreReportedWithoutChanges(t *testing.T) {
	free := on(infrav1.EdgeGatewayEndpoint{})
	for _, tt := range []struct {
		name         string
		breaks       func(*testing.T, *world)
		reason, says string
		mends        func(*world)
	}{
		{
			name: "a gateway without a load balancer",
			breaks: func(_ *testing.T, w *world) {
				w.model(func(g *vcdsim.EdgeGateway) { g.LoadBalancer.Enabled = false })
			},
			reason: infrav1.LoadBalancerUnavailableReason,
			says:   "has no load balancer",
			mends:  func(w *world) { w.model(func(g *vcdsim.EdgeGateway) { g.LoadBalancer.Enabled = true }) },
		},
		{
			name:   "a service engine group that is not there",
			breaks: func(_ *testing.T, w *world) { w.edit(on(infrav1.EdgeGatewayEndpoint{ServiceEngineGroup: "none"})) },
			reason: infrav1.EngineGroupUnavailableReason,
			says:   "spec.controlPlaneLoadBalancer.edgeGateway.serviceEngineGroup",
			mends:  func(w *world) { w.edit(free) },
		},
		{
			name:   "a gateway that is not there",
			breaks: func(_ *testing.T, w *world) { w.edit(on(infrav1.EdgeGatewayEndpoint{Name: "none"})) },
			reason: infrav1.EdgeGatewayNotFoundReason,
			says:   "spec.controlPlaneLoadBalancer.edgeGateway.name",
			mends:  func(w *world) { w.edit(free) },
		},
		{
			name: "an address outside",
			breaks: func(_ *testing.T, w *world) {
				w.edit(requesting("192.0.2.1"))
			},
			reason: infrav1.EndpointAddressInvalidReason,
			says:   "spec.controlPlaneEndpoint",
			mends:  func(w *world) { w.edit(free) },
		},
		{
			name: "an address that is used",
			breaks: func(t *testing.T, w *world) {
				t.Helper()
				w.other(t, "203.0.113.20")
				w.edit(requesting("203.0.113.20"))
			},
			reason: infrav1.EndpointAddressInvalidReason,
			says:   "spec.controlPlaneEndpoint",
			mends:  func(w *world) { w.edit(free) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, instant(), nil)
			tt.breaks(t, w)
			before := len(w.Sim.State().Documents)

			w.EventuallyCluster(infrav1.EndpointReadyCondition, tt.reason)

			w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(ContainSubstring(tt.says))
			w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty(), "the spec can be corrected")
			w.Expect(w.Sim.State().Documents).To(HaveLen(before), "nothing is half made")

			tt.mends(w)
			w.Clock.Add(int64(2 * time.Hour))
			w.Later(time.Hour)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
		})
	}
}

func TestAFullServiceEngineGroupIsNamed(t *testing.T) {
	config := vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.K8sTenant()}
	config.Model.ServiceEngineGroups[0].MaxService = 1
	w := newWorld(t, config, nil)
	w.other(t, "203.0.113.20")

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.EngineGroupUnavailableReason)

	w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(ContainSubstring("has capacity"))
	w.Expect(w.VCDCluster().Spec.InfraID).To(BeEmpty())
	w.remove()
	w.Clock.Add(int64(2 * time.Hour))
	w.Later(time.Hour)
	w.Ready()
}

// remove deletes all virtual services and their pools by hand.
func (w *world) remove() {
	for _, vs := range documents[wireService](w.Sim.State(), "loadBalancer/virtualServices") {
		w.Sim.Edit(func(e *vcdsim.Editor) {
			e.DeleteDocument(vs.ID)
			e.DeleteDocument(vs.Pool.ID)
		})
	}
}

// TestAnAddressThatAnotherTookIsNamed deletes an endpoint manually and gives its address and port to another client. The
// endpoint reports that, and is recreated there once they are free.
func TestAnAddressThatAnotherTookIsNamed(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	host := w.VCDCluster().Spec.ControlPlaneEndpoint.Host
	w.remove()
	w.other(t, host)

	w.Clock.Add(int64(5 * time.Minute))
	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.EndpointAddressInvalidReason)

	w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(And(
		ContainSubstring("tcp-6443"), ContainSubstring(host), ContainSubstring("or delete that object in VCD"), ContainSubstring("spec.controlPlaneEndpoint")))
	w.Expect(endpoint(w.Sim.State())).To(HaveLen(1), "the other's alone")
	w.remove()
	w.Clock.Add(int64(2 * time.Hour))
	w.Later(time.Hour)
	w.Ready()
	w.Expect(endpoint(w.Sim.State())).To(ConsistOf(HaveField("Address", netip.MustParseAddr(host))))
}

// byHand creates a virtual service that carries no marker on an address, with a pool of its own.
func (w *world) byHand(t *testing.T, address string, port int) {
	t.Helper()
	session := w.Admin(t)
	balancers := session.Balancers
	gateway := vcd.Ref{ID: vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)}
	groups, err := balancers.EngineGroups(t.Context(), gateway.ID)
	w.Expect(err).NotTo(HaveOccurred())
	made := func(task vcd.Task, err error) vcd.Ref {
		w.Expect(err).NotTo(HaveOccurred())
		ended, err := session.Tasks.Wait(t.Context(), task, time.After(controllertest.Patience))
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(ended.State).To(Equal(vcd.TaskSucceeded))
		return vcd.Ref{ID: ended.Owner}
	}
	pool := made(balancers.CreatePool(t.Context(), vcd.ServerPool{
		Ref:         vcd.Ref{Name: "by-hand"},
		Gateway:     gateway,
		DefaultPort: port,
	}))
	made(balancers.CreateVirtualService(t.Context(), vcd.VirtualService{
		Ref:         vcd.Ref{Name: "by-hand"},
		Gateway:     gateway,
		Pool:        pool,
		EngineGroup: groups[0].Ref,
		Address:     netip.MustParseAddr(address),
		Application: vcd.L4,
		Ports:       []vcd.ServicePort{{From: port, To: port, Profile: vcd.TCPProxy}},
	}))
}

// TestAPortThatAnotherTookIsNamed holds that a port which something else has on the endpoint's address is refused with
// its field, that the API server is served on, and that the port is there once it is free.
func TestAPortThatAnotherTookIsNamed(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	host := w.VCDCluster().Spec.ControlPlaneEndpoint.Host
	w.byHand(t, host, 8132)
	w.Clock.Add(int64(5 * time.Minute))

	w.edit(on(infrav1.EdgeGatewayEndpoint{ExtraPorts: []infrav1.EndpointPort{{Port: 8132}}}))

	w.EventuallyCluster(infrav1.EndpointReadyCondition, infrav1.EndpointPortInUseReason)
	w.Expect(conditions.GetMessage(w.VCDCluster(), infrav1.EndpointReadyCondition)).To(And(
		ContainSubstring("spec.controlPlaneLoadBalancer.edgeGateway.extraPorts"), ContainSubstring("port 8132/TCP"),
		ContainSubstring(host), ContainSubstring("by-hand"), ContainSubstring("use another port")))
	w.Expect(endpoint(w.Sim.State())).To(ConsistOf(HaveField("Port", 6443), HaveField("Port", 8132)))

	for _, vs := range documents[wireService](w.Sim.State(), "loadBalancer/virtualServices") {
		if vs.Ports[0].Start == 8132 {
			w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteDocument(vs.ID) })
		}
	}
	w.Clock.Add(int64(2 * time.Hour))
	w.Later(time.Hour)
	w.Ready()
	w.Expect(endpoint(w.Sim.State())).To(ConsistOf(HaveField("Port", 6443), HaveField("Port", 8132)))
}

func TestDriftOfAnEndpointIsRepaired(t *testing.T) {
	for name, drift := range map[string]func(*vcdsim.Editor, wireService){
		"the virtual service is deleted": func(e *vcdsim.Editor, vs wireService) { e.DeleteDocument(vs.ID) },
		"both are deleted": func(e *vcdsim.Editor, vs wireService) {
			e.DeleteDocument(vs.ID)
			e.DeleteDocument(vs.Pool.ID)
		},
		"all members are removed": func(e *vcdsim.Editor, vs wireService) {
			e.Document(vs.Pool.ID, func(body map[string]any) {
				body["members"] = []any{}
				body["memberCount"] = 0
			})
		},
		"the monitor is removed": func(e *vcdsim.Editor, vs wireService) {
			e.Document(vs.Pool.ID, func(body map[string]any) { body["healthMonitors"] = []any{} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, instant(), nil)
			w.Ready()
			w.add("a")
			w.Ready("a")
			host := w.VCDCluster().Spec.ControlPlaneEndpoint
			vs := documents[wireService](w.Sim.State(), "loadBalancer/virtualServices")[0]
			w.Sim.Edit(func(e *vcdsim.Editor) { drift(e, vs) })

			w.Clock.Add(int64(5 * time.Minute))
			w.Eventually(func(g Gomega) {
				_, err := w.ReconcileCluster()
				g.Expect(err).NotTo(HaveOccurred())
				found := endpoint(w.Sim.State())
				g.Expect(found).To(HaveLen(1))
				g.Expect(found[0].Members).To(ConsistOf(w.addressOf("a")))
				g.Expect(found[0].Monitor).To(Equal([]string{"TCP"}))
				g.Expect(found[0].Address.String()).To(Equal(host.Host))
			}).Should(Succeed())
			w.Ready()
			w.Expect(w.VCDCluster().Spec.ControlPlaneEndpoint).To(Equal(host))
		})
	}
}

func TestForeignSettingsOfThePoolSurvive(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")
	pool := documents[wireService](w.Sim.State(), "loadBalancer/virtualServices")[0].Pool.ID
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.Document(pool, func(body map[string]any) {
			body["algorithm"] = "LEAST_CONNECTIONS"
			body["gracefulTimeoutPeriod"] = 17
			body["members"].([]any)[0].(map[string]any)["ratio"] = 7
		})
	})

	w.add("b")
	w.Ready("b")

	w.Expect(w.members()).To(HaveLen(2))
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.Document(pool, func(body map[string]any) {
			w.Expect(body).To(HaveKeyWithValue("algorithm", "LEAST_CONNECTIONS"))
			w.Expect(body).To(HaveKeyWithValue("gracefulTimeoutPeriod", BeNumerically("==", 17)))
			w.Expect(body["members"]).To(ContainElement(HaveKeyWithValue("ratio", BeNumerically("==", 7))))
		})
	})
}
