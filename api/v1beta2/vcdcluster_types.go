// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIEndpoint is the address of the cluster's API server.
type APIEndpoint struct {
	// host of the API server.
	Host string `json:"host"`

	// port of the API server.
	Port int `json:"port"`
}

// SecretReference names a Secret.
// +structType=atomic
type SecretReference struct {
	// name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the Secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// UserCredentialsContext has credentials, or names the Secret that has them.
type UserCredentialsContext struct {
	// username in VCD.
	// +optional
	Username string `json:"username,omitempty"`

	// password of the user.
	// +optional
	Password string `json:"password,omitempty"`

	// refreshToken is an API token of the user.
	// +optional
	RefreshToken string `json:"refreshToken,omitempty"`

	// secretRef names a Secret with the keys username, password and refreshToken, which override the fields.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// VCDResource is an object in VCD.
type VCDResource struct {
	// type of the object.
	// +optional
	Type string `json:"type,omitempty"`

	// id is the URN of the object.
	ID string `json:"id"`

	// name of the object.
	Name string `json:"name"`
}

// VCDResourceMap has the objects in VCD that were found, by type.
type VCDResourceMap struct {
	// ovdcs are organization VDCs.
	// +optional
	Ovdcs []VCDResource `json:"ovdcs,omitempty"`
}

// ProxyConfig is the HTTP proxy of nodes.
type ProxyConfig struct {
	// httpProxy is the URL of the proxy for http.
	// +optional
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy for https.
	// +optional
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// noProxy lists what is reached without the proxy, separated by commas.
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}

// LoadBalancerConfig configures the load balancers of the cluster.
type LoadBalancerConfig struct {
	// useOneArm puts virtual services on internal addresses behind DNAT rules.
	// +optional
	UseOneArm bool `json:"useOneArm,omitempty"`

	// vipSubnet limits which external addresses may be taken, as a CIDR.
	// +optional
	VipSubnet string `json:"vipSubnet,omitempty"`
}

// VCDClusterSpec is the desired state of a VCDCluster.
type VCDClusterSpec struct {
	// controlPlaneEndpoint is the address of the cluster's API server.
	// +optional
	ControlPlaneEndpoint APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// site is the URL of VMware Cloud Director.
	Site string `json:"site"`

	// org is the name of the organization.
	Org string `json:"org"`

	// ovdc is the organization VDC.
	Ovdc string `json:"ovdc"`

	// ovdcNetwork is the name of the network of the nodes.
	OvdcNetwork string `json:"ovdcNetwork"`

	// userContext has the credentials.
	UserCredentialsContext UserCredentialsContext `json:"userContext"`

	// rdeId is the URN of the cluster's runtime defined entity.
	// +optional
	RDEID string `json:"rdeId,omitempty"`

	// parentUid is the id of the management cluster's entity.
	// +optional
	ParentUID string `json:"parentUid,omitempty"`

	// useAsManagementCluster marks the cluster as a management cluster.
	// +optional
	// +kubebuilder:default=false
	UseAsManagementCluster bool `json:"useAsManagementCluster,omitempty"`

	// proxyConfigSpec is the HTTP proxy of nodes.
	// +optional
	ProxyConfigSpec ProxyConfig `json:"proxyConfigSpec,omitempty,omitzero"`

	// loadBalancerConfigSpec configures the load balancers of the cluster.
	// +optional
	LoadBalancerConfigSpec LoadBalancerConfig `json:"loadBalancerConfigSpec,omitempty,omitzero"`
}

// VCDClusterStatus is the observed state of a VCDCluster.
type VCDClusterStatus struct {
	// ready is true when the infrastructure is complete.
	// +kubebuilder:default=false
	Ready bool `json:"ready"`

	// rdeVersionInUse is the version of the runtime defined entity's type.
	// +kubebuilder:default="1.1.0"
	RDEVersionInUse string `json:"rdeVersionInUse"`

	// vappMetadataUpdated is true once the vApp has its metadata.
	// +optional
	VAppMetadataUpdated bool `json:"vappMetadataUpdated,omitempty"`

	// conditions of the cluster.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`

	// site is a copy of the spec.
	// +optional
	Site string `json:"site,omitempty"`

	// vcdResourceMap has the objects in VCD that were found.
	// +optional
	VCDResourceMap VCDResourceMap `json:"vcdResourceMap,omitempty,omitzero"`

	// org is a copy of the spec.
	// +optional
	Org string `json:"org,omitempty"`

	// ovdc is a copy of the spec.
	// +optional
	Ovdc string `json:"ovdc,omitempty"`

	// ovdcNetwork is a copy of the spec.
	// +optional
	OvdcNetwork string `json:"ovdcNetwork,omitempty"`

	// infraId identifies the cluster in VCD.
	// +optional
	InfraID string `json:"infraId,omitempty"`

	// parentUid is a copy of the spec.
	// +optional
	ParentUID string `json:"parentUid,omitempty"`

	// useAsManagementCluster is a copy of the spec.
	// +optional
	UseAsManagementCluster bool `json:"useAsManagementCluster,omitempty"`

	// proxyConfig is a copy of the spec.
	// +optional
	ProxyConfig ProxyConfig `json:"proxyConfig,omitempty,omitzero"`

	// loadBalancerConfig is a copy of the spec.
	// +optional
	LoadBalancerConfig LoadBalancerConfig `json:"loadBalancerConfig,omitempty,omitzero"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdclusters,shortName=vcdc,scope=Namespaced,categories=cluster-api
// +kubebuilder:deprecatedversion:warning="infrastructure.cluster.x-k8s.io/v1beta2 VCDCluster is deprecated; use infrastructure.cluster.x-k8s.io/v1beta4 VCDCluster"

// VCDCluster is the infrastructure of a Cluster in VMware Cloud Director.
type VCDCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec VCDClusterSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status VCDClusterStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:object:root=true

// VCDClusterList is a list of VCDClusters.
type VCDClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the VCDClusters.
	Items []VCDCluster `json:"items"`
}
