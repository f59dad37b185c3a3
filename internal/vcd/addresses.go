// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"net/netip"
)

// An AddressRange is a range of addresses, both ends included.
type AddressRange struct{ From, To netip.Addr }

// Contains reports whether addr is in the range.
func (r AddressRange) Contains(addr netip.Addr) bool {
	return r.From.Compare(addr) <= 0 && addr.Compare(r.To) <= 0
}

// appendRange adds a range. VCD may omit its end, which is then the same as its start. Invalid ranges are skipped.
func appendRange(ranges []AddressRange, from, to string) []AddressRange {
	first, err := netip.ParseAddr(from)
	if err != nil {
		return ranges
	}
	last, err := netip.ParseAddr(cmp.Or(to, from))
	if err != nil {
		return ranges
	}
	return append(ranges, AddressRange{From: first, To: last})
}
