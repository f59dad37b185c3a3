// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A world has a cluster whose endpoint is on the edge gateway of its network.
type world struct {
	*controllertest.Env

	seen int // requests before the last mark
}

// mark makes the requests so far count no more.
func (w *world) mark() { w.seen = len(w.Sim.Requests()) }

// requests are those since the last mark.
func (w *world) requests() []vcdsim.Request { return w.Sim.Requests()[w.seen:] }

// newWorld makes a world on a model, with an endpoint as specified, and no machine.
func newWorld(t *testing.T, config vcdsim.Config, spec *infrav1.EdgeGatewayEndpoint) *world {
	t.Helper()
	w := &world{Env: controllertest.NewWith(t, config)}
	w.edit(func(c *infrav1.VCDCluster) {
		c.Spec.ControlPlaneEndpoint.Host = ""
		c.Spec.ControlPlaneLoadBalancer = infrav1.ControlPlaneLoadBalancerSpec{
			Type:        infrav1.EndpointEdgeGateway,
			EdgeGateway: spec,
		}
	})
	return w
}

// requesting gives the endpoint addresses that are chosen, the host first.
func requesting(addresses ...string) func(*infrav1.VCDCluster) {
	return func(c *infrav1.VCDCluster) {
		edge := &infrav1.EdgeGatewayEndpoint{}
		if len(addresses) > 1 {
			edge.SecondaryAddress = addresses[1]
		}
		c.Spec.ControlPlaneEndpoint.Host = addresses[0]
		c.Spec.ControlPlaneLoadBalancer.EdgeGateway = edge
	}
}

func instant() vcdsim.Config { return vcdsim.Config{Profile: vcdsim.Instant} }

func onSpaces() vcdsim.Config {
	return vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.IPSpaces()}
}

// edit changes the VCDCluster.
func (w *world) edit(change func(*infrav1.VCDCluster)) {
	c := w.VCDCluster()
	change(c)
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// add creates the objects of control planes.
func (w *world) add(names ...string) {
	for _, name := range names {
		w.Expect(create(w.Ctx, w.Client, controlPlane(name)...)).To(Succeed())
	}
}

// controlPlane returns the objects of a control plane.
func controlPlane(name string, mods ...func(*infrav1.VCDMachine)) []client.Object {
	objects := controllertest.NewMachine(name, mods...)
	objects[0].GetLabels()[clusterv1.MachineControlPlaneLabel] = ""
	return objects
}

// reason returns the reason of a condition of the VCDCluster.
func (w *world) reason(condition string) string {
	return conditions.GetReason(w.VCDCluster(), condition)
}

// A served is a virtual service with its pool, as VCD has them.
type served struct {
	Address netip.Addr
	Port    int
	Members []netip.AddrPort
	Monitor []string
}

type wireService struct {
	ID, Description string
	VirtualIP       string `json:"virtualIpAddress"`
	Ports           []struct {
		Start int `json:"portStart"`
	} `json:"servicePorts"`
	Pool struct{ ID string } `json:"loadBalancerPoolRef"`
}

type wirePool struct {
	ID, Description string
	Members         []struct {
		Address string `json:"ipAddress"`
		Port    int
		Enabled bool
	}
	Monitors []struct{ Type string } `json:"healthMonitors"`
}

// documents reads the documents of a collection.
func documents[T any](state vcdsim.State, collection string) []T {
	var out []T
	for _, d := range state.Documents {
		if strings.HasSuffix(d.Path, collection) {
			var x T
			if err := json.Unmarshal(d.Body, &x); err != nil {
				panic(err)
			}
			out = append(out, x)
		}
	}
	return out
}

// endpoint returns what serves the endpoints of all clusters.
func endpoint(state vcdsim.State) []served {
	var out []served
	pools := documents[wirePool](state, "loadBalancer/pools")
	for _, vs := range documents[wireService](state, "loadBalancer/virtualServices") {
		s := served{Port: vs.Ports[0].Start}
		s.Address, _ = netip.ParseAddr(vs.VirtualIP)
		for _, p := range pools {
			if p.ID != vs.Pool.ID {
				continue
			}
			for _, m := range p.Members {
				s.Members = append(s.Members, netip.AddrPortFrom(netip.MustParseAddr(m.Address), uint16(m.Port)))
			}
			for _, m := range p.Monitors {
				s.Monitor = append(s.Monitor, m.Type)
			}
		}
		out = append(out, s)
	}
	return out
}

// members are those of the only virtual service.
func (w *world) members() []netip.AddrPort {
	found := endpoint(w.Sim.State())
	w.Expect(found).To(HaveLen(1))
	return found[0].Members
}

// addressOf returns the address and port under which a control plane serves.
func (w *world) addressOf(name string) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(w.VCDMachine(name).Spec.RecordedState.EndpointMember), 6443)
}
