// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
)

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

// A Range is a range of addresses, both ends included. The zero Range holds none.
type Range struct{ First, Last netip.Addr }

// Contains reports whether an address is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return r.First.IsValid() && a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

// Within returns the part of a range that hosts of a subnet may have, which may be empty; the whole range if the subnet
// is zero or of the other family.
func (r Range) Within(subnet netip.Prefix) Range {
	if !subnet.IsValid() || !r.First.IsValid() || subnet.Addr().Is4() != r.First.Is4() {
		return r
	}
	return intersect(r, hosts(subnet))
}

// Desired is what a load balancer should be.
type Desired struct {
	Owner Owner
	// Absent asks for the removal of everything the owner has. Of the rest only Intent, Published and Members then
	// matter, as proof of ownership.
	Absent bool
	// Families the load balancer has an address of, the one of the pool members first; at least one.
	Families []Family
	// AllFamilies refuses the load balancer if it cannot have an address of each family; else it goes without.
	AllFamilies bool
	// Requested are addresses that the Service names, at most one of each family.
	Requested []netip.Addr
	// Intent are the addresses stored on the Service before their first use ([Plan.Intent]).
	Intent []netip.Addr
	// Published are the addresses in the status of the Service: proof of whose objects without a marker are.
	Published []netip.Addr
	// Duplicate is set if another Service of the cluster has the same name, in another namespace: what is known by
	// this name only may belong to that one.
	Duplicate bool
	// Reserved is what others of the cluster are about to use on the gateway and may not be seen there yet: its
	// addresses are taken.
	Reserved []Use
	// Accompanied is set if other Services of the cluster have a load balancer on the gateway, or will: what all
	// share stays.
	Accompanied bool
	// Elsewhere is set if the owner may have something at another gateway: what it needs no more here may be in use
	// there, and what all gateways show stays.
	Elsewhere bool
	// Unseen is set if the other gateway cannot be observed: then only addresses stay, for VCD refuses to delete
	// certificates and port profiles that something uses.
	Unseen bool
	// Share is a key; Services with the same key may share an address if their ports differ. Empty: never.
	Share string
	// Internal asks for addresses inside the organization: from Subnet, else from InternalSubnets, else from OneArm,
	// never translated.
	Internal bool
	// Subnet limits from where addresses of its family are chosen. The zero Prefix does not.
	Subnet netip.Prefix
	// InternalSubnets are those that addresses inside the organization have to be in; empty: any.
	InternalSubnets []netip.Prefix
	// IPSpace is the name of the only IP Space that addresses are chosen from; empty for any of the gateway's.
	IPSpace string
	// OneArm puts virtual services on addresses of this range, reached through DNAT rules; nil puts them on the
	// addresses themselves.
	OneArm *Range
	// Listeners, each with another Key.
	Listeners []Listener
	// Members are the addresses of the nodes, of all families, each once.
	Members []netip.Addr
	// OwnMembers are listed in the pools themselves, not in the IP set of the cluster's nodes, and may be none yet.
	OwnMembers bool
	// Generation orders the node lists that Members are from: that of a later list is higher. 0 if there is no order.
	Generation uint64
	// Sticky sends a client to the same node again.
	Sticky bool
	// SourceRanges are the only clients that may connect; empty: all.
	SourceRanges []netip.Prefix
	// PreserveClientIP lets nodes see the addresses of clients.
	PreserveClientIP bool
	// EngineGroup is the name of the service engine group; empty takes any with room.
	EngineGroup string
	// Algorithm of the pools, in VCD's words; empty leaves it as it is, in new pools ROUND_ROBIN.
	Algorithm string
}

// A Protocol is a transport protocol.
type Protocol string

// Protocols.
const (
	TCP Protocol = "TCP"
	UDP Protocol = "UDP"
)

// An Application is the protocol that a virtual service understands.
type Application string

// Applications, in VCD's words.
const (
	L4    Application = "L4"
	L4TLS Application = "L4_TLS"
	HTTP  Application = "HTTP"
	HTTPS Application = "HTTPS"
)

// TLS reports whether the application ends TLS at the load balancer, which takes a certificate.
func (a Application) TLS() bool { return a == L4TLS || a == HTTPS }

// A Listener is one port of a load balancer.
type Listener struct {
	// Name is that of the Service's port; it may be empty and may change.
	Name        string
	Protocol    Protocol
	Application Application
	// Port that clients use, and the one of the nodes.
	Port, NodePort int
	// Certificate for applications that end TLS; the zero value for others.
	Certificate Certificate
	// Monitor of the members; the zero value leaves the choice to the plan: TCP for TCP, UDP for UDP.
	Monitor Monitor
}

// Key identifies the listener among those of its owner: by what clients see, so that a change of the port's name
// changes nothing.
func (l Listener) Key() string { return key(l.Protocol, l.Port) }

func key(p Protocol, port int) string { return fmt.Sprintf("%s-%d", strings.ToLower(string(p)), port) }

// A Certificate is one of the organization's library by its alias, or one to be put there.
type Certificate struct {
	// Alias in the library. Empty for one to be imported.
	Alias string
	// Chain and Key are PEM, for a certificate to be imported. The key is never part of a text or a hash that
	// leaves the plan.
	Chain, Key string
	// Source names for users where the certificate is from.
	Source string
}

// A Monitor is a kind of health check of pool members, in VCD's words.
type Monitor string

// Monitors.
const (
	MonitorNone  Monitor = "NONE"
	MonitorTCP   Monitor = "TCP"
	MonitorUDP   Monitor = "UDP"
	MonitorPing  Monitor = "PING"
	MonitorHTTP  Monitor = "HTTP"
	MonitorHTTPS Monitor = "HTTPS"
)

// Compare orders listeners by what identifies them.
func (l Listener) Compare(other Listener) int {
	return cmp.Or(cmp.Compare(l.Port, other.Port), cmp.Compare(l.Protocol, other.Protocol))
}

// endpointID is both name and UID of the control-plane endpoint as an owner. No Service has such a UID.
const endpointID = "control-plane"

// EndpointOf returns the owner of what serves the control-plane endpoint of a cluster.
func EndpointOf(cluster string) Owner {
	return Owner{Cluster: cluster, Name: endpointID, UID: endpointID}
}

// IsEndpoint reports whether the owner is the control-plane endpoint of a cluster, not a Service.
func (o Owner) IsEndpoint() bool { return o.Cluster != "" && o.UID == endpointID }

// An Owner is what a load balancer belongs to: a Service of a cluster, or its control-plane endpoint.
type Owner struct {
	// Cluster is the id of the cluster that all its objects in VCD carry (the infraID of a VCDCluster, CLUSTER_ID
	// of the cloud controller manager).
	Cluster string
	// Namespace and Name are those of the Service. Both are empty for what belongs to the cluster as a whole: the
	// sets of node addresses. Only Namespace is empty for what cloud provider interface 1.6.1 made, which wrote
	// down neither namespace nor UID.
	Namespace, Name string
	// UID is that of the Service; with Cluster it is the identity. A Service that is created again under its name
	// is another owner.
	UID string
}

// String returns the owner as users know it.
func (o Owner) String() string {
	if o.Name == "" {
		return "cluster " + o.Cluster
	}
	if o.IsEndpoint() {
		return "control-plane endpoint"
	}
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Is reports whether two owners are the same: of one cluster and one UID. The names are not compared, as a long
// marker omits them.
func (o Owner) Is(other Owner) bool {
	if o.Cluster == "" || o.Cluster != other.Cluster || o.UID != other.UID {
		return false
	}
	return o.UID != "" || o.Namespace == other.Namespace && o.Name == other.Name
}

// WholeCluster reports whether the owner is the cluster itself, not one of its Services.
func (o Owner) WholeCluster() bool { return o.Cluster != "" && o.Name == "" && o.UID == "" }

// Old reports whether the owner is a Service known only from the names that cloud provider interface 1.6.1 gave.
func (o Owner) Old() bool { return o.Cluster != "" && o.UID == "" && o.Name != "" }

// Compare orders owners by cluster and name.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(strings.Compare(o.Cluster, other.Cluster), strings.Compare(o.Namespace, other.Namespace),
		strings.Compare(o.Name, other.Name), strings.Compare(o.UID, other.UID))
}
