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

// A Use is an address and port that is in use, or about to be.
type Use struct {
	Address netip.Addr
	// Protocol and Port; an empty Protocol means all protocols, 0 means all ports.
	Protocol Protocol
	Port     int
	// Kind and Name of the object that uses it.
	Kind Kind
	Name string
	// Reserved means that nothing uses the address. It is only unavailable to load balancers that do not have it yet.
	Reserved bool
	// Owner of the object. The zero value means another cluster or no cluster.
	Owner Owner
	// Share is the key under which the owner shares the address; empty means that it is not shared.
	Share string
	// Internal means that only clients inside the organization can reach the object on the address.
	Internal bool
	// Promised means that the address is kept for a Service, whether or not an object exists on it. It is not known
	// whether the object is internal.
	Promised bool
}
