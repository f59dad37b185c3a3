// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Kinds of objects on or beside an edge gateway. The names match those in the runtime defined entity, if it contains
// the kind.
const (
	// KindAddress is a floating IP allocated from an IP Space.
	KindAddress loadbalancer.Kind = "ip-allocation"
	// KindCertificate is an item of the organization's certificate library.
	KindCertificate loadbalancer.Kind = "certificate"
	// KindSet is an IP set with the addresses of the cluster's nodes in one family.
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
	// KindMonitor is a health monitor with its own settings. It belongs to a pool, whose steps write it.
	KindMonitor loadbalancer.Kind = "health-monitor"
	// KindHost is a VM or a gateway inside the organization. It only occurs in a [loadbalancer.Use].
	KindHost loadbalancer.Kind = "host"
)

// OnGateway reports whether objects of a kind belong to one gateway. Other objects belong to the organization: they are
// visible from every gateway, even if it does not use them.
func OnGateway(k loadbalancer.Kind) bool {
	return k != KindAddress && k != KindCertificate && k != KindProfile
}

// A State is the realization state of an object in VCD.
type State string

// States.
const (
	Realized State = "REALIZED"
	// Pending means that VCD is working on the object.
	Pending State = "PENDING"
	// Failed means that VCD could not realize the object (REALIZATION_FAILED).
	Failed State = "FAILED"
	// Broken means that the object is Failed although it was recently written again. It is not written for a while.
	Broken State = "BROKEN"
)

// An Object is the common part of all objects.
type Object struct {
	ID, Name, Description string
	State                 State
}

// A VirtualService is a virtual service of NSX Advanced Load Balancer.
type VirtualService struct {
	Object
	// VIPs are its addresses, at most one per family.
	VIPs     []netip.Addr
	Protocol loadbalancer.Protocol
	Port     int
	// More are further ports, which only virtual services of others have.
	More        []PortRange
	SSL         bool
	Application Application
	// Certificate is the reference to the certificate. Its name is the alias.
	Certificate Ref
	Pool        Ref
	EngineGroup Ref
	Transparent bool
	// Rules are the rules for HTTP requests and their responses. Lists do not show them: RulesRead is set on an observed
	// virtual service if they were read.
	Rules     HTTPRules
	RulesRead bool
	// Health in VCD's terms (UP, DOWN, …).
	Health string
}

// A PortRange is a range of ports. Both ends are included.
type PortRange struct {
	Protocol loadbalancer.Protocol
	From, To int
}

// useOf returns the use of an object. The caller sets its address and port.
func useOf(kind loadbalancer.Kind, name string, m Marker) loadbalancer.Use {
	return loadbalancer.Use{
		Kind:     kind,
		Name:     name,
		Owner:    m.Owner,
		Share:    m.Share,
		Internal: m.Via == ViaInside,
	}
}

// maxUses is the maximum number of ports of a range that are listed individually. A longer range counts as all ports.
const maxUses = 32

// Uses returns the addresses and ports of the virtual service. name and m are the name and the marker of the use.
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

// differs reports whether a virtual service deviates from the desired one. Whether it is enabled is up to users.
func (vs VirtualService) differs(have VirtualService) bool {
	switch {
	case have.State == Failed, vs.Description != have.Description:
		return true
	case vs.Protocol != have.Protocol, vs.Port != have.Port, vs.Application != have.Application, vs.SSL != have.SSL:
		return true
	case vs.Transparent != have.Transparent, vs.Certificate.Name != have.Certificate.Name:
		return true
	case have.RulesRead && vs.Rules != have.Rules:
		return true
	case vs.Pool.ID == "", vs.Pool.ID != have.Pool.ID:
		return true
	}
	return !slices.Equal(sorted(vs.VIPs), sorted(have.VIPs))
}

// A Pool is a server pool. Lists show its Object and Hints. The other fields require a read of the pool itself.
type Pool struct {
	Object
	// Hints are what a list shows of the content; nil if the pool was not listed.
	Hints *Hints

	// Full is set if the following fields were read.
	Full     bool
	NodePort int
	// Group is the IP set that contains the members. If it is zero, the pool lists its Members itself.
	Group   Ref
	Members []netip.Addr
	// Monitors never contains NONE.
	Monitors []Monitor
	// Check is the health monitor with its own settings that belongs to the pool. A desired pool has either a Check or
	// Monitors.
	Check PoolCheck
	// Sticky is persistence by client address.
	Sticky bool
	// Algorithm; if it is empty, a new pool gets ROUND_ROBIN.
	Algorithm string
}

// Hints are the properties of a pool's content that lists show. They often suffice to detect drift.
type Hints struct {
	// ByGroup is set if the members are those of a group.
	ByGroup bool
	// Members is the number of members; negative if it is unknown.
	Members int
	// Monitored is set if the pool has monitors.
	Monitored bool
}

// String returns the targets of the pool.
func (p Pool) String() string {
	if p.Group != (Ref{}) {
		return fmt.Sprintf("node port %d of IP set %s", p.NodePort, p.Group.Name)
	}
	return fmt.Sprintf("node port %d of %d members", p.NodePort, len(p.Members))
}

// hash returns a hash of all written properties that lists do not show.
func (p Pool) hash() string {
	hashed := []string{strconv.Itoa(p.NodePort), p.Group.Name, strconv.FormatBool(p.Sticky), p.Algorithm}
	for _, m := range p.Monitors {
		hashed = append(hashed, string(m))
	}
	hashed = append(hashed, words(p.Members)...)
	if p.Check != (PoolCheck{}) {
		hashed = append(hashed, p.Check.words()...)
	}
	return short(hashed...)
}

// differs reports whether a pool that was read in full deviates from the desired one.
func (p Pool) differs(have Pool) bool {
	if !have.Full {
		return false
	}
	if p.NodePort != have.NodePort || p.Sticky != have.Sticky || p.Algorithm != "" && p.Algorithm != have.Algorithm ||
		!p.sameMembers(have) || p.Check != have.Check {
		return true
	}
	return slices.ContainsFunc(p.Monitors, func(m Monitor) bool { return !slices.Contains(have.Monitors, m) })
}

// mayDiffer reports whether lists show that a pool which was not read in full deviates from the desired one. The number
// of members in a group is checked with the group.
func (p Pool) mayDiffer(have Pool) bool {
	h := have.Hints
	if have.Full || h == nil || have.State != Realized {
		return false
	}
	return h.ByGroup != (p.Group != Ref{}) || !h.Monitored && p.IsMonitored() ||
		!h.ByGroup && h.Members >= 0 && h.Members != len(p.Members)
}

// IsMonitored reports whether the pool has a monitor.
func (p Pool) IsMonitored() bool { return len(p.Monitors) > 0 || p.Check != (PoolCheck{}) }

// sameMembers reports whether a pool that was read in full has the desired members.
func (p Pool) sameMembers(have Pool) bool {
	if p.Group != (Ref{}) {
		return have.Group.Name == p.Group.Name && (p.Group.ID == "" || have.Group.ID == p.Group.ID)
	}
	return have.Group == Ref{} && slices.Equal(sorted(have.Members), p.Members)
}

// A Set is an IP set. Lists do not show its members.
type Set struct {
	Object
	// Generation of the node list from which the set was last written ([Desired.Generation]); 0 if it is unknown. A set
	// that was written from a higher generation is not changed.
	Generation uint64
	// Full is set if the members were read.
	Full    bool
	Members []netip.Addr
}

// A Claim is a floating IP that the organization has allocated from an IP Space of the gateway. It may belong to the
// owner, be unmarked, or belong to others; the addresses of the latter are not free.
type Claim struct {
	ID, Description string
	Space           Ref
	Value           netip.Addr
	// Used is set if VCD lists it as used, or a user marked it as used. Claims of this program are marked as used
	// manually.
	Used bool
}

// A Rule is a NAT rule.
type Rule struct {
	Object
	External, Internal netip.Addr
	ExternalPort       int
	Profile            Ref
	// Other is set on rules of all types except DNAT. Of those, only External is relevant.
	Other bool
}

// Uses returns the addresses and ports of the rule. m is its marker, p the protocol of its profile, or empty if
// unknown.
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

// differs reports whether a rule deviates from the desired one. The profile of a desired rule has no ID before it is
// created.
func (r Rule) differs(have Rule) bool {
	return r.Profile.ID == "" || r.Profile.ID != have.Profile.ID || have.State == Failed ||
		r.Description != have.Description ||
		r.External != have.External || r.Internal != have.Internal || r.ExternalPort != have.ExternalPort
}

// A Profile is an application port profile of the organization that a NAT rule refers to.
type Profile struct {
	Object
	Protocol loadbalancer.Protocol
	Port     int
}

// differs reports whether a profile deviates from the desired one.
func (p Profile) differs(have Profile) bool {
	return have.State == Failed || p.Description != have.Description || p.Protocol != have.Protocol || p.Port != have.Port
}

// A CertificateItem is an item of the organization's certificate library. Its name is the alias. Chain and Key, in PEM,
// are set only for an item to import.
type CertificateItem struct {
	Object
	Chain, Key string
}

// A FirewallRule is a rule of the gateway's firewall for one address and protocol. It admits Sources or, without
// Sources, drops all traffic. Lists show only its Object.
type FirewallRule struct {
	Object
	Sources     []netip.Prefix
	Destination netip.Addr
	Protocol    loadbalancer.Protocol
	Ports       []int
	// Disabled and Drops are observed. The action of a desired rule follows from its sources.
	Disabled, Drops bool
}

// A Ref refers to an object. In a step, the ID may be empty. Then Name is that of an existing object, or of one that an
// earlier step creates.
type Ref struct{ ID, Name string }

// isNamed reports whether an object has the name or URN that a user requested.
func isNamed(id, name, asked string) bool { return asked == name || asked == id }

// words returns the settings for a hash.
func (c PoolCheck) words() []string {
	return []string{
		string(c.Type),
		c.Interval.String(),
		c.Timeout.String(),
		strconv.Itoa(c.Successes),
		strconv.Itoa(c.Failures),
		c.Path,
		c.Codes,
	}
}
