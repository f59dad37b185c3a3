// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// VCDMachineSpec is the desired state of a VCDMachine.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.template) != has(self.templateSelector)",fieldPath=".template",message="exactly one of template and templateSelector must be set"
type VCDMachineSpec struct {
	// providerID is vmware-cloud-director://<URN of the VM>. Written by the controller as soon as the VM exists;
	// immutable once set.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^vmware-cloud-director://urn:vcloud:vm:[0-9a-fA-F-]{36}$`
	ProviderID string `json:"providerID,omitempty"`

	// catalog is the name or URN of the catalog of the template; it may be shared from another organization. Immutable
	// once the VM exists. A deployment zone may set it instead.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Catalog string `json:"catalog,omitempty"`

	// template is the name or URN of the vApp template whose first VM is the machine's image. Set either template or
	// templateSelector. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Template string `json:"template,omitempty"`

	// templateSelector selects the vApp template instead of template: the newest of the catalog that matches. The
	// template is selected when the VM is created; a newer one does not change the VM. Immutable once the VM exists.
	// +optional
	TemplateSelector *TemplateSelector `json:"templateSelector,omitempty"`

	// sizingPolicy is the name or URN of the VM sizing policy: CPUs and memory; the VDC's default policy if empty, or
	// the template's own size where that fixes none. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SizingPolicy string `json:"sizingPolicy,omitempty"`

	// cpus is the number of virtual CPUs, instead of a sizing policy: cannot be set together with sizingPolicy. That of
	// the policy or the template if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	CPUs int32 `json:"cpus,omitempty"`

	// memory is the size of the memory, such as 8Gi, instead of a sizing policy: cannot be set together with
	// sizingPolicy. A multiple of 4Mi, from 512Mi to 6Ti. That of the policy or the template if empty. Immutable once the
	// VM exists.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// hardwareVersion is the version of the virtual hardware, such as vmx-19, not below that of the template; that of
	// the template if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:Pattern=`^vmx-[0-9]{1,3}$`
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=8
	HardwareVersion string `json:"hardwareVersion,omitempty"`

	// placementPolicy is the name or URN of the VM placement policy or vGPU policy; VCD's choice if empty. Immutable
	// once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicy string `json:"placementPolicy,omitempty"`

	// storageProfile is the name or URN of the storage profile; the VDC's default if empty. Immutable once the VM
	// exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfile string `json:"storageProfile,omitempty"`

	// diskSize is the size of the first disk, such as 40Gi; the size in the template if empty. It must be at least 1Gi,
	// and at least the size in the template. Mutable in place: it can be increased.
	// +optional
	DiskSize *resource.Quantity `json:"diskSize,omitempty"`

	// additionalDisks are created empty, in this order behind the disks of the template, and deleted with the VM.
	// Immutable once the VM exists.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	AdditionalDisks []DiskSpec `json:"additionalDisks,omitempty"`

	// extraConfig are further keys of the VM's extra configuration, for example of PCI devices. They are written before the
	// VM is powered on. The identity must allow them in its allowedExtraConfig. Immutable once the VM exists.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ExtraConfig []ExtraConfigEntry `json:"extraConfig,omitempty"`

	// networks are the NICs in order; the first is the primary one. A single NIC with an address of the static pool in
	// the cluster's ovdcNetwork if empty. Immutable once the VM exists.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.filter(n, !has(n.name)).size() == (has(self[0].name) ? 0 : 1)",message="is required for all NICs except the first one, whose default is the ovdcNetwork of the cluster"
	Networks []NetworkSpec `json:"networks,omitempty"`

	// vmNamingTemplate is a Go template for the name of the VM, which is also its host name, such as {{ .cluster.name
	// }}-{{ .random }}. It can use .cluster, .machine, .vcdMachine, .machineDeployment, .machineSet,
	// .kubeadmControlPlane and .random, which never changes for a machine. At most 63 characters. The machine's name
	// if empty. Immutable once the VM exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	VMNamingTemplate string `json:"vmNamingTemplate,omitempty"`

	// powerOffPolicy is the reaction to a powered-off VM: Report, the default, sets Ready to False; PowerOn powers it
	// on again. Mutable in place.
	// +optional
	// +kubebuilder:default=Report
	PowerOffPolicy PowerOffPolicy `json:"powerOffPolicy,omitempty"`

	// shutdownTimeoutSeconds is the time for the guest to shut down before its VM is powered off on deletion, in
	// seconds; 60 if empty. With 0, the VM is powered off immediately. Mutable in place.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	ShutdownTimeoutSeconds *int32 `json:"shutdownTimeoutSeconds,omitempty"`

	// vmMetadata is metadata of the VM in VCD, for example for billing. Mutable in place.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	VMMetadata []VMMetadataEntry `json:"vmMetadata,omitempty"`

	// antiAffinity keeps the VM on another host than the VMs of its group, which are those of the control plane or of
	// the same MachineDeployment, with a rule in VCD: None (default), Preferred or Required. The rule of a group is
	// Required if all its machines set Required. Required needs one more host than the group has machines, because a
	// rollout adds a machine before it removes one. Mutable in place.
	// +optional
	// +kubebuilder:default=None
	AntiAffinity AntiAffinity `json:"antiAffinity,omitempty"`

	// recordedState is internal state of the controllers. Written by the controller. A user may remove a field only if
	// its description says so.
	// +optional
	RecordedState VCDMachineRecordedState `json:"recordedState,omitempty,omitzero"`
}

// KubernetesVersionPlaceholder is replaced in the name pattern of a TemplateSelector.
const KubernetesVersionPlaceholder = "{kubernetesVersion}"

// TemplateSelector selects the newest vApp template of a catalog that matches all its fields. It must select by the
// Kubernetes version of the Machine: a placeholder in namePattern, or kubernetesVersionKey.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.kubernetesVersionKey) || (has(self.namePattern) && self.namePattern.contains('{kubernetesVersion}'))",message="must select by Kubernetes version: use {kubernetesVersion} in namePattern, or set kubernetesVersionKey"
type TemplateSelector struct {
	// namePattern is a pattern of the name, such as ubuntu-2404-kube-v{kubernetesVersion}*. An asterisk stands for any
	// characters, a question mark for one. {kubernetesVersion} is the version of the Machine without the leading v and
	// without build metadata, such as 1.36.3. All names match if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()=!<>"'\\]+$`
	NamePattern string `json:"namePattern,omitempty"`

	// matchMetadata are entries of metadata of type text that the vApp template must have.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	MatchMetadata []TemplateMetadata `json:"matchMetadata,omitempty"`

	// kubernetesVersionKey is the key of an entry of metadata of type text whose value is the version of the Machine, such
	// as v1.36.3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\/?#%:]+$`
	KubernetesVersionKey string `json:"kubernetesVersionKey,omitempty"`
}

// TemplateMetadata is an entry of metadata of a vApp template.
type TemplateMetadata struct {
	// key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\/?#%:]+$`
	Key string `json:"key,omitempty"`

	// value of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	// +kubebuilder:validation:Pattern=`^[^;,()*=!<>"'\\]+$`
	Value string `json:"value,omitempty"`
}

// VMMetadataType is the type of a value of metadata.
// +kubebuilder:validation:Enum=String;Number;Boolean;DateTime
type VMMetadataType string

// Types of metadata.
const (
	// VMMetadataString is a text.
	VMMetadataString VMMetadataType = "String"
	// VMMetadataNumber is a whole number.
	VMMetadataNumber VMMetadataType = "Number"
	// VMMetadataBoolean is true or false.
	VMMetadataBoolean VMMetadataType = "Boolean"
	// VMMetadataDateTime is a time in the form of RFC 3339.
	VMMetadataDateTime VMMetadataType = "DateTime"
)

// VMMetadataAccess is the access of tenants to a metadata entry in VCD.
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly;Private
type VMMetadataAccess string

// Access to metadata.
const (
	// VMMetadataReadWrite is VCD's domain GENERAL: tenants read and write it.
	VMMetadataReadWrite VMMetadataAccess = "ReadWrite"
	// VMMetadataReadOnly is VCD's domain SYSTEM with visibility READONLY: tenants read it.
	VMMetadataReadOnly VMMetadataAccess = "ReadOnly"
	// VMMetadataPrivate is VCD's domain SYSTEM with visibility PRIVATE: tenants do not see it.
	VMMetadataPrivate VMMetadataAccess = "Private"
)

// VMMetadataEntry is an entry of a VM's metadata.
// +kubebuilder:validation:XValidation:rule="self.access == oldSelf.access",fieldPath=".access",message="is immutable: remove the entry, and add it again"
type VMMetadataEntry struct {
	// key of the entry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key string `json:"key,omitempty"`

	// value of the entry, as a text of its type.
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1000
	Value *string `json:"value,omitempty"`

	// type of the value: String, which is the default, Number, Boolean or DateTime.
	// +optional
	// +kubebuilder:default=String
	Type VMMetadataType `json:"type,omitempty"`

	// access of tenants: ReadWrite, which is the default, ReadOnly or Private. Only a system administrator may write
	// entries that are ReadOnly or Private.
	// +optional
	// +kubebuilder:default=ReadWrite
	Access VMMetadataAccess `json:"access,omitempty"`
}

// DiskSpec is an additional disk.
type DiskSpec struct {
	// name of the disk in this list. VCD does not store it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+(-[a-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// size of the disk, such as 100Gi.
	// +required
	Size resource.Quantity `json:"size,omitempty,omitzero"`

	// storageProfile is the name or URN of the storage profile; that of the VM if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	StorageProfile string `json:"storageProfile,omitempty"`
}

// ExtraConfigEntry is a key of the extra configuration of a VM.
type ExtraConfigEntry struct {
	// key such as pciPassthru.use64bitMMIO. Keys that begin with guestinfo are refused: the guest is configured by them.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`
	// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().startsWith('guestinfo')",reason=FieldValueForbidden,message="must not begin with guestinfo: the provider configures the guest by these keys"
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'disk.enableuuid'",reason=FieldValueForbidden,message="must not be disk.enableUUID: the provider sets it"
	Key string `json:"key,omitempty"`

	// value of the key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	Value string `json:"value,omitempty"`
}

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
}

// PowerOffPolicy is the reaction to a powered-off VM.
// +kubebuilder:validation:Enum=Report;PowerOn
type PowerOffPolicy string

// Power-off policies.
const (
	// PowerOffReport reports it.
	PowerOffReport PowerOffPolicy = "Report"
	// PowerOffPowerOn powers the VM on.
	PowerOffPowerOn PowerOffPolicy = "PowerOn"
)

// VCDMachineStatus is the observed state of a VCDMachine.
// +kubebuilder:validation:MinProperties=1
type VCDMachineStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the machine, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization follows the Cluster API contract.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// addresses of the machine: its host name and the address of each NIC.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`

	// failureDomain is the zone that the VM is in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain string `json:"failureDomain,omitempty"`

	// vm is the VM in VCD.
	// +optional
	VM *ResourceReference `json:"vm,omitempty"`

	// vApp is the vApp of the VM.
	// +optional
	VApp *ResourceReference `json:"vApp,omitempty"`

	// nics are the VM's network connections as VCD reports them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	NICs []NICStatus `json:"nics,omitempty"`
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

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdmachines,shortName=vcdm,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster"
// +kubebuilder:printcolumn:name="Machine",type="string",JSONPath=`.metadata.ownerReferences[?(@.kind=="Machine")].name`,description="Machine"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the object is ready"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not"
// +kubebuilder:printcolumn:name="Provisioned",type="boolean",JSONPath=`.status.initialization.provisioned`,description="Whether the infrastructure was complete once"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="FailureDomain",type="string",JSONPath=`.status.failureDomain`,description="Zone that the VM is in"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=`.status.nics[0].address`,description="Address of the first NIC"
// +kubebuilder:printcolumn:name="Template",type="string",JSONPath=`.spec.template`,description="vApp template",priority=10
// +kubebuilder:printcolumn:name="ProviderID",type="string",JSONPath=`.spec.providerID`,description="Provider id",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDMachine is the VM of a Machine in VMware Cloud Director.
type VCDMachine struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",fieldPath=".providerID",message="is immutable once set: the Node has the same provider ID"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.catalog) ? has(oldSelf.catalog) && self.catalog == oldSelf.catalog : !has(oldSelf.catalog))",fieldPath=".catalog",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.template) ? has(oldSelf.template) && self.template == oldSelf.template : !has(oldSelf.template))",fieldPath=".template",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.templateSelector) ? has(oldSelf.templateSelector) && self.templateSelector == oldSelf.templateSelector : !has(oldSelf.templateSelector))",fieldPath=".templateSelector",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.sizingPolicy) ? has(oldSelf.sizingPolicy) && self.sizingPolicy == oldSelf.sizingPolicy : !has(oldSelf.sizingPolicy))",fieldPath=".sizingPolicy",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.cpus) ? has(oldSelf.cpus) && self.cpus == oldSelf.cpus : !has(oldSelf.cpus))",fieldPath=".cpus",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.memory) ? has(oldSelf.memory) && self.memory == oldSelf.memory : !has(oldSelf.memory))",fieldPath=".memory",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.hardwareVersion) ? has(oldSelf.hardwareVersion) && self.hardwareVersion == oldSelf.hardwareVersion : !has(oldSelf.hardwareVersion))",fieldPath=".hardwareVersion",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.placementPolicy) ? has(oldSelf.placementPolicy) && self.placementPolicy == oldSelf.placementPolicy : !has(oldSelf.placementPolicy))",fieldPath=".placementPolicy",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.storageProfile) ? has(oldSelf.storageProfile) && self.storageProfile == oldSelf.storageProfile : !has(oldSelf.storageProfile))",fieldPath=".storageProfile",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.additionalDisks) ? has(oldSelf.additionalDisks) && self.additionalDisks == oldSelf.additionalDisks : !has(oldSelf.additionalDisks))",fieldPath=".additionalDisks",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.extraConfig) ? has(oldSelf.extraConfig) && self.extraConfig == oldSelf.extraConfig : !has(oldSelf.extraConfig))",fieldPath=".extraConfig",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.networks) ? has(oldSelf.networks) && self.networks == oldSelf.networks : !has(oldSelf.networks))",fieldPath=".networks",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.vmNamingTemplate) ? has(oldSelf.vmNamingTemplate) && self.vmNamingTemplate == oldSelf.vmNamingTemplate : !has(oldSelf.vmNamingTemplate))",fieldPath=".vmNamingTemplate",message="is immutable once the VM exists: create a new VCDMachineTemplate and roll it out"
	// +kubebuilder:validation:XValidation:rule="has(self.recordedState) || !has(oldSelf.recordedState) || !(has(oldSelf.recordedState.instanceID) || has(oldSelf.recordedState.vmName) || has(oldSelf.recordedState.deploymentZone) || has(oldSelf.recordedState.ovdcID) || has(oldSelf.recordedState.poweredOnAt) || has(oldSelf.recordedState.deleteRequestedAt) || has(oldSelf.recordedState.vmGoneAt))",fieldPath=".recordedState",reason=FieldValueForbidden,message="cannot be removed: it identifies the VM of the machine"
	// +kubebuilder:validation:XValidation:rule="!self.?recordedState.?poweredOnAt.hasValue() || has(self.providerID)",fieldPath=".recordedState.poweredOnAt",reason=FieldValueForbidden,message="requires a VM, but the VCDMachine has none: the controller sets it, remove the field"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || !oldSelf.?recordedState.?creationRequestedAt.hasValue() || self.?recordedState.?creationRequestedAt.hasValue()",fieldPath=".recordedState.creationRequestedAt",reason=FieldValueForbidden,message="cannot be removed once the VM exists: it records that this provider created the VM"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || !has(oldSelf.recordedState) || !has(oldSelf.recordedState.template) || (has(self.recordedState) && has(self.recordedState.template) && self.recordedState.template.id == oldSelf.recordedState.template.id)",fieldPath=".recordedState.template",reason=FieldValueForbidden,message="is immutable once the VM exists: the VM was created from it"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || self.?recordedState.?vAppNumber.orValue(1) == oldSelf.?recordedState.?vAppNumber.orValue(1)",fieldPath=".recordedState.vAppNumber",reason=FieldValueForbidden,message="is immutable once the VM exists: the VM is in that vApp"
	Spec VCDMachineSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDMachineStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (m *VCDMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (m *VCDMachine) ObserveGeneration() { m.Status.ObservedGeneration = m.Generation }

// SetConditions replaces the conditions.
func (m *VCDMachine) SetConditions(conditions []metav1.Condition) { m.Status.Conditions = conditions }

// +kubebuilder:object:root=true

// VCDMachineList is a list of VCDMachines.
type VCDMachineList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDMachines.
	Items []VCDMachine `json:"items"`
}
