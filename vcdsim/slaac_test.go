// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// v6Only is a model whose nodes are on a routed network with an IPv6 subnet only.
func v6Only() vcdsim.Model {
	model := vcdsim.K8sTenant()
	nodes := &model.Orgs[1].VDCs[0].Networks[0]
	nodes.Gateway = netip.MustParsePrefix("fd00:100::1/64")
	nodes.StaticPool = nil
	nodes.DHCPPool = []vcdsim.Range{{
		From: netip.MustParseAddr("fd00:100::100"),
		To:   netip.MustParseAddr("fd00:100::1ff"),
	}}
	return model
}

func TestTheSLAACProfileDeterminesTheAddressesOfGuests(t *testing.T) {
	for name, tt := range map[string]struct {
		profile string
		want    func(mac string) string
	}{
		"no profile": {"", func(string) string { return "" }},
		"a disabled profile": {
			`{"enabled": false, "mode": "DHCPv6"}`,
			func(string) string { return "" },
		},
		"DHCPv6": {`{"enabled": true, "mode": "DHCPv6"}`, func(string) string { return "fd00:100::100" }},
		"SLAAC": {
			`{"enabled": true, "mode": "SLAAC", "dnsConfig": {"domainNames": ["example.com"]}}`,
			func(mac string) string {
				// The MAC addresses of VMware begin with 00:50:56.
				return "fd00:100::250:56ff:fe" + mac[9:11] + ":" + mac[12:14] + mac[15:17]
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, func(cfg *vcdsim.Config) { cfg.Model = v6Only() })
			if tt.profile != "" {
				c.ok(http.MethodPut, cloudAPI+"edgeGateways/"+c.gatewayURN()+"/slaacProfile", tt.profile)
			}
			vapp := c.vapp("cluster")
			c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item("node", nic("DHCP", ""), "")))

			c.ok(http.MethodPost, "/api/vApp/vm-"+c.state("node").ID+"/power/action/powerOn", "")

			c.Eventually(func() bool { return c.state("node").Boot.Up }).Should(BeTrue())
			card := c.state("node").NICs[0]
			want := tt.want(card.MAC)
			if want != "" {
				want = netip.MustParseAddr(want).String()
			}
			c.Expect(card.Address).To(Equal(want))
		})
	}
}

func TestAnUnknownModeOfASLAACProfileIsRefused(t *testing.T) {
	c := start(t)

	c.refused(http.MethodPut, cloudAPI+"edgeGateways/"+c.gatewayURN()+"/slaacProfile", `{"enabled": true, "mode": "stateful"}`,
		400, "BAD_REQUEST")
}
