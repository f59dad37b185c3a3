package v1beta4

// CloudProviderMode is who runs the cloud controller manager.
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

// CloudProviderSpec says who runs the cloud controller manager of the workload cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.identityRef) || (has(self.mode) && self.mode == 'Managed')",fieldPath=".identityRef",message="may only be set when mode is Managed"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || (has(self.mode) && self.mode == 'Managed')",fieldPath=".nodes",message="may only be set when mode is Managed"
type CloudProviderSpec struct {
	// mode is Managed, which is the default, External or None. Managed installs the bundled one and keeps it; External leaves what runs to the user; None removes
	// what Managed installed.
	// +optional
	// +kubebuilder:default=Managed
	Mode CloudProviderMode `json:"mode,omitempty"`

	// identityRef is the identity of the cloud controller manager, if not the cluster's own. Either is a VCDIdentity, and says
	// shareWithClusters: its credentials are put into the workload cluster.
	// +optional
	IdentityRef *IdentityReference `json:"identityRef,omitempty"`

	// nodes says what the cloud controller manager tells of Nodes.
	// +optional
	Nodes CloudProviderNodes `json:"nodes,omitempty,omitzero"`
}

// CloudProviderNodes says what the cloud controller manager tells of Nodes.
// +kubebuilder:validation:MinProperties=1
type CloudProviderNodes struct {
	// region of Nodes that no zone says another of: the value of label topology.kubernetes.io/region.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Region string `json:"region,omitempty"`

	// zones of Nodes, the values of label topology.kubernetes.io/zone; the name of the VDC if empty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Zones []CloudProviderZone `json:"zones,omitempty"`

	// addresses chooses the addresses that are told of Nodes.
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

	// region of the zone, if it is another than nodes.region.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*$`
	Region string `json:"region,omitempty"`

	// placementPolicy is the name or URN of the VM placement policy of the zone's Nodes; all Nodes that no other zone is for if empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	PlacementPolicy string `json:"placementPolicy,omitempty"`
}

// AddressFamily is a family of addresses.
// +kubebuilder:validation:Enum=IPv4;IPv6
type AddressFamily string

// CloudProviderAddresses chooses the addresses that are told of Nodes.
// +kubebuilder:validation:MinProperties=1
type CloudProviderAddresses struct {
	// families of addresses, in the order they are told in; IPv4, then IPv6 if empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Families []AddressFamily `json:"families,omitempty"`

	// internal chooses what is told as InternalIP; the addresses of the primary NIC if empty.
	// +optional
	Internal AddressSelection `json:"internal,omitempty,omitzero"`

	// external chooses what is told as ExternalIP; nothing if empty.
	// +optional
	External AddressSelection `json:"external,omitempty,omitzero"`
}

// AddressSelection chooses addresses of a VM.
// +kubebuilder:validation:MinProperties=1
type AddressSelection struct {
	// nics are the indexes of the NICs whose addresses are told.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9
	NICs []int32 `json:"nics,omitempty"`

	// cidrs are the networks that addresses are told of; all if empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	CIDRs []string `json:"cidrs,omitempty"`

	// exclude are networks that no addresses are told of.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=49
	Exclude []string `json:"exclude,omitempty"`
}
