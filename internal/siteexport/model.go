// SPDX-License-Identifier: Apache-2.0

package siteexport

import "net/netip"

// An alias is a name in the file. It is made by aliases, or one of the names that VCD gives itself.
type alias string

// A Model is what a file has, in the words of the simulator. What is not a number, a choice of a closed list or an
// address is an alias.
type Model struct {
	Orgs                []Org             `json:"orgs"`
	Policies            []Policy          `json:"policies,omitempty"`
	ExternalNetworks    []ExternalNetwork `json:"externalNetworks,omitempty"`
	IPSpaces            []IPSpace         `json:"ipSpaces,omitempty"`
	ServiceEngineGroups []EngineGroup     `json:"serviceEngineGroups,omitempty"`
}

// An Org is the provider's organization, or the exported one.
type Org struct {
	Name         alias     `json:"name"`
	Users        []User    `json:"users,omitempty"`
	Roles        []Role    `json:"roles,omitempty"`
	Bundles      []Role    `json:"bundles,omitempty"`
	RuntimeLease string    `json:"runtimeLease,omitempty"`
	StorageLease string    `json:"storageLease,omitempty"`
	VDCs         []VDC     `json:"vdcs,omitempty"`
	VDCGroups    []Group   `json:"vdcGroups,omitempty"`
	Catalogs     []Catalog `json:"catalogs,omitempty"`
}

// A User is one of those that the file adds, with its password: no user of the site.
type User struct {
	Name      alias    `json:"name"`
	Password  string   `json:"password"`
	Role      alias    `json:"role"`
	APITokens []string `json:"apiTokens,omitempty"`
}

// A Role has rights, as VCD names them.
type Role struct {
	Name   alias    `json:"name"`
	Rights []string `json:"rights,omitempty"`
}

// A VDC is a VDC of the organization.
type VDC struct {
	Name            alias            `json:"name"`
	Disabled        bool             `json:"disabled,omitempty"`
	AllocationModel string           `json:"allocationModel,omitempty"`
	FullClones      bool             `json:"fullClones,omitempty"`
	Compute         Compute          `json:"compute,omitzero"`
	VMQuota         int              `json:"vmQuota,omitempty"`
	NICQuota        int              `json:"nicQuota,omitempty"`
	StorageProfiles []StorageProfile `json:"storageProfiles,omitempty"`
	Policies        []alias          `json:"policies,omitempty"`
	EdgeGateways    []EdgeGateway    `json:"edgeGateways,omitempty"`
	Networks        []Network        `json:"networks,omitempty"`
}

// Compute is a VDC's share of its provider's hardware.
type Compute struct {
	CPUAllocated     int64   `json:"cpuAllocated,omitempty"`
	CPULimit         int64   `json:"cpuLimit,omitempty"`
	MemoryAllocated  int64   `json:"memoryAllocated,omitempty"`
	MemoryLimit      int64   `json:"memoryLimit,omitempty"`
	CPUGuaranteed    float64 `json:"cpuGuaranteed,omitempty"`
	MemoryGuaranteed float64 `json:"memoryGuaranteed,omitempty"`
	CPUSpeed         int64   `json:"cpuSpeed,omitempty"`
	NetworkQuota     *int    `json:"networkQuota,omitempty"`
	ThickDisks       bool    `json:"thickDisks,omitempty"`
	NoOvercommit     bool    `json:"noOvercommit,omitempty"`
	Elastic          bool    `json:"elastic,omitempty"`
	NoMemoryOverhead bool    `json:"noMemoryOverhead,omitempty"`
}

// A StorageProfile is a storage policy of a VDC.
type StorageProfile struct {
	Name     alias `json:"name"`
	Default  bool  `json:"default,omitempty"`
	Disabled bool  `json:"disabled,omitempty"`
	LimitMiB int64 `json:"limitMiB,omitempty"`
}

// A Policy is a VM sizing or placement policy.
type Policy struct {
	Name      alias `json:"name"`
	Placement bool  `json:"placement,omitempty"`
	CPUs      int64 `json:"cpus,omitempty"`
	MemoryMiB int64 `json:"memoryMiB,omitempty"`
}

// A Group is a data center group.
type Group struct {
	Name     alias   `json:"name"`
	VDCs     []alias `json:"vdcs,omitempty"`
	Firewall bool    `json:"firewall,omitempty"`
}

// A Range is a range of addresses, both ends included.
type Range struct {
	From netip.Addr `json:"from"`
	To   netip.Addr `json:"to"`
}

// An ExternalNetwork is what edge gateways have uplinks to.
type ExternalNetwork struct {
	Name       alias            `json:"name"`
	Backing    string           `json:"backing,omitempty"`
	UsesSpaces bool             `json:"usesSpaces,omitempty"`
	Subnets    []ExternalSubnet `json:"subnets,omitempty"`
}

// An ExternalSubnet is a subnet of an external network.
type ExternalSubnet struct {
	Gateway netip.Prefix `json:"gateway"`
	Pool    []Range      `json:"pool,omitempty"`
}

// An EdgeGateway is an edge gateway with its ways to outside.
type EdgeGateway struct {
	Name         alias         `json:"name"`
	Group        alias         `json:"group,omitempty"`
	Uplinks      []Uplink      `json:"uplinks,omitempty"`
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`
}

// An Uplink connects an edge gateway to an external network.
type Uplink struct {
	Network   alias          `json:"network"`
	Dedicated bool           `json:"dedicated,omitempty"`
	Subnets   []UplinkSubnet `json:"subnets,omitempty"`
}

// An UplinkSubnet is what an edge gateway has of a subnet.
type UplinkSubnet struct {
	Gateway   netip.Prefix `json:"gateway"`
	Addresses []Range      `json:"addresses,omitempty"`
	Primary   netip.Addr   `json:"primary,omitzero"`
}

// A LoadBalancer is NSX ALB on an edge gateway.
type LoadBalancer struct {
	Enabled bool           `json:"enabled,omitempty"`
	Groups  []alias        `json:"groups,omitempty"`
	Fields  BalancerFields `json:"fields,omitzero"`
}

// BalancerFields are settings of a load balancer by the names of VCD's API.
type BalancerFields struct {
	FeatureSet  string       `json:"supportedFeatureSet,omitempty"`
	Transparent bool         `json:"transparentModeEnabled,omitempty"`
	Service     netip.Prefix `json:"serviceNetworkDefinition,omitzero"`
	ServiceIPv6 netip.Prefix `json:"ipv6ServiceNetworkDefinition,omitzero"`
}

// An EngineGroup is a service engine group.
type EngineGroup struct {
	Name       alias `json:"name"`
	MaxService int   `json:"maxService,omitempty"`
}

// An IPSpace holds addresses and prefixes that tenants allocate.
type IPSpace struct {
	Name       alias          `json:"name"`
	Type       string         `json:"type"`
	Ranges     []Range        `json:"ranges,omitempty"`
	RangeQuota int            `json:"rangeQuota,omitempty"`
	Prefixes   []PrefixPool   `json:"prefixes,omitempty"`
	Internal   []netip.Prefix `json:"internal,omitempty"`
	External   netip.Prefix   `json:"external,omitzero"`
	Uplinks    []SpaceUplink  `json:"uplinks,omitempty"`
}

// A PrefixPool is a run of equally long prefixes.
type PrefixPool struct {
	First netip.Prefix `json:"first"`
	Count int          `json:"count,omitempty"`
	Quota int          `json:"quota,omitempty"`
}

// A SpaceUplink makes an IP Space available to the gateways of an external network.
type SpaceUplink struct {
	Name    alias `json:"name"`
	Network alias `json:"network"`
}

// A Network is an organization network.
type Network struct {
	Name       alias         `json:"name"`
	Type       string        `json:"type"`
	Group      alias         `json:"group,omitempty"`
	Edge       alias         `json:"edge,omitempty"`
	Gateway    netip.Prefix  `json:"gateway"`
	DNS        []netip.Addr  `json:"dns,omitempty"`
	DNSSuffix  string        `json:"dnsSuffix,omitempty"`
	StaticPool []Range       `json:"staticPool,omitempty"`
	DHCPPool   []Range       `json:"dhcpPool,omitempty"`
	DHCP       *DHCP         `json:"dhcp,omitempty"`
	Second     *SecondSubnet `json:"second,omitempty"`
}

// A SecondSubnet is the IPv6 subnet of a network with two.
type SecondSubnet struct {
	Gateway    netip.Prefix `json:"gateway"`
	StaticPool []Range      `json:"staticPool,omitempty"`
	DNS        []netip.Addr `json:"dns,omitempty"`
}

// DHCP are the settings of a network's DHCP service.
type DHCP struct {
	Disabled bool         `json:"disabled,omitempty"`
	Mode     string       `json:"mode,omitempty"`
	Address  netip.Addr   `json:"address,omitzero"`
	Lease    int          `json:"lease,omitempty"`
	DNS      []netip.Addr `json:"dns,omitempty"`
}

// A Catalog holds templates.
type Catalog struct {
	Name      alias      `json:"name"`
	Templates []Template `json:"templates,omitempty"`
}

// A Template is a vApp template.
type Template struct {
	Name              alias        `json:"name"`
	VDC               alias        `json:"vdc,omitempty"`
	Status            int          `json:"status,omitempty"`
	KubernetesVersion string       `json:"kubernetesVersion,omitempty"`
	GoldMaster        bool         `json:"goldMaster,omitempty"`
	VMs               []TemplateVM `json:"vms,omitempty"`
}

// A TemplateVM is the hardware of a VM of a template.
type TemplateVM struct {
	Name            alias   `json:"name"`
	OS              string  `json:"os,omitempty"`
	CPUs            int64   `json:"cpus,omitempty"`
	MemoryMiB       int64   `json:"memoryMiB,omitempty"`
	DisksMiB        []int64 `json:"disksMiB,omitempty"`
	NICs            int     `json:"nics,omitempty"`
	HardwareVersion string  `json:"hardwareVersion,omitempty"`
}
