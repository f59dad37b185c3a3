// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// JSONRange is a range of addresses in cloudapi.
type JSONRange struct {
	StartAddress string `json:"startAddress"`
	EndAddress   string `json:"endAddress"`
}

// JSONRanges is a list of ranges in cloudapi.
type JSONRanges struct {
	Values []JSONRange `json:"values"`
}

// Ranges parses the ranges. Each must lie within the subnet, unless that is the zero value. The ranges must not
// overlap.
func (j JSONRanges) Ranges(subnet netip.Prefix) ([]store.Range, error) {
	var out []store.Range
	for _, v := range j.Values {
		r, err := v.read()
		if err != nil {
			return nil, err
		}
		if r.To.Less(r.From) || subnet.IsValid() &&
			(!subnet.Masked().Contains(r.From) || !subnet.Masked().Contains(r.To)) {
			return nil, store.BadRequest("The IP range %s-%s is invalid: it is not within the subnet %s.", r.From, r.To,
				subnet.Masked())
		}
		if Overlap(out, []store.Range{r}) {
			return nil, store.BadRequest("The IP range %s-%s overlaps with another IP range.", r.From, r.To)
		}
		out = append(out, r)
	}
	return out, nil
}

// read parses the range. Without an end address, the range is a single address.
func (j JSONRange) read() (store.Range, error) {
	from, err := netip.ParseAddr(j.StartAddress)
	if err != nil {
		return store.Range{}, store.BadRequest("The IP address %q is invalid.", j.StartAddress)
	}
	if j.EndAddress == "" {
		return store.Range{From: from, To: from}, nil
	}
	to, err := netip.ParseAddr(j.EndAddress)
	if err != nil {
		return store.Range{}, store.BadRequest("The IP address %q is invalid.", j.EndAddress)
	}
	return store.Range{From: from, To: to}, nil
}

// RangesJSON returns ranges in the format of cloudapi.
func RangesJSON(ranges []store.Range) map[string]any {
	values := []any{}
	for _, r := range ranges {
		values = append(values, map[string]any{"startAddress": r.From.String(), "endAddress": r.To.String()})
	}
	return map[string]any{"values": values}
}

// Overlap reports whether a and b have an address in common.
func Overlap(a, b []store.Range) bool {
	for _, x := range a {
		for _, y := range b {
			if x.From.Compare(y.To) <= 0 && y.From.Compare(x.To) <= 0 {
				return true
			}
		}
	}
	return false
}

// InRanges reports whether an address is in one of the ranges.
func InRanges(ranges []store.Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r store.Range) bool { return r.Contains(a) })
}

// within reports whether every address of inner is in outer.
func within(inner, outer []store.Range) bool {
	return !slices.ContainsFunc(inner, func(r store.Range) bool {
		return !slices.ContainsFunc(mergeRanges(outer), func(o store.Range) bool { return o.Contains(r.From) && o.Contains(r.To) })
	})
}

// Count returns the number of addresses in ranges, at most math.MaxInt32.
func Count(ranges []store.Range) int {
	n := 0
	for _, r := range ranges {
		n = min(n+r.Size(), math.MaxInt32)
	}
	return n
}

// mergeRanges sorts ranges by address, and joins those that overlap or touch.
func mergeRanges(ranges []store.Range) []store.Range {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b store.Range) int { return a.From.Compare(b.From) })
	var out []store.Range
	for _, r := range sorted {
		if n := len(out) - 1; n >= 0 && (out[n].Contains(r.From) || out[n].To.Next() == r.From) {
			if out[n].To.Less(r.To) {
				out[n].To = r.To
			}
			continue
		}
		out = append(out, r)
	}
	return out
}

// takeAddresses returns the first n addresses of a pool that are not taken. It returns false if the pool has fewer.
func takeAddresses(pool, taken []store.Range, n int) (got []store.Range, ok bool) {
	taken = mergeRanges(taken)
	for _, p := range mergeRanges(pool) {
		for a := p.From; n > 0 && a.IsValid() && p.Contains(a); {
			if i := slices.IndexFunc(taken, func(t store.Range) bool { return t.Contains(a) }); i >= 0 {
				a = taken[i].To.Next()
				continue
			}
			got = append(got, store.Range{From: a, To: a})
			n--
			a = a.Next()
		}
	}
	return mergeRanges(got), n == 0
}

// ParseAddresses returns the address in a string, the first address of a prefix, or up to 256 addresses of a range. It
// returns nil if the string is none of these.
func ParseAddresses(text string) []netip.Addr {
	if a, err := netip.ParseAddr(text); err == nil {
		return []netip.Addr{a}
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return []netip.Addr{p.Addr()}
	}
	from, to, _ := strings.Cut(text, "-")
	a, err := netip.ParseAddr(strings.TrimSpace(from))
	b, err2 := netip.ParseAddr(strings.TrimSpace(to))
	if err != nil || err2 != nil || b.Less(a) {
		return nil
	}
	var out []netip.Addr
	for r := (store.Range{From: a, To: b}); r.Contains(a) && len(out) < 256; a = a.Next() {
		out = append(out, a)
	}
	return out
}
