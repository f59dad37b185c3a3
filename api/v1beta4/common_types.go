// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Finalizers, as CAPVCD wrote them.
const (
	// ClusterFinalizer keeps a VCDCluster until its objects in VCD are gone.
	ClusterFinalizer = "vcdcluster.infrastructure.cluster.x-k8s.io"
	// RDEFinalizer keeps a VCDCluster, whose other objects in VCD are gone, until its runtime defined entity is.
	RDEFinalizer = "rde.infrastructure.cluster.x-k8s.io/entity"
	// MachineFinalizer keeps a VCDMachine until its VM is gone.
	MachineFinalizer = "vcdmachine.infrastructure.cluster.x-k8s.io"
	// IdentityFinalizer keeps an identity while a VCDCluster uses it.
	IdentityFinalizer = "vcdidentity.infrastructure.cluster.x-k8s.io"
	// FailureDomainFinalizer keeps a VCDFailureDomain while VCDDeploymentZones refer to it.
	FailureDomainFinalizer = "vcdfailuredomain.infrastructure.cluster.x-k8s.io"
	// DeploymentZoneFinalizer keeps a VCDDeploymentZone while VCDMachines are in it.
	DeploymentZoneFinalizer = "vcddeploymentzone.infrastructure.cluster.x-k8s.io"
	// SecretFinalizer keeps the Secret of an identity while the identity exists. Kubernetes wants a domain and a
	// slash in the finalizers of its own kinds.
	SecretFinalizer = "infrastructure.cluster.x-k8s.io/vcdidentity"
	// AddressFinalizer keeps an IPAddress while a VM, or the endpoint of a cluster, may use the address.
	AddressFinalizer = "infrastructure.cluster.x-k8s.io/address-in-use"
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

// IdentityReference names the identity that is used to work in VCD.
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

// LocalSecretReference names a Secret in the same namespace.
type LocalSecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// IPPoolReference names a pool of the Cluster API IPAM contract in the same namespace (or a cluster-scoped one).
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
	// first address of the range.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	First string `json:"first,omitempty"`

	// last address of the range, which is part of it.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	Last string `json:"last,omitempty"`
}

// ResourceReference is a VCD object as it was found: its name can change, its id cannot.
type ResourceReference struct {
	// name of the object when it was last seen.
	// +optional
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
	// provisioned is true once the infrastructure was complete for the first time. It never becomes false again.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// ObjectMeta is the metadata that a template passes on.
type ObjectMeta struct {
	// labels of the objects made from the template.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the objects made from the template.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
