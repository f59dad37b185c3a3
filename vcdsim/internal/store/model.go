// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// A Model describes the objects that exist before the first request. Empty IDs are filled from the seed, so the same
// model and seed give the same IDs. IDs are bare UUIDs.
type Model struct {
	Orgs     []Org           `json:"orgs,omitzero"`
	Policies []ComputePolicy `json:"policies,omitzero"`
	// Network objects of the provider.
	ExternalNetworks    []ExternalNetwork    `json:"externalNetworks,omitzero"`
	IPSpaces            []IPSpace            `json:"ipSpaces,omitzero"`
	ServiceEngineGroups []ServiceEngineGroup `json:"serviceEngineGroups,omitzero"`
}

// An Org is an organization.
type Org struct {
	ID          string      `json:"id,omitzero"`
	Name        string      `json:"name,omitzero"`
	FullName    string      `json:"fullName,omitzero"`
	Description string      `json:"description,omitzero"`
	Disabled    bool        `json:"disabled,omitzero"`
	Settings    OrgSettings `json:"settings,omitzero"`
	Users       []User      `json:"users,omitzero"`
	VDCs        []VDC       `json:"vdcs,omitzero"`
	Catalogs    []Catalog   `json:"catalogs,omitzero"`
	VDCGroups   []VDCGroup  `json:"vdcGroups,omitzero"`
	// Certificates are the initial certificates of the library.
	Certificates []Certificate `json:"certificates,omitzero"`
	// Roles are initial roles in addition to VCD's built-in ones.
	Roles []Role `json:"roles,omitzero"`
	// Bundles are the rights bundles that the provider published to the organization, in addition to the default one.
	Bundles []RightsBundle `json:"bundles,omitzero"`
	// RuntimeLease and StorageLease are the default and maximum leases of new vApps; 0 never expires.
	RuntimeLease Duration `json:"runtimeLease,omitzero"`
	StorageLease Duration `json:"storageLease,omitzero"`
	// Limits limit concurrent operations.
	Limits OperationLimits `json:"limits,omitzero"`
}

// A User can log in to its Org.
type User struct {
	ID        string      `json:"id,omitzero"`
	Name      string      `json:"name,omitzero"`
	Password  string      `json:"password,omitzero"`
	FullName  string      `json:"fullName,omitzero"`
	Role      string      `json:"role,omitzero"`
	Disabled  bool        `json:"disabled,omitzero"`
	Details   UserDetails `json:"details,omitzero"`
	APITokens []string    `json:"apiTokens,omitzero"`
}

// A Role is a set of rights for users. Reading requires no right, except for edge gateways, certificates and IP Spaces.
// Users see vApps of other users only if these are shared with them.
type Role struct {
	Name        string   `json:"name,omitzero"`
	Description string   `json:"description,omitzero"`
	Rights      []string `json:"rights,omitzero"` // as named in VCD's API; unknown rights are only stored
}

// A RightsBundle is a set of rights that an organization may grant to its roles.
type RightsBundle struct {
	Name        string   `json:"name,omitzero"`
	Description string   `json:"description,omitzero"`
	Rights      []string `json:"rights,omitzero"`
}

// A VDC is an organization virtual data center.
type VDC struct {
	ID              string           `json:"id,omitzero"`
	Name            string           `json:"name,omitzero"`
	Description     string           `json:"description,omitzero"`
	StorageProfiles []StorageProfile `json:"storageProfiles,omitzero"`
	Networks        []Network        `json:"networks,omitzero"`
	EdgeGateways    []EdgeGateway    `json:"edgeGateways,omitzero"`
	// Policies are the names of the compute policies of this VDC. The first sizing policy is the default.
	Policies []string `json:"policies,omitzero"`
	VMQuota  int      `json:"vmQuota,omitzero"`  // 0 means unlimited
	NICQuota int      `json:"nicQuota,omitzero"` // 0 means unlimited; stored without effect
	// DefaultPolicy is the ID of the sizing policy of VMs that do not select one. If it is empty, it is the first one.
	DefaultPolicy string `json:"defaultPolicy,omitzero"`
	// DiscoversVMs adopts VMs that exist only in vCenter. It is stored without effect.
	DiscoversVMs bool `json:"discoversVMs,omitzero"`
	// Hosts is the number of hosts. Mandatory anti-affinity rules place their VMs on separate hosts. 0 means enough.
	Hosts int `json:"hosts,omitzero"`
	// AllocationModel is the way the VDC gets its CPU and memory: Flex, AllocationVApp, AllocationPool,
	// ReservationPool; "" means Flex. It is returned, but has no other effect.
	AllocationModel string `json:"allocationModel,omitzero"`
	// FullClones disables fast provisioning: new VMs are full copies of their templates, not linked clones.
	FullClones bool `json:"fullClones,omitzero"`
	// Disabled means that nothing can be created or started in the VDC.
	Disabled bool    `json:"disabled,omitzero"`
	Compute  Compute `json:"compute,omitzero"`
	// Fleet describes additional VMs that exist from the start.
	Fleet Fleet `json:"fleet,omitzero"`
}

// A StorageProfile is a storage policy of a VDC.
type StorageProfile struct {
	ID       string `json:"id,omitzero"`
	Name     string `json:"name,omitzero"`
	Default  bool   `json:"default,omitzero"`
	Disabled bool   `json:"disabled,omitzero"`
	LimitMiB int64  `json:"limitMiB,omitzero"`
	IOPS     IOPS   `json:"iops,omitzero"`
}

// IOPS limits the I/O operations per second of a storage profile, for the disks of VMs.
type IOPS struct {
	// Enabled means that each disk has its own IOPS, within the limits.
	Enabled bool `json:"enabled,omitzero"`
	// DiskMax is the maximum of a disk; 0 means no maximum.
	DiskMax int64 `json:"diskMax,omitzero"`
	// DiskDefault is the value of a disk that requests none.
	DiskDefault int64 `json:"diskDefault,omitzero"`
	// PerGB is the maximum per GB of the size of a disk; 0 means no maximum.
	PerGB int64 `json:"perGB,omitzero"`
	// Limit is the maximum total of all disks; 0 means no maximum.
	Limit int64 `json:"limit,omitzero"`
}

const mebibytesPerGB = 1024

// Limits reports whether the IOPS of a disk have a maximum.
func (i IOPS) Limits() bool { return i.Enabled && (i.DiskMax > 0 || i.PerGB > 0) }

// MaxOf returns the maximum IOPS of a disk of the given size. It is valid only if Limits returns true.
func (i IOPS) MaxOf(sizeMiB int64) int64 {
	ofSize := i.PerGB * sizeMiB / mebibytesPerGB
	switch {
	case i.PerGB == 0:
		return i.DiskMax
	case i.DiskMax == 0:
		return ofSize
	}
	return min(i.DiskMax, ofSize)
}

// DefaultOf returns the IOPS of a disk of the given size that requests none.
func (i IOPS) DefaultOf(sizeMiB int64) int64 {
	switch {
	case !i.Enabled:
		return 0
	case i.PerGB > 0:
		return min(i.DiskDefault, i.PerGB*sizeMiB/mebibytesPerGB)
	}
	return i.DiskDefault
}

// A NetworkType is the way a network is connected.
type NetworkType string

// Network types.
const (
	Routed   NetworkType = "NAT_ROUTED"
	Isolated NetworkType = "ISOLATED"
	Opaque   NetworkType = "OPAQUE" // an imported segment
)

// A Network is an org VDC network.
type Network struct {
	ID          string      `json:"id,omitzero"`
	Name        string      `json:"name,omitzero"`
	Description string      `json:"description,omitzero"`
	Type        NetworkType `json:"type,omitzero"`
	Group       string      `json:"group,omitzero"` // ID of the VDC group that shares it; empty if only its VDC uses it
	// Edge is the ID of the edge gateway of a routed network. In a model that is passed to New it may be the name, and
	// empty means the first gateway of the VDC.
	Edge string `json:"edge,omitzero"`
	// Gateway is the address of the gateway with the prefix length: 192.168.100.1/24.
	Gateway    netip.Prefix `json:"gateway,omitzero"`
	DNS        []netip.Addr `json:"dns,omitzero"`
	DNSSuffix  string       `json:"dnsSuffix,omitzero"`
	StaticPool []Range      `json:"staticPool,omitzero"`
	DHCPPool   []Range      `json:"dhcpPool,omitzero"`
	// Second is the IPv6 subnet of a dual-stack network.
	Second *SecondSubnet  `json:"second,omitzero"`
	DHCP   *NetworkDHCP   `json:"dhcp,omitzero"`   // serves DHCPPool; nil means the gateway's service with defaults
	Failed bool           `json:"failed,omitzero"` // its creation failed
	Fields map[string]any `json:"fields,omitzero"`
}

// A SecondSubnet is the second subnet of a network.
type SecondSubnet struct {
	Gateway    netip.Prefix `json:"gateway,omitzero"`
	StaticPool []Range      `json:"staticPool,omitzero"`
	DNS        []netip.Addr `json:"dns,omitzero"`
	DNSSuffix  string       `json:"dnsSuffix,omitzero"`
}

// NetworkDHCP holds the settings of a network's DHCP service.
type NetworkDHCP struct {
	Disabled bool     `json:"disabled,omitzero"`
	Mode     string   `json:"mode,omitzero"`    // EDGE, NETWORK, RELAY
	Address  string   `json:"address,omitzero"` // of the server in mode NETWORK
	Lease    int      `json:"lease,omitzero"`   // seconds
	DNS      []string `json:"dns,omitzero"`
}

// A Range is a range of addresses, including both ends.
type Range struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
}

// Contains reports whether a is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// A ComputePolicy is a VM sizing or placement policy.
type ComputePolicy struct {
	ID          string `json:"id,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	Placement   bool   `json:"placement,omitzero"` // a placement policy, not a sizing policy
	CPUs        int64  `json:"cpus,omitzero"`
	MemoryMiB   int64  `json:"memoryMiB,omitzero"`
	// Fields are additional fields of the JSON document. They have no effect in the simulator.
	Fields map[string]any `json:"fields,omitzero"`
}

// A Catalog holds templates.
type Catalog struct {
	ID          string     `json:"id,omitzero"`
	Name        string     `json:"name,omitzero"`
	Description string     `json:"description,omitzero"`
	Templates   []Template `json:"templates,omitzero"`
	Media       []Media    `json:"media,omitzero"`
	Created     time.Time  `json:"created,omitzero"` // zero means the start of the model
	// StorageProfiles are the IDs of the storage profiles for its items. Empty means any.
	StorageProfiles []string `json:"storageProfiles,omitzero"`
	// SharedWith are the names of other organizations that may read the catalog and use its templates.
	SharedWith []string `json:"sharedWith,omitzero"`
	// Published makes the catalog visible in all organizations.
	Published bool `json:"published,omitzero"`
}

// A Template is a vApp template with its catalog item.
type Template struct {
	ID          string `json:"id,omitzero"`
	ItemID      string `json:"itemID,omitzero"`
	Name        string `json:"name,omitzero"`
	Description string `json:"description,omitzero"`
	// VDC is the name of the VDC that stores the template. Empty means the first VDC.
	VDC string `json:"vdc,omitzero"`
	// Status is VCD's number; 0 means 8, resolved and powered off.
	Status            int          `json:"status,omitzero"`
	VMs               []TemplateVM `json:"vms,omitzero"`
	KubernetesVersion string       `json:"kubernetesVersion,omitzero"`
	GoldMaster        bool         `json:"goldMaster,omitzero"`
	// Created is the time when it was added to the catalog. Zero means the start of the model.
	Created time.Time `json:"created,omitzero"`
	Upload  string    `json:"upload,omitzero"` // ID of the transfer that uploaded it
	// Lease is the storage lease; 0 never expires. It is stored without effect.
	Lease Duration `json:"lease,omitzero"`
}

// A TemplateVM is a VM of a template.
type TemplateVM struct {
	ID              string  `json:"id,omitzero"`
	Name            string  `json:"name,omitzero"`
	OS              string  `json:"os,omitzero"`
	CPUs            int64   `json:"cpus,omitzero"`
	MemoryMiB       int64   `json:"memoryMiB,omitzero"`
	DisksMiB        []int64 `json:"disksMiB,omitzero"`
	NICs            int     `json:"nics,omitzero"`
	HardwareVersion string  `json:"hardwareVersion,omitzero"` // for example vmx-19; empty means the newest
	// Properties are the properties of its product section.
	Properties map[string]string `json:"properties,omitzero"`
	// ExtraConfig is the initial extra configuration of its VMs, for example that of the VM it was captured from.
	ExtraConfig map[string]string `json:"extraConfig,omitzero"`
}

// Clone returns a deep copy.
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
