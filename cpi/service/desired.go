// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Desired is what the load balancer of a Service should be. Of one that is to be absent, only Keep, and as proof of
// ownership Intent, Published, Ports and Members, matter beside the owner.
type Desired struct {
	loadbalancer.Desired

	// Keep leaves the addresses allocated when the load balancer goes, where the cloud can.
	Keep  bool
	Ports []Port
	// Members that the load balancer sends to, also nodes that have no address of its first family.
	Members []Member
	// Extra is what only the cloud knows of the wish, in its own type.
	Extra any
}

// A Port is one port of a load balancer.
type Port struct {
	// Name of the Service's port; it may be empty and may change.
	Name     string
	Protocol loadbalancer.Protocol
	// AppProtocol as the Service has it; empty if it has none.
	AppProtocol string
	// Number that clients use, and that of the nodes.
	Number, NodePort int
	// HealthPort is where nodes say by HTTP whether they have endpoints of the Service; 0: nowhere.
	HealthPort int
}

// A Member is a node that a load balancer sends to.
type Member struct {
	Node, ProviderID string
	// Addresses of the node, at most one of each family.
	Addresses []netip.Addr
}
