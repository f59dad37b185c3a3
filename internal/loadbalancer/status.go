// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "net/netip"

// Status is what clients can use.
type Status struct {
	// Addresses of the load balancer, in the order of the families; only those that serve all ports.
	Addresses []netip.Addr
	// Ports, in order.
	Ports []PortStatus
	// Objects of the owner that exist.
	Objects []Object
}

// A PortStatus is the status of one port.
type PortStatus struct {
	Protocol Protocol
	Port     int
	// Problem in CamelCase; empty if there is none.
	Problem string
}

// A Kind is a kind of object, in the words of the cloud.
type Kind string

// An Object of the cloud belongs to a load balancer.
type Object struct {
	Kind     Kind
	ID, Name string
	// Addresses of the object, of all families.
	Addresses []netip.Addr
	// Inherited means that a predecessor of this program made the object.
	Inherited bool
}
