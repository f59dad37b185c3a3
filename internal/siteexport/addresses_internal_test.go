// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// networksIn returns a model with networks of some subnets.
func networksIn(gateways ...string) *Model {
	m := &Model{Orgs: []Org{{VDCs: []VDC{{}}}}}
	for _, gateway := range gateways {
		p := netip.MustParsePrefix(gateway)
		m.Orgs[0].VDCs[0].Networks = append(m.Orgs[0].VDCs[0].Networks, Network{Gateway: p})
	}
	return m
}

// gatewaysOf returns the gateways of the networks.
func gatewaysOf(m *Model) []string {
	var all []string
	for _, n := range m.Orgs[0].VDCs[0].Networks {
		all = append(all, n.Gateway.String())
	}
	return all
}

func TestSubnetsAreMapped(t *testing.T) {
	for _, test := range []struct {
		name       string
		from, want []string
	}{
		{name: "with their prefix lengths", from: []string{"10.1.2.1/24", "172.16.9.129/25"}, want: []string{"198.18.0.1/24", "198.18.1.1/25"}},
		{name: "the largest first", from: []string{"10.1.2.1/24", "172.16.0.1/20"}, want: []string{"198.18.16.1/24", "198.18.0.1/20"}},
		{name: "equal subnets together", from: []string{"10.1.2.1/24", "10.1.2.254/24"}, want: []string{"198.18.0.1/24", "198.18.0.254/24"}},
		{
			name: "a subnet in another one stays in it",
			from: []string{"10.1.2.129/25", "10.1.0.1/20"},
			want: []string{"198.18.2.129/25", "198.18.0.1/20"},
		},
		{name: "large subnets to the reserved range", from: []string{"10.1.0.1/16", "10.2.3.1/24"}, want: []string{"240.0.0.1/16", "198.18.0.1/24"}},
		{name: "of IPv6", from: []string{"fd00:1:2:3::1/64", "fd00:9::1/48"}, want: []string{"2001:db8:1::1/64", "2001:db8::1/48"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := networksIn(test.from...)

			moveAddresses(m)

			g.Expect(gatewaysOf(m)).To(Equal(test.want))
			moveAddresses(m)
			g.Expect(gatewaysOf(m)).To(Equal(test.want), "mapped subnets are kept")
		})
	}
}

func TestAThousandSubnetsFit(t *testing.T) {
	g := NewWithT(t)
	var gateways []string
	for i := range 1024 {
		gateways = append(gateways, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 6), byte(i << 2), 1}), 22).String())
	}
	m := networksIn(gateways...)

	moveAddresses(m)

	for _, gateway := range gatewaysOf(m) {
		p := netip.MustParsePrefix(gateway)
		g.Expect(benchmarks.Contains(p.Addr()) || reserved.Contains(p.Addr())).To(BeTrue(), gateway)
	}
	g.Expect(gatewaysOf(m)).To(HaveEach(HaveSuffix(".1/22")))
}

func TestAddressesKeepTheirOffset(t *testing.T) {
	g := NewWithT(t)
	m := networksIn("10.1.2.1/24")
	n := &m.Orgs[0].VDCs[0].Networks[0]
	n.DNS = []netip.Addr{netip.MustParseAddr("10.1.2.53"), netip.MustParseAddr("9.9.9.9")}
	n.StaticPool = []Range{{From: netip.MustParseAddr("10.1.2.10"), To: netip.MustParseAddr("10.1.2.99")}}
	m.IPSpaces = []IPSpace{{
		Ranges:   []Range{{From: netip.MustParseAddr("10.1.3.10"), To: netip.MustParseAddr("10.1.3.12")}},
		Prefixes: []PrefixPool{{First: netip.MustParsePrefix("10.1.3.64/28"), Count: 4}},
		Internal: []netip.Prefix{netip.MustParsePrefix("10.1.3.0/24")},
		External: netip.MustParsePrefix("0.0.0.0/0"),
	}}

	moveAddresses(m)

	g.Expect(n.Gateway.String()).To(Equal("198.18.0.1/24"))
	g.Expect(n.DNS).To(Equal([]netip.Addr{netip.MustParseAddr("198.18.0.53"), netip.MustParseAddr("198.18.2.0")}))
	g.Expect(n.StaticPool).To(Equal([]Range{{From: netip.MustParseAddr("198.18.0.10"), To: netip.MustParseAddr("198.18.0.99")}}))
	g.Expect(m.IPSpaces[0]).To(Equal(IPSpace{
		Ranges:   []Range{{From: netip.MustParseAddr("198.18.1.10"), To: netip.MustParseAddr("198.18.1.12")}},
		Prefixes: []PrefixPool{{First: netip.MustParsePrefix("198.18.1.64/28"), Count: 4}},
		Internal: []netip.Prefix{netip.MustParsePrefix("198.18.1.0/24")},
		External: netip.MustParsePrefix("0.0.0.0/0"),
	}))
}

func TestATooWideScopeIsDropped(t *testing.T) {
	g := NewWithT(t)
	space := IPSpace{
		Ranges:   []Range{{From: netip.MustParseAddr("10.1.3.10"), To: netip.MustParseAddr("10.1.3.12")}},
		Prefixes: []PrefixPool{{First: netip.MustParsePrefix("10.7.0.0/28"), Count: 4}},
	}

	scopes := internalScopes([]string{"10.0.0.0/8", "172.16.0.0/20", "2001:db8:1::/48", "none"}, space)

	g.Expect(scopes).To(Equal([]netip.Prefix{
		netip.MustParsePrefix("10.1.3.8/29"),
		netip.MustParsePrefix("10.7.0.0/26"),
		netip.MustParsePrefix("172.16.0.0/20"),
		netip.MustParsePrefix("2001:db8:1::/48"),
	}))
}

func FuzzMovedSubnetsOverlapAsBefore(f *testing.F) {
	f.Add("10.1.2.1/24", "10.1.2.129/25", "10.1.0.1/16")
	f.Add("192.168.0.1/24", "192.168.0.1/24", "fd00::1/64")
	f.Add("10.1.2.1/31", "255.255.255.255/32", "fd00:0:0:1::1/48")
	f.Fuzz(func(t *testing.T, x, y, z string) {
		g := NewWithT(t)
		var from []netip.Prefix
		for _, text := range []string{x, y, z} {
			p, err := netip.ParsePrefix(text)
			if err != nil || !movable(p) {
				t.Skip()
			}
			from = append(from, p)
		}
		m := networksIn(x, y, z)

		moveAddresses(m)

		networks := m.Orgs[0].VDCs[0].Networks
		for i, p := range from {
			moved := networks[i].Gateway
			g.Expect(moved.Bits()).To(Equal(p.Bits()))
			ranges := []bool{benchmarks.Contains(moved.Addr()), reserved.Contains(moved.Addr()), documentation.Contains(moved.Addr())}
			g.Expect(ranges).To(ContainElement(true))
			for j, q := range from {
				g.Expect(moved.Masked().Overlaps(networks[j].Gateway.Masked())).To(Equal(p.Masked().Overlaps(q.Masked())))
				g.Expect(moved.Contains(networks[j].Gateway.Addr())).To(Equal(p.Contains(q.Addr())))
			}
		}
	})
}
