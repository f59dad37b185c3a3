// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"maps"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// slaacPrefix is the length of prefixes in which guests form their own addresses.
const slaacPrefix = 64

// checkIPv6 checks where guests get IPv6 addresses on routed networks that have an IPv6 subnet without a static pool: from
// the SLAAC profile of the edge gateway.
func checkIPv6(ctx context.Context, in *vcd.Gateways, on networks, plan Plan) findings {
	var f findings
	for _, name := range slices.Sorted(maps.Keys(on.byName)) {
		network := on.byName[name]
		subnet, found := subnetWithoutPool(network)
		if !found || network.EdgeGateway.ID == "" {
			continue
		}
		mode, err := in.SLAACMode(ctx, network.EdgeGateway.ID)
		switch {
		case err != nil && isLost(err):
			f.unread(err, "reading the SLAAC profile of edge gateway "+network.EdgeGateway.Name, "")
		case err != nil:
			f.fact("the SLAAC profile of edge gateway %s is not visible to the user", network.EdgeGateway.Name)
		case network.IsIPv6Only() && demandOn(name, plan).byDHCP:
			f.join(checkSource(network, subnet, mode))
		case mode == vcd.SLAACDisabled:
			f.fact("guests get no IPv6 address on %s, because its IPv6 subnet has no static pool and the SLAAC profile of edge gateway %s is disabled", network.Name, network.EdgeGateway.Name)
		default:
			f.fact("guests on %s get IPv6 addresses by %s", network.Name, mode)
		}
	}
	return f
}

// subnetWithoutPool returns the IPv6 subnet of a network, if it has no static pool.
func subnetWithoutPool(network vcd.Network) (vcd.Subnet, bool) {
	for _, s := range network.Subnets {
		if s.Prefix.Addr().Is6() && len(s.StaticPool) == 0 {
			return s, true
		}
	}
	return vcd.Subnet{}, false
}

// checkSource checks that NICs of source DHCP get addresses of an IPv6 subnet.
func checkSource(network vcd.Network, subnet vcd.Subnet, mode vcd.SLAACMode) findings {
	var f findings
	gateway := network.EdgeGateway.Name
	switch {
	case mode == vcd.SLAACDisabled:
		f.problem("enable DHCPv6 in mode SLAAC or DHCPv6 on the edge gateway, or add a static pool to the network and set addressSource of the NIC to StaticPool",
			"NICs use DHCP on network %s, which has IPv6 only, but the SLAAC profile of edge gateway %s is disabled",
			network.Name, gateway)
	case mode == vcd.SLAACDHCPv6 && len(subnet.DHCPPool) == 0:
		f.problem("add a DHCP pool to the network, or set the mode of the SLAAC profile to SLAAC",
			"NICs use DHCPv6 on network %s, which has no DHCP pool", network.Name)
	case mode == vcd.SLAACStateless && subnet.Prefix.Bits() != slaacPrefix:
		f.problem("set the mode of the SLAAC profile to DHCPv6, or recreate the network with a prefix length of 64",
			"guests cannot form addresses on network %s, because its prefix length is %d", network.Name, subnet.Prefix.Bits())
	default:
		f.fact("%s gives IPv6 addresses by %s of edge gateway %s", network.Name, mode, gateway)
	}
	return f
}
