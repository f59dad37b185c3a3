// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An Allocation is an address a NIC holds.
type Allocation struct {
	Address netip.Addr
	VM      *store.VM
}

// IPAM assigns addresses to NICs.
type IPAM struct{ cloud *cloud.Cloud }

// IPAMOf returns the addresses of a cloud.
func IPAMOf(c *cloud.Cloud) IPAM { return IPAM{cloud: c} }

// AddressesIn lists what NICs hold on a network, sorted by address.
func (ip IPAM) AddressesIn(networkID string) []Allocation {
	var out []Allocation
	for _, vm := range ip.cloud.Store.VMs {
		vapp := ip.cloud.Store.VApps[vm.VAppID]
		if vapp == nil {
			continue
		}
		for _, nic := range vm.NICs {
			n := vapp.Network(nic.Network)
			if n == nil || n.Segment() != networkID {
				continue
			}
			for _, text := range slices.Compact([]string{nic.Address, nic.Lease, nic.Secondary}) {
				if a, err := netip.ParseAddr(text); err == nil {
					out = append(out, Allocation{a, vm})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Allocation) int { return a.Address.Compare(b.Address) })
	return out
}

// A Subnet is what matters of a network for handing out addresses.
type Subnet struct {
	id      string
	Gateway netip.Prefix
	pool    []store.Range
	dhcp    []store.Range
}

// SubnetOf returns the subnet of a vApp's network.
func (ip IPAM) SubnetOf(n *store.VAppNetwork) Subnet {
	if _, _, parent := ip.cloud.Store.Network(n.ParentID); parent != nil {
		return Subnet{parent.ID, parent.Gateway, parent.StaticPool, parent.DHCPPool}
	}
	return Subnet{n.ID, n.Gateway, n.Pool, nil}
}

// SecondSubnetOf returns the second subnet of a network, false if it has one only.
func (ip IPAM) SecondSubnetOf(n *store.VAppNetwork) (Subnet, bool) {
	_, _, parent := ip.cloud.Store.Network(n.ParentID)
	if parent == nil || parent.Second == nil {
		return Subnet{}, false
	}
	return Subnet{parent.ID, parent.Second.Gateway, parent.Second.StaticPool, nil}, true
}

// firstFree finds the first free address of some ranges.
func (ip IPAM) firstFree(sub Subnet, ranges []store.Range) (netip.Addr, bool) {
	taken := map[netip.Addr]bool{sub.Gateway.Addr(): true}
	for _, a := range ip.AddressesIn(sub.id) {
		taken[a.Address] = true
	}
	for _, r := range ranges {
		for a := r.From; r.Contains(a); a = a.Next() {
			if !taken[a] {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// updatingConnections begins VCD's message when an address is refused.
const updatingConnections = "Following errors occurred while updating network connections:\n- "

func noAddresses() *store.Refusal {
	return store.Refuse(http.StatusBadRequest, store.CodeBadRequest, updatingConnections+
		"There are insufficient IP addresses to complete operation. "+
		"You need to add IP addresses to the network that is associated with the object being created or deployed.")
}

// CheckNIC refuses an unknown network or mode, and an address outside the subnet or in use.
func (ip IPAM) CheckNIC(vapp *store.VApp, vm *store.VM, nic store.NIC) error {
	if nic.Network == "none" || nic.Mode == store.ModeNone {
		return nil
	}
	n := vapp.Network(nic.Network)
	if n == nil {
		return store.BadRequest("The VCD entity network %q does not exist.", nic.Network)
	}
	if err := ip.checkSecondary(n, vm, nic); err != nil {
		return err
	}
	switch nic.Mode {
	case store.ModePool, store.ModeDHCP:
		return nil
	case store.ModeManual:
		return ip.checkManual(ip.SubnetOf(n), vm, nic.Address)
	default:
		return store.BadRequest("Invalid network parameter: Unknown IP Addressing Mode")
	}
}

// checkSecondary refuses an address of the second subnet where there is none, or that does not fit it.
func (ip IPAM) checkSecondary(n *store.VAppNetwork, vm *store.VM, nic store.NIC) error {
	second, ok := ip.SecondSubnetOf(n)
	switch {
	case nic.SecondaryMode == "" || nic.SecondaryMode == store.ModeNone:
		return nil
	case !ok:
		return store.BadRequest("Invalid network parameter: network %q has no second subnet.", nic.Network)
	case nic.SecondaryMode == store.ModeManual:
		return ip.checkManual(second, vm, nic.Secondary)
	}
	return nil
}

func (ip IPAM) checkManual(sub Subnet, vm *store.VM, address string) error {
	addr, err := netip.ParseAddr(address)
	if err != nil || !sub.Gateway.Masked().Contains(addr) || addr == sub.Gateway.Addr() {
		return store.BadRequest("Invalid network parameter: Specified IP address %q is invalid.", address)
	}
	for _, a := range ip.AddressesIn(sub.id) {
		if a.Address == addr && a.VM != vm {
			return store.BadRequest(updatingConnections+"The IP address %s is already in use by VM %q.", addr, a.VM.Name)
		}
	}
	return nil
}

// assign gives the NICs of a VM their addresses: POOL at once, MANUAL as asked, DHCP when the guest runs.
func (ip IPAM) assign(vm *store.VM) error {
	vapp := ip.cloud.Store.VApps[vm.VAppID]
	for i := range vm.NICs {
		nic := &vm.NICs[i]
		if err := ip.CheckNIC(vapp, vm, *nic); err != nil {
			return err
		}
		if nic.MAC == "" {
			nic.MAC = ip.cloud.IDs.MAC()
		}
		if err := ip.assignPool(vapp, nic); err != nil {
			return err
		}
	}
	return nil
}

// holdWhileOn gives the addresses of static pools back when a VM is powered off, and takes some when it is powered on. A
// pool without free addresses leaves a NIC without one.
func (ip IPAM) holdWhileOn(vm *store.VM) {
	vapp := ip.cloud.Store.VApps[vm.VAppID]
	for i := range vm.NICs {
		nic := &vm.NICs[i]
		switch {
		case vm.Status == store.PoweredOn:
			_ = ip.assignPool(vapp, nic)
		case vm.Status == store.PoweredOff && nic.Mode == store.ModePool:
			nic.Address = ""
		}
	}
}

// assignPool gives a NIC addresses of the static pools, those that it is to have and has not.
func (ip IPAM) assignPool(vapp *store.VApp, nic *store.NIC) error {
	if nic.Mode == store.ModePool && nic.Address == "" && nic.Network != "none" {
		sub := ip.SubnetOf(vapp.Network(nic.Network))
		a, ok := ip.firstFree(sub, sub.pool)
		if !ok {
			return noAddresses()
		}
		nic.Address = a.String()
	}
	if nic.SecondaryMode == store.ModePool && nic.Secondary == "" {
		sub, _ := ip.SecondSubnetOf(vapp.Network(nic.Network))
		a, ok := ip.firstFree(sub, sub.pool)
		if !ok {
			return noAddresses()
		}
		nic.Secondary = a.String()
	}
	return nil
}

// LeaseDHCP gives a NIC of mode DHCP the address the DHCP server would; empty if the network has none.
func (ip IPAM) LeaseDHCP(vm *store.VM, nic *store.NIC) {
	n := ip.cloud.Store.VApps[vm.VAppID].Network(nic.Network)
	if n == nil || nic.Mode != store.ModeDHCP || nic.Lease != "" {
		return
	}
	sub := ip.SubnetOf(n)
	if a, ok := ip.firstFree(sub, sub.dhcp); ok {
		nic.Lease = a.String()
	}
}
