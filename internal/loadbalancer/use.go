// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "net/netip"

// A Family is a family of IP addresses.
type Family string

// Families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// FamilyOf returns the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// A Protocol is a transport protocol.
type Protocol string

// Protocols.
const (
	TCP Protocol = "TCP"
	UDP Protocol = "UDP"
)

// A Use is an address and port in use, or about to be.
type Use struct {
	Address netip.Addr
	// Protocol and Port; an empty Protocol stands for all, 0 for all ports.
	Protocol Protocol
	Port     int
	// Kind and Name of the object that uses it.
	Kind Kind
	Name string
	// Reserved means that nothing is on the address, which is only kept from load balancers that are not on it yet.
	Reserved bool
	// Owner of the object; the zero value if it belongs to another cluster or to none.
	Owner Owner
	// Share is the key under which the owner shares the address; empty if it does not.
	Share string
	// Internal means that only clients inside the organization reach the object on the address.
	Internal bool
}
