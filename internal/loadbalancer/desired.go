// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "net/netip"

// Desired is the part of a load balancer's desired state that all clouds have in common. The targets are in types of
// the callers: nodes for a Service, or control plane machines.
type Desired struct {
	Owner Owner
	// Absent requests the removal of everything that the owner has. Of the other fields, only those that prove
	// ownership are then used, such as Intent and Published.
	Absent bool
	// Families are the families in which the load balancer has an address, that of the members first. At least one is
	// required.
	Families []Family
	// AllFamilies means that the load balancer is refused if it cannot have an address of each family. Otherwise, a
	// missing family is accepted.
	AllFamilies bool
	// Requested are the addresses that the owner names, at most one per family.
	Requested []netip.Addr
	// Intent are the addresses recorded for the owner before their first use ([Plan.Intent]).
	Intent []netip.Addr
	// Published are the addresses in the status of the owner. They prove the ownership of objects without a marker.
	Published []netip.Addr
	// Duplicate means that a Service in another namespace of the cluster has the same name. Objects that are identified
	// only by this name may belong to that Service.
	Duplicate bool
	// Reserved are the addresses and ports that others use, or are about to use, at the location. They may not be
	// visible there yet.
	Reserved []Use
	// Accompanied means that other Services of the cluster have, or will have, a load balancer at the location. Then
	// objects that all Services share are kept.
	Accompanied bool
	// Elsewhere means that the load balancer also has objects at another location. Then objects that locations share
	// are kept, because they may be in use there.
	Elsewhere bool
	// Unseen means that objects elsewhere cannot be observed, possibly for a long time. Of the objects that locations
	// share, only those are then kept that the cloud would remove even while they are in use.
	Unseen bool
	// Share is a key. Services with the same key may share an address if their ports differ. Empty means that the
	// address is not shared.
	Share string
	// Generation orders lists of members: a later list has a higher generation. 0 means that the order is unknown.
	Generation uint64
	// Sticky sends the requests of a client to the same member.
	Sticky bool
	// SourceRanges are the only clients that may connect; empty means all.
	SourceRanges []netip.Prefix
}
