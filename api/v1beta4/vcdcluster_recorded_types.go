// SPDX-License-Identifier: Apache-2.0

package v1beta4

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VCDClusterRecordedState is state of a cluster that the controllers cannot read from VCD again. It is in the spec
// because `clusterctl move` and backups do not restore the status. Only the controllers write it. A user may remove a
// field only if its description says so.
// +kubebuilder:validation:MinProperties=1
type VCDClusterRecordedState struct {
	// ovdcID is the URN of the VDC of the cluster, so that the VDC can be renamed in VCD. Written with infraID.
	// Immutable then; a user may remove it to look up spec.ovdc again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller sets it, remove the field"
	OVDCID string `json:"ovdcID,omitempty"`

	// ovdcNetworkID is the URN of the network of the cluster, so that the network can be renamed in VCD. Written with
	// infraID. Immutable then; a user may remove it to look up spec.ovdcNetwork again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:network:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a network, urn:vcloud:network:<UUID>: the controller sets it, remove the field"
	OVDCNetworkID string `json:"ovdcNetworkID,omitempty"`

	// endpointGatewayID is the URN of the edge gateway of the control-plane endpoint. Written before objects are
	// created there. Immutable once infraID is set; a user may remove it to look up the gateway again.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller sets it, remove the field"
	EndpointGatewayID string `json:"endpointGatewayID,omitempty"`

	// endpointAddresses are the addresses of the control-plane endpoint: those of an endpoint on an edge gateway, which
	// are written before they are used, or the virtual IPs of both families from pools.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IPv4 or IPv6 address: the controller sets it, remove the field"
	EndpointAddresses []string `json:"endpointAddresses,omitempty"`

	// credentialsAccepted is the version of the identity's Secret that last logged in.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CredentialsAccepted string `json:"credentialsAccepted,omitempty"`

	// nodeProxy is true once the Secret with the proxy settings of nodes may exist. The Secret is kept when spec.proxy
	// is removed, for templates that refer to it, but without settings. Never removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="must be true: the controller sets it, remove the field"
	NodeProxy *bool `json:"nodeProxy,omitempty"`

	// affinityRuleOVDCIDs are the URNs of the VDCs that may have anti-affinity rules of the cluster. Written before a
	// rule is created there, and removed when no group requires rules and all are deleted. A user may remove a VDC that
	// was deleted in VCD.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller sets it, remove the field"
	AffinityRuleOVDCIDs []string `json:"affinityRuleOVDCIDs,omitempty"`

	// rdeID is the URN of the runtime defined entity that was created for the cluster. A user may remove it to create
	// another one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=75
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:entity:vmware:capvcdCluster:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an entity, urn:vcloud:entity:vmware:capvcdCluster:<UUID>: the controller sets it, remove the field"
	RDEID string `json:"rdeID,omitempty"`

	// vAppCount is the number of vApps in the cluster's own VDC for which a VM creation was requested. It is empty
	// before the first request. Written before the first VM is created in a vApp. It never decreases.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="cannot decrease: vApps of the cluster would be orphaned in VCD"
	VAppCount int32 `json:"vAppCount,omitempty"`

	// vAppIDs are the URNs of the vApps in the cluster's own VDC from which VMs were deleted, and of vApps that are
	// about to be deleted, so that a renamed vApp is also deleted with the cluster. URNs are only added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller sets it, remove the field"
	VAppIDs []string `json:"vAppIDs,omitempty"`

	// vAppMetadata is the metadata that the controller wrote to vApps of the cluster: other metadata is not changed. An
	// entry is stored before it is written. Remove the list to write all of spec.vAppMetadata again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	VAppMetadata []RecordedVAppMetadata `json:"vAppMetadata,omitempty"`

	// deletedVAppIDs are the URNs of those vApps, here and in zones, that tasks of this provider deleted with the
	// cluster. Disks may be deleted when the deletion of all vApps of the cluster is proved.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller sets it, remove the field"
	DeletedVAppIDs []string `json:"deletedVAppIDs,omitempty"`

	// vAppMissingSince is, while the cluster is deleted, the time when its vApp was first not found although VCD returned
	// other objects that the user can see. Removed when the vApp is found again.
	// +optional
	VAppMissingSince *metav1.Time `json:"vAppMissingSince,omitempty"`

	// zones are the objects of the cluster in the VDCs of zones, by the name of the VCDDeploymentZone. An entry is
	// written before the first VM is created there. When the cluster is deleted, its vApps and disks are searched for
	// there. A user may remove an entry if the cluster has no objects left there, to use the zone with another VDC.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Zones map[string]VCDClusterZoneRecord `json:"zones,omitempty"`

	// edgeGatewayIDs are the URNs of the edge gateways that the network of the cluster was connected to. When the
	// cluster is deleted, its load balancers are searched for there, even if the network is deleted. URNs are only
	// added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller sets it, remove the field"
	EdgeGatewayIDs []string `json:"edgeGatewayIDs,omitempty"`

	// loadBalancerGatewayIDs are the URNs of the edge gateways that are or were in spec.loadBalancer.edgeGateways. They
	// are written before the cloud controller manager uses them. When the cluster is deleted, its load balancers are
	// searched for there, too. URNs are only added.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:gateway:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of an edge gateway, urn:vcloud:gateway:<UUID>: the controller sets it, remove the field"
	LoadBalancerGatewayIDs []string `json:"loadBalancerGatewayIDs,omitempty"`

	// loadBalancersAllowed is true before a cloud controller manager that creates load balancers is first installed. The
	// deletion of such a cluster waits for proof that they are removed, even if load balancers were disabled later.
	// Never removed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="must be true: the controller sets it, remove the field"
	LoadBalancersAllowed *bool `json:"loadBalancersAllowed,omitempty"`

	// loadBalancersRemovedAt is, while the cluster is deleted, the time when its last load balancer was removed, within a
	// few seconds. Load balancers are searched for once more when no cloud controller manager can be running that creates
	// them again.
	// +optional
	LoadBalancersRemovedAt *metav1.Time `json:"loadBalancersRemovedAt,omitempty"`

	// inheritedLoadBalancer is the configuration that the cloud controller manager inherits from another one, for
	// fields that spec.loadBalancer does not set. Written before that configuration is replaced. A user may remove it
	// to use the defaults.
	// +optional
	InheritedLoadBalancer InheritedLoadBalancer `json:"inheritedLoadBalancer,omitempty,omitzero"`

	// goneStoppedSince is the time since when no VM of the cluster is treated as deleted, because VMs of several
	// clusters of the site are missing at the same time. Removed when a user acknowledges that the missing VMs are
	// deleted.
	// +optional
	GoneStoppedSince *metav1.Time `json:"goneStoppedSince,omitempty"`

	// lastGoneAt is the time when the last of several missing VMs was declared as deleted.
	// +optional
	LastGoneAt *metav1.Time `json:"lastGoneAt,omitempty"`

	// detachedDisks are the names of the independent disks that were detached from VMs of the cluster before the VMs were
	// deleted, by the UUID of the disk. They are listed when the cluster is deleted. A user may remove entries.
	// +optional
	// +kubebuilder:validation:MaxProperties=400
	// +kubebuilder:validation:XValidation:rule="self.all(id, id.size() == 36 && self[id].size() <= 256)",message="must be names of at most 256 characters, by UUID: the controller sets it, remove the field"
	DetachedDisks map[string]string `json:"detachedDisks,omitempty"`
}

// VCDClusterZoneRecord describes the objects of a cluster in the VDC of a zone.
type VCDClusterZoneRecord struct {
	// ovdcID is the URN of the VDC of the zone. Immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^urn:vcloud:vdc:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a VDC, urn:vcloud:vdc:<UUID>: the controller sets it, remove the field"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: VMs of the cluster are in this VDC"
	OVDCID string `json:"ovdcID,omitempty"`

	// vAppCount is the number of vApps there for which a VM creation was requested; empty with vApp.layout PerMachine.
	// It never decreases.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="cannot decrease: vApps of the cluster would be orphaned in VCD"
	VAppCount int32 `json:"vAppCount,omitempty"`

	// vAppIDs are the URNs of the vApps there from which VMs were deleted, and of vApps that are about to be deleted.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^urn:vcloud:vapp:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$')",message="must be the URN of a vApp, urn:vcloud:vapp:<UUID>: the controller sets it, remove the field"
	VAppIDs []string `json:"vAppIDs,omitempty"`

	// vAppMissingSince is, while the cluster is deleted, the time when its vApp there was first not found. Removed when the
	// vApp is found again.
	// +optional
	VAppMissingSince *metav1.Time `json:"vAppMissingSince,omitempty"`
}

// InheritedLoadBalancer is the configuration that a cloud controller manager inherits from another one.
// +kubebuilder:validation:MinProperties=1
type InheritedLoadBalancer struct {
	// oneArm is the range of internal addresses of virtual services in one-arm mode. It has no effect if
	// spec.loadBalancer.armMode is set.
	// +optional
	OneArm AddressRange `json:"oneArm,omitempty,omitzero"`

	// vipSubnet is the CIDR of allowed external addresses.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network with prefix length, such as 10.0.0.0/24"
	VIPSubnet string `json:"vipSubnet,omitempty"`

	// certificateAlias is the name of the certificate of ports with TLS termination.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CertificateAlias string `json:"certificateAlias,omitempty"`
}

// RecordedVAppMetadata is the metadata that the controller wrote to a vApp.
type RecordedVAppMetadata struct {
	// vAppID is the URN of the vApp.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	VAppID string `json:"vAppID,omitempty"`

	// zone is the name of the VCDDeploymentZone of the vApp; empty for the cluster's own VDC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Zone string `json:"zone,omitempty"`

	// number of the vApp among those of the cluster in the VDC.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Number int32 `json:"number,omitempty"`

	// entries of metadata of the vApp.
	// +required
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Entries []RecordedMetadata `json:"entries,omitempty"`
}
