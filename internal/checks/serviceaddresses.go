// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"net/netip"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const otherServiceAddresses = "correct spec.loadBalancer.kubeVIP.addressRanges of the VCDCluster"

// ServiceRanges returns the address ranges that kube-vip announces for Services of a cluster. It skips invalid ranges.
func ServiceRanges(c *infrav1.VCDCluster) []vcd.AddressRange {
	kube := c.Spec.LoadBalancer.KubeVIP
	if kube == nil {
		return nil
	}
	var all []vcd.AddressRange
	for _, r := range kube.AddressRanges {
		from, errFrom := netip.ParseAddr(r.StartIP)
		to, errTo := netip.ParseAddr(r.EndIP)
		if errFrom == nil && errTo == nil {
			all = append(all, vcd.AddressRange{From: from, To: to})
		}
	}
	return all
}

// ServiceAddresses reports why kube-vip cannot announce the address ranges for Services of a cluster in a network. Each
// range must be within a subnet and must not overlap ranges from which VCD allocates addresses. It must not contain the
// gateway, the first or last address of the subnet, or an address of the control plane.
func ServiceAddresses(c *infrav1.VCDCluster, network vcd.Network) *Finding {
	for _, r := range ServiceRanges(c) {
		found := serviceRange(r, network)
		if found != nil {
			return found
		}
		for _, addr := range endpoint(c) {
			if r.Contains(addr) {
				return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses,
					"the addresses of Services %s-%s contain %s, the control plane endpoint", r.From, r.To, addr)
			}
		}
	}
	return nil
}

// serviceRange checks an address range against the subnets of a network.
func serviceRange(r vcd.AddressRange, network vcd.Network) *Finding {
	for _, subnet := range network.Subnets {
		if !subnet.Prefix.Contains(r.From) || !subnet.Prefix.Contains(r.To) {
			continue
		}
		for _, addr := range []netip.Addr{subnet.Gateway, subnet.Prefix.Masked().Addr(), lastAddress(subnet.Prefix)} {
			if r.Contains(addr) {
				return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses, "the addresses of Services %s-%s contain %s, which is the gateway, or the first or last address, of network %s", r.From, r.To, addr,
					network.Name)
			}
		}
		if found := given(r, network, "static pool", subnet.StaticPool); found != nil {
			return found
		}
		return given(r, network, "DHCP range", subnet.DHCPPool)
	}
	return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses,
		"the addresses of Services %s-%s are not in one subnet of network %s: kube-vip announces them by ARP", r.From, r.To,
		network.Name)
}

// given reports an overlap with ranges from which VCD allocates addresses to VMs. what names these ranges in the
// message.
func given(r vcd.AddressRange, network vcd.Network, what string, ranges []vcd.AddressRange) *Finding {
	for _, other := range ranges {
		if overlap(r, other) {
			return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses+", or shorten the "+what,
				"the addresses of Services %s-%s overlap the %s %s-%s of network %s, from which VCD gives addresses to VMs",
				r.From, r.To, what, other.From, other.To, network.Name)
		}
	}
	return nil
}

// ServiceAddressesTaken reports that another cluster in the same network uses addresses of a cluster's Services. name
// is the name of the other cluster in messages.
func ServiceAddressesTaken(c, other *infrav1.VCDCluster, name string) *Finding {
	for _, r := range ServiceRanges(c) {
		for _, addr := range VirtualIPs(other) {
			if r.Contains(addr) {
				return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses, "the addresses of Services %s-%s contain %s, the control plane endpoint of %s", r.From, r.To, addr, name)
			}
		}
		for _, taken := range ServiceRanges(other) {
			if overlap(r, taken) {
				return finding(infrav1.LoadBalancerInvalidReason, otherServiceAddresses, "the addresses of Services %s-%s overlap those of %s in the same network", r.From, r.To, name)
			}
		}
	}
	return nil
}

// endpoint returns the addresses of the control plane endpoint, for all types of endpoints.
func endpoint(c *infrav1.VCDCluster) []netip.Addr {
	return append(VirtualIPs(c), Addresses([]string{c.Spec.ControlPlaneEndpoint.Host})...)
}

// overlap reports whether two ranges have an address in common.
func overlap(a, b vcd.AddressRange) bool { return a.Contains(b.From) || b.Contains(a.From) }

// lastAddress returns the last address of a prefix. For IPv4, it is the broadcast address.
func lastAddress(prefix netip.Prefix) netip.Addr {
	raw := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}
