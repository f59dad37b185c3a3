// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// An AddressPolicy selects the addresses of a machine for its Node. The zero value selects the addresses of the primary
// NIC.
type AddressPolicy struct {
	Internal Selection
	External Selection
	IPv4     int // rank of the family, from 1; 0 in both selects all addresses, IPv4 first
	IPv6     int
}

// A Selection selects addresses of a machine. The zero value selects all of them.
type Selection struct {
	NICs    []int          // by index; empty: all
	CIDRs   []netip.Prefix // empty: any
	Exclude []netip.Prefix
}

func (s Selection) empty() bool { return len(s.NICs) == 0 && len(s.CIDRs) == 0 && len(s.Exclude) == 0 }

// enough reports whether a machine from a snapshot has enough data to select its addresses. given are the addresses
// that its kubelet was started with.
func (p AddressPolicy) enough(m Machine, given []netip.Addr) bool {
	if m.Complete {
		return true
	}
	if !p.Internal.empty() || !p.External.empty() || p.IPv6 > 0 {
		return false
	}
	return m.has(given)
}

// has reports whether all the given addresses are known addresses of the machine.
func (m Machine) has(addresses []netip.Addr) bool {
	known := chosen(m, Selection{})
	return !slices.ContainsFunc(addresses, func(a netip.Addr) bool { return !slices.Contains(known, a) })
}

// addressesOf returns the addresses of a machine, always in the same order: internal, external, name. It includes the
// addresses that the kubelet was given if they belong to the machine. It returns nil if no address is known yet.
func (p AddressPolicy) addressesOf(m Machine, given []netip.Addr) []corev1.NodeAddress {
	if m.Addresses != nil {
		return m.withGiven(given)
	}
	internal := chosen(m, p.Internal)
	if p.Internal.empty() {
		internal = chosen(Machine{NICs: primary(m)}, Selection{})
	}
	for _, a := range chosen(m, Selection{}) {
		if slices.Contains(given, a) && !slices.Contains(internal, a) {
			internal = append(internal, a)
		}
	}
	var external []netip.Addr
	if !p.External.empty() {
		external = chosen(m, p.External)
	}
	var out []corev1.NodeAddress
	for _, a := range p.inOrder(internal) {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	for _, a := range p.inOrder(external) {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: a.String()})
	}
	if len(out) == 0 {
		return nil // no address is known yet: the Node keeps its addresses
	}
	return append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: m.Name})
}

// withGiven returns the addresses that the backend chose, plus those of the machine that its kubelet was given.
func (m Machine) withGiven(given []netip.Addr) []corev1.NodeAddress {
	out := slices.Clone(m.Addresses)
	own := chosen(m, Selection{})
	for _, a := range given {
		as := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()}
		if slices.Contains(own, a) && !slices.Contains(out, as) {
			out = append(out, as)
		}
	}
	return out
}

// inOrder returns the addresses of the wanted families, family by family.
func (p AddressPolicy) inOrder(all []netip.Addr) []netip.Addr {
	first := netip.Addr.Is4
	second := netip.Addr.Is6
	if p.IPv6 > 0 && (p.IPv4 == 0 || p.IPv6 < p.IPv4) {
		first, second = second, first
	}
	var out []netip.Addr
	for _, family := range []func(netip.Addr) bool{first, second} {
		for _, a := range all {
			if family(a) && p.wants(a) && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (p AddressPolicy) wants(a netip.Addr) bool {
	switch {
	case p.IPv4 == 0 && p.IPv6 == 0:
		return true
	case a.Is4():
		return p.IPv4 > 0
	}
	return p.IPv6 > 0
}

// primary returns the primary NIC of a machine, or its first NIC if none is marked as primary.
func primary(m Machine) []NIC {
	for _, nic := range m.NICs {
		if nic.Primary {
			return []NIC{nic}
		}
	}
	return m.NICs[:min(1, len(m.NICs))]
}

// chosen returns the addresses that a selection selects, in the order of its NICs. Without NICs in the selection, the
// addresses of the primary NIC come first.
func chosen(m Machine, s Selection) []netip.Addr {
	nics := slices.Clone(m.NICs)
	rank := func(n NIC) int {
		switch {
		case len(s.NICs) > 0:
			return slices.Index(s.NICs, n.Index)
		case n.Primary:
			return -1
		}
		return n.Index
	}
	slices.SortStableFunc(nics, func(a, b NIC) int { return rank(a) - rank(b) })
	var out []netip.Addr
	for _, nic := range nics {
		if len(s.NICs) == 0 || rank(nic) >= 0 {
			out = append(out, slices.DeleteFunc(slices.Clone(nic.Addresses),
				func(a netip.Addr) bool { return !s.has(a) })...)
		}
	}
	return out
}

// has reports whether the selection includes an address of a selected NIC.
func (s Selection) has(a netip.Addr) bool {
	return usable(a) && (len(s.CIDRs) == 0 || within(s.CIDRs, a)) && !within(s.Exclude, a)
}

func within(cidrs []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Contains(a) })
}

// usable reports whether an address is valid and reachable from other machines.
func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
}
