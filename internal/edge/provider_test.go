// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestUsedAddressesOfAnUplinkWithBlocksAlongsideOneWithIPSpaces(t *testing.T) {
	m := vcdsim.IPSpaces()
	blocks := vcdsim.K8sTenant()
	network := blocks.ExternalNetworks[0]
	network.Name = "blocks"
	m.ExternalNetworks = append(m.ExternalNetworks, network)
	uplink := blocks.Orgs[1].VDCs[0].EdgeGateways[0].Uplinks[0]
	uplink.Network = "blocks"
	g := &m.Orgs[1].VDCs[0].EdgeGateways[0]
	g.Uplinks = append(g.Uplinks, uplink)
	w := newFixture(t, m)
	d := desired(service("c1", "web"), 80)
	d.Requested = []netip.Addr{uplink.Subnets[0].Primary}

	plan, err := w.plan(&d)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(HaveField("Reason", lb.AddressInUse)), "it is the gateway's own address")
}
