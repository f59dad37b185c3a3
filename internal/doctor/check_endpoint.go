// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// checkEndpoint checks the virtual IPs of the control plane, and the addresses that kube-vip announces for Services.
// The keys of networks are the names in the plan.
func checkEndpoint(ctx context.Context, in *vcd.Session, plan Plan, networks map[string]vcd.Network) findings {
	var f findings
	c := plan.Cluster
	if c == nil || plan.zone != nil && !plan.zone.ControlPlane() {
		return f
	}
	network, ok := networks[c.Spec.OVDCNetwork]
	if !ok {
		return f
	}
	f.found(Problem, checks.ServiceAddresses(c, network))
	for _, addr := range checks.VirtualIPs(c) {
		if found := checks.VirtualIP(c, network, addr); found != nil {
			f.found(Problem, found)
			continue
		}
		hosts, lost := hostsAt(ctx, in, addr, network)
		f.join(lost)
		f.found(Problem, checks.VirtualIPTaken(c, network, []netip.Addr{addr}, hosts))
	}
	return f
}

// maxListedAddresses limits the list of used addresses that is read to find the user of an address. VCD returns them in
// pages of 32.
const maxListedAddresses = 320

// hostsAt returns the objects that use an address on a network. The result may include objects at other addresses. On a
// network with many used addresses, it finds only VMs that are visible to the user.
func hostsAt(ctx context.Context, in *vcd.Session, addr netip.Addr, network vcd.Network) ([]vcd.HostAddress, findings) {
	var f findings
	usage, err := in.Networks.Usage(ctx, network.Ref)
	if err != nil {
		f.unread(err, "reading network "+network.Name, "grant the user the right to view networks")
		return nil, f
	}
	if usage.Addresses.Used <= maxListedAddresses {
		hosts, err := in.Networks.HostsOn(ctx, network.Ref)
		if err != nil {
			f.unread(err, "reading the objects that use network "+network.Name, "grant the user the right to view networks")
		}
		return hosts, f
	}
	vms, err := in.Inventory.AtAddress(ctx, addr)
	if err != nil {
		f.unread(err, "searching for VMs at "+addr.String(), "run doctor again later")
	}
	var hosts []vcd.HostAddress
	for _, vm := range vms {
		if vm.PrimaryNetwork == network.Name {
			hosts = append(hosts, vcd.HostAddress{
				UsedAddress: vcd.UsedAddress{Address: addr},
				Host:        "VM " + vm.Name,
			})
		}
	}
	return hosts, f
}
