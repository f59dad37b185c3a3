// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Kinds of external networks.
const (
	BackingTier0   = "NSXT_TIER0"
	BackingVRF     = "NSXT_VRF_TIER0"
	BackingSegment = "IMPORTED_T_LOGICAL_SWITCH"
)

// An ExternalNetwork leads to the outside. Edge gateways have uplinks to it. They get their addresses from its subnets,
// or from its IP Spaces if it uses them.
type ExternalNetwork struct {
	ID          string           `json:"id,omitzero"`
	Name        string           `json:"name,omitzero"`
	Description string           `json:"description,omitzero"`
	Backing     string           `json:"backing,omitzero"`     // for example BackingVRF; empty means BackingTier0
	BackingName string           `json:"backingName,omitzero"` // router or segment in NSX; empty means the name in lower case
	Subnets     []ExternalSubnet `json:"subnets,omitzero"`
	UsesSpaces  bool             `json:"usesSpaces,omitzero"`
	DedicatedTo string           `json:"dedicatedTo,omitzero"` // ID of the only organization that may use it
	Fields      map[string]any   `json:"fields,omitzero"`      // additional fields of the JSON document
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
	Group       string   `json:"group,omitzero"` // ID of the VDC group that it serves; empty if only its VDC uses it
	Uplinks     []Uplink `json:"uplinks,omitzero"`
	// LoadBalancer is NSX ALB on this gateway. It is nil if it was never enabled.
	LoadBalancer *LoadBalancer  `json:"loadBalancer,omitzero"`
	Failed       bool           `json:"failed,omitzero"` // its creation failed
	Fields       map[string]any `json:"fields,omitzero"` // additional fields of the JSON document
}

// An Uplink is a connection of an edge gateway to an external network.
type Uplink struct {
	// Network is the ID of the external network. In a model that is passed to New it may be the name.
	Network   string         `json:"network,omitzero"`
	Subnets   []UplinkSubnet `json:"subnets,omitzero"`
	Dedicated bool           `json:"dedicated,omitzero"`
}

// An UplinkSubnet is an edge gateway's share of a subnet of its external network.
type UplinkSubnet struct {
	Gateway   netip.Prefix `json:"gateway,omitzero"`
	Addresses []Range      `json:"addresses,omitzero"` // allocated to the gateway
	Primary   netip.Addr   `json:"primary,omitzero"`
}

// A LoadBalancer is NSX ALB on an edge gateway.
type LoadBalancer struct {
	Enabled bool `json:"enabled,omitzero"`
	// Groups are the service engine groups that are assigned to the gateway. They are used only in a model that is
	// passed to New.
	Groups []string       `json:"groups,omitzero"`
	Fields map[string]any `json:"fields,omitzero"` // additional fields of the JSON document
}

// A ServiceEngineGroup is a group of load balancer appliances. Edge gateways can be assigned a share of it.
type ServiceEngineGroup struct {
	Name       string `json:"name,omitzero"`
	Dedicated  bool   `json:"dedicated,omitzero"`  // to one gateway
	MaxService int    `json:"maxService,omitzero"` // maximum number of virtual services
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
	OrgID       string         `json:"orgID,omitzero"` // owner of a private IP Space
	Ranges      []Range        `json:"ranges,omitzero"`
	RangeQuota  int            `json:"rangeQuota,omitzero"` // floating IPs per organization; -1 means unlimited
	Prefixes    []PrefixPool   `json:"prefixes,omitzero"`
	Internal    []netip.Prefix `json:"internal,omitzero"`
	External    netip.Prefix   `json:"external,omitzero"`
	Uplinks     []SpaceUplink  `json:"uplinks,omitzero"`
	Allocations []IPAllocation `json:"allocations,omitzero"`
	Fields      map[string]any `json:"fields,omitzero"` // additional fields of the JSON document
}

// A PrefixPool is a run of equally long prefixes of an IP Space.
type PrefixPool struct {
	First netip.Prefix `json:"first,omitzero"`
	Count int          `json:"count,omitzero"`
	Quota int          `json:"quota,omitzero"` // prefixes per organization; -1 means unlimited
}

// A SpaceUplink makes an IP Space available to the gateways of an external network.
type SpaceUplink struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// Network is the ID of the external network. In a model that is passed to New it may be the name.
	Network string         `json:"network,omitzero"`
	Fields  map[string]any `json:"fields,omitzero"` // additional fields of the JSON document
}

// Kinds of allocations and their usage.
const (
	FloatingIP = "FLOATING_IP"
	IPPrefix   = "IP_PREFIX"

	UsageFree   = "UNUSED"
	UsageUsed   = "USED"
	UsageManual = "USED_MANUAL"
)

// An IPAllocation is an address or prefix of an IP Space that is allocated to an organization.
type IPAllocation struct {
	ID          string    `json:"id,omitzero"`
	Type        string    `json:"type,omitzero"` // FloatingIP, IPPrefix
	Value       string    `json:"value,omitzero"`
	OrgID       string    `json:"orgID,omitzero"`
	Manual      bool      `json:"manual,omitzero"` // marked as used manually
	Description string    `json:"description,omitzero"`
	Created     time.Time `json:"created,omitzero"`
}

// A VDCGroup is a data center group: VDCs of an organization that share networks.
type VDCGroup struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// VDCs are the IDs of the members. In a model that is passed to New they may be names.
	VDCs     []string       `json:"vdcs,omitzero"`
	Firewall bool           `json:"firewall,omitzero"` // distributed firewall
	Failed   bool           `json:"failed,omitzero"`
	Fields   map[string]any `json:"fields,omitzero"` // additional fields of the JSON document
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
