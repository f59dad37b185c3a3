// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
)

// Facts are parts of an observation that not every plan depends on; each costs requests. A plan that lacks some
// asks for them ([Plan.Needs]), and is made again.
type Facts uint

// Facts.
const (
	// Addresses: Gateway.Ranges, Gateway.Used, Gateway.Spaces.
	Addresses Facts = 1 << iota
	// EngineGroups: Gateway.Groups.
	EngineGroups
	// Certificates: Observed.Certificates. A user who may not see the library has put nothing there: then it is
	// known to be empty.
	Certificates
	// Forwardings: Observed.Rules, Observed.Profiles, and the NAT rules in Observed.Taken.
	Forwardings
	// Firewall: Observed.Firewall.
	Firewall
	// FullPools: the owner's pools were all read in full.
	FullPools
	// FullSets: the cluster's IP sets were all read in full.
	FullSets
	// Hosts: what gateways and VMs have inside the organization, in Observed.Taken.
	Hosts
)

// Has reports whether all of the asked facts are known.
func (f Facts) Has(asked Facts) bool { return f&asked == asked }

// A Query is what to observe.
type Query struct {
	Owner Owner
	// Subnet limits which free addresses of IP Spaces are of interest ([Desired.Subnet]).
	Subnet netip.Prefix
	// Facts to observe besides virtual services, pools, sets and claims, which always are.
	Facts Facts
	// Translated is set where load balancers are reached through DNAT rules: a missing right to see them is no
	// proof of absence.
	Translated bool
	// OwnMembers leaves out IP sets ([Desired.OwnMembers]).
	OwnMembers bool
	// Begins is set for an endpoint that is to exist: without a virtual service it is taken to have no pools and port
	// profiles but those that were written here.
	Begins bool
	// Fresh asks for what is read after the query; else cached lists do.
	Fresh bool
}

// A State is how far VCD is with an object.
type State string

// States.
const (
	Realized State = "REALIZED"
	// Pending is what VCD is working on.
	Pending State = "PENDING"
	// Failed is what VCD could not realize (REALIZATION_FAILED).
	Failed State = "FAILED"
	// Broken is what is Failed although it was written again just now: it is left alone for a while.
	Broken State = "BROKEN"
)

// Observed is what there is of an owner, complete, and what of the gateway its plan depends on. Objects of the
// owner are there also when half-built, pending or failed, and those that may be its by their names only
// ([OldName]).
type Observed struct {
	// Known facts. What is not known is empty below.
	Known   Facts
	Gateway Gateway

	Services     []VirtualService
	Pools        []Pool
	Sets         []Set // of the whole cluster
	Claims       []Claim
	NotOurs      []string // ids of claims without a marker that others are known to have made
	Rules        []Rule
	Profiles     []Profile
	Certificates []CertificateItem // the owner's, and unmarked ones
	Firewall     []FirewallRule

	// Taken is what others, of this cluster too, have on the gateway: virtual services and, if Forwardings are
	// known, both sides of DNAT rules; and what Hosts are.
	Taken []Use
	// Strays are objects with the UID of the owner and the id of another cluster: the cluster had another id, or is
	// a copy.
	Strays []Stray
	// Others is set if other Services of the cluster have something on the gateway.
	Others bool
}

// A Stray is an object of the owner under another id of its cluster.
type Stray struct{ Cluster, Name string }

// StrayOf returns what an object is of an owner under another id of its cluster, if it is that. UIDs of Services
// are in no cluster twice; endpoints all have the same.
func StrayOf(o Owner, name, description string) (Stray, bool) {
	m, ok := ParseMarker(description)
	return Stray{m.Owner.Cluster, name}, ok && o.UID != "" && !o.IsEndpoint() && m.Owner.UID == o.UID &&
		m.Owner.Cluster != o.Cluster
}

// A Gateway is an edge gateway.
type Gateway struct {
	ID, Name string
	// Ranges are the external addresses that the gateway has for itself, of all uplinks.
	Ranges []Range
	// Used are the external addresses that VCD lists as used, by the owner too.
	Used []UsedAddress
	// Spaces are the IP Spaces whose floating IPs the gateway can use; empty without IP Spaces.
	Spaces []Space
	// UsesSpaces is set if there are some. It is always known.
	UsesSpaces bool
	// Groups are the service engine groups assigned to the gateway.
	Groups []EngineGroup
}

// A UsedAddress is an address that VCD lists as used, for what, in VCD's words (PRIMARY_IP, SNAT, DNAT,
// Load_Balancer, …).
type UsedAddress struct {
	Address  netip.Addr
	Category string
}

// A Space is an IP Space.
type Space struct {
	ID, Name string
	// Ranges of its floating IPs.
	Ranges []Range
	// Free are some that could be allocated, in order.
	Free []netip.Addr
	// Full is set if the organization may have no more of its addresses.
	Full bool
}

// An EngineGroup is a service engine group assigned to the gateway.
type EngineGroup struct {
	Object
	// Deployed virtual services, and how many are allowed.
	Deployed, Max int
}

// An Object is what all objects have in common.
type Object struct {
	ID, Name, Description string
	State                 State
}

// A VirtualService is a virtual service of NSX Advanced Load Balancer.
type VirtualService struct {
	Object
	// VIPs are its addresses, one for each family at most.
	VIPs     []netip.Addr
	Protocol Protocol
	Port     int
	// More are further ports, which only virtual services of others have.
	More        []PortRange
	SSL         bool
	Application Application
	// Certificate is the reference to it; Name is its alias.
	Certificate Ref
	Pool        Ref
	EngineGroup Ref
	Transparent bool
	// Health in VCD's words (UP, DOWN, …).
	Health string
}

// A PortRange is a range of ports, both ends included.
type PortRange struct {
	Protocol Protocol
	From, To int
}

// maxUses is how many ports of a range are listed one by one; a longer range uses all ports.
const maxUses = 32

// Uses returns the addresses and ports of the virtual service, under a name and with the marker of its owner.
func (vs VirtualService) Uses(name string, m Marker) []Use {
	var uses []Use
	for _, a := range vs.VIPs {
		use := Use{Address: a, Protocol: vs.Protocol, Port: vs.Port, Kind: KindService, Name: name, Marker: m}
		if vs.Port != 0 {
			uses = append(uses, use)
		}
		for _, r := range vs.More {
			use.Protocol = r.Protocol
			use.Port = 0
			if r.To-r.From >= maxUses {
				uses = append(uses, use)
				continue
			}
			for use.Port = r.From; use.Port <= r.To; use.Port++ {
				uses = append(uses, use)
			}
		}
	}
	return uses
}

// A Pool is a pool of servers. Lists show its Object and Hints, the pool itself the rest.
type Pool struct {
	Object
	// Hints of what only the pool itself shows; nil if there are none.
	Hints *Hints

	// Full is set when what follows was read.
	Full     bool
	NodePort int
	// Group is the IP set whose addresses are the members, or Members are listed; the other one is empty.
	Group   Ref
	Members []netip.Addr
	// Monitors, none of type NONE.
	Monitors []Monitor
	// Sticky is persistence by client address.
	Sticky bool
	// Algorithm; a new pool without one gets ROUND_ROBIN.
	Algorithm string
}

// Hints are what lists show of the content of a pool: often enough to see that it was changed.
type Hints struct {
	// ByGroup is set if the members are those of a group.
	ByGroup bool
	// Members is how many there are; negative if that is not known.
	Members int
	// Monitored is set if the pool has monitors.
	Monitored bool
}

// A Set is an IP set; lists do not show its members.
type Set struct {
	Object
	// Generation of the node list from which it was last written ([Desired.Generation]); 0 if that is not known. A
	// set that was written from a higher one is left alone.
	Generation uint64
	// Full is set when the members were read.
	Full    bool
	Members []netip.Addr
}

// A Claim is a floating IP that the organization has allocated from an IP Space of the gateway: the owner's,
// unmarked ones, and those of others, whose values are not free.
type Claim struct {
	ID, Description string
	Space           Ref
	Value           netip.Addr
	// Used is set if VCD, or a user by hand, lists it as used; ours that are marked as used by hand are.
	Used bool
}

// A Rule is a NAT rule.
type Rule struct {
	Object
	External, Internal netip.Addr
	ExternalPort       int
	Profile            Ref
	// Other is set on rules of all types but DNAT: of those, only External matters.
	Other bool
}

// Uses returns the addresses and ports of the rule, with the marker of its owner. Protocol is that of its profile,
// if known.
func (r Rule) Uses(m Marker, p Protocol) []Use {
	use := Use{Address: r.External, Kind: KindRule, Name: r.Name, Marker: m}
	outside := use
	inside := use
	if inside.Address = r.Internal; r.Other {
		inside.Address = netip.Addr{}
	} else if outside.Port = r.ExternalPort; r.ExternalPort != 0 {
		outside.Protocol = p
	}
	return slices.DeleteFunc([]Use{outside, inside}, func(u Use) bool { return !u.Address.IsValid() })
}

// A Profile is an application port profile of the organization, which a NAT rule refers to.
type Profile struct {
	Object
	Protocol Protocol
	Port     int
}

// A CertificateItem is an item of the organization's certificate library; its name is the alias. Chain and Key, in
// PEM, are set only for one to be imported.
type CertificateItem struct {
	Object
	Chain, Key string
}

// A FirewallRule is a rule of the gateway's firewall for one address and protocol: it admits Sources or, without
// Sources, drops everything. Lists show its Object only.
type FirewallRule struct {
	Object
	Sources     []netip.Prefix
	Destination netip.Addr
	Protocol    Protocol
	Ports       []int
	// Disabled and Drops are observed: what a rule does that is desired follows from its sources.
	Disabled, Drops bool
}

// A Use is something of another owner on an address of the gateway.
type Use struct {
	Address netip.Addr
	// Protocol and Port; an empty Protocol stands for all, 0 for all ports.
	Protocol Protocol
	Port     int
	Kind     Kind
	Name     string
	// Reserved is set if nothing is on the address, which is only kept from load balancers that are not on it yet.
	Reserved bool
	// Marker of the object; the zero value if it belongs to another cluster or to none.
	Marker Marker
}

// A Ref refers to an object. In a step the ID may be empty: then Name is that of an object that exists or that an
// earlier step creates.
type Ref struct{ ID, Name string }

// isNamed reports whether an object is the one that a user names, by its name or its URN.
func isNamed(id, name, asked string) bool { return asked == name || asked == id }

// Capabilities are what the gateway, the version of the API and the rights of the user allow.
type Capabilities struct {
	// SharedVIP: several virtual services may have one address (VCD 10.4 and later).
	SharedVIP bool
	// MemberSets: the members of a pool may be an IP set.
	MemberSets bool
	// PreserveClientIP: virtual services may be transparent.
	PreserveClientIP bool
	// MovesSharedVIP: a virtual service that shares its address can be given another one; false once VCD has refused.
	MovesSharedVIP bool
	// IPv6: virtual services may have IPv6 addresses. OnlyIPv6: they may have no others.
	IPv6, OnlyIPv6 bool
	// Disabled: the edge gateway has no load balancer; true only if that is known.
	Disabled bool
	// Premium: the load balancer has the feature set PREMIUM, not STANDARD; false only if that is known.
	Premium bool
	// SourceRanges: rules of the firewall may be created and deleted one by one.
	SourceRanges bool
	// MaxMembers of a pool without an IP set; 0 has no limit.
	MaxMembers int
}
