// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"math"
	"net/netip"
	"slices"
)

// jsonRange is how cloudapi writes a range of addresses.
type jsonRange struct {
	StartAddress string `json:"startAddress"`
	EndAddress   string `json:"endAddress"`
}

// jsonRanges is how it writes several.
type jsonRanges struct {
	Values []jsonRange `json:"values"`
}

// ranges reads them; each must lie in the subnet and none may overlap another.
func (j jsonRanges) ranges(subnet netip.Prefix) ([]Range, error) {
	var out []Range
	for _, v := range j.Values {
		r, err := v.read()
		if err != nil {
			return nil, err
		}
		if r.To.Less(r.From) || subnet.IsValid() &&
			(!subnet.Masked().Contains(r.From) || !subnet.Masked().Contains(r.To)) {
			return nil, badRequest("The IP range %s-%s is invalid: it is not within the subnet %s.", r.From, r.To,
				subnet.Masked())
		}
		if overlap(out, []Range{r}) {
			return nil, badRequest("The IP range %s-%s overlaps with another IP range.", r.From, r.To)
		}
		out = append(out, r)
	}
	return out, nil
}

// read reads the ends; without a second it is one address.
func (j jsonRange) read() (Range, error) {
	from, err := netip.ParseAddr(j.StartAddress)
	if err != nil {
		return Range{}, badRequest("The IP address %q is invalid.", j.StartAddress)
	}
	if j.EndAddress == "" {
		return Range{from, from}, nil
	}
	to, err := netip.ParseAddr(j.EndAddress)
	if err != nil {
		return Range{}, badRequest("The IP address %q is invalid.", j.EndAddress)
	}
	return Range{from, to}, nil
}

func rangesJSON(ranges []Range) map[string]any {
	values := []any{}
	for _, r := range ranges {
		values = append(values, map[string]any{"startAddress": r.From.String(), "endAddress": r.To.String()})
	}
	return map[string]any{"values": values}
}

func overlap(a, b []Range) bool {
	for _, x := range a {
		for _, y := range b {
			if x.From.Compare(y.To) <= 0 && y.From.Compare(x.To) <= 0 {
				return true
			}
		}
	}
	return false
}

func inRanges(ranges []Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(a) })
}

// within reports whether every address of inner is in outer.
func within(inner, outer []Range) bool {
	return !slices.ContainsFunc(inner, func(r Range) bool {
		return !slices.ContainsFunc(merged(outer), func(o Range) bool { return o.Contains(r.From) && o.Contains(r.To) })
	})
}

// size is the number of addresses in a range, at most 2^31-1 as VCD counts.
func (r Range) size() int {
	n := 0
	from := r.From.As16()
	to := r.To.As16()
	for i := range from {
		n = n<<8 + int(to[i]) - int(from[i])
		if n > math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return n + 1
}

func count(ranges []Range) int {
	n := 0
	for _, r := range ranges {
		n = min(n+r.size(), math.MaxInt32)
	}
	return n
}

// merged joins ranges that touch, sorted by address.
func merged(ranges []Range) []Range {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return a.From.Compare(b.From) })
	var out []Range
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

// take finds the first n addresses of a pool that are not taken; ok reports whether there are so many.
func take(pool, taken []Range, n int) (got []Range, ok bool) {
	taken = merged(taken)
	for _, p := range merged(pool) {
		for a := p.From; n > 0 && a.IsValid() && p.Contains(a); {
			if i := slices.IndexFunc(taken, func(t Range) bool { return t.Contains(a) }); i >= 0 {
				a = taken[i].To.Next()
				continue
			}
			got = append(got, Range{a, a})
			n--
			a = a.Next()
		}
	}
	return merged(got), n == 0
}
