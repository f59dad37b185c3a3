// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/netip"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkEndpoint checks the virtual IPs of the control plane.
func checkEndpoint(ctx context.Context, s *survey) {
	c := s.plan.Cluster
	if c == nil || c.Spec.Endpoint.Type != "" && c.Spec.Endpoint.Type != infrav1.EndpointKubeVIP ||
		s.plan.zone != nil && !s.plan.zone.ControlPlane() {
		return
	}
	network, ok := s.networks[c.Spec.OVDCNetwork]
	if !ok {
		return
	}
	for _, text := range addressesOf(c) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			continue // A name.
		}
		s.checkVIP(ctx, addr, network)
	}
}

func (s *survey) checkVIP(ctx context.Context, addr netip.Addr, network vcd.Network) {
	const other = "choose another in spec.endpoint.kubeVIP.addresses"
	switch use, in := network.UseOf(addr); use {
	case vcd.UseOutside:
		if s.plan.byBGP() {
			return // The router learns by BGP which node has it: it is in no network of VMs.
		}
		s.problem(other, "virtual IP %s is in no subnet of network %s", addr, network.Name)
	case vcd.UseOfNetwork:
		s.problem(other, "virtual IP %s is the address of the gateway or of network %s itself", addr, network.Name)
	case vcd.UseStaticPool:
		s.problem(other+", or take it out of the static pool", "virtual IP %s is in the static pool %s-%s of network "+
			"%s, from which VCD gives addresses to VMs", addr, in.From, in.To, network.Name)
	case vcd.UseDHCP:
		s.problem(other+", or take it out of the DHCP range", "virtual IP %s is in the DHCP range %s-%s of network %s",
			addr, in.From, in.To, network.Name)
	case vcd.UseNone:
		s.checkTaken(ctx, addr, network)
	}
}

// fewAddresses is how many addresses of a network are read to find out who has one: VCD gives them by 32.
const fewAddresses = 320

// checkTaken reports who has a virtual IP already. On a network with many addresses, only VMs that the user is shown
// are found.
func (s *survey) checkTaken(ctx context.Context, addr netip.Addr, network vcd.Network) {
	const other = "choose another in spec.endpoint.kubeVIP.addresses, or release it"
	usage, err := s.session.Networks.Usage(ctx, network.Ref)
	if err != nil {
		s.unread(err, "reading network "+network.Name, "give the user the right to view networks")
		return
	}
	if usage.Addresses.Used <= fewAddresses {
		hosts, err := s.session.Networks.HostsOn(ctx, network.Ref)
		if err != nil {
			s.unread(err, "reading what uses network "+network.Name, "give the user the right to view networks")
			return
		}
		for _, host := range hosts {
			if host.Address == addr {
				s.problem(other, "virtual IP %s is taken on network %s, by %s", addr, network.Name, host.Host)
				return
			}
		}
		return
	}
	vms, err := s.session.Inventory.AtAddress(ctx, addr)
	if err != nil {
		s.unread(err, "searching for VMs at "+addr.String(), "check again later")
		return
	}
	for _, vm := range vms {
		if vm.PrimaryNetwork == network.Name {
			s.problem(other, "virtual IP %s is taken on network %s, by VM %s", addr, network.Name, vm.Name)
			return
		}
	}
}
