// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Kinds of objects on or beside an edge gateway. The names are those the runtime defined entity uses, where it knows
// the kind.
const (
	// KindAddress is a floating IP allocated from an IP Space.
	KindAddress loadbalancer.Kind = "ip-allocation"
	// KindCertificate is an item of the organization's certificate library.
	KindCertificate loadbalancer.Kind = "certificate"
	// KindSet is an IP set: the addresses of the cluster's nodes, of one family.
	KindSet loadbalancer.Kind = "ip-set"
	// KindPool is a load balancer pool.
	KindPool loadbalancer.Kind = "lb-pool"
	// KindService is a virtual service.
	KindService loadbalancer.Kind = "virtual-service"
	// KindProfile is an application port profile, which a NAT rule refers to.
	KindProfile loadbalancer.Kind = "app-port-profile"
	// KindRule is a DNAT rule.
	KindRule loadbalancer.Kind = "dnat-rule"
	// KindFirewall is a rule of the edge gateway's firewall.
	KindFirewall loadbalancer.Kind = "firewall-rule"
	// KindHost is a VM or a gateway inside the organization, in a [loadbalancer.Use] only.
	KindHost loadbalancer.Kind = "host"
)

// OnGateway reports whether objects of a kind are on one gateway. The others are the organization's: they are seen
// from every gateway, also where they are not used.
func OnGateway(k loadbalancer.Kind) bool {
	return k != KindAddress && k != KindCertificate && k != KindProfile
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
	Protocol loadbalancer.Protocol
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
	Protocol loadbalancer.Protocol
	From, To int
}

// useOf returns the use of an object, on an address and port that are still to be set.
func useOf(kind loadbalancer.Kind, name string, m Marker) loadbalancer.Use {
	return loadbalancer.Use{
		Kind:     kind,
		Name:     name,
		Owner:    m.Owner,
		Share:    m.Share,
		Internal: m.Via == ViaInside,
	}
}

// maxUses is how many ports of a range are listed one by one; a longer range uses all ports.
const maxUses = 32

// Uses returns the addresses and ports of the virtual service, under a name and with the marker of its owner.
func (vs VirtualService) Uses(name string, m Marker) []loadbalancer.Use {
	var uses []loadbalancer.Use
	for _, a := range vs.VIPs {
		use := useOf(KindService, name, m)
		use.Address = a
		use.Protocol = vs.Protocol
		use.Port = vs.Port
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

// differs reports whether a virtual service is not as wanted. Whether it is enabled is left to users.
func (vs VirtualService) differs(have VirtualService) bool {
	switch {
	case have.State == Failed, vs.Description != have.Description:
		return true
	case vs.Protocol != have.Protocol, vs.Port != have.Port, vs.Application != have.Application, vs.SSL != have.SSL:
		return true
	case vs.Transparent != have.Transparent, vs.Certificate.Name != have.Certificate.Name:
		return true
	case vs.Pool.ID == "", vs.Pool.ID != have.Pool.ID:
		return true
	}
	return !slices.Equal(sorted(vs.VIPs), sorted(have.VIPs))
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

// String returns where the pool sends to.
func (p Pool) String() string {
	if p.Group != (Ref{}) {
		return fmt.Sprintf("node port %d of IP set %s", p.NodePort, p.Group.Name)
	}
	return fmt.Sprintf("node port %d of %d members", p.NodePort, len(p.Members))
}

// hash is that of everything that an update writes and lists do not show.
func (p Pool) hash() string {
	hashed := []string{strconv.Itoa(p.NodePort), p.Group.Name, strconv.FormatBool(p.Sticky), p.Algorithm}
	for _, m := range p.Monitors {
		hashed = append(hashed, string(m))
	}
	hashed = append(hashed, words(p.Members)...)
	return short(hashed...)
}

// differs reports whether a pool that was read in full is not as wanted.
func (p Pool) differs(have Pool) bool {
	if !have.Full {
		return false
	}
	if p.NodePort != have.NodePort || p.Sticky != have.Sticky || p.Algorithm != "" && p.Algorithm != have.Algorithm ||
		!p.sameMembers(have) {
		return true
	}
	return slices.ContainsFunc(p.Monitors, func(m Monitor) bool { return !slices.Contains(have.Monitors, m) })
}

// mayDiffer reports whether a pool that was not read in full cannot be as wanted, as far as lists show. How many
// members a group has is the group's affair.
func (p Pool) mayDiffer(have Pool) bool {
	h := have.Hints
	if have.Full || h == nil || have.State != Realized {
		return false
	}
	return h.ByGroup != (p.Group != Ref{}) || !h.Monitored && len(p.Monitors) > 0 ||
		!h.ByGroup && h.Members >= 0 && h.Members != len(p.Members)
}

// sameMembers reports whether a pool that was read in full has the members that are wanted.
func (p Pool) sameMembers(have Pool) bool {
	if p.Group != (Ref{}) {
		return have.Group.Name == p.Group.Name && (p.Group.ID == "" || have.Group.ID == p.Group.ID)
	}
	return have.Group == Ref{} && slices.Equal(sorted(have.Members), p.Members)
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
func (r Rule) Uses(m Marker, p loadbalancer.Protocol) []loadbalancer.Use {
	outside := useOf(KindRule, r.Name, m)
	outside.Address = r.External
	uses := []loadbalancer.Use{outside}
	if !r.Other {
		inside := outside
		inside.Address = r.Internal
		if r.ExternalPort != 0 {
			uses[0].Port = r.ExternalPort
			uses[0].Protocol = p
		}
		uses = append(uses, inside)
	}
	return slices.DeleteFunc(uses, func(u loadbalancer.Use) bool { return !u.Address.IsValid() })
}

// differs reports whether a rule is not as wanted. The profile of a rule that is wanted has no ID before it is created.
func (r Rule) differs(have Rule) bool {
	return r.Profile.ID == "" || r.Profile.ID != have.Profile.ID || have.State == Failed ||
		r.Description != have.Description ||
		r.External != have.External || r.Internal != have.Internal || r.ExternalPort != have.ExternalPort
}

// A Profile is an application port profile of the organization, which a NAT rule refers to.
type Profile struct {
	Object
	Protocol loadbalancer.Protocol
	Port     int
}

// differs reports whether a profile is not as wanted.
func (p Profile) differs(have Profile) bool {
	return have.State == Failed || p.Description != have.Description || p.Protocol != have.Protocol || p.Port != have.Port
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
	Protocol    loadbalancer.Protocol
	Ports       []int
	// Disabled and Drops are observed: what a rule does that is desired follows from its sources.
	Disabled, Drops bool
}

// A Ref refers to an object. In a step the ID may be empty: then Name is that of an object that exists or that an
// earlier step creates.
type Ref struct{ ID, Name string }

// isNamed reports whether an object is the one that a user names, by its name or its URN.
func isNamed(id, name, asked string) bool { return asked == name || asked == id }
