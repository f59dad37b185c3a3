// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Keys of the Secret of an identity.
const (
	// SecretUsername is the user name; "org/user" logs in to another organization ("System/administrator").
	SecretUsername = "username"
	// SecretPassword is the password of the user.
	SecretPassword = "password"
	// SecretAPIToken is an API token; it takes precedence over user name and password.
	SecretAPIToken = "apiToken"
	// SecretRefreshToken is CAPVCD's key of the API token; used without apiToken.
	SecretRefreshToken = "refreshToken"
	// SecretCABundle is the certificate authority of the site, PEM.
	SecretCABundle = "ca.crt"
)

// CredentialType is the kind of credentials.
// +kubebuilder:validation:Enum=User;ServiceAccount
type CredentialType string

// Credential types.
const (
	// CredentialUser is a user's password or API token.
	CredentialUser CredentialType = "User"
	// CredentialServiceAccount is a service account, whose token rotates with each login. apiToken in the Secret is the
	// token for the next login; the client that logs in, either the manager or one cloud controller manager, stores the
	// new token.
	CredentialServiceAccount CredentialType = "ServiceAccount"
)

// IdentityTLS configures the verification of the site's certificate.
// +kubebuilder:validation:XValidation:rule="!has(self.caBundle) || !has(self.insecureSkipVerify) || !self.insecureSkipVerify",message="caBundle and insecureSkipVerify are mutually exclusive: the bundle would be ignored"
// +kubebuilder:validation:MinProperties=1
type IdentityTLS struct {
	// caBundle is the PEM bundle of certificate authorities to trust, instead of the system's. If the Secret also has
	// the key ca.crt, both bundles are trusted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	CABundle string `json:"caBundle,omitempty"`

	// insecureSkipVerify accepts any certificate. Never use it with production credentials.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// AnyOrg in the list of organizations of a VCDClusterIdentity allows all.
const AnyOrg = "*"

// VCDIdentitySpec is a site and the credentials for it.
type VCDIdentitySpec struct {
	// site is the URL of the VMware Cloud Director that the credentials are for, such as https://vcd.example.com.
	// Credentials are sent only to this site: a VCDCluster with another site cannot use them. Mutable in place.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != ''",message="must be an https URL, such as https://vcd.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || (url(self).getEscapedPath() == '' && url(self).getQuery().size() == 0 && !self.contains('@') && !self.contains('#') && !self.endsWith('?'))",message="must contain only scheme, host and port, without a trailing slash"
	Site string `json:"site,omitempty"`

	// secretRef is the Secret with the credentials: username and password, or apiToken. Mutable in place. The
	// identity owns the Secret. With type ServiceAccount, no other identity may use the same Secret for another
	// purpose.
	// +required
	SecretRef LocalSecretReference `json:"secretRef,omitempty,omitzero"`

	// type of the credentials: User, which is the default, or ServiceAccount. Mutable in place.
	// +optional
	// +kubebuilder:default=User
	Type CredentialType `json:"type,omitempty"`

	// tls configures the verification of the site's certificate. Mutable in place.
	// +optional
	TLS IdentityTLS `json:"tls,omitempty,omitzero"`

	// shareWithClusters allows these credentials to be copied into workload clusters, for their cloud controller
	// managers. The administrators of those clusters can read them. False if empty. Credentials of a VCDClusterIdentity
	// or of a system administrator are never copied. Mutable in place.
	// +optional
	ShareWithClusters *bool `json:"shareWithClusters,omitempty"`

	// allowedExtraConfig are patterns of the keys that VCDMachines may set in spec.extraConfig, such as pciPassthru*. An
	// asterisk stands for any characters. None is allowed if empty. Mutable in place.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.:*-]+$`
	AllowedExtraConfig []string `json:"allowedExtraConfig,omitempty"`
}

// VCDIdentityStatus is the observed state of an identity.
// +kubebuilder:validation:MinProperties=1
type VCDIdentityStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the identity, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdidentities,shortName=vcdid,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Secret",type="string",JSONPath=`.spec.secretRef.name`,description="Secret with the credentials"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether its Secret is complete, and logs in where it is used"
// +kubebuilder:printcolumn:name="Logged In",type="string",JSONPath=`.status.conditions[?(@.type=="LoggedIn")].status`,description="Whether it logs in; empty while no VCDCluster uses it"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not"
// +kubebuilder:printcolumn:name="Site",type="string",JSONPath=`.spec.site`,description="VMware Cloud Director",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDIdentity is an identity for the clusters of its namespace.
type VCDIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VCDIdentitySpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDIdentityStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (i *VCDIdentity) GetConditions() []metav1.Condition { return i.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (i *VCDIdentity) ObserveGeneration() { i.Status.ObservedGeneration = i.Generation }

// SetConditions replaces the conditions.
func (i *VCDIdentity) SetConditions(conditions []metav1.Condition) { i.Status.Conditions = conditions }

// +kubebuilder:object:root=true

// VCDIdentityList is a list of VCDIdentities.
type VCDIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDIdentities.
	Items []VCDIdentity `json:"items"`
}

// VCDClusterIdentitySpec is an identity, with the namespaces and organizations that may use it. Its Secret is in the
// manager's namespace.
type VCDClusterIdentitySpec struct {
	VCDIdentitySpec `json:",inline"`

	// orgs are the organizations for which VCDClusters may use the identity; "*" allows all organizations of the site.
	// Mutable in place.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	Orgs []string `json:"orgs,omitempty"`

	// allowedNamespaces selects the namespaces whose clusters may use the identity: none if empty. Mutable in place.
	// +optional
	AllowedNamespaces *AllowedNamespaces `json:"allowedNamespaces,omitempty"`
}

// AllowedNamespaces are the listed and selected namespaces.
type AllowedNamespaces struct {
	// list of namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	List []string `json:"list,omitempty"`

	// selector of namespaces by label; an empty selector selects all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdclusteridentities,shortName=vcdcid,scope=Cluster,categories=cluster-api
// +kubebuilder:printcolumn:name="Secret",type="string",JSONPath=`.spec.secretRef.name`,description="Secret with the credentials"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether its Secret is complete, and logs in where it is used"
// +kubebuilder:printcolumn:name="Logged In",type="string",JSONPath=`.status.conditions[?(@.type=="LoggedIn")].status`,description="Whether it logs in; empty while no VCDCluster uses it"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not"
// +kubebuilder:printcolumn:name="Site",type="string",JSONPath=`.spec.site`,description="VMware Cloud Director",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDClusterIdentity is an identity for the clusters of several namespaces.
type VCDClusterIdentity struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec VCDClusterIdentitySpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDIdentityStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (i *VCDClusterIdentity) GetConditions() []metav1.Condition { return i.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (i *VCDClusterIdentity) ObserveGeneration() { i.Status.ObservedGeneration = i.Generation }

// SetConditions replaces the conditions.
func (i *VCDClusterIdentity) SetConditions(conditions []metav1.Condition) {
	i.Status.Conditions = conditions
}

// +kubebuilder:object:root=true

// VCDClusterIdentityList is a list of VCDClusterIdentities.
type VCDClusterIdentityList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDClusterIdentities.
	Items []VCDClusterIdentity `json:"items"`
}
