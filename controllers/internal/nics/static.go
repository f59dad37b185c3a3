// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"fmt"
	"net/netip"
	"slices"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Static is an address of a NIC that is known before VCD creates the NIC.
type Static struct {
	Addr    netip.Addr
	Bits    int        // prefix length according to the source; 0: not defined
	Gateway netip.Addr // gateway according to the source; invalid: not defined

	From   string // source of the address, for messages
	Remedy string // how to get another address, for messages
}

// Manual returns the addresses in the spec of a NIC.
func Manual(index int, spec infrav1.NetworkSpec) []Static {
	var found []Static
	for i, text := range spec.Addresses {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			continue // The webhook rejects it.
		}
		field := fmt.Sprintf("spec.networks[%d].addresses[%d]", index, i)
		found = append(found, Static{
			Addr:   prefix.Addr(),
			Bits:   prefix.Bits(),
			From:   field,
			Remedy: "recreate the machine with another address in " + field,
		})
	}
	return found
}

// HasStatic reports whether a machine has NICs whose addresses VCD neither assigns nor leases.
func HasStatic(m *infrav1.VCDMachine) bool {
	return slices.ContainsFunc(m.Spec.Networks, func(n infrav1.NetworkSpec) bool {
		return n.AddressSource == infrav1.AddressIPAM || n.AddressSource == infrav1.AddressManual
	})
}

// Problem returns why the static addresses of a machine's NICs cannot be used together, or not in their networks.
func Problem(all []NIC) phases.Result {
	var seen []placed
	for _, n := range all {
		for _, static := range n.Static {
			subnet, out := n.subnet(static)
			if out != phases.Done {
				return out
			}
			mine := placed{n, static, subnet.Prefix}
			for _, other := range seen {
				if out := mine.collides(other); out != phases.Done {
					return out
				}
			}
			seen = append(seen, mine)
		}
	}
	return phases.Done
}

// placed is an address with its subnet.
type placed struct {
	nic    NIC
	static Static
	prefix netip.Prefix
}

func (p placed) collides(other placed) phases.Result {
	switch {
	case p.nic.Index != other.nic.Index && p.prefix.Overlaps(other.prefix):
		return invalid(p.static, "is in subnet %s together with NIC %d, and a guest cannot route two NICs in one subnet",
			p.prefix, other.nic.Index)
	case p.nic.Index == other.nic.Index && p.static.Addr.Is4() == other.static.Addr.Is4():
		return invalid(p.static, "is of the same family as %s from %s, and a NIC has at most one address of each",
			other.static.Addr, other.static.From)
	}
	return phases.Done
}

// subnet returns the subnet of the NIC's network that contains an address, or why the address cannot be used.
func (n NIC) subnet(static Static) (vcd.Subnet, phases.Result) {
	at := slices.IndexFunc(n.Network.Subnets, func(s vcd.Subnet) bool { return s.Prefix.Contains(static.Addr) })
	if at < 0 {
		return vcd.Subnet{}, invalid(static, "is in no subnet of network %s", n.Network.Name)
	}
	s := n.Network.Subnets[at]
	switch {
	case slices.Contains([]netip.Addr{s.Gateway, s.Prefix.Masked().Addr(), broadcast(s.Prefix)}, static.Addr):
		return s, invalid(static, "is the address of the gateway or of network %s itself", n.Network.Name)
	case static.Bits > 0 && static.Bits != s.Prefix.Bits():
		return s, invalid(static, "has prefix length %d, but subnet %s of network %s has %d: correct the prefix length",
			static.Bits, s.Prefix, n.Network.Name, s.Prefix.Bits())
	case static.Gateway.IsValid() && !static.reaches(s.Prefix):
		return s, invalid(static, "has gateway %s, which is not another address of subnet %s: correct the gateway",
			static.Gateway, s.Prefix)
	case n.leases(s, static.Addr):
		return s, invalid(static, "is in a DHCP range of network %s", n.Network.Name)
	}
	return s, phases.Done
}

// reaches reports whether the gateway is another address of the subnet, or link-local.
func (s Static) reaches(subnet netip.Prefix) bool {
	return s.Gateway != s.Addr && (subnet.Contains(s.Gateway) || s.Gateway.IsLinkLocalUnicast())
}

// leases reports whether a DHCP server may lease a static address of the NIC.
func (n NIC) leases(s vcd.Subnet, addr netip.Addr) bool {
	return len(n.Static) > 0 &&
		slices.ContainsFunc(s.DHCPPool, func(r vcd.AddressRange) bool { return r.Contains(addr) })
}

func invalid(static Static, format string, args ...any) phases.Result {
	return phases.Fail(intervals.Remedy, infrav1.AddressInvalidReason, "%s, from %s, %s: %s", static.Addr,
		static.From, fmt.Sprintf(format, args...), static.Remedy)
}

// broadcast returns the last address of an IPv4 subnet. It returns an invalid address for other subnets.
func broadcast(prefix netip.Prefix) netip.Addr {
	if !prefix.Addr().Is4() || prefix.Bits() > 30 {
		return netip.Addr{}
	}
	bytes := prefix.Masked().Addr().As4()
	host := 32 - prefix.Bits()
	for i := range bytes {
		shift := host - 8*(3-i)
		bytes[i] |= byte(1<<min(max(shift, 0), 8) - 1)
	}
	return netip.AddrFrom4(bytes)
}

// Taken returns a problem if a host other than the named VM uses a static address of the NIC in VCD.
func (n NIC) Taken(hosts []vcd.HostAddress, vm string) phases.Result {
	for _, host := range hosts {
		for _, static := range n.Static {
			if host.Address == static.Addr && host.Host != vm {
				return phases.Fail(intervals.Remedy, infrav1.AddressInUseReason,
					"%s, from %s, is used by %s in network %s: free it in VCD, or %s", static.Addr, static.From,
					host.Host, n.Network.Name, static.Remedy)
			}
		}
	}
	return phases.Done
}

// Addresses returns the static addresses of the NIC.
func (n NIC) Addresses() []netip.Addr {
	addresses := make([]netip.Addr, len(n.Static))
	for i, static := range n.Static {
		addresses[i] = static.Addr
	}
	return addresses
}

// Announced returns a problem if a static address of the NIC is the virtual IP of a cluster.
func (n NIC) Announced(virtualIPs []netip.Addr, holder string) phases.Result {
	for _, static := range n.Static {
		if slices.Contains(virtualIPs, static.Addr) {
			return phases.Fail(intervals.Remedy, infrav1.AddressInUseReason,
				"%s, from %s, is the virtual IP of %s: %s", static.Addr, static.From, holder, static.Remedy)
		}
	}
	return phases.Done
}
