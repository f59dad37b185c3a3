// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestANetworkWithoutAStaticPoolIsNotOneWithoutACount(t *testing.T) {
	pool := vcd.Subnet{StaticPool: []vcd.AddressRange{{
		From: netip.MustParseAddr("192.168.8.10"),
		To:   netip.MustParseAddr("192.168.8.19"),
	}}}
	counted := vcd.NetworkUsage{Counted: true, Addresses: vcd.Amount{Used: 2, Limit: 10}}
	tests := []struct {
		name   string
		subnet vcd.Subnet
		usage  vcd.NetworkUsage
		demand demand
		says   []string // severity and message, or the fact
	}{
		{
			name:   "a counted pool is compared",
			subnet: pool,
			usage:  counted,
			demand: demand{fromPool: 8},
			says:   []string{"fact: nodes has 8 free addresses"},
		},
		{
			name:   "a counted pool is too small",
			subnet: pool,
			usage:  counted,
			demand: demand{fromPool: 9},
			says:   []string{"problem: network nodes has 8 free addresses of 10 in its static pool, but 9 are planned"},
		},
		{
			name:   "a pool without a count is not missing",
			subnet: pool,
			demand: demand{fromPool: 8},
			says:   []string{"warning: VCD did not report the size of the static pool of network nodes, from which 8 addresses are planned"},
		},
		{
			name:   "a pool without a count and without a demand is a fact",
			subnet: pool,
			says:   []string{"fact: nodes has a static pool of unknown size"},
		},
		{
			name:   "a pool is missing",
			usage:  vcd.NetworkUsage{Counted: true},
			demand: demand{fromPool: 8},
			says:   []string{"problem: network nodes has no static pool, but NICs use it for addresses"},
		},
		{
			name:  "a pool is not needed",
			usage: vcd.NetworkUsage{Counted: true},
			says:  []string{"fact: nodes has no static pool"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			network := vcd.Network{Ref: vcd.Ref{Name: "nodes"}, Subnets: []vcd.Subnet{tt.subnet}}

			f := checkNetwork(network, tt.usage, tt.demand)

			var said []string
			for _, fact := range f.facts {
				said = append(said, "fact: "+fact)
			}
			for _, x := range f.list {
				said = append(said, string(x.Severity)+": "+x.Message)
			}
			NewWithT(t).Expect(said).To(Equal(tt.says))
		})
	}
}
