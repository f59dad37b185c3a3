// SPDX-License-Identifier: Apache-2.0

package plan

import "net/netip"

// An Owner is what a load balancer belongs to: a Service of a cluster. Cluster and UID are its identity.
type Owner struct{ Cluster, Namespace, Name, UID string }

// String returns namespace and name.
func (o Owner) String() string { return o.Namespace + "/" + o.Name }

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

// Desired is what a load balancer should be.
type Desired struct {
	Owner Owner
	// Absent asks for the removal of everything the owner has. Of the rest only Keep, and as proof of ownership
	// Intent, Published, Ports and Members, then matter.
	Absent bool
	// Families that the load balancer has an address of, that of the members first; at least one.
	Families []Family
	// AllFamilies means that the load balancer is refused if it cannot have an address of each family.
	AllFamilies bool
	// Requested are addresses that the Service names, at most one of each family.
	Requested []netip.Addr
	// Intent are the addresses stored on the Service before their first use ([Plan.Intent]).
	Intent []netip.Addr
	// Published are the addresses in the status of the Service: proof of whose objects without a marker are.
	Published []netip.Addr
	// Duplicate means that another Service of the cluster has the same name, in another namespace.
	Duplicate bool
	// Reserved is what other Services use, or are about to use, at the location.
	Reserved []Use
	// Accompanied means that other Services of the cluster have a load balancer at the location: what all share stays.
	Accompanied bool
	// Elsewhere means that something of the load balancer stands at another location, too: what locations share may be
	// in use there and stays.
	Elsewhere bool
	// Unseen means that what stands elsewhere cannot be seen, maybe for long. Of what locations share only that stays
	// which the cloud would not refuse to remove while it is in use.
	Unseen bool
	// Share is a key; Services with the same key may share an address if their ports differ. Empty: never.
	Share string
	// Keep leaves the addresses allocated when the load balancer goes, where the backend can.
	Keep  bool
	Ports []Port
	// Members that the load balancer sends to, also nodes that have no address of its first family.
	Members []Member
	// Generation orders node lists: a later list has a higher one. 0 if there is no order.
	Generation uint64
	// Sticky sends a client to the same node again.
	Sticky bool
	// SourceRanges are the only clients that may connect; empty: all.
	SourceRanges []netip.Prefix
	// Extra is what only the backend knows of the wish, in its own type.
	Extra any
}

// A Port is one port of a load balancer.
type Port struct {
	// Name of the Service's port; it may be empty and may change.
	Name     string
	Protocol Protocol
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
