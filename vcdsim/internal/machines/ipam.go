// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// An Allocation is an address of a NIC.
type Allocation struct {
	Address netip.Addr
	VM      *store.VM
}

// IPAM assigns addresses to NICs.
type IPAM struct{ cloud *cloud.Cloud }

// IPAMOf returns the IPAM of a cloud.
func IPAMOf(c *cloud.Cloud) IPAM { return IPAM{cloud: c} }

// AddressesIn lists the addresses of NICs on a network, sorted by address.
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

// A Subnet holds the parts of a network that address assignment needs.
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

// SecondSubnetOf returns the second subnet of a network, or false if the network has only one.
func (ip IPAM) SecondSubnetOf(n *store.VAppNetwork) (Subnet, bool) {
	_, _, parent := ip.cloud.Store.Network(n.ParentID)
	if parent == nil || parent.Second == nil {
		return Subnet{}, false
	}
	return Subnet{parent.ID, parent.Second.Gateway, parent.Second.StaticPool, nil}, true
}

// firstFree returns the first free address of the ranges.
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

// updatingConnections is the prefix of VCD's message for a refused address.
const updatingConnections = "Following errors occurred while updating network connections:\n- "

func insufficientAddresses() *store.Refusal {
	return store.Refuse(http.StatusBadRequest, store.CodeBadRequest, updatingConnections+
		"There are insufficient IP addresses to complete operation. You need to add IP addresses to the network that is associated with the object being created or deployed.")
}

// CheckNIC refuses an unknown network or mode, and an address that is outside the subnet or in use.
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

// checkSecondary refuses a secondary address on a network without a second subnet. It also refuses an address that is
// outside that subnet or in use.
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

// assign sets the addresses of a VM's NICs: POOL addresses at once and MANUAL addresses as requested. DHCP addresses
// follow when the guest runs.
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

// updatePoolAddresses releases the static pool addresses of a VM that is powered off, and assigns new ones to a VM that
// is powered on. If a pool has no free address, the NIC remains without one.
func (ip IPAM) updatePoolAddresses(vm *store.VM) {
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

// assignPool assigns the static pool addresses that a NIC lacks.
func (ip IPAM) assignPool(vapp *store.VApp, nic *store.NIC) error {
	if nic.Mode == store.ModePool && nic.Address == "" && nic.Network != "none" {
		sub := ip.SubnetOf(vapp.Network(nic.Network))
		a, ok := ip.firstFree(sub, sub.pool)
		if !ok {
			return insufficientAddresses()
		}
		nic.Address = a.String()
	}
	if nic.SecondaryMode == store.ModePool && nic.Secondary == "" {
		sub, _ := ip.SecondSubnetOf(vapp.Network(nic.Network))
		a, ok := ip.firstFree(sub, sub.pool)
		if !ok {
			return insufficientAddresses()
		}
		nic.Secondary = a.String()
	}
	return nil
}

// LeaseDHCP assigns an address of the DHCP pool to a NIC of mode DHCP. On a routed IPv6 network, the SLAAC profile of the
// edge gateway determines whether the NIC gets such an address, or forms its own. It is a no-op if there is no address.
func (ip IPAM) LeaseDHCP(vm *store.VM, nic *store.NIC) {
	n := ip.cloud.Store.VApps[vm.VAppID].Network(nic.Network)
	if n == nil || nic.Mode != store.ModeDHCP || nic.Lease != "" {
		return
	}
	sub := ip.SubnetOf(n)
	if _, _, parent := ip.cloud.Store.Network(n.ParentID); parent != nil && parent.Type == store.Routed && sub.Gateway.Addr().Is6() {
		switch SLAACMode(ip.cloud.Store, parent.Edge) {
		case modeSLAAC:
			nic.Lease = ownAddress(sub.Gateway, nic.MAC)
			return
		case modeDHCPv6: // from the pool
		default:
			return
		}
	}
	if a, ok := ip.firstFree(sub, sub.dhcp); ok {
		nic.Lease = a.String()
	}
}

// SLAACProfilePath is the path of the SLAAC profiles of edge gateways.
const SLAACProfilePath = "1.0.0/edgeGateways/{gateway}/slaacProfile"

// Modes of SLAAC profiles.
const (
	modeSLAAC  = "SLAAC"
	modeDHCPv6 = "DHCPv6"
)

// SLAACMode returns the mode of the SLAAC profile of an edge gateway. It is empty if the profile is disabled.
func SLAACMode(s *store.Store, gateway string) string {
	for _, d := range s.Documents[SLAACProfilePath] {
		if enabled, _ := d.Body["enabled"].(bool); enabled && d.Parent == gateway {
			return store.Text(d.Body, "mode")
		}
	}
	return ""
}

// ownAddress returns the address that a NIC forms from an advertised prefix and its MAC address. It is empty unless the
// prefix has 64 bits.
func ownAddress(prefix netip.Prefix, mac string) string {
	card, err := net.ParseMAC(mac)
	if err != nil || len(card) != 6 || prefix.Bits() != 64 {
		return ""
	}
	a := prefix.Masked().Addr().As16()
	copy(a[8:], []byte{card[0] ^ 2, card[1], card[2], 0xff, 0xfe, card[3], card[4], card[5]})
	return netip.AddrFrom16(a).String()
}
