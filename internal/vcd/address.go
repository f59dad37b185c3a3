// SPDX-License-Identifier: Apache-2.0

package vcd

import "net/netip"

// parseAddr reads an address; the zero one if there is none.
func parseAddr(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// parseAddrs reads addresses, without what is none.
func parseAddrs(texts []string) []netip.Addr {
	var addresses []netip.Addr
	for _, text := range texts {
		if addr := parseAddr(text); addr.IsValid() {
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

func addressTexts(addresses []netip.Addr) []string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return texts
}
