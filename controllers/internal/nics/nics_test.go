// SPDX-License-Identifier: Apache-2.0

package nics_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

func TestTheFamilyOfDHCPFollowsTheSubnets(t *testing.T) {
	v4 := vcd.Subnet{Prefix: netip.MustParsePrefix("192.168.100.0/24")}
	v6 := vcd.Subnet{Prefix: netip.MustParsePrefix("fd00:100::/64")}
	tests := []struct {
		name    string
		mode    vcd.AddressMode
		subnets []vcd.Subnet
		want    bool
	}{
		{"IPv4", vcd.ModeDHCP, []vcd.Subnet{v4}, false},
		{"IPv6", vcd.ModeDHCP, []vcd.Subnet{v6}, true},
		{"both families", vcd.ModeDHCP, []vcd.Subnet{v4, v6}, false},
		{"unknown subnets", vcd.ModeDHCP, nil, false},
		{"no DHCP", vcd.ModeNone, []vcd.Subnet{v6}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			nic := nics.NIC{Network: vcd.Network{Subnets: tt.subnets}}

			guest, out := nic.Guest(vcd.NIC{Mode: tt.mode})

			g.Expect(out).To(Equal(phases.Done))
			g.Expect(guest.IPv6Only).To(Equal(tt.want))
		})
	}
}
