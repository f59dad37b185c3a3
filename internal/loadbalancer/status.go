// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "net/netip"

// Status is the state of a load balancer that clients can rely on.
type Status struct {
	// Addresses of the load balancer, in the order of the families. Only addresses that serve all ports are included.
	Addresses []netip.Addr
	// Ports are the ports, in order.
	Ports []PortStatus
	// Objects are the existing objects of the owner.
	Objects []Object
}

// A PortStatus is the status of one port.
type PortStatus struct {
	Protocol Protocol
	Port     int
	// Problem is a reason in CamelCase, or empty.
	Problem string
}

// A Kind is a kind of object, in the terms of the cloud.
type Kind string

// An Object is an object in the cloud that belongs to a load balancer.
type Object struct {
	Kind     Kind
	ID, Name string
	// Addresses of the object, of all families.
	Addresses []netip.Addr
	// Inherited means that a predecessor of this program created the object.
	Inherited bool
}
