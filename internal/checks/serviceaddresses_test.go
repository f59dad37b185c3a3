// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// serving returns a cluster whose kube-vip announces a range.
func serving(host, from, to string) *infrav1.VCDCluster {
	c := cluster(host, nil)
	c.Spec.LoadBalancer.KubeVIP = &infrav1.KubeVIPServices{
		AddressRanges: []infrav1.AddressRange{{StartIP: from, EndIP: to}},
	}
	return c
}

func TestServiceAddressesMustNotBeInUseInVCD(t *testing.T) {
	t.Parallel()
	network := nodes()
	network.Subnets = append(network.Subnets, vcd.Subnet{
		Prefix:  netip.MustParsePrefix("fd00:100::1/64"),
		Gateway: netip.MustParseAddr("fd00:100::1"),
	})
	tests := []struct {
		name     string
		from, to string
		want     string // empty: no finding
	}{
		{"between the ranges", "192.168.100.201", "192.168.100.220", ""},
		{"of IPv6", "fd00:100::100", "fd00:100::1ff", ""},
		{"outside the network", "10.0.0.1", "10.0.0.9", "not in one subnet of network nodes"},
		{"partly outside the network", "192.168.100.201", "192.168.101.9", "not in one subnet"},
		{"around the gateway", "192.168.100.1", "192.168.100.5", "contain 192.168.100.1"},
		{"including the network address", "192.168.100.0", "192.168.100.0", "contain 192.168.100.0"},
		{"including the broadcast address", "192.168.100.250", "192.168.100.255", "contain 192.168.100.255"},
		{"that end in the static pool", "192.168.100.5", "192.168.100.10", "static pool 192.168.100.10-192.168.100.50"},
		{"in the static pool", "192.168.100.20", "192.168.100.21", "shorten the static pool"},
		{"that start in a DHCP range", "192.168.100.90", "192.168.100.95", "DHCP range 192.168.100.40-192.168.100.90"},
		{"including the endpoint", "192.168.100.195", "192.168.100.205", "contain 192.168.100.200, the control plane endpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			found := checks.ServiceAddresses(serving("192.168.100.200", tt.from, tt.to), network)

			if tt.want == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).NotTo(BeNil())
			g.Expect(found.Reason).To(Equal(infrav1.LoadBalancerInvalidReason))
			g.Expect(found.Message + ": " + found.Remedy).To(And(ContainSubstring(tt.want), ContainSubstring("addressRanges")))
		})
	}
}

func TestServiceAddressesMustNotBeInUseByOtherClusters(t *testing.T) {
	g := NewWithT(t)
	c := serving("192.168.100.200", "192.168.100.210", "192.168.100.220")

	g.Expect(checks.ServiceAddressesTaken(c, serving("192.168.100.201", "192.168.100.221", "192.168.100.230"), "VCDCluster other")).To(BeNil())
	g.Expect(checks.ServiceAddressesTaken(c, serving("192.168.100.201", "192.168.100.220", "192.168.100.230"), "VCDCluster other").Message).To(
		ContainSubstring("overlap those of VCDCluster other"))
	g.Expect(checks.ServiceAddressesTaken(c, cluster("192.168.100.215", nil), "VCDCluster other").Message).To(
		ContainSubstring("192.168.100.215, the control plane endpoint of VCDCluster other"))
}
