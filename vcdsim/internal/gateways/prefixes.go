// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// forEachPrefix calls f with every prefix of a pool, until f returns false.
func forEachPrefix(x store.PrefixPool, f func(netip.Prefix) bool) {
	p := x.First.Masked()
	for range x.Count {
		if !f(p) {
			return
		}
		last := lastAddress(p).Next()
		if !last.IsValid() {
			return
		}
		p = netip.PrefixFrom(last, p.Bits())
	}
}

func containsPrefix(x store.PrefixPool, value string) bool {
	found := false
	forEachPrefix(x, func(p netip.Prefix) bool {
		found = p.String() == value
		return !found
	})
	return found
}

// lastAddress returns the last address of a prefix.
func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func prefixesContain(p *store.IPSpace, a netip.Addr) bool {
	found := false
	for _, x := range p.Prefixes {
		forEachPrefix(x, func(q netip.Prefix) bool {
			found = found || q.Contains(a)
			return !found
		})
	}
	return found
}
