// SPDX-License-Identifier: Apache-2.0

package v1beta4

// CloudProviderMode determines whether this provider installs the cloud controller manager.
// +kubebuilder:validation:Enum=Managed;External;None
type CloudProviderMode string

// Cloud provider modes.
const (
	// CloudProviderManaged installs the bundled cloud controller manager.
	CloudProviderManaged CloudProviderMode = "Managed"
	// CloudProviderExternal leaves the cloud controller manager to the user.
	CloudProviderExternal CloudProviderMode = "External"
	// CloudProviderNone is a cluster without a cloud controller manager.
	CloudProviderNone CloudProviderMode = "None"
)

// CloudProviderSpec configures the cloud controller manager of the workload cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Managed' || has(self.identityRef)",fieldPath=".identityRef",reason=FieldValueRequired,message="must be the VCDIdentity of the cloud controller manager when mode is Managed; not required for External and None"
// +kubebuilder:validation:XValidation:rule="!has(self.identityRef) || !has(self.mode) || self.mode == 'Managed'",fieldPath=".identityRef",message="may only be set when mode is Managed"
// +kubebuilder:validation:XValidation:rule="!has(self.image) || !has(self.mode) || self.mode == 'Managed'",fieldPath=".image",message="may only be set when mode is Managed"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !has(self.mode) || self.mode == 'Managed'",fieldPath=".nodes",message="may only be set when mode is Managed"
type CloudProviderSpec struct {
	// mode is Managed, External or None. Managed installs the bundled cloud controller manager and keeps it up to date.
	// With External, the user installs one. None removes the objects that Managed installed.
	// +required
	Mode CloudProviderMode `json:"mode,omitempty"`

	// identityRef is the identity of the cloud controller manager, required when mode is Managed. It must be a VCDIdentity
	// with shareWithClusters: its credentials are copied into the workload cluster.
	// +optional
	IdentityRef *IdentityReference `json:"identityRef,omitempty"`

	// image is the reference of the cloud controller manager's image, with its registry; the manager's default if
	// empty. Without a tag and digest, as in registry.example.com/mirror/ccm, it uses the tag of the manager and
	// follows its upgrades.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// nodes configures addresses, zones and regions of Nodes.
	// +optional
	Nodes CloudProviderNodes `json:"nodes,omitempty,omitzero"`
}

// DefaultZone is the zone of Nodes without a configured zone.
// +kubebuilder:validation:Enum=VDC;None
type DefaultZone string

// Default zones.
const (
	// DefaultZoneVDC is the name of the VDC.
	DefaultZoneVDC DefaultZone = "VDC"
	// DefaultZoneNone is no zone.
	DefaultZoneNone DefaultZone = "None"
)

// CloudProviderNodes configures addresses, zones and regions of Nodes.
// +kubebuilder:validation:MinProperties=1
type CloudProviderNodes struct {
	// region of Nodes whose zone has no region: the value of label topology.kubernetes.io/region. Cannot be set
	// together with failureDomainSelector.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Region string `json:"region,omitempty"`

	// zones of Nodes, the values of label topology.kubernetes.io/zone; the name of the VDC if empty. Cannot be set
	// together with failureDomainSelector, which takes them from VCDFailureDomains.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Zones []CloudProviderZone `json:"zones,omitempty"`

	// defaultZone is the zone of Nodes without a configured zone: VDC, the default, is the name of the VDC; None sets
	// no zone, as VMware's CPI does.
	// +optional
	DefaultZone DefaultZone `json:"defaultZone,omitempty"`

	// addresses selects the addresses of Nodes.
	// +optional
	Addresses CloudProviderAddresses `json:"addresses,omitempty,omitzero"`
}

// CloudProviderZone is the zone of some Nodes.
type CloudProviderZone struct {
	// name of the zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Name string `json:"name,omitempty"`

	// region of the zone, if it differs from nodes.region.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Region string `json:"region,omitempty"`

	// placementPolicy is the name or URN of the VM placement policy of the zone's Nodes; if empty, the zone applies to
	// all Nodes without another one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicy string `json:"placementPolicy,omitempty"`
}

// AddressFamily is a family of addresses.
// +kubebuilder:validation:Enum=IPv4;IPv6
type AddressFamily string

// CloudProviderAddresses selects the addresses of Nodes.
// +kubebuilder:validation:MinProperties=1
type CloudProviderAddresses struct {
	// families of addresses, in the order of a Node's addresses; IPv4, then IPv6 if empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Families []AddressFamily `json:"families,omitempty"`

	// internal selects the addresses of type InternalIP; those of the primary NIC if empty.
	// +optional
	Internal AddressSelection `json:"internal,omitempty,omitzero"`

	// external selects the addresses of type ExternalIP; none if empty.
	// +optional
	External AddressSelection `json:"external,omitempty,omitzero"`
}

// AddressSelection selects addresses of a VM.
// +kubebuilder:validation:MinProperties=1
type AddressSelection struct {
	// nics are the indexes of the NICs to take addresses from.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9
	NICs []int32 `json:"nics,omitempty"`

	// cidrs are the networks to take addresses from; all if empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	CIDRs []string `json:"cidrs,omitempty"`

	// exclude are networks to take no addresses from.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	Exclude []string `json:"exclude,omitempty"`
}
