// SPDX-License-Identifier: Apache-2.0

package virtualip

import (
	"net/netip"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Fit reports why addresses cannot be the virtual IPs of a cluster in its network: each must fit the network, and two be
// of both families.
func Fit(c *infrav1.VCDCluster, network vcd.Network, addresses []netip.Addr) phases.Result {
	if len(addresses) == 2 && addresses[0].Is4() == addresses[1].Is4() {
		return phases.Fail(session.RemedyPoll, infrav1.VIPFamilyReason, "%s and %s are of one family: name pools of "+
			"the other family in spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs", addresses[0], addresses[1])
	}
	for _, addr := range addresses {
		if out := fits(c, network, addr); out != phases.Done {
			return out
		}
	}
	return phases.Done
}

// fits reports why addr cannot be a virtual IP in the network: it must be in no pool, and be in the network, unless it
// is announced to routers.
func fits(c *infrav1.VCDCluster, network vcd.Network, addr netip.Addr) phases.Result {
	kube := KubeVIP(c)
	for _, subnet := range network.Subnets {
		if !subnet.Prefix.Contains(addr) {
			continue
		}
		if addr == subnet.Gateway || addr == subnet.Prefix.Masked().Addr() {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInvalidReason,
				"%s is the address of the gateway or of the network %s itself: %s", addr, network.Name, remedy(c))
		}
		if r, in := rangeOf(addr, subnet.StaticPool); in {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInStaticPoolReason,
				"%s is in the static pool %s-%s of network %s, from which VCD gives addresses to VMs: %s, or take it "+
					"out of the static pool", addr, r.From, r.To, network.Name, remedy(c))
		}
		if r, in := rangeOf(addr, subnet.DHCPPool); in && kube.AddressSource != infrav1.VIPSourceDHCP {
			return phases.Fail(session.RemedyPoll, infrav1.VIPInDHCPRangeReason,
				"%s is in the DHCP range %s-%s of network %s, from which addresses are leased: %s, or take it out of "+
					"the DHCP range", addr, r.From, r.To, network.Name, remedy(c))
		}
		return phases.Done
	}
	if kube.BGP != nil {
		return phases.Done
	}
	return phases.Fail(session.RemedyPoll, infrav1.VIPOutsideNetworkReason, "%s is in no subnet of network %s: %s",
		addr, network.Name, remedy(c))
}

func rangeOf(addr netip.Addr, ranges []vcd.AddressRange) (vcd.AddressRange, bool) {
	for _, r := range ranges {
		if r.Contains(addr) {
			return r, true
		}
	}
	return vcd.AddressRange{}, false
}
