package edgeendpoint_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// secondGateway is the URN of the second edge gateway of [vcdsim.TwoGateways].
func (w *world) secondGateway() string {
	return vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
}

// onSecond returns a world whose endpoint is on another gateway than that of the network.
func onSecond(t *testing.T) *world {
	t.Helper()
	return newWorld(t, vcdsim.Config{Profile: vcdsim.Instant, Model: vcdsim.TwoGateways()},
		&infrav1.EdgeGatewayEndpoint{Gateway: "acme-vdc-gateway-2"})
}

func TestRecordsOfACopiedManifestAreNotBelieved(t *testing.T) {
	w := onSecond(t)
	first := vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	w.edit(func(c *infrav1.VCDCluster) {
		c.Annotations = map[string]string{
			infrav1.EndpointGatewayAnnotation: first, infrav1.EndpointAddressesAnnotation: "203.0.113.12",
		}
	})

	w.Ready()

	w.Expect(w.VCDCluster().Annotations).To(HaveKeyWithValue(infrav1.EndpointGatewayAnnotation, w.secondGateway()))
	found := endpoint(w.Sim.State())
	w.Expect(found).To(HaveLen(1))
	w.Expect(found[0].Address.Compare(netip.MustParseAddr("203.0.113.100"))).To(BeNumerically(">=", 0))
}
