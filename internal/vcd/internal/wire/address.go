// SPDX-License-Identifier: Apache-2.0

package wire

import "net/netip"

// Address parses an IP address. It returns the zero address if the text is not one.
func Address(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// Addresses parses IP addresses and skips invalid ones.
func Addresses(texts []string) []netip.Addr {
	var addresses []netip.Addr
	for _, text := range texts {
		if addr := Address(text); addr.IsValid() {
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

// AddressTexts formats IP addresses.
func AddressTexts(addresses []netip.Addr) []string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return texts
}
