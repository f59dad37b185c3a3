// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestTheSourceOfIPv6Addresses(t *testing.T) {
	pool := []vcd.AddressRange{{}}
	tests := []struct {
		name    string
		prefix  string
		dhcp    []vcd.AddressRange
		mode    vcd.SLAACMode
		problem string
	}{
		{"guests form addresses", "fd00:100::/64", nil, vcd.SLAACStateless, ""},
		{"DHCPv6 with a pool", "fd00:100::/112", pool, vcd.SLAACDHCPv6, ""},
		{"no profile", "fd00:100::/64", pool, vcd.SLAACDisabled, "the SLAAC profile of edge gateway edge is disabled"},
		{"DHCPv6 without a pool", "fd00:100::/64", nil, vcd.SLAACDHCPv6, "has no DHCP pool"},
		{"another prefix length", "fd00:100::/112", nil, vcd.SLAACStateless, "its prefix length is 112"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			subnet := vcd.Subnet{Prefix: netip.MustParsePrefix(tt.prefix), DHCPPool: tt.dhcp}
			network := vcd.Network{
				Ref:         vcd.Ref{Name: "nodes"},
				Subnets:     []vcd.Subnet{subnet},
				EdgeGateway: vcd.Ref{Name: "edge"},
			}

			f := checkSource(network, subnet, tt.mode)

			if tt.problem == "" {
				g.Expect(f.list).To(BeEmpty())
				return
			}
			g.Expect(f.list).To(ConsistOf(HaveField("Message", ContainSubstring(tt.problem))))
		})
	}
}
