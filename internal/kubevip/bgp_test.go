// SPDX-License-Identifier: Apache-2.0

package kubevip_test

import (
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/kubevip"
)

// byBGP announces addresses to two routers.
func byBGP(c *kubevip.Config) {
	c.Addresses = []string{"203.0.113.10", "2001:db8:1::10"}
	c.BGP = &kubevip.BGP{
		AS:              4200000001,
		RouterInterface: "ens192",
		Peers: []kubevip.Peer{
			{Address: netip.MustParseAddr("192.168.100.1"), AS: 65000, Password: "s3cret$(port)"},
			{Address: netip.MustParseAddr("fd00:100::1"), AS: 65001, MultiHop: true},
		},
	}
}

func TestBGPReplacesARP(t *testing.T) {
	g := NewWithT(t)

	got := env(podOf(t, render(t, config(byBGP))))

	g.Expect(got).To(And(
		HaveKeyWithValue("vip_arp", "false"), HaveKeyWithValue("bgp_enable", "true"),
		HaveKeyWithValue("vip_leaderelection", "true"), HaveKeyWithValue("vip_interface", "lo"),
		HaveKeyWithValue("bgp_as", "4200000001"), HaveKeyWithValue("bgp_routerinterface", "ens192"),
		HaveKeyWithValue("address", "203.0.113.10,2001:db8:1::10"), HaveKeyWithValue("vip_subnet", "32,128")))
	g.Expect(got["bgp_peers"]).To(Equal("192.168.100.1:65000:s3cret$$(port):false,[fd00:100::1]:65001::true"),
		"kubelet would replace $(port)")
	g.Expect(got).NotTo(HaveKey("bgp_sourceif"))
	g.Expect(got["bgp_routerid"]).To(BeEmpty(), "every node would have the same one")
}

func TestBGPFromAnInterface(t *testing.T) {
	g := NewWithT(t)

	got := env(podOf(t, render(t, config(byBGP, func(c *kubevip.Config) {
		c.BGP.SourceInterface = "ens224"
		c.Interface = "dummy0"
	}))))

	g.Expect(got).To(And(HaveKeyWithValue("bgp_sourceif", "ens224"), HaveKeyWithValue("vip_interface", "dummy0")))
}

func TestRenderRejectsInvalidBGP(t *testing.T) {
	password := func(value string) func(*kubevip.Config) {
		return func(c *kubevip.Config) { c.BGP.Peers[0].Password = value }
	}
	tests := []struct {
		name string
		mod  func(*kubevip.Config)
		want string
	}{
		{name: "no AS number", mod: func(c *kubevip.Config) { c.BGP.AS = 0 }, want: "AS number of the nodes"},
		{name: "no peer", mod: func(c *kubevip.Config) { c.BGP.Peers = nil }, want: "no peer"},
		{
			name: "a peer without AS number",
			mod:  func(c *kubevip.Config) { c.BGP.Peers[1].AS = 0 },
			want: "AS number of BGP peer fd00:100::1",
		},
		{
			name: "an invalid peer",
			mod:  func(c *kubevip.Config) { c.BGP.Peers[0].Address = netip.Addr{} },
			want: "not a valid address of a BGP peer",
		},
		{
			name: "no interface for the router ID",
			mod:  func(c *kubevip.Config) { c.BGP.RouterInterface = "" },
			want: "interface for the router ID",
		},
		{name: "an invalid source", mod: func(c *kubevip.Config) { c.BGP.SourceInterface = "a b" }, want: "source interface"},
		{
			name: "an address without a peer of its family",
			mod:  func(c *kubevip.Config) { c.BGP.Peers = c.BGP.Peers[:1] },
			want: "no BGP peer has the family of 2001:db8:1::10",
		},
		{name: "a name", mod: func(c *kubevip.Config) { c.Addresses = []string{"api.example"} }, want: "is a DNS name"},
		{
			name: "dynamic DNS",
			mod: func(c *kubevip.Config) {
				c.Addresses = []string{"api.example"}
				c.DynamicDNS = true
			},
			want: "instead of BGP",
		},
		{name: "a password with a colon", mod: password("geheim:x"), want: "password of BGP peer 192.168.100.1"},
		{name: "a password with a comma", mod: password("geheim,x"), want: "password of BGP peer"},
		{name: "a password with a slash", mod: password("geheim/x"), want: "password of BGP peer"},
		{name: "a password with a line break", mod: password("geheim\nx"), want: "password of BGP peer"},
		{name: "a password that jinja would render", mod: password("geheim{{x}}"), want: "password of BGP peer"},
		{name: "a password that is too long", mod: password("geheim" + strings.Repeat("x", 80)), want: "at most 80"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := kubevip.Render(config(byBGP, tt.mod))

			g.Expect(err).To(MatchError(ContainSubstring(tt.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("geheim"))
		})
	}
}
