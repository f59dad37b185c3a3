// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Desired is the desired state of the load balancer of a Service. If the load balancer should be absent, only the owner
// and Keep are used, and Intent, Published, Ports and Members as proof of ownership.
type Desired struct {
	loadbalancer.Desired

	// Keep leaves the addresses allocated when the load balancer is removed, if the cloud supports that.
	Keep  bool
	Ports []Port
	// Members are the nodes that the load balancer sends to, including nodes without an address of its first family.
	Members []Member
	// Extra is the cloud-specific part, in a type of the cloud.
	Extra any
}

// A Port is one port of a load balancer.
type Port struct {
	// Name of the Service's port. It may be empty and may change.
	Name     string
	Protocol loadbalancer.Protocol
	// AppProtocol is the field of the Service, or empty if it is not set.
	AppProtocol string
	// Number is the port for clients, NodePort that of the nodes.
	Number, NodePort int
	// HealthPort is the HTTP port where nodes report whether they have endpoints of the Service; 0 if there is none.
	HealthPort int
}

// A Member is a node that a load balancer sends to.
type Member struct {
	Node, ProviderID string
	// Addresses of the node, at most one per family.
	Addresses []netip.Addr
}
