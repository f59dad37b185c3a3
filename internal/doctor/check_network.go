// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// networks are those of a plan that were found.
type networks struct {
	byName   map[string]vcd.Network // by the name in the plan
	gateways []vcd.Ref              // that they are connected to, each once
}

// findNetworks finds the networks of a plan, and compares what is free on them with what the machines take.
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
		f.join(judgeNetwork(network, usage, takenFrom(name, plan)))
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

// someNetworks is how many networks of a VDC are checked if none is planned.
const someNetworks = 8

// networkNames returns the planned networks. If there are none, it returns URNs of those of the VDC, up to a few.
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
		f.problem("create a network, or share one with the VDC", "VDC %s has no network that is visible to the "+
			"user",
			vdc.Name)
	case len(all) > someNetworks:
		f.fact("%s has %d networks; use --network to check one", vdc.Name, len(all))
	default:
		for _, network := range all {
			names = append(names, network.ID)
		}
	}
	return names, f
}

// A taking is what the machines of a plan take of a network.
type taking struct {
	fromPool   int64 // addresses of the static pool
	byDHCP     bool  // some addresses
	noMachines bool  // none are planned
}

// takenFrom returns what machines take of the network with a name in the plan.
func takenFrom(name string, plan Plan) taking {
	t := taking{noMachines: len(plan.Machines) == 0}
	for _, m := range plan.Machines {
		for _, nic := range plan.nics(m) {
			switch {
			case nic.Name != name:
			case nic.AddressSource == infrav1.AddressStaticPool:
				t.fromPool += m.Count
			case nic.AddressSource == infrav1.AddressDHCP:
				t.byDHCP = t.byDHCP || m.Count > 0
			}
		}
	}
	return t
}

// judgeNetwork compares what is free on a network with what is taken of it.
func judgeNetwork(network vcd.Network, usage vcd.NetworkUsage, t taking) findings {
	var f findings
	name := network.Name
	free, limited := usage.Addresses.Free()
	dhcp := slices.ContainsFunc(network.Subnets, func(n vcd.Subnet) bool { return len(n.DHCPPool) > 0 })
	switch {
	case usage.Status == vcd.RealizationFailed:
		f.problem("ask an administrator to repair or recreate it",
			"VCD could not create network %s as it is configured", name)
	case t.fromPool > 0 && !limited:
		f.problem("add a static pool to the network, or set addressSource of the NIC to DHCP",
			"network %s has no static pool, but NICs use it for addresses", name)
	case limited && free < max(t.fromPool, 1) && (t.fromPool > 0 || t.noMachines):
		f.problem("enlarge the static pool of the network, or release addresses in it",
			"network %s has %d free addresses of %d in its static pool, but %d are planned", name, free,
			usage.Addresses.Limit, t.fromPool)
	case t.byDHCP && !dhcp:
		f.warn("configure DHCP on the network, set addressSource of the NIC to StaticPool, or ensure that the "+
			"network relays DHCP to your server, whose ranges are not visible in VCD",
			"network %s has no visible DHCP range, but NICs use DHCP", name)
	default:
		f.fact("%s has %d free addresses", name, free)
	}
	return f
}
