// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// networks are the networks of a plan that exist.
type networks struct {
	byName   map[string]vcd.Network // keyed by the name in the plan
	gateways []vcd.Ref              // their edge gateways, without duplicates
}

// findNetworks looks up the networks of a plan, and compares their free addresses with the requirements of the
// machines.
func findNetworks(ctx context.Context, in *vcd.Networks, vdc vcd.VDC, plan Plan) (networks, findings) {
	found := networks{byName: map[string]vcd.Network{}}
	names, f := networkNames(ctx, in, vdc, plan)
	for _, name := range names {
		network, err := in.FindNetwork(ctx, vdc, name)
		if err != nil {
			f.unread(err, "looking up network "+name,
				checks.Network.Remedy("spec.ovdcNetwork of the VCDCluster or spec.networks of the VCDMachineTemplate"))
			continue
		}
		found.add(name, network)
		usage, err := in.Usage(ctx, network.Ref)
		if err != nil {
			f.unread(err, "reading network "+name, "grant the user the right to view networks")
			continue
		}
		f.join(checkNetwork(network, usage, demandOn(name, plan)))
	}
	return found, f
}

func (n *networks) add(name string, network vcd.Network) {
	n.byName[name] = network
	gateway := network.EdgeGateway
	if gateway.ID != "" && !slices.ContainsFunc(n.gateways, func(g vcd.Ref) bool { return g.ID == gateway.ID }) {
		n.gateways = append(n.gateways, gateway)
	}
}

// maxNetworks is the largest number of networks in a VDC that are checked if the plan names none.
const maxNetworks = 8

// networkNames returns the networks of the plan. If there are none, it returns the URNs of all networks of the VDC,
// unless there are more than maxNetworks.
func networkNames(ctx context.Context, in *vcd.Networks, vdc vcd.VDC, plan Plan) ([]string, findings) {
	var f findings
	names := plan.networkNames()
	if len(names) > 0 {
		return names, f
	}
	all, err := in.List(ctx, vdc)
	switch {
	case err != nil:
		f.unread(err, "listing networks of VDC "+vdc.Name, "grant the user the right to view networks")
	case len(all) == 0:
		f.problem("create a network, or share one with the VDC", "VDC %s has no network that is visible to the user", vdc.Name)
	case len(all) > maxNetworks:
		f.fact("%s has %d networks; use --network to check one", vdc.Name, len(all))
	default:
		for _, network := range all {
			names = append(names, network.ID)
		}
	}
	return names, f
}

// A demand contains the requirements of a plan's machines for a network.
type demand struct {
	fromPool   int64 // number of addresses from the static pool
	byDHCP     bool  // some NICs use DHCP
	noMachines bool  // the plan has no machines
}

// demandOn returns the demand on the network with a name in the plan.
func demandOn(name string, plan Plan) demand {
	d := demand{noMachines: len(plan.Machines) == 0}
	for _, m := range plan.Machines {
		for _, nic := range plan.nics(m) {
			switch {
			case nic.Name != name:
			case nic.AddressSource == infrav1.AddressStaticPool:
				d.fromPool += m.Count
			case nic.AddressSource == infrav1.AddressDHCP:
				d.byDHCP = d.byDHCP || m.Count > 0
			}
		}
	}
	return d
}

// checkNetwork compares the free addresses of a network with the demand on it.
func checkNetwork(network vcd.Network, usage vcd.NetworkUsage, d demand) findings {
	var f findings
	name := network.Name
	free := max(0, usage.Addresses.Limit-usage.Addresses.Used)
	pooled := slices.ContainsFunc(network.Subnets, func(n vcd.Subnet) bool { return len(n.StaticPool) > 0 })
	dhcp := mayLease(network)
	switch {
	case usage.Status == vcd.RealizationFailed:
		f.problem("ask an administrator to repair or recreate it",
			"VCD could not create network %s as it is configured", name)
	case d.fromPool > 0 && !pooled:
		f.problem("add a static pool to the network, or set addressSource of the NIC to DHCP",
			"network %s has no static pool, but NICs use it for addresses", name)
	case d.fromPool > 0 && !usage.Counted:
		f.warn("compare the planned addresses with the static pool in VCD",
			"VCD did not report the size of the static pool of network %s, from which %d addresses are planned", name,
			d.fromPool)
	case pooled && usage.Counted && free < max(d.fromPool, 1) && (d.fromPool > 0 || d.noMachines):
		f.problem("enlarge the static pool of the network, or release addresses in it",
			"network %s has %d free addresses of %d in its static pool, but %d are planned", name, free,
			usage.Addresses.Limit, d.fromPool)
	case d.byDHCP && !dhcp:
		f.warn("configure DHCP on the network, set addressSource of the NIC to StaticPool, or ensure that the network relays DHCP to your server, whose ranges are not visible in VCD",
			"network %s has no visible DHCP range, but NICs use DHCP", name)
	case !pooled:
		f.fact("%s has no static pool", name)
	case !usage.Counted:
		f.fact("%s has a static pool of unknown size", name)
	default:
		f.fact("%s has %d free addresses", name, free)
	}
	return f
}

// mayLease reports whether a network has a DHCP range, or has IPv6 only, which checkIPv6 checks.
func mayLease(network vcd.Network) bool {
	return network.IsIPv6Only() ||
		slices.ContainsFunc(network.Subnets, func(n vcd.Subnet) bool { return len(n.DHCPPool) > 0 })
}
