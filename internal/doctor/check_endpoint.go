// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/netip"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkEndpoint checks the virtual IPs of the control plane. The networks are by their names in the plan.
func checkEndpoint(ctx context.Context, in *vcd.Session, plan Plan, networks map[string]vcd.Network) findings {
	var f findings
	c := plan.Cluster
	if c == nil || c.Spec.ControlPlaneLoadBalancer.Type != "" && c.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointKubeVIP ||
		plan.zone != nil && !plan.zone.ControlPlane() {
		return f
	}
	network, ok := networks[c.Spec.OVDCNetwork]
	if !ok {
		return f
	}
	for _, text := range addressesOf(c) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			continue // A name.
		}
		if use, within := network.UseOf(addr); use == vcd.UseNone {
			f.join(checkTaken(ctx, in, addr, network))
		} else if use != vcd.UseOutside || !announcesByBGP(c) {
			// By BGP, the router learns which node has an address: it is in no network of VMs.
			f.join(judgeVIP(addr, network, use, within))
		}
	}
	return f
}

// judgeVIP reports what a network does with a virtual IP, in a range of addresses if there is one.
func judgeVIP(addr netip.Addr, network vcd.Network, use vcd.Use, within vcd.AddressRange) findings {
	const other = "choose another in spec.controlPlaneEndpoint"
	var f findings
	switch use {
	case vcd.UseOutside:
		f.problem(other, "virtual IP %s is in no subnet of network %s", addr, network.Name)
	case vcd.UseOfNetwork:
		f.problem(other, "virtual IP %s is the address of the gateway or of network %s itself", addr, network.Name)
	case vcd.UseStaticPool:
		f.problem(other+", or take it out of the static pool", "virtual IP %s is in the static pool %s-%s of network "+
			"%s, from which VCD gives addresses to VMs", addr, within.From, within.To, network.Name)
	case vcd.UseDHCP:
		f.problem(other+", or take it out of the DHCP range", "virtual IP %s is in the DHCP range %s-%s of network %s",
			addr, within.From, within.To, network.Name)
	case vcd.UseNone:
	}
	return f
}

// fewAddresses is how many addresses of a network are read to find out who has one: VCD gives them by 32.
const fewAddresses = 320

// checkTaken reports who has a virtual IP already. On a network with many addresses, only VMs that the user is shown
// are found.
func checkTaken(ctx context.Context, in *vcd.Session, addr netip.Addr, network vcd.Network) findings {
	const other = "choose another in spec.controlPlaneEndpoint, or release it"
	var f findings
	usage, err := in.Networks.Usage(ctx, network.Ref)
	if err != nil {
		f.unread(err, "reading network "+network.Name, "give the user the right to view networks")
		return f
	}
	if usage.Addresses.Used <= fewAddresses {
		hosts, err := in.Networks.HostsOn(ctx, network.Ref)
		if err != nil {
			f.unread(err, "reading what uses network "+network.Name, "give the user the right to view networks")
			return f
		}
		for _, host := range hosts {
			if host.Address == addr {
				f.problem(other, "virtual IP %s is taken on network %s, by %s", addr, network.Name, host.Host)
				return f
			}
		}
		return f
	}
	vms, err := in.Inventory.AtAddress(ctx, addr)
	if err != nil {
		f.unread(err, "searching for VMs at "+addr.String(), "check again later")
		return f
	}
	for _, vm := range vms {
		if vm.PrimaryNetwork == network.Name {
			f.problem(other, "virtual IP %s is taken on network %s, by VM %s", addr, network.Name, vm.Name)
			return f
		}
	}
	return f
}
