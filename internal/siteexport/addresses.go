// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
)

// Where addresses of the site are moved to.
var (
	benchmarks    = netip.MustParsePrefix("198.18.0.0/15") // RFC 2544
	reserved      = netip.MustParsePrefix("240.0.0.0/4")   // RFC 1112, for what the first has no room for
	documentation = netip.MustParsePrefix("2001:db8::/32") // RFC 3849
)

// Lengths of the shortest prefixes that are moved. The ranges have room for thousands of these, more than lists are read.
const (
	shortestIPv4 = 16
	shortestIPv6 = 48
	// longestReserved is the length of the longest prefix that goes to the reserved range at once.
	longestReserved = 19
)

// movable reports whether a prefix can be moved: a shorter one has no room.
func movable(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() >= shortestIPv4
	}
	return p.IsValid() && p.Bits() >= shortestIPv6 && !p.Addr().Is4In6()
}

// moveAddresses replaces all addresses of a model. What is together in a prefix stays so: a prefix keeps its length, an
// address its place in the prefix, and prefixes overlap afterwards if they did before. Moving what was moved already
// changes nothing.
func moveAddresses(m *Model) {
	var found []netip.Prefix
	eachAddress(reflect.ValueOf(m).Elem(), func(v reflect.Value) { found = append(found, prefixesOf(v.Interface())...) })
	moves := planMoves(outermost(found))
	eachAddress(reflect.ValueOf(m).Elem(), func(v reflect.Value) { moves.apply(v) })
}

// eachAddress calls f with each valid address, prefix, range and pool of prefixes of a value, in order.
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

// prefixesOf returns what has to stay together.
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

// all returns the addresses of all prefixes of the pool.
func (p PrefixPool) all() Range {
	last := p.First.Masked().Addr()
	for range p.Count {
		last = after(last, p.First.Bits())
	}
	return Range{From: p.First.Masked().Addr(), To: last.Prev()}
}

// covering returns the longest prefix that has both ends of a range.
func covering(r Range) netip.Prefix {
	for bits := r.From.BitLen(); ; bits-- {
		p := netip.PrefixFrom(r.From, bits).Masked()
		if bits == 0 || p.Contains(r.To) {
			return p
		}
	}
}

// after returns the first address after the prefix of a length that an address begins.
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

// outermost returns the prefixes that no other one has, the first of equal ones, in their order.
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

// moves are where prefixes go.
type moves []struct{ from, to netip.Prefix }

// planMoves gives each of some prefixes, none of which overlaps another, one of the same length. The largest come
// first, so that there are no gaps.
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

// apply moves what an address value holds.
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

// prefix moves a prefix with its address. One that covers everything stays, any other that cannot be moved is dropped.
func (m moves) prefix(p netip.Prefix) netip.Prefix {
	switch {
	case p.IsValid() && p.Bits() == 0:
		return p.Masked()
	case !movable(p):
		return netip.Prefix{}
	}
	return netip.PrefixFrom(m.address(p.Addr()), p.Bits())
}

// address moves an address; without a place to go it is dropped.
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
