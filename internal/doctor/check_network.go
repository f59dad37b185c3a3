// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkNetworks finds the networks, and compares what is free on them with what the machines take.
func checkNetworks(ctx context.Context, s *survey) {
	s.networks = map[string]vcd.Network{}
	for _, name := range s.networkNames(ctx) {
		network, err := s.session.Networks.FindNetwork(ctx, s.vdc, name)
		if err != nil {
			s.unread(err, "looking up network "+name, "correct spec.ovdcNetwork of the VCDCluster or spec.networks of "+
				"the VCDMachineTemplate, or connect the network to the VDC")
			continue
		}
		s.networks[name] = network
		s.addGateway(network.EdgeGateway)
		usage, err := s.session.Networks.Usage(ctx, network.Ref)
		if err != nil {
			s.unread(err, "reading network "+name, "give the user the right to view networks")
			continue
		}
		s.judgeNetwork(name, network, usage)
	}
}

// someNetworks is how many networks of a VDC are checked if none is planned.
const someNetworks = 8

// networkNames returns the planned networks. If there are none, it returns URNs of those of the VDC, up to a few.
func (s *survey) networkNames(ctx context.Context) []string {
	names := s.plan.networkNames()
	if len(names) > 0 {
		return names
	}
	all, err := s.session.Networks.List(ctx, s.vdc)
	switch {
	case err != nil:
		s.unread(err, "listing networks of VDC "+s.vdc.Name, "give the user the right to view networks")
	case len(all) == 0:
		s.problem("create a network, or share one with the VDC", "VDC %s has no network that the user is shown",
			s.vdc.Name)
	case len(all) > someNetworks:
		s.fact("%s has %d networks; --network checks one", s.vdc.Name, len(all))
	default:
		for _, network := range all {
			names = append(names, network.ID)
		}
	}
	return names
}

func (s *survey) addGateway(gateway vcd.Ref) {
	if gateway.ID != "" && !slices.ContainsFunc(s.gateways, func(g vcd.Ref) bool { return g.ID == gateway.ID }) {
		s.gateways = append(s.gateways, gateway)
	}
}

func (s *survey) judgeNetwork(name string, network vcd.Network, usage vcd.NetworkUsage) {
	fromPool, byDHCP := s.wanted(name)
	name = network.Name
	free, limited := usage.Addresses.Free()
	dhcp := slices.ContainsFunc(network.Subnets, func(n vcd.Subnet) bool { return len(n.DHCPPool) > 0 })
	switch {
	case usage.Status == vcd.RealizationFailed:
		s.problem("let an administrator repair or recreate it",
			"VCD could not create network %s as it is configured", name)
	case fromPool > 0 && !limited:
		s.problem("give the network a static pool, or set addressSource of the NIC to DHCP",
			"network %s has no static pool, and NICs take addresses from it", name)
	case limited && free < max(fromPool, 1) && (fromPool > 0 || len(s.plan.Machines) == 0):
		s.problem("enlarge the static pool of the network, or release addresses in it",
			"network %s has %d free addresses of %d in its static pool, and %d are planned", name, free,
			usage.Addresses.Limit, fromPool)
	case byDHCP && !dhcp:
		s.warn("configure DHCP on the network, set addressSource of the NIC to Pool, or make sure that the network relays "+
			"DHCP to a server of yours, whose ranges VCD does not show",
			"VCD shows no DHCP range on network %s, and NICs take addresses from one", name)
	default:
		s.fact("%s has %d free addresses", name, free)
	}
}

// wanted returns how many addresses of the static pool of a network machines take, and whether any takes one by DHCP.
func (s *survey) wanted(name string) (fromPool int64, byDHCP bool) {
	for _, m := range s.plan.Machines {
		for _, nic := range s.plan.nics(m) {
			switch {
			case nic.Name != name:
			case nic.AddressSource == infrav1.AddressPool:
				fromPool += m.Count
			case nic.AddressSource == infrav1.AddressDHCP:
				byDHCP = byDHCP || m.Count > 0
			}
		}
	}
	return fromPool, byDHCP
}
