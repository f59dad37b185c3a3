// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Finalizers.
const (
	// ClusterFinalizer keeps a VCDCluster until its objects in VCD are deleted.
	ClusterFinalizer = "infrastructure.cluster.x-k8s.io/vcdcluster"
	// RDEFinalizer keeps a VCDCluster, whose other objects in VCD are gone, until its runtime defined entity is.
	RDEFinalizer = "rde.infrastructure.cluster.x-k8s.io/entity"
	// MachineFinalizer keeps a VCDMachine until its VM is gone.
	MachineFinalizer = "infrastructure.cluster.x-k8s.io/vcdmachine"
	// IdentityFinalizer keeps an identity while a VCDCluster uses it.
	IdentityFinalizer = "infrastructure.cluster.x-k8s.io/vcdidentity"
	// FailureDomainFinalizer keeps a VCDFailureDomain while VCDDeploymentZones refer to it.
	FailureDomainFinalizer = "infrastructure.cluster.x-k8s.io/vcdfailuredomain"
	// DeploymentZoneFinalizer keeps a VCDDeploymentZone while VCDMachines are in it.
	DeploymentZoneFinalizer = "infrastructure.cluster.x-k8s.io/vcddeploymentzone"
	// RemediationFinalizer keeps a VCDRemediation until the VCDMachine does not record a reset for it anymore.
	RemediationFinalizer = "infrastructure.cluster.x-k8s.io/vcdremediation"
	// SecretFinalizer keeps the Secret of an identity while the identity exists.
	SecretFinalizer = "infrastructure.cluster.x-k8s.io/vcdidentity"
	// AddressFinalizer keeps an IPAddress while a VM, or the endpoint of a cluster, may use the address.
	AddressFinalizer = "infrastructure.cluster.x-k8s.io/address-in-use"

	// CAPVCDClusterFinalizer is what CAPVCD wrote instead of ClusterFinalizer.
	CAPVCDClusterFinalizer = "vcdcluster.infrastructure.cluster.x-k8s.io"
	// CAPVCDMachineFinalizer is what CAPVCD wrote instead of MachineFinalizer.
	CAPVCDMachineFinalizer = "vcdmachine.infrastructure.cluster.x-k8s.io"
)

// IdentityKind is a kind of identity.
// +kubebuilder:validation:Enum=VCDIdentity;VCDClusterIdentity
type IdentityKind string

// Kinds of identities.
const (
	// NamespacedIdentity is an identity in the namespace of its user.
	NamespacedIdentity IdentityKind = "VCDIdentity"
	// ClusterIdentity is an identity for several namespaces.
	ClusterIdentity IdentityKind = "VCDClusterIdentity"
)

// IdentityReference refers to the identity for requests to VCD.
type IdentityReference struct {
	// kind is VCDIdentity, which is the default and in the same namespace, or VCDClusterIdentity.
	// +optional
	// +kubebuilder:default=VCDIdentity
	Kind IdentityKind `json:"kind,omitempty"`

	// name of the identity.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// LocalSecretReference refers to a Secret in the same namespace.
type LocalSecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// IPPoolReference refers to a pool of the Cluster API IPAM contract, in the same namespace or cluster-scoped.
type IPPoolReference struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// kind of the pool, such as InClusterIPPool or GlobalInClusterIPPool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// apiGroup of the pool, such as ipam.cluster.x-k8s.io.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIGroup string `json:"apiGroup,omitempty"`
}

// AddressRange is a range of addresses of one family.
type AddressRange struct {
	// startIP is the first address of the range.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	StartIP string `json:"startIP,omitempty"`

	// endIP is the last address of the range (inclusive).
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address, such as 10.0.0.10"
	EndIP string `json:"endIP,omitempty"`
}

// ResourceReference is an observed VCD object. Its name can change, its id cannot.
type ResourceReference struct {
	// name of the object at its last observation.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// id is the URN of the object, such as urn:vcloud:vdc:… .
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id,omitempty"`
}

// InitializationStatus follows the Cluster API contract.
// +kubebuilder:validation:MinProperties=1
type InitializationStatus struct {
	// provisioned is true once the infrastructure was complete for the first time, and never becomes false again.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// ObjectMeta is the metadata that a template passes on.
// +kubebuilder:validation:MinProperties=1
type ObjectMeta struct {
	// labels of the objects created from the template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the objects created from the template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
