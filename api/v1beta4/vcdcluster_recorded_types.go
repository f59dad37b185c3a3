// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDClusterRecordedState is what the controllers must remember of a cluster, and cannot read from VCD again. It is in
// the spec because `clusterctl move` and backups restore no status. Only the controllers write it; what a user may
// remove says so.
// +kubebuilder:validation:MinProperties=1
type VCDClusterRecordedState struct {
	// ovdcID is the URN of the VDC of the cluster, so that the VDC can be renamed in VCD. Written with infraID.
	// Immutable then; a user may remove it to have spec.ovdc looked up again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller writes it, leave it out"
	OVDCID string `json:"ovdcID,omitempty"`

	// ovdcNetworkID is the URN of the network of the cluster, so that the network can be renamed in VCD. Written with
	// infraID. Immutable then; a user may remove it to have spec.ovdcNetwork looked up again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:network:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a network, urn:vcloud:network:<UUID>: the controller writes it, leave it out"
	OVDCNetworkID string `json:"ovdcNetworkID,omitempty"`

	// endpointGatewayID is the URN of the edge gateway that the control-plane endpoint is on. Written before anything is
	// created there. Immutable once infraID is set; a user may remove it to have the gateway looked up again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller writes it, leave it out"
	EndpointGatewayID string `json:"endpointGatewayID,omitempty"`

	// endpointAddresses are the addresses of the control-plane endpoint: those that an endpoint on an edge gateway is
	// made on, which are written before they are used, or the virtual IPs of both families that come from pools.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address: the controller writes it, leave it out"
	EndpointAddresses []string `json:"endpointAddresses,omitempty"`

	// credentialsAccepted is the version of the identity's Secret that last logged in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CredentialsAccepted string `json:"credentialsAccepted,omitempty"`

	// nodeProxy is true once the Secret with the proxy settings of nodes may exist. The Secret is kept when spec.proxy is
	// removed, for templates that name it; it sets nothing then. Never removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="must be true: the controller writes it, leave it out"
	NodeProxy *bool `json:"nodeProxy,omitempty"`

	// affinityRuleOVDCIDs are the URNs of the VDCs that may have anti-affinity rules of the cluster. Written before a rule
	// is created there, and removed when no group asks for rules and all are deleted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller writes it, leave it out"
	AffinityRuleOVDCIDs []string `json:"affinityRuleOVDCIDs,omitempty"`

	// rdeID is the URN of the runtime defined entity that was made for the cluster. A user may remove it to have another
	// one made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=75
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:entity:vmware:capvcdCluster:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an entity, urn:vcloud:entity:vmware:capvcdCluster:<UUID>: the controller writes it, leave it out"
	RDEID string `json:"rdeID,omitempty"`

	// vAppCount is the number of vApps in the cluster's own VDC that VCD was asked to create VMs in. Without it VCD was
	// never asked. Written before the first VM is created in a vApp. It only grows.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="cannot decrease: vApps of the cluster would be left in VCD"
	VAppCount int32 `json:"vAppCount,omitempty"`

	// vAppIDs are the URNs of the vApps in the cluster's own VDC that VMs were deleted from, and of those that are about
	// to be deleted: a renamed vApp is deleted with the cluster, too. URNs are only added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller writes it, leave it out"
	VAppIDs []string `json:"vAppIDs,omitempty"`

	// deletedVAppIDs are the URNs of those vApps, here and in zones, that tasks of this provider deleted with the cluster.
	// Disks may be deleted when all vApps of the cluster are proved gone.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller writes it, leave it out"
	DeletedVAppIDs []string `json:"deletedVAppIDs,omitempty"`

	// vAppMissingSince is, while the cluster is deleted, the time when its vApp was first not found although VCD returned
	// other objects that the user can see. Removed when the vApp is found again.
	// +optional
	VAppMissingSince *metav1.Time `json:"vAppMissingSince,omitempty"`

	// zones are what the cluster has in the VDCs of zones, by the name of the VCDDeploymentZone. An entry is written before
	// the first VM is created there. When the cluster is deleted, its vApps and disks are searched for there. A user may
	// remove an entry if nothing of the cluster is left there, to use the zone with another VDC.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Zones map[string]VCDClusterZoneRecord `json:"zones,omitempty"`

	// edgeGatewayIDs are the URNs of the edge gateways that the network of the cluster was connected to. When the cluster
	// is deleted, its load balancers are searched for there, even if the network is gone. URNs are only added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller writes it, leave it out"
	EdgeGatewayIDs []string `json:"edgeGatewayIDs,omitempty"`

	// loadBalancerGatewayIDs are the URNs of the edge gateways that spec.loadBalancer.edgeGateways names, or named. They
	// are written before the cloud controller manager uses them. When the cluster is deleted, its load balancers are
	// searched for there, too. URNs are only added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller writes it, leave it out"
	LoadBalancerGatewayIDs []string `json:"loadBalancerGatewayIDs,omitempty"`

	// loadBalancersAllowed is true before a cloud controller manager that creates load balancers is first installed. The
	// deletion of such a cluster waits for proof that they are removed, even if load balancers were disabled later.
	// Never removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="must be true: the controller writes it, leave it out"
	LoadBalancersAllowed *bool `json:"loadBalancersAllowed,omitempty"`

	// loadBalancersRemovedAt is, while the cluster is deleted, the time when its last load balancer was removed, within a
	// few seconds. Load balancers are searched for once more when no cloud controller manager can be running that creates
	// them again.
	// +optional
	LoadBalancersRemovedAt *metav1.Time `json:"loadBalancersRemovedAt,omitempty"`

	// inheritedLoadBalancer is what the cloud controller manager takes over from the configuration of another one, where
	// spec.loadBalancer leaves it open. Written before that configuration is replaced. A user may remove it to have the
	// defaults.
	// +optional
	InheritedLoadBalancer InheritedLoadBalancer `json:"inheritedLoadBalancer,omitempty,omitzero"`

	// goneStoppedSince is the time since when no VM of the cluster counts as gone, because VMs of several clusters of the
	// site are missing together. Removed when a user acknowledges that the missing VMs are gone.
	// +optional
	GoneStoppedSince *metav1.Time `json:"goneStoppedSince,omitempty"`

	// lastGoneAt is the time when the last of several missing VMs was declared gone.
	// +optional
	LastGoneAt *metav1.Time `json:"lastGoneAt,omitempty"`

	// detachedDisks are the names of the independent disks that were detached from VMs of the cluster before the VMs were
	// deleted, by the UUID of the disk. They are listed when the cluster is deleted. A user may remove entries.
	// +optional
	// +kubebuilder:validation:MaxProperties=400
	// +kubebuilder:validation:XValidation:rule="self.all(id, id.size() == 36 && self[id].size() <= 256)",message="must be names of at most 256 characters, by UUID: the controller writes it, leave it out"
	DetachedDisks map[string]string `json:"detachedDisks,omitempty"`
}

// VCDClusterZoneRecord is what a cluster has in the VDC of a zone.
type VCDClusterZoneRecord struct {
	// ovdcID is the URN of the VDC of the zone. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller writes it, leave it out"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: it is the VDC that has VMs of the cluster"
	OVDCID string `json:"ovdcID,omitempty"`

	// vAppCount is the number of vApps there that VCD was asked to create VMs in; none with vApp.layout PerMachine. It
	// only grows.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="cannot decrease: vApps of the cluster would be left in VCD"
	VAppCount int32 `json:"vAppCount,omitempty"`

	// vAppIDs are the URNs of the vApps there that VMs were deleted from, and of those that are about to be deleted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller writes it, leave it out"
	VAppIDs []string `json:"vAppIDs,omitempty"`

	// vAppMissingSince is, while the cluster is deleted, the time when its vApp there was first not found. Removed when the
	// vApp is found again.
	// +optional
	VAppMissingSince *metav1.Time `json:"vAppMissingSince,omitempty"`
}

// InheritedLoadBalancer is what a cloud controller manager takes over from the configuration of another one.
// +kubebuilder:validation:MinProperties=1
type InheritedLoadBalancer struct {
	// oneArm is the range of internal addresses of virtual services in one-arm mode. It has no effect if
	// spec.loadBalancer.armMode is set.
	// +optional
	OneArm AddressRange `json:"oneArm,omitempty,omitzero"`

	// vipSubnet limits which external addresses may be taken, as a CIDR.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	VIPSubnet string `json:"vipSubnet,omitempty"`

	// certificateAlias is the name of the certificate of ports that end TLS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CertificateAlias string `json:"certificateAlias,omitempty"`
}
