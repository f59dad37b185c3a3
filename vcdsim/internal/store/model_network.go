// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Kinds of networks to outside.
const (
	BackingTier0   = "NSXT_TIER0"
	BackingVRF     = "NSXT_VRF_TIER0"
	BackingSegment = "IMPORTED_T_LOGICAL_SWITCH"
)

// An ExternalNetwork leads outside: edge gateways have uplinks to it and get their addresses from its subnets, or, when
// it uses IP Spaces, from those.
type ExternalNetwork struct {
	ID          string           `json:"id,omitzero"`
	Name        string           `json:"name,omitzero"`
	Description string           `json:"description,omitzero"`
	Backing     string           `json:"backing,omitzero"`     // BackingTier0 …; empty is BackingTier0
	BackingName string           `json:"backingName,omitzero"` // the router or segment in NSX; empty is the name in lower case
	Subnets     []ExternalSubnet `json:"subnets,omitzero"`
	UsesSpaces  bool             `json:"usesSpaces,omitzero"`
	DedicatedTo string           `json:"dedicatedTo,omitzero"` // id of the only organization that may use it
	Fields      map[string]any   `json:"fields,omitzero"`      // further fields of the JSON document
}

// An ExternalSubnet is a subnet of an external network.
type ExternalSubnet struct {
	Gateway   netip.Prefix `json:"gateway,omitzero"`
	Pool      []Range      `json:"pool,omitzero"`
	Disabled  bool         `json:"disabled,omitzero"`
	DNS1      string       `json:"dns1,omitzero"`
	DNS2      string       `json:"dns2,omitzero"`
	DNSSuffix string       `json:"dnsSuffix,omitzero"`
}

// An EdgeGateway connects networks of a VDC, or of the VDC group that Group names, to external networks.
type EdgeGateway struct {
	ID          string   `json:"id,omitzero"`
	Name        string   `json:"name,omitzero"`
	Description string   `json:"description,omitzero"`
	Group       string   `json:"group,omitzero"` // id of the VDC group it serves; empty: its VDC only
	Uplinks     []Uplink `json:"uplinks,omitzero"`
	// LoadBalancer is NSX ALB on this gateway, nil if it was never enabled.
	LoadBalancer *LoadBalancer  `json:"loadBalancer,omitzero"`
	Failed       bool           `json:"failed,omitzero"` // its creation failed
	Fields       map[string]any `json:"fields,omitzero"` // further fields of the JSON document
}

// An Uplink is a connection of an edge gateway to an external network.
type Uplink struct {
	// Network is the id of the external network; in a model given to New it may be the name.
	Network   string         `json:"network,omitzero"`
	Subnets   []UplinkSubnet `json:"subnets,omitzero"`
	Dedicated bool           `json:"dedicated,omitzero"`
}

// An UplinkSubnet is what an edge gateway has of a subnet of its external network.
type UplinkSubnet struct {
	Gateway   netip.Prefix `json:"gateway,omitzero"`
	Addresses []Range      `json:"addresses,omitzero"` // its own
	Primary   netip.Addr   `json:"primary,omitzero"`
}

// A LoadBalancer is NSX ALB on an edge gateway.
type LoadBalancer struct {
	Enabled bool `json:"enabled,omitzero"`
	// Groups are the service engine groups assigned to the gateway; used only in a model given to New.
	Groups []string       `json:"groups,omitzero"`
	Fields map[string]any `json:"fields,omitzero"` // further fields of the JSON document
}

// A ServiceEngineGroup is a group of load balancers that edge gateways can be given a share of.
type ServiceEngineGroup struct {
	Name       string `json:"name,omitzero"`
	Dedicated  bool   `json:"dedicated,omitzero"`  // to one gateway
	MaxService int    `json:"maxService,omitzero"` // how many virtual services it holds
}

// Types of IP Spaces.
const (
	SpacePublic  = "PUBLIC"
	SpaceShared  = "SHARED_SERVICES"
	SpacePrivate = "PRIVATE"
)

// An IPSpace holds addresses and prefixes that tenants allocate.
type IPSpace struct {
	ID          string         `json:"id,omitzero"`
	Name        string         `json:"name,omitzero"`
	Description string         `json:"description,omitzero"`
	Type        string         `json:"type,omitzero"`
	OrgID       string         `json:"orgID,omitzero"` // of a private one
	Ranges      []Range        `json:"ranges,omitzero"`
	RangeQuota  int            `json:"rangeQuota,omitzero"` // floating IPs each organization may have; -1 is unlimited
	Prefixes    []PrefixPool   `json:"prefixes,omitzero"`
	Internal    []netip.Prefix `json:"internal,omitzero"`
	External    netip.Prefix   `json:"external,omitzero"`
	Uplinks     []SpaceUplink  `json:"uplinks,omitzero"`
	Allocations []IPAllocation `json:"allocations,omitzero"`
	Fields      map[string]any `json:"fields,omitzero"` // further fields of the JSON document
}

// A PrefixPool is a run of equally long prefixes of an IP Space.
type PrefixPool struct {
	First netip.Prefix `json:"first,omitzero"`
	Count int          `json:"count,omitzero"`
	Quota int          `json:"quota,omitzero"` // prefixes each organization may have; -1 is unlimited
}

// A SpaceUplink makes an IP Space available to the gateways of an external network.
type SpaceUplink struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// Network is the id of the external network; in a model given to New it may be the name.
	Network string         `json:"network,omitzero"`
	Fields  map[string]any `json:"fields,omitzero"` // further fields of the JSON document
}

// Kinds of allocations and what they are used for.
const (
	FloatingIP = "FLOATING_IP"
	IPPrefix   = "IP_PREFIX"

	UsageFree   = "UNUSED"
	UsageUsed   = "USED"
	UsageManual = "USED_MANUAL"
)

// An IPAllocation is an address or prefix an organization has of an IP Space.
type IPAllocation struct {
	ID          string    `json:"id,omitzero"`
	Type        string    `json:"type,omitzero"` // FloatingIP, IPPrefix
	Value       string    `json:"value,omitzero"`
	OrgID       string    `json:"orgID,omitzero"`
	Manual      bool      `json:"manual,omitzero"` // marked as used by hand
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"created,omitzero"`
}

// A VDCGroup is a data center group: VDCs of an organization that share networks.
type VDCGroup struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// VDCs are the ids of the members; in a model given to New they may be names.
	VDCs     []string       `json:"vdcs,omitzero"`
	Firewall bool           `json:"firewall,omitzero"` // distributed
	Failed   bool           `json:"failed,omitzero"`
	Fields   map[string]any `json:"fields,omitzero"` // further fields of the JSON document
}

// A Certificate is an entry of an organization's certificate library.
type Certificate struct {
	Alias string `json:"alias,omitzero"`
	PEM   string `json:"pem,omitzero"`
	Key   string `json:"key,omitzero"` // private key, PEM
}

func (e *ExternalNetwork) clone() {
	e.Fields = maps.Clone(e.Fields)
	e.Subnets = slices.Clone(e.Subnets)
	for i := range e.Subnets {
		e.Subnets[i].Pool = slices.Clone(e.Subnets[i].Pool)
	}
}

func (g *EdgeGateway) clone() {
	g.Fields = maps.Clone(g.Fields)
	g.Uplinks = slices.Clone(g.Uplinks)
	for i := range g.Uplinks {
		u := &g.Uplinks[i]
		u.Subnets = slices.Clone(u.Subnets)
		for j := range u.Subnets {
			u.Subnets[j].Addresses = slices.Clone(u.Subnets[j].Addresses)
		}
	}
	if g.LoadBalancer != nil {
		lb := *g.LoadBalancer
		lb.Groups = slices.Clone(lb.Groups)
		lb.Fields = maps.Clone(lb.Fields)
		g.LoadBalancer = &lb
	}
}

func (s *IPSpace) clone() {
	s.Ranges = slices.Clone(s.Ranges)
	s.Prefixes = slices.Clone(s.Prefixes)
	s.Internal = slices.Clone(s.Internal)
	s.Uplinks = slices.Clone(s.Uplinks)
	s.Allocations = slices.Clone(s.Allocations)
	s.Fields = maps.Clone(s.Fields)
	for i := range s.Uplinks {
		s.Uplinks[i].Fields = maps.Clone(s.Uplinks[i].Fields)
	}
}

func (g *VDCGroup) clone() {
	g.VDCs = slices.Clone(g.VDCs)
	g.Fields = maps.Clone(g.Fields)
}
