// SPDX-License-Identifier: Apache-2.0

package v1beta4

// AddressSource is the source of the address of a NIC.
// +kubebuilder:validation:Enum=StaticPool;DHCP;Manual;IPAM
type AddressSource string

// Address sources.
const (
	// AddressStaticPool is the static pool of the network in VCD.
	AddressStaticPool AddressSource = "StaticPool"
	// AddressDHCP is a DHCP server.
	AddressDHCP AddressSource = "DHCP"
	// AddressManual is an address set by the user; not allowed in templates, whose machines would all have the same
	// address.
	AddressManual AddressSource = "Manual"
	// AddressIPAM is a pool of the Cluster API IPAM contract.
	AddressIPAM AddressSource = "IPAM"
)

// NetworkAdapter is the type of a NIC.
// +kubebuilder:validation:Enum=VMXNET3;E1000E
type NetworkAdapter string

// Types of NICs.
const (
	// AdapterVMXNET3 is the paravirtual adapter.
	AdapterVMXNET3 NetworkAdapter = "VMXNET3"
	// AdapterE1000E is an emulated adapter.
	AdapterE1000E NetworkAdapter = "E1000E"
)

// NetworkSpec is a NIC. addressSource determines which of addresses and poolRefs must be set.
// +kubebuilder:validation:XValidation:rule="(self.addressSource == 'Manual') == (has(self.addresses) && self.addresses.size() > 0)",fieldPath=".addresses",message="must be set when addressSource is Manual, and only then"
// +kubebuilder:validation:XValidation:rule="(self.addressSource == 'IPAM') == (has(self.poolRefs) && self.poolRefs.size() > 0)",fieldPath=".poolRefs",message="must be set when addressSource is IPAM, and only then"
// +kubebuilder:validation:XValidation:rule="self.addressSource == 'DHCP' || !has(self.dhcpOverrides)",fieldPath=".dhcpOverrides",message="may only be set when addressSource is DHCP"
type NetworkSpec struct {
	// name or URN of the organization VDC network; the cluster's ovdcNetwork if empty (first NIC only).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// addressSource is the source of the address: StaticPool (default), DHCP, Manual or IPAM.
	// +optional
	// +kubebuilder:default=StaticPool
	AddressSource AddressSource `json:"addressSource,omitempty"`

	// addresses are those of source Manual, at most one of each family, with prefix length, such as 10.0.0.5/24.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=4
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be an address with prefix length, such as 10.0.0.5/24"
	Addresses []string `json:"addresses,omitempty"`

	// poolRefs are the pools of source IPAM, at most one of each family. One address is claimed from each; its prefix
	// and gateway must match the network in VCD.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	PoolRefs []IPPoolReference `json:"poolRefs,omitempty"`

	// adapter is the type of the NIC: VMXNET3, which is the default, or E1000E.
	// +optional
	// +kubebuilder:default=VMXNET3
	Adapter NetworkAdapter `json:"adapter,omitempty"`

	// mtu of the interface in the guest, in bytes; the guest's default if empty.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=9216
	MTU int32 `json:"mtu,omitempty"`

	// nameservers of the interface; those of the network in VCD if empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	Nameservers []string `json:"nameservers,omitempty"`

	// searchDomains of the interface; that of the network in VCD if empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	SearchDomains []string `json:"searchDomains,omitempty"`

	// gatewayMetric is the metric of the default routes through the interface, or with DHCP, of all routes from the
	// server; selected by the guest if empty. NICs other than the first have default routes only if it is set.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	GatewayMetric int32 `json:"gatewayMetric,omitempty"`

	// routes through the interface, besides those of its subnet and its default routes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Routes []RouteSpec `json:"routes,omitempty"`

	// dhcpOverrides select the settings from the DHCP server, besides the address; only with source DHCP.
	// +optional
	DHCPOverrides *DHCPOverrides `json:"dhcpOverrides,omitempty"`
}

// RouteSpec is a static route.
type RouteSpec struct {
	// to is the destination, such as 172.16.0.0/12.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	To string `json:"to,omitempty"`

	// via is the address of the gateway, of the destination's family.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	Via string `json:"via,omitempty"`

	// metric of the route; the guest's choice if empty.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Metric int32 `json:"metric,omitempty"`
}

// UseDomains determines how a guest uses the domains from a DHCP server.
// +kubebuilder:validation:Enum=Use;Ignore;RouteOnly
type UseDomains string

// Uses of the domains from a DHCP server.
const (
	// UseDomainsUse makes them search domains.
	UseDomainsUse UseDomains = "Use"
	// UseDomainsIgnore ignores them.
	UseDomainsIgnore UseDomains = "Ignore"
	// UseDomainsRouteOnly uses them only to select the interface for DNS requests.
	UseDomainsRouteOnly UseDomains = "RouteOnly"
)

// DHCPOverrides select the settings that a guest uses from a DHCP server, besides the address. The guest decides on
// empty fields.
// +kubebuilder:validation:XValidation:rule="!has(self.hostname) || self.?sendHostname.orValue(true)",fieldPath=".hostname",message="may not be set when sendHostname is false"
// +kubebuilder:validation:MinProperties=1
type DHCPOverrides struct {
	// useRoutes accepts routes; if empty, a NIC other than the first accepts none unless it has a gatewayMetric.
	// +optional
	UseRoutes *bool `json:"useRoutes,omitempty"`

	// useDNS accepts name servers.
	// +optional
	UseDNS *bool `json:"useDNS,omitempty"`

	// useDomains is Use to add the domains as search domains, Ignore, or RouteOnly to use them only to select the
	// interface for DNS requests.
	// +optional
	UseDomains UseDomains `json:"useDomains,omitempty"`

	// useMTU accepts the MTU.
	// +optional
	UseMTU *bool `json:"useMTU,omitempty"`

	// useNTP accepts time servers.
	// +optional
	UseNTP *bool `json:"useNTP,omitempty"`

	// useHostname accepts the host name as the transient one. The name of the Node does not depend on it.
	// +optional
	UseHostname *bool `json:"useHostname,omitempty"`

	// sendHostname sends the host name of the machine to the server, which may add it to DNS.
	// +optional
	SendHostname *bool `json:"sendHostname,omitempty"`

	// hostname is sent instead of the host name of the machine; not allowed in templates, whose machines would all send
	// the same name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$`
	Hostname string `json:"hostname,omitempty"`
}

// NICStatus is a network connection of the VM.
type NICStatus struct {
	// network is the name of the network.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Network string `json:"network,omitempty"`

	// macAddress of the NIC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=17
	MACAddress string `json:"macAddress,omitempty"`

	// address of the NIC, empty while unknown.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	Address string `json:"address,omitempty"`
}
