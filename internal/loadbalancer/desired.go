// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import "net/netip"

// Desired is what a load balancer should be, as far as all clouds know it. Where it sends to is in types of those who
// ask for it: nodes of a Service, or control planes.
type Desired struct {
	Owner Owner
	// Absent asks for the removal of everything the owner has. Of the rest only what proves ownership then matters, such
	// as Intent and Published.
	Absent bool
	// Families that the load balancer has an address of, that of the members first; at least one.
	Families []Family
	// AllFamilies means that the load balancer is refused if it cannot have an address of each family; else it goes
	// without.
	AllFamilies bool
	// Requested are addresses that the owner names, at most one of each family.
	Requested []netip.Addr
	// Intent are the addresses stored for the owner before their first use ([Plan.Intent]).
	Intent []netip.Addr
	// Published are the addresses in the status of the owner: proof of whose objects without a marker are.
	Published []netip.Addr
	// Duplicate means that another Service of the cluster has the same name, in another namespace: what is known by
	// this name only may belong to that one.
	Duplicate bool
	// Reserved is what others use, or are about to use, at the location, and may not be seen there yet.
	Reserved []Use
	// Accompanied means that other Services of the cluster have a load balancer at the location, or will: what all
	// share stays.
	Accompanied bool
	// Elsewhere means that something of the load balancer exists at another location, too: what locations share may be
	// in use there and stays.
	Elsewhere bool
	// Unseen means that what exists elsewhere cannot be seen, maybe for long. Of what locations share only that stays
	// which the cloud would not refuse to remove while it is in use.
	Unseen bool
	// Share is a key; Services with the same key may share an address if their ports differ. Empty: never.
	Share string
	// Generation orders lists of members: a later list has a higher one. 0 if there is no order.
	Generation uint64
	// Sticky sends a client to the same member again.
	Sticky bool
	// SourceRanges are the only clients that may connect; empty: all.
	SourceRanges []netip.Prefix
}
