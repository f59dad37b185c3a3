// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
)

// Ranges to which the addresses of the site are moved.
var (
	benchmarks    = netip.MustParsePrefix("198.18.0.0/15") // RFC 2544
	reserved      = netip.MustParsePrefix("240.0.0.0/4")   // RFC 1112, for prefixes that do not fit into the first
	documentation = netip.MustParsePrefix("2001:db8::/32") // RFC 3849
)

// Lengths of the shortest prefixes that can be moved. The ranges have room for thousands of such prefixes, more than
// the export reads.
const (
	shortestIPv4 = 16
	shortestIPv6 = 48
	// longestReserved is the length of the longest prefix that is always moved to the reserved range.
	longestReserved = 19
)

// movable reports whether a prefix can be moved. Shorter prefixes do not fit into the ranges.
func movable(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() >= shortestIPv4
	}
	return p.IsValid() && p.Bits() >= shortestIPv6 && !p.Addr().Is4In6()
}

// moveAddresses replaces all addresses of a model. It preserves their relations: a prefix keeps its length, an address
// keeps its place in its prefix, and prefixes overlap afterward if they did before. Moving addresses a second time
// changes nothing.
func moveAddresses(m *Model) {
	var found []netip.Prefix
	eachAddress(reflect.ValueOf(m).Elem(), func(v reflect.Value) { found = append(found, prefixesOf(v.Interface())...) })
	moves := planMoves(outermost(found))
	eachAddress(reflect.ValueOf(m).Elem(), func(v reflect.Value) { moves.apply(v) })
}

// eachAddress calls f with each valid address, prefix, range and pool of prefixes in a value, in order.
func eachAddress(v reflect.Value, f func(reflect.Value)) {
	switch v.Interface().(type) {
	case netip.Addr, netip.Prefix, Range, PrefixPool:
		f(v)
		return
	}
	switch v.Kind() { //nolint:exhaustive // Other kinds hold no addresses.
	case reflect.Struct:
		for i := range v.NumField() {
			eachAddress(v.Field(i), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachAddress(v.Index(i), f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachAddress(v.Elem(), f)
		}
	}
}

// prefixesOf returns the prefixes whose addresses must keep their relations.
func prefixesOf(value any) []netip.Prefix {
	switch x := value.(type) {
	case netip.Addr:
		if x.IsValid() {
			return []netip.Prefix{netip.PrefixFrom(x, x.BitLen())}
		}
	case netip.Prefix:
		if movable(x) {
			return []netip.Prefix{x.Masked()}
		}
	case Range:
		return []netip.Prefix{covering(x)}
	case PrefixPool:
		return []netip.Prefix{covering(x.all())}
	}
	return nil
}

// all returns the range of the addresses of all prefixes in the pool.
func (p PrefixPool) all() Range {
	last := p.First.Masked().Addr()
	for range p.Count {
		last = after(last, p.First.Bits())
	}
	return Range{From: p.First.Masked().Addr(), To: last.Prev()}
}

// covering returns the longest prefix that contains both ends of a range.
func covering(r Range) netip.Prefix {
	for bits := r.From.BitLen(); ; bits-- {
		p := netip.PrefixFrom(r.From, bits).Masked()
		if bits == 0 || p.Contains(r.To) {
			return p
		}
	}
}

// after returns the first address after the prefix that starts at an address and has a length.
func after(a netip.Addr, bits int) netip.Addr {
	raw := a.AsSlice()
	if bits == 0 {
		return netip.Addr{}
	}
	carry := 1 << (7 - (bits-1)%8)
	for i := (bits - 1) / 8; i >= 0 && carry > 0; i-- {
		sum := int(raw[i]) + carry
		raw[i] = byte(sum & 0xff)
		carry = sum >> 8
	}
	next, _ := netip.AddrFromSlice(raw)
	return next
}

// outermost returns the prefixes that no other prefix contains, in order and without duplicates.
func outermost(all []netip.Prefix) []netip.Prefix {
	var outer []netip.Prefix
	for i, p := range all {
		inside := slices.ContainsFunc(all, func(q netip.Prefix) bool { return q.Bits() < p.Bits() && q.Contains(p.Addr()) })
		if !inside && !slices.Contains(all[:i], p) {
			outer = append(outer, p)
		}
	}
	return outer
}

// moves map prefixes to their new prefixes.
type moves []struct{ from, to netip.Prefix }

// planMoves assigns a new prefix of the same length to each of the given prefixes, which must not overlap. It starts
// with the largest, so that there are no gaps.
func planMoves(prefixes []netip.Prefix) moves {
	sorted := slices.Clone(prefixes)
	slices.SortStableFunc(sorted, func(p, q netip.Prefix) int { return cmp.Compare(p.Bits(), q.Bits()) })
	next := benchmarks.Addr()
	nextReserved := reserved.Addr()
	nextIPv6 := documentation.Addr()
	var plan moves
	for _, p := range sorted {
		from := &nextIPv6
		if p.Addr().Is4() {
			from = &next
			if p.Bits() <= longestReserved || !benchmarks.Contains(next) {
				from = &nextReserved
			}
		}
		plan = append(plan, struct{ from, to netip.Prefix }{p, netip.PrefixFrom(*from, p.Bits())})
		*from = after(*from, p.Bits())
	}
	return plan
}

// apply moves the addresses in a value.
func (m moves) apply(v reflect.Value) {
	switch x := v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(m.address(x)))
	case netip.Prefix:
		v.Set(reflect.ValueOf(m.prefix(x)))
	case Range:
		v.Set(reflect.ValueOf(Range{From: m.address(x.From), To: m.address(x.To)}))
	case PrefixPool:
		x.First = m.prefix(x.First)
		v.Set(reflect.ValueOf(x))
	}
}

// prefix moves a prefix, including the host part of its address. It keeps a prefix of length 0, and returns the zero
// value for any other prefix that cannot be moved.
func (m moves) prefix(p netip.Prefix) netip.Prefix {
	switch {
	case p.IsValid() && p.Bits() == 0:
		return p.Masked()
	case !movable(p):
		return netip.Prefix{}
	}
	return netip.PrefixFrom(m.address(p.Addr()), p.Bits())
}

// address moves an address. It returns the zero value for an address that no move contains.
func (m moves) address(a netip.Addr) netip.Addr {
	for _, move := range m {
		if !a.IsValid() || !move.from.Contains(a) {
			continue
		}
		raw := move.to.Addr().AsSlice()
		for i, b := range a.AsSlice() {
			ofPrefix := min(max(move.from.Bits()-8*i, 0), 8)
			mask := byte(0xff) >> ofPrefix
			raw[i] = raw[i]&^mask | b&mask
		}
		moved, _ := netip.AddrFromSlice(raw)
		return moved
	}
	return netip.Addr{}
}
