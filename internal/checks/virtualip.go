// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// VirtualIP reports why an address cannot be a virtual IP of a cluster in a network. It must not be in a range from
// which VCD allocates addresses. It must be in a subnet, unless kube-vip announces it to routers.
func VirtualIP(c *infrav1.VCDCluster, network vcd.Network, addr netip.Addr) *Finding {
	kube := KubeVIP(c)
	other := OtherVirtualIP(c)
	switch use, within := network.UseOf(addr); {
	case use == vcd.UseOutside && kube.BGP == nil:
		return finding(infrav1.VIPOutsideNetworkReason, other, "virtual IP %s is in no subnet of network %s", addr,
			network.Name)
	case use == vcd.UseOfNetwork:
		return finding(infrav1.VIPInvalidReason, other, "virtual IP %s is the address of the gateway or of network %s itself",
			addr, network.Name)
	case use == vcd.UseStaticPool:
		return finding(infrav1.VIPInStaticPoolReason, other+", or remove it from the static pool",
			"virtual IP %s is in the static pool %s-%s of network %s, from which VCD assigns addresses to VMs", addr,
			within.From, within.To, network.Name)
	case use == vcd.UseDHCP && kube.AddressSource != infrav1.VIPSourceDHCP:
		return finding(infrav1.VIPInDHCPRangeReason, other+", or remove it from the DHCP range",
			"virtual IP %s is in the DHCP range %s-%s of network %s", addr, within.From,
			within.To, network.Name)
	}
	return nil
}

// VirtualIPTaken reports a host in a network that already uses one of the virtual IPs of a cluster.
func VirtualIPTaken(c *infrav1.VCDCluster, network vcd.Network, addresses []netip.Addr, hosts []vcd.HostAddress) *Finding {
	for _, host := range hosts {
		if slices.Contains(addresses, host.Address) {
			return finding(infrav1.VIPInUseReason, OtherVirtualIP(c)+", or release it", "virtual IP %s is the address of %s in network %s",
				host.Address, host.Host, network.Name)
		}
	}
	return nil
}

// OtherVirtualIP returns the remedy that changes the virtual IP of a cluster.
func OtherVirtualIP(c *infrav1.VCDCluster) string {
	host := c.Spec.ControlPlaneEndpoint.Host
	switch _, err := netip.ParseAddr(host); {
	case host == "" && len(KubeVIP(c).PoolRefs) > 0:
		return "remove it from the pools of spec.controlPlaneLoadBalancer.kubeVIP and delete the IPAddressClaims of the VCDCluster"
	case err != nil:
		return "correct the record of " + host
	}
	return "set another address in spec.controlPlaneEndpoint"
}

// VirtualIPs returns the virtual IPs in the spec and status of a cluster. It is empty for other types of endpoints.
func VirtualIPs(c *infrav1.VCDCluster) []netip.Addr {
	if c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointKubeVIP && c.Spec.ControlPlaneLoadBalancer.Type != "" {
		return nil
	}
	hosts := slices.Concat([]string{c.Spec.ControlPlaneEndpoint.Host}, c.Status.VirtualIPs,
		[]string{KubeVIP(c).SecondaryAddress})
	return Addresses(hosts)
}

// Addresses parses hosts as IP addresses and skips hostnames.
func Addresses(hosts []string) []netip.Addr {
	var all []netip.Addr
	for _, host := range hosts {
		if addr, err := netip.ParseAddr(host); err == nil {
			all = append(all, addr)
		}
	}
	return all
}

// KubeVIP returns the kube-vip settings of a cluster's endpoint, or the zero value if the spec has none.
func KubeVIP(c *infrav1.VCDCluster) infrav1.KubeVIPEndpoint {
	if kube := c.Spec.ControlPlaneLoadBalancer.KubeVIP; kube != nil {
		return *kube
	}
	return infrav1.KubeVIPEndpoint{}
}
