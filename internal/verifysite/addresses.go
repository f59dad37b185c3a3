// SPDX-License-Identifier: Apache-2.0

package verifysite

import (
	"context"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// maxSearched limits the number of addresses of a subnet that are examined.
const maxSearched = 1 << 16

// freeAddresses returns up to most addresses of a family that the gateway may use and that are not in use on it.
func (b *bench) freeAddresses(ctx context.Context, ipv6 bool, most int) ([]netip.Addr, error) {
	usedOn, err := b.session.Gateways.UsedAddresses(ctx, b.gateway.ID)
	if err != nil {
		return nil, err
	}
	taken := map[netip.Addr]bool{}
	for _, u := range usedOn {
		taken[u.Address] = true
	}
	var free []netip.Addr
	take := func(a netip.Addr) bool {
		if a.Is4() != ipv6 && !taken[a] {
			taken[a] = true
			free = append(free, a)
		}
		return len(free) < most
	}
	if b.gateway.UsesIPSpaces {
		return free, b.floating(ctx, take)
	}
	for _, uplink := range b.gateway.Uplinks {
		for _, subnet := range uplink.Subnets {
			taken[subnet.Primary] = true
			taken[subnet.Gateway] = true
			for _, r := range subnet.Ranges {
				if !eachAddress(r, take) {
					return free, nil
				}
			}
		}
	}
	return free, nil
}

// floating passes the unused floating IPs of the organization to take, until take returns false.
func (b *bench) floating(ctx context.Context, take func(netip.Addr) bool) error {
	suggestions, err := b.session.IPSpaces.Suggestions(ctx, b.gateway.ID)
	for _, s := range suggestions {
		for _, a := range s.Unused {
			if !take(a) {
				return nil
			}
		}
	}
	return err
}

// eachAddress passes the addresses of a range to take. It returns false as soon as take does, and stops after maxSearched
// addresses.
func eachAddress(r vcd.AddressRange, take func(netip.Addr) bool) bool {
	a := r.From
	for range maxSearched {
		if !a.IsValid() || !r.Contains(a) {
			return true
		}
		if !take(a) {
			return false
		}
		a = a.Next()
	}
	return true
}

// foreignAddress returns an IPv4 address in a subnet of the gateway's external network that is not assigned to the
// gateway.
func (b *bench) foreignAddress() (netip.Addr, bool) {
	for _, uplink := range b.gateway.Uplinks {
		for _, subnet := range uplink.Subnets {
			if !subnet.Prefix.Addr().Is4() {
				continue
			}
			var last netip.Addr
			a := subnet.Prefix.Masked().Addr().Next()
			for range maxSearched {
				// The last address of a subnet is its broadcast address.
				if !subnet.Prefix.Contains(a.Next()) {
					break
				}
				if a != subnet.Gateway && a != subnet.Primary && !within(subnet.Ranges, a) {
					last = a
				}
				a = a.Next()
			}
			if last.IsValid() {
				return last, true
			}
		}
	}
	return netip.Addr{}, false
}

func within(ranges []vcd.AddressRange, a netip.Addr) bool {
	for _, r := range ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}
