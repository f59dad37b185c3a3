// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// VCDClusterSpec is the desired state of a VCDCluster.
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancer) || !has(self.cloudProvider) || !has(self.cloudProvider.mode) || self.cloudProvider.mode == 'Managed'",fieldPath=".loadBalancer",message="may only be set when cloudProvider.mode is Managed: other cloud controller managers have their own configuration"
// +kubebuilder:validation:XValidation:rule="!has(self.failureDomainSelector) || (!self.?cloudProvider.?nodes.?zones.hasValue() && !self.?cloudProvider.?nodes.?region.hasValue())",fieldPath=".cloudProvider.nodes",message="cannot have zones or region when failureDomainSelector is set: VCDFailureDomains define them"
// +kubebuilder:validation:XValidation:rule="!has(self.vAppMetadata) || !has(self.vApp) || !has(self.vApp.layout) || self.vApp.layout != 'PerMachine'",fieldPath=".vAppMetadata",message="cannot be set when vApp.layout is PerMachine: set vmMetadata of the machines"
type VCDClusterSpec struct {
	// infraID identifies the cluster in VCD. Every object of the cluster there is marked with it, and `clusterctl move`
	// keeps it. It is a UUID, or the ID from CAPVCD: urn:vcloud:entity:vmware:capvcdCluster:<UUID> or NO_RDE_<UUID>.
	// Written by the controller once VDC, network and endpoint are found. Until then, nothing is created in VCD, and an
	// invalid spec can be corrected. Immutable once set.
	// +optional
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=75
	// +kubebuilder:validation:XValidation:rule="self.matches('^(urn:vcloud:entity:vmware:capvcdCluster:|NO_RDE_)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be a UUID, or the ID of a CAPVCD cluster: urn:vcloud:entity:vmware:capvcdCluster:<UUID> or NO_RDE_<UUID>; remove the field for a new cluster"
	InfraID string `json:"infraID,omitempty"`

	// controlPlaneEndpoint is the endpoint of the cluster's API server. host is its address or DNS name. If empty, the
	// controller sets it: the address that it claimed from a pool (type KubeVIP with addressSource IPAM), or a free
	// address of the edge gateway (type EdgeGateway). port is 6443 if empty. Immutable once infraID is set.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`

	// site is the URL of VMware Cloud Director without a path, such as https://vcd.example.com. Immutable once
	// infraID is set.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() == 'https' && url(self).getHostname() != ''",message="must be an https URL, such as https://vcd.example.com"
	// +kubebuilder:validation:XValidation:rule="!isURL(self) || (url(self).getEscapedPath() == '' && url(self).getQuery().size() == 0 && !self.contains('@') && !self.contains('#') && !self.endsWith('?'))",message="must contain only scheme, host and port, without a trailing slash"
	Site string `json:"site,omitempty"`

	// org is the name of the organization. Immutable once infraID is set.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Org string `json:"org,omitempty"`

	// ovdc is the name or URN of the organization VDC. Immutable once infraID is set. Not required when
	// failureDomainSelector selects zones.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OVDC string `json:"ovdc,omitempty"`

	// ovdcNetwork is the name or URN of the organization VDC network of the nodes' first NIC. Immutable once infraID is
	// set. Not required when failureDomainSelector selects zones.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OVDCNetwork string `json:"ovdcNetwork,omitempty"`

	// identityRef is the identity for requests to VCD. Mutable in place.
	// +required
	IdentityRef IdentityReference `json:"identityRef,omitempty,omitzero"`

	// controlPlaneLoadBalancer configures the load balancer for controlPlaneEndpoint. Immutable once infraID is set,
	// except kube-vip's image, interface and bgp.
	// +optional
	// +kubebuilder:default={type: KubeVIP}
	ControlPlaneLoadBalancer ControlPlaneLoadBalancerSpec `json:"controlPlaneLoadBalancer,omitempty,omitzero"`

	// vApp configures the grouping of the cluster's VMs. Immutable once infraID is set.
	// +optional
	// +kubebuilder:default={layout: PerFailureDomain}
	VApp VAppSpec `json:"vApp,omitempty,omitzero"`

	// vAppMetadata is metadata of the vApps of the cluster in VCD, for example for billing. Cannot be set with vApp
	// layout PerMachine. Mutable in place.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	VAppMetadata []MetadataEntry `json:"vAppMetadata,omitempty"`

	// failureDomainSelector selects the VCDDeploymentZones of this namespace that the cluster may use; an empty
	// selector selects all of them. Mutable in place.
	// +optional
	FailureDomainSelector *metav1.LabelSelector `json:"failureDomainSelector,omitempty"`

	// cloudProvider configures the cloud controller manager of the workload cluster. Mutable in place.
	// +required
	CloudProvider CloudProviderSpec `json:"cloudProvider,omitempty,omitzero"`

	// proxy is the HTTP proxy of nodes and pods. Mutable in place; takes effect on new nodes and new pods.
	// +optional
	Proxy ProxySpec `json:"proxy,omitempty,omitzero"`

	// kubeletServingCertificates is Approve or Ignore; Ignore if empty. Approve approves certificate signing requests
	// of kubelets whose names and addresses match their machines in VCD. Mutable in place.
	// +optional
	KubeletServingCertificates KubeletServingCertificates `json:"kubeletServingCertificates,omitempty"`

	// loadBalancer configures load balancers for Services, for a cloud controller manager of mode Managed. Mutable in
	// place; existing load balancers keep their addresses.
	// +optional
	LoadBalancer LoadBalancerSpec `json:"loadBalancer,omitempty,omitzero"`

	// orphanedDiskPolicy is the policy for this cluster's named (independent) disks when the cluster is deleted.
	// Retain, the default, keeps them and lists them in an event. Delete deletes detached disks whose description has
	// the marker of this cluster, or only its infraID. Mutable in place.
	// +optional
	// +kubebuilder:default=Retain
	OrphanedDiskPolicy OrphanedDiskPolicy `json:"orphanedDiskPolicy,omitempty"`

	// rde configures the runtime defined entity for the VCD portal. Mutable in place.
	// +optional
	// +kubebuilder:default={mode: None}
	RDE RDESpec `json:"rde,omitempty,omitzero"`

	// capvcdCredentials are the credentials of a VCDCluster of CAPVCD. Only its conversion sets them: requests in this
	// version may remove them, but are rejected if they set or change them. The controller moves them to a Secret and
	// the VCDIdentity in identityRef, and removes them here: written by the controller.
	// +optional
	CAPVCDCredentials *CAPVCDCredentials `json:"capvcdCredentials,omitempty"`

	// recordedState is internal state of the controllers. Written by the controller: do not set it.
	// +optional
	RecordedState VCDClusterRecordedState `json:"recordedState,omitempty,omitzero"`
}

// VAppLayout is the grouping of VMs in vApps.
// +kubebuilder:validation:Enum=PerFailureDomain;PerMachine;PerCluster
type VAppLayout string

// vApp layouts.
const (
	// VAppPerFailureDomain is one vApp in each failure domain, with the name of the cluster and that of the
	// VCDDeploymentZone, or one vApp without failure domains.
	VAppPerFailureDomain VAppLayout = "PerFailureDomain"
	// VAppPerMachine is one vApp for each machine, with the VM's name: VCD creates them in parallel. VMware's CSI
	// driver up to 1.6 and cloud provider up to 1.6.1 do not find nodes in them.
	VAppPerMachine VAppLayout = "PerMachine"
	// VAppPerCluster is one vApp for the cluster in each VDC.
	VAppPerCluster VAppLayout = "PerCluster"
)

// VAppSpec configures the grouping of the cluster's VMs.
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.layout) || self.layout != 'PerMachine'",fieldPath=".name",message="cannot be set when layout is PerMachine: each vApp has the name of its VM"
// +kubebuilder:validation:MinProperties=1
type VAppSpec struct {
	// layout of the vApps: PerFailureDomain (default), PerMachine or PerCluster.
	// +optional
	// +kubebuilder:default=PerFailureDomain
	Layout VAppLayout `json:"layout,omitempty"`

	// name of the vApp; the cluster's name if empty. Cannot be set with layout PerMachine. An existing vApp with this
	// name that does not belong to the cluster is never changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
}

// KubeletServingCertificates is the policy for certificate signing requests of kubelets.
// +kubebuilder:validation:Enum=Approve;Ignore
type KubeletServingCertificates string

// Policies for certificate signing requests of kubelets.
const (
	// ServingCertificatesApprove approves requests whose names and addresses match their machines in VCD.
	ServingCertificatesApprove KubeletServingCertificates = "Approve"
	// ServingCertificatesIgnore ignores them.
	ServingCertificatesIgnore KubeletServingCertificates = "Ignore"
)

// PodProxyMode determines whether pods of the workload cluster get the proxy's environment.
// +kubebuilder:validation:Enum=Inject;None
type PodProxyMode string

// Pod proxy modes.
const (
	// PodProxyInject adds it to new pods with admission policies of the workload cluster.
	PodProxyInject PodProxyMode = "Inject"
	// PodProxyNone does not change pods.
	PodProxyNone PodProxyMode = "None"
)

// SiteAccess is the route of a workload cluster to VMware Cloud Director.
// +kubebuilder:validation:Enum=Direct;Proxy
type SiteAccess string

// Routes to the site.
const (
	// SiteDirect is without the proxy.
	SiteDirect SiteAccess = "Direct"
	// SiteByProxy is through the proxy.
	SiteByProxy SiteAccess = "Proxy"
)

// ProxySpec is the HTTP proxy of nodes and pods.
// +kubebuilder:validation:XValidation:rule="!has(self.credentialsSecretRef) || ((!has(self.httpProxy) || !self.httpProxy.contains('@')) && (!has(self.httpsProxy) || !self.httpsProxy.contains('@')))",fieldPath=".credentialsSecretRef",message="may only be set when the URLs have no user name and password"
// +kubebuilder:validation:XValidation:rule="self.?site.orValue('Direct') != 'Proxy' || has(self.httpsProxy)",fieldPath=".httpsProxy",message="is required when site is Proxy: the site uses https"
// +kubebuilder:validation:MinProperties=1
type ProxySpec struct {
	// httpProxy is the URL of the proxy for http, such as http://proxy.example.com:3128. A password in it is visible to
	// all users who can read this object: use credentialsSecretRef instead.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy for https, which container registries require. Most proxies serve both under
	// the same URL, which begins with http.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// credentialsSecretRef is a Secret in the same namespace with the keys username and password, which are added to both
	// URLs. Nodes, and pods that get the proxy's environment, can read them. With it, the URLs must have no user name.
	// +optional
	CredentialsSecretRef LocalSecretReference `json:"credentialsSecretRef,omitempty,omitzero"`

	// noProxy lists further hosts, domains (with a leading dot) and networks that are reached without the proxy. The
	// cluster's Services, pods, endpoint and node networks are added, and the site unless site is Proxy.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	NoProxy []string `json:"noProxy,omitempty"`

	// site is how the managed cloud controller manager, nodes and pods reach VMware Cloud Director:
	// Direct, which is the default, or Proxy, where nodes have no other way to it.
	// +optional
	// +kubebuilder:default=Direct
	Site SiteAccess `json:"site,omitempty"`

	// pods is Inject, which is the default, for admission policies in the workload cluster that add the proxy's
	// environment to new pods, or None. They require Kubernetes 1.36, or an earlier version with the API enabled.
	// +optional
	// +kubebuilder:default=Inject
	Pods PodProxyMode `json:"pods,omitempty"`
}

// OrphanedDiskPolicy is what happens to named disks when their cluster is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type OrphanedDiskPolicy string

// Orphaned-disk policies.
const (
	// OrphanedDiskRetain keeps named disks.
	OrphanedDiskRetain OrphanedDiskPolicy = "Retain"
	// OrphanedDiskDelete deletes the cluster's named disks.
	OrphanedDiskDelete OrphanedDiskPolicy = "Delete"
)

// RDEMode is whether the cluster has a runtime defined entity.
// +kubebuilder:validation:Enum=None;Project
type RDEMode string

// RDE modes.
const (
	// RDENone writes no runtime defined entity. One that exists stays as it is, also when the cluster is deleted.
	RDENone RDEMode = "None"
	// RDEProject keeps one up to date, as a view of the Kubernetes objects, and deletes it after all else of the
	// cluster.
	RDEProject RDEMode = "Project"
)

// RDESpec configures the runtime defined entity.
// +kubebuilder:validation:MinProperties=1
type RDESpec struct {
	// mode is None, which is the default, or Project: a runtime defined entity shows the cluster in VCD. The cluster
	// does not depend on it.
	// +optional
	// +kubebuilder:default=None
	Mode RDEMode `json:"mode,omitempty"`

	// id is the URN of an existing entity to use, such as urn:vcloud:entity:vmware:capvcdCluster:<UUID>; it is not
	// deleted with the cluster. If empty, infraID is used if it is such a URN; otherwise an entity is created.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ID string `json:"id,omitempty"`

	// parentUID is the id of the management cluster's entity. If empty, the current value of the entity is kept.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ParentUID string `json:"parentUID,omitempty"`

	// useAsManagementCluster marks the cluster as a management cluster. If unset, the current value of the entity is kept.
	// +optional
	UseAsManagementCluster *bool `json:"useAsManagementCluster,omitempty"`

	// includeKubeconfig also writes the admin kubeconfig to the entity's private section. All users who can read that
	// section in VCD are administrators of the cluster. False removes it again. If unset, the section is not changed.
	// +optional
	IncludeKubeconfig *bool `json:"includeKubeconfig,omitempty"`
}

// VCDClusterStatus is the observed state of a VCDCluster.
// +kubebuilder:validation:MinProperties=1
type VCDClusterStatus struct {
	// observedGeneration is the generation of the object that the conditions are of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the cluster, with Ready as their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization follows the Cluster API contract.
	// +optional
	Initialization InitializationStatus `json:"initialization,omitempty,omitzero"`

	// failureDomains are the zones that machines can be placed in.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	FailureDomains []clusterv1.FailureDomain `json:"failureDomains,omitempty"`

	// ovdc is the organization VDC in VCD.
	// +optional
	OVDC *ResourceReference `json:"ovdc,omitempty"`

	// ovdcNetwork is the network in VCD.
	// +optional
	OVDCNetwork *ResourceReference `json:"ovdcNetwork,omitempty"`

	// virtualIPs are the addresses that kube-vip announces, the endpoint's host first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	VirtualIPs []string `json:"virtualIPs,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vcdclusters,shortName=vcdc,scope=Namespaced,categories=cluster-api
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=`.metadata.labels.cluster\.x-k8s\.io/cluster-name`,description="Cluster"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the object is ready"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Why it is not"
// +kubebuilder:printcolumn:name="Provisioned",type="boolean",JSONPath=`.status.initialization.provisioned`,description="Whether the infrastructure was complete once"
// +kubebuilder:printcolumn:name="CloudProvider",type="string",JSONPath=`.status.conditions[?(@.type=="CloudProviderReady")].status`,description="Whether the managed cloud controller manager runs; empty if there is none"
// +kubebuilder:printcolumn:name="Paused",type="string",JSONPath=`.status.conditions[?(@.type=="Paused")].status`,description="Whether reconciliation is paused",priority=10
// +kubebuilder:printcolumn:name="Endpoint",type="string",JSONPath=`.spec.controlPlaneEndpoint.host`,description="Host of the API server"
// +kubebuilder:printcolumn:name="Site",type="string",JSONPath=`.spec.site`,description="VMware Cloud Director",priority=10
// +kubebuilder:printcolumn:name="Org",type="string",JSONPath=`.spec.org`,description="Organization",priority=10
// +kubebuilder:printcolumn:name="OVDC",type="string",JSONPath=`.spec.ovdc`,description="Organization VDC",priority=10
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=`.metadata.creationTimestamp`,description="Time since creation"

// VCDCluster is the infrastructure of a Cluster in VMware Cloud Director.
type VCDCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (has(self.infraID) && self.infraID == oldSelf.infraID)",fieldPath=".infraID",message="is immutable once set: it identifies objects in VCD"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || self.site == oldSelf.site",fieldPath=".site",message="is immutable once infraID is set: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || self.org == oldSelf.org",fieldPath=".org",message="is immutable once infraID is set: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (has(self.ovdc) ? has(oldSelf.ovdc) && self.ovdc == oldSelf.ovdc : !has(oldSelf.ovdc))",fieldPath=".ovdc",message="is immutable once infraID is set: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (has(self.ovdcNetwork) ? has(oldSelf.ovdcNetwork) && self.ovdcNetwork == oldSelf.ovdcNetwork : !has(oldSelf.ovdcNetwork))",fieldPath=".ovdcNetwork",message="is immutable once infraID is set: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (has(self.vApp) ? has(oldSelf.vApp) && self.vApp == oldSelf.vApp : !has(oldSelf.vApp))",fieldPath=".vApp",message="is immutable once infraID is set: create another cluster"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || !has(oldSelf.controlPlaneEndpoint) || !has(oldSelf.controlPlaneEndpoint.host) || (has(self.controlPlaneEndpoint) && has(self.controlPlaneEndpoint.host) && self.controlPlaneEndpoint.host == oldSelf.controlPlaneEndpoint.host && (!has(oldSelf.controlPlaneEndpoint.port) || (has(self.controlPlaneEndpoint.port) && self.controlPlaneEndpoint.port == oldSelf.controlPlaneEndpoint.port)))",fieldPath=".controlPlaneEndpoint",message="is immutable once infraID is set: the certificates of nodes contain it"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (self.controlPlaneLoadBalancer.type == oldSelf.controlPlaneLoadBalancer.type && ((has(self.controlPlaneLoadBalancer.edgeGateway)) ? (has(oldSelf.controlPlaneLoadBalancer.edgeGateway)) && self.controlPlaneLoadBalancer.edgeGateway == oldSelf.controlPlaneLoadBalancer.edgeGateway : !(has(oldSelf.controlPlaneLoadBalancer.edgeGateway))))",fieldPath=".controlPlaneLoadBalancer",message="is immutable once infraID is set, except kubeVIP.image, kubeVIP.interface and kubeVIP.bgp"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.addressSource)) && self.controlPlaneLoadBalancer.kubeVIP.addressSource == 'IPAM') == ((has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.addressSource)) && oldSelf.controlPlaneLoadBalancer.kubeVIP.addressSource == 'IPAM') && ((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.addressSource)) && self.controlPlaneLoadBalancer.kubeVIP.addressSource == 'DHCP') == ((has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.addressSource)) && oldSelf.controlPlaneLoadBalancer.kubeVIP.addressSource == 'DHCP') && ((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.mode)) && self.controlPlaneLoadBalancer.kubeVIP.mode == 'DaemonSet') == ((has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.mode)) && oldSelf.controlPlaneLoadBalancer.kubeVIP.mode == 'DaemonSet') && ((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.secondaryAddress)) ? (has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryAddress)) && self.controlPlaneLoadBalancer.kubeVIP.secondaryAddress == oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryAddress : !(has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryAddress))))",fieldPath=".controlPlaneLoadBalancer.kubeVIP",message="is immutable once infraID is set, except image, interface and bgp"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || (((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.poolRefs)) ? (has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.poolRefs)) && self.controlPlaneLoadBalancer.kubeVIP.poolRefs == oldSelf.controlPlaneLoadBalancer.kubeVIP.poolRefs : !(has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.poolRefs))) && ((has(self.controlPlaneLoadBalancer.kubeVIP) && has(self.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs)) ? (has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs)) && self.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs == oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs : !(has(oldSelf.controlPlaneLoadBalancer.kubeVIP) && has(oldSelf.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs))))",fieldPath=".controlPlaneLoadBalancer.kubeVIP",message="is immutable once infraID is set"
	// +kubebuilder:validation:XValidation:rule="has(self.ovdc) || has(self.failureDomainSelector)",fieldPath=".ovdc",reason=FieldValueRequired,message="must be set to an organization VDC, unless failureDomainSelector is set"
	// +kubebuilder:validation:XValidation:rule="has(self.ovdcNetwork) || has(self.failureDomainSelector)",fieldPath=".ovdcNetwork",reason=FieldValueRequired,message="must be set to an organization VDC network, unless failureDomainSelector is set"
	// +kubebuilder:validation:XValidation:rule="self.controlPlaneLoadBalancer.type != 'KubeVIP' || self.?controlPlaneEndpoint.?host.hasValue() || self.controlPlaneLoadBalancer.?kubeVIP.?poolRefs.hasValue()",fieldPath=".controlPlaneEndpoint.host",reason=FieldValueRequired,message="must be set for type KubeVIP, unless controlPlaneLoadBalancer.kubeVIP has pools (addressSource IPAM)"
	// +kubebuilder:validation:XValidation:rule="!has(self.capvcdCredentials) || (oldSelf.hasValue() && has(oldSelf.value().capvcdCredentials) && oldSelf.value().capvcdCredentials == self.capvcdCredentials)",optionalOldSelf=true,fieldPath=".capvcdCredentials",reason=FieldValueForbidden,message="may only be removed: store credentials in a Secret, and refer to it in a VCDIdentity"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || !oldSelf.?recordedState.?ovdcID.hasValue() || !self.?recordedState.?ovdcID.hasValue() || self.recordedState.ovdcID == oldSelf.recordedState.ovdcID",fieldPath=".recordedState.ovdcID",reason=FieldValueForbidden,message="is immutable: remove it to look up the name in the spec again"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || !oldSelf.?recordedState.?ovdcNetworkID.hasValue() || !self.?recordedState.?ovdcNetworkID.hasValue() || self.recordedState.ovdcNetworkID == oldSelf.recordedState.ovdcNetworkID",fieldPath=".recordedState.ovdcNetworkID",reason=FieldValueForbidden,message="is immutable: remove it to look up the name in the spec again"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.infraID) || !oldSelf.?recordedState.?endpointGatewayID.hasValue() || !self.?recordedState.?endpointGatewayID.hasValue() || self.recordedState.endpointGatewayID == oldSelf.recordedState.endpointGatewayID",fieldPath=".recordedState.endpointGatewayID",reason=FieldValueForbidden,message="is immutable: remove it to look up the name in the spec again"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?nodeProxy.hasValue() || self.?recordedState.?nodeProxy.hasValue()",fieldPath=".recordedState",reason=FieldValueForbidden,message="nodeProxy cannot be removed: the controllers need it"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?loadBalancersAllowed.hasValue() || self.?recordedState.?loadBalancersAllowed.hasValue()",fieldPath=".recordedState",reason=FieldValueForbidden,message="loadBalancersAllowed cannot be removed: the controllers need it"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?vAppCount.hasValue() || self.?recordedState.?vAppCount.hasValue()",fieldPath=".recordedState",reason=FieldValueForbidden,message="vAppCount cannot be removed: the controllers need it"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?vAppIDs.hasValue() || (self.?recordedState.?vAppIDs.hasValue() && self.recordedState.vAppIDs.size() >= oldSelf.recordedState.vAppIDs.size())",fieldPath=".recordedState",reason=FieldValueForbidden,message="vAppIDs cannot be removed: vApps of the cluster would be orphaned in VCD"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?edgeGatewayIDs.hasValue() || (self.?recordedState.?edgeGatewayIDs.hasValue() && self.recordedState.edgeGatewayIDs.size() >= oldSelf.recordedState.edgeGatewayIDs.size())",fieldPath=".recordedState",reason=FieldValueForbidden,message="edgeGatewayIDs cannot be removed: load balancers of the cluster would be orphaned in VCD"
	// +kubebuilder:validation:XValidation:rule="!oldSelf.?recordedState.?loadBalancerGatewayIDs.hasValue() || (self.?recordedState.?loadBalancerGatewayIDs.hasValue() && self.recordedState.loadBalancerGatewayIDs.size() >= oldSelf.recordedState.loadBalancerGatewayIDs.size())",fieldPath=".recordedState",reason=FieldValueForbidden,message="loadBalancerGatewayIDs cannot be removed: load balancers of the cluster would be orphaned in VCD"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.recordedState) || has(self.recordedState)",fieldPath=".recordedState",reason=FieldValueForbidden,message="cannot be removed: the controllers need it; remove only the field to look up again"
	Spec VCDClusterSpec `json:"spec,omitempty,omitzero"`

	// status is the observed state.
	// +optional
	Status VCDClusterStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions.
func (c *VCDCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// ObserveGeneration sets status.observedGeneration to the generation of the object.
func (c *VCDCluster) ObserveGeneration() { c.Status.ObservedGeneration = c.Generation }

// SetConditions replaces the conditions.
func (c *VCDCluster) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

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
