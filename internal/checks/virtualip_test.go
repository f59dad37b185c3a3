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

func cluster(host string, kube *infrav1.KubeVIPEndpoint) *infrav1.VCDCluster {
	c := &infrav1.VCDCluster{}
	c.Spec.ControlPlaneEndpoint.Host = host
	c.Spec.ControlPlaneLoadBalancer.KubeVIP = kube
	return c
}

// nodes returns a network with both kinds of ranges, which overlap.
func nodes() vcd.Network {
	return vcd.Network{
		Ref: vcd.Ref{Name: "nodes"},
		Subnets: []vcd.Subnet{{
			Prefix:     netip.MustParsePrefix("192.168.100.1/24"),
			Gateway:    netip.MustParseAddr("192.168.100.1"),
			StaticPool: []vcd.AddressRange{ranged("192.168.100.10", "192.168.100.50")},
			DHCPPool:   []vcd.AddressRange{ranged("192.168.100.40", "192.168.100.90")},
		}},
	}
}

func ranged(from, to string) vcd.AddressRange {
	return vcd.AddressRange{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to)}
}

func TestAVirtualIPMustNotBeInUseInVCD(t *testing.T) {
	t.Parallel()
	byBGP := &infrav1.KubeVIPEndpoint{BGP: &infrav1.KubeVIPBGP{}}
	dynamic := &infrav1.KubeVIPEndpoint{AddressSource: infrav1.VIPSourceDHCP}
	tests := []struct {
		name   string
		kube   *infrav1.KubeVIPEndpoint
		addr   string
		reason string // empty: no finding
	}{
		{"between the ranges", nil, "192.168.100.200", ""},
		{"outside the network, announced by ARP", nil, "10.0.0.1", infrav1.VIPOutsideNetworkReason},
		{"outside the network, announced by BGP", byBGP, "10.0.0.1", ""},
		{"in the static pool, announced by BGP", byBGP, "192.168.100.10", infrav1.VIPInStaticPoolReason},
		{"of the gateway", nil, "192.168.100.1", infrav1.VIPInvalidReason},
		{"of the network", nil, "192.168.100.0", infrav1.VIPInvalidReason},
		{"in the static pool and a DHCP range", nil, "192.168.100.45", infrav1.VIPInStaticPoolReason},
		{"in a DHCP range", nil, "192.168.100.90", infrav1.VIPInDHCPRangeReason},
		{"in a DHCP range and leased", dynamic, "192.168.100.90", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			found := checks.VirtualIP(cluster(tt.addr, tt.kube), nodes(), netip.MustParseAddr(tt.addr))

			if tt.reason == "" {
				g.Expect(found).To(BeNil())
				return
			}
			g.Expect(found).To(HaveValue(And(HaveField("Reason", tt.reason),
				HaveField("Message", HavePrefix("virtual IP "+tt.addr+" is ")),
				HaveField("Remedy", HavePrefix("set another address in spec.controlPlaneEndpoint")))))
		})
	}
}

func TestAVirtualIPMustNotBelongToAHost(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	hosts := []vcd.HostAddress{{UsedAddress: vcd.UsedAddress{Address: netip.MustParseAddr("192.168.100.200")}, Host: "VM web"}}
	c := cluster("192.168.100.200", &infrav1.KubeVIPEndpoint{SecondaryAddress: "fd00::1"})

	g.Expect(checks.VirtualIPTaken(c, nodes(), checks.VirtualIPs(c), hosts)).To(HaveValue(Equal(checks.Finding{
		Reason:  infrav1.VIPInUseReason,
		Message: "virtual IP 192.168.100.200 is the address of VM web in network nodes",
		Remedy:  "set another address in spec.controlPlaneEndpoint, or release it",
	})))
	g.Expect(checks.VirtualIPTaken(c, nodes(), checks.Addresses([]string{"192.168.100.201"}), hosts)).To(BeNil())
}

func TestTheRemedyNamesTheSourceOfAVirtualIP(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	fromPool := &infrav1.KubeVIPEndpoint{PoolRefs: []infrav1.IPPoolReference{{Name: "v4"}}}

	g.Expect(checks.OtherVirtualIP(cluster("", fromPool))).To(HavePrefix("remove it from the pools"))
	g.Expect(checks.OtherVirtualIP(cluster("api.example.com", nil))).To(Equal("correct the record of api.example.com"))
	g.Expect(checks.OtherVirtualIP(cluster("192.168.100.200", nil))).To(Equal("set another address in spec.controlPlaneEndpoint"))
}

func TestVirtualIPsComeFromTheSpecAndTheStatus(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	c := cluster("api.example.com", &infrav1.KubeVIPEndpoint{SecondaryAddress: "fd00::1"})
	c.Status.VirtualIPs = []string{"192.168.100.200"}

	g.Expect(checks.VirtualIPs(c)).To(Equal(checks.Addresses([]string{"192.168.100.200", "fd00::1"})))
	c.Spec.ControlPlaneLoadBalancer.Type = infrav1.EndpointEdgeGateway
	g.Expect(checks.VirtualIPs(c)).To(BeEmpty())
}
