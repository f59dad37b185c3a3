// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Range is a range of addresses. Both ends are included. The zero Range is empty.
type Range struct{ First, Last netip.Addr }

// Contains reports whether an address is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return r.First.IsValid() && a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

// valid reports whether the range contains at least one address.
func (r Range) valid() bool {
	return r.First.IsValid() && r.Last.IsValid() && r.First.Is4() == r.Last.Is4() && !r.Last.Less(r.First)
}

// Within returns the part of a range that hosts of a subnet can use, which may be empty. It returns the whole range if
// the subnet is zero or of the other family.
func (r Range) Within(subnet netip.Prefix) Range {
	if !subnet.IsValid() || !r.First.IsValid() || subnet.Addr().Is4() != r.First.Is4() {
		return r
	}
	return intersect(r, hosts(subnet))
}

// hosts returns the addresses of a subnet that hosts can use. The first address of an IPv6 subnet is that of all its
// routers: RFC 4291, section 2.6.1.
func hosts(n netip.Prefix) Range {
	first := n.Masked().Addr()
	bytes := first.AsSlice()
	for i := n.Bits(); i < first.BitLen(); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	switch {
	case first.Is4() && n.Bits() < 31:
		return Range{first.Next(), last.Prev()}
	case first.Is6() && n.Bits() < 127:
		return Range{first.Next(), last}
	}
	return Range{first, last}
}

// intersect returns the addresses that are in both ranges.
func intersect(a, b Range) Range {
	if a.First.Less(b.First) {
		a.First = b.First
	}
	if b.Last.Less(a.Last) {
		a.Last = b.Last
	}
	return a
}

// inRanges reports whether an address is in one of the ranges.
func inRanges(ranges []Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(a) })
}

// firstOf returns the first address of a family.
func firstOf(f loadbalancer.Family, list []netip.Addr) (netip.Addr, bool) {
	i := slices.IndexFunc(list, func(a netip.Addr) bool { return loadbalancer.FamilyOf(a) == f })
	if i < 0 {
		return netip.Addr{}, false
	}
	return list[i], true
}

// sorted returns a sorted copy.
func sorted(addresses []netip.Addr) []netip.Addr {
	return slices.SortedFunc(slices.Values(addresses), netip.Addr.Compare)
}

// allOf returns the distinct addresses of a family, sorted.
func allOf(f loadbalancer.Family, all []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range all {
		if a.IsValid() && loadbalancer.FamilyOf(a) == f {
			out = append(out, a.Unmap())
		}
	}
	return slices.Compact(sorted(out))
}

// join returns addresses as a text for users.
func join(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, " and ")
}

// words returns addresses or subnets as texts.
func words[T fmt.Stringer](addresses []T) []string {
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return out
}
