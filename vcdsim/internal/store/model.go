// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// A Model is what exists before the first request. Empty IDs are filled from the seed, so that the same model and seed
// give the same ids. IDs are bare UUIDs.
type Model struct {
	Orgs     []Org
	Policies []ComputePolicy
	// What the provider has of networks.
	ExternalNetworks    []ExternalNetwork
	IPSpaces            []IPSpace
	ServiceEngineGroups []ServiceEngineGroup
}

// An Org is an organization.
type Org struct {
	ID          string
	Name        string
	FullName    string
	Description string
	Disabled    bool
	Settings    OrgSettings
	Users       []User
	VDCs        []VDC
	Catalogs    []Catalog
	VDCGroups   []VDCGroup
	// Certificates are put into the library when the model begins.
	Certificates []Certificate
	// Roles are further roles than VCD's own, made when the model begins.
	Roles []Role
	// Bundles are the rights bundles that the provider published to the organization beside the default one.
	Bundles []RightsBundle
	// RuntimeLease and StorageLease are the defaults and the maximum of new vApps; 0 never expires.
	RuntimeLease time.Duration
	StorageLease time.Duration
	// Limits of operations at a time.
	Limits OperationLimits
}

// A User can log in to its Org.
type User struct {
	ID        string
	Name      string
	Password  string
	FullName  string
	Role      string
	Disabled  bool
	Details   UserDetails
	APITokens []string
}

// A Role is what its users may do. Reading takes no right, except what belongs to edge gateways, certificates and IP
// Spaces; vApps of others must be shared.
type Role struct {
	Name        string
	Description string
	Rights      []string // as VCD's API names them; those the simulator does not know are only kept
}

// A RightsBundle are rights that an organization may give to its roles.
type RightsBundle struct {
	Name        string
	Description string
	Rights      []string
}

// A VDC is an organization virtual data center.
type VDC struct {
	ID              string
	Name            string
	Description     string
	StorageProfiles []StorageProfile
	Networks        []Network
	EdgeGateways    []EdgeGateway
	// Policies are the names of the compute policies published to this VDC; the first sizing policy is the default.
	Policies []string
	VMQuota  int // 0 is unlimited
	NICQuota int // 0 is unlimited; it is kept, and limits nothing
	// DefaultPolicy is the id of the sizing policy of VMs that ask for none, empty: the first.
	DefaultPolicy string
	// DiscoversVMs: VMs that vCenter has and VCD does not are adopted. It is kept, and adopts nothing.
	DiscoversVMs bool
	// Hosts is how many hosts it has, of which mandatory anti-affinity rules give each of their VMs one; 0 is enough.
	Hosts int
	// AllocationModel is how the VDC gets its CPU and memory: Flex, AllocationVApp, AllocationPool, ReservationPool; ""
	// is Flex. It is shown, and changes nothing else.
	AllocationModel string
	// FullClones: new VMs are full copies of their templates, not linked clones: there is no fast provisioning.
	FullClones bool
	// Disabled: nothing new is made in the VDC, and nothing started.
	Disabled bool
	Compute  Compute
	// Fleet are the VMs that exist from the beginning.
	Fleet Fleet
}

// A StorageProfile is a storage policy of a VDC.
type StorageProfile struct {
	ID       string
	Name     string
	Default  bool
	Disabled bool
	LimitMiB int64
	IOPS     IOPS
}

// IOPS are the limits of a storage profile's operations per second. They are kept, and limit nothing.
type IOPS struct {
	Enabled     bool
	DiskMax     int64
	DiskDefault int64
	PerGB       int64
	Limit       int64
}

// NetworkType is how a network is connected.
type NetworkType string

// Network types.
const (
	Routed   NetworkType = "NAT_ROUTED"
	Isolated NetworkType = "ISOLATED"
	Opaque   NetworkType = "OPAQUE" // an imported segment
)

// A Network is an org VDC network.
type Network struct {
	ID          string
	Name        string
	Description string
	Type        NetworkType
	Group       string // id of the VDC group that shares it; empty: its VDC only
	// Edge is the id of the edge gateway of a routed network; in a model given to New it may be the name, and empty is
	// the VDC's first.
	Edge string
	// Gateway is the gateway's address with the length of the subnet: 192.168.100.1/24.
	Gateway    netip.Prefix
	DNS        []netip.Addr
	DNSSuffix  string
	StaticPool []Range
	DHCPPool   []Range
	// Second is the IPv6 subnet of a network with two.
	Second *SecondSubnet
	DHCP   *NetworkDHCP // how it hands out DHCPPool; nil is the gateway's service with defaults
	Failed bool         // its creation failed
	Fields map[string]any
}

// A SecondSubnet is the second subnet of a network.
type SecondSubnet struct {
	Gateway    netip.Prefix
	StaticPool []Range
	DNS        []netip.Addr
	DNSSuffix  string
}

// A NetworkDHCP are the settings of a network's DHCP service.
type NetworkDHCP struct {
	Disabled bool
	Mode     string // EDGE, NETWORK, RELAY
	Address  string // of the server, in mode NETWORK
	Lease    int    // seconds
	DNS      []string
}

// A Range is a range of addresses, both ends included.
type Range struct{ From, To netip.Addr }

// Contains reports whether a is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// A ComputePolicy is a VM sizing or placement policy.
type ComputePolicy struct {
	ID          string
	Name        string
	Description string
	Placement   bool // a placement policy; otherwise a sizing policy
	CPUs        int64
	MemoryMiB   int64
	// Fields are further fields of the JSON document; they change nothing in the simulator.
	Fields map[string]any
}

// A Catalog holds templates.
type Catalog struct {
	ID          string
	Name        string
	Description string
	Templates   []Template
	Media       []Media
	Created     time.Time // the zero value is when the model began
	// StorageProfiles are the ids of those it keeps its items on; none is any.
	StorageProfiles []string
	// SharedWith are the names of other organizations that may read it and use its templates.
	SharedWith []string
}

// A Template is a vApp template with its catalog item.
type Template struct {
	ID          string
	ItemID      string
	Name        string
	Description string
	// VDC is the name of the VDC that stores it; empty is the first.
	VDC string
	// Status is VCD's number; 0 means 8, resolved and powered off.
	Status            int
	VMs               []TemplateVM
	KubernetesVersion string
	GoldMaster        bool
	Upload            string // id of the transfer it came by
	// Lease is how long it is stored; 0 is for ever. It is kept, and nothing expires.
	Lease time.Duration
}

// A TemplateVM is a VM inside a template.
type TemplateVM struct {
	ID              string
	Name            string
	OS              string
	CPUs            int64
	MemoryMiB       int64
	DisksMiB        []int64
	NICs            int
	HardwareVersion string // vmx-19 …; empty is the newest
	// Properties are those of its product section.
	Properties map[string]string
	// ExtraConfig is the extra configuration that its VMs start with, such as that of the VM it was captured from.
	ExtraConfig map[string]string
}

// Clone copies a model deeply.
func (m Model) Clone() Model {
	m.Policies = slices.Clone(m.Policies)
	m.ServiceEngineGroups = slices.Clone(m.ServiceEngineGroups)
	m.ExternalNetworks = slices.Clone(m.ExternalNetworks)
	m.IPSpaces = slices.Clone(m.IPSpaces)
	for i := range m.ExternalNetworks {
		m.ExternalNetworks[i].clone()
	}
	for i := range m.IPSpaces {
		m.IPSpaces[i].clone()
	}
	m.Orgs = slices.Clone(m.Orgs)
	for i := range m.Orgs {
		o := &m.Orgs[i]
		o.Users = slices.Clone(o.Users)
		o.VDCs = slices.Clone(o.VDCs)
		o.Catalogs = slices.Clone(o.Catalogs)
		for j := range o.Users {
			o.Users[j].APITokens = slices.Clone(o.Users[j].APITokens)
		}
		for j := range o.VDCs {
			o.VDCs[j].clone()
		}
		for j := range o.Catalogs {
			o.Catalogs[j].clone()
		}
		o.VDCGroups = slices.Clone(o.VDCGroups)
		o.Certificates = slices.Clone(o.Certificates)
		o.Roles = slices.Clone(o.Roles)
		o.Bundles = slices.Clone(o.Bundles)
		for j := range o.VDCGroups {
			o.VDCGroups[j].clone()
		}
	}
	return m
}

func (v *VDC) clone() {
	v.StorageProfiles = slices.Clone(v.StorageProfiles)
	v.Policies = slices.Clone(v.Policies)
	v.Networks = slices.Clone(v.Networks)
	for i := range v.Networks {
		n := &v.Networks[i]
		n.clone()
	}
	v.EdgeGateways = slices.Clone(v.EdgeGateways)
	for i := range v.EdgeGateways {
		v.EdgeGateways[i].clone()
	}
}

func (n *Network) clone() {
	n.DNS = slices.Clone(n.DNS)
	n.StaticPool = slices.Clone(n.StaticPool)
	n.DHCPPool = slices.Clone(n.DHCPPool)
	n.Fields = maps.Clone(n.Fields)
	if n.Second != nil {
		second := *n.Second
		second.StaticPool = slices.Clone(second.StaticPool)
		second.DNS = slices.Clone(second.DNS)
		n.Second = &second
	}
	if n.DHCP != nil {
		dhcp := *n.DHCP
		dhcp.DNS = slices.Clone(dhcp.DNS)
		n.DHCP = &dhcp
	}
}

func (c *Catalog) clone() {
	c.Templates = slices.Clone(c.Templates)
	c.StorageProfiles = slices.Clone(c.StorageProfiles)
	c.Media = slices.Clone(c.Media)
	for i := range c.Templates {
		t := &c.Templates[i]
		t.VMs = slices.Clone(t.VMs)
		for j := range t.VMs {
			t.VMs[j].DisksMiB = slices.Clone(t.VMs[j].DisksMiB)
		}
	}
}
