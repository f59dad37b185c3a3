// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Annotations that the controllers write. They are part of what must survive `clusterctl move`, which restores no
// status.
const (
	// InstanceIDAnnotation on a VCDMachine is the instance ID of its guest and the marker of its VM. It never
	// changes.
	InstanceIDAnnotation = "infrastructure.cluster.x-k8s.io/instance-id"
	// VMNameAnnotation on a VCDMachine is the name with which its VM is created.
	VMNameAnnotation = "infrastructure.cluster.x-k8s.io/vm-name"
	// VAppNumberAnnotation on a VCDMachine counts the vApps of its cluster up to that of its VM; 1 without it. It is
	// stored before the VM is created in a further vApp, because the ones before are full.
	VAppNumberAnnotation = "infrastructure.cluster.x-k8s.io/vapp-number"
	// CreationRequestedAnnotation on a VCDMachine is the time of the last create request for its VM (RFC 3339). It is
	// stored before the request is sent: a machine without it never had a VM.
	CreationRequestedAnnotation = "infrastructure.cluster.x-k8s.io/creation-requested-at"
	// PoweredOnAnnotation on a VCDMachine is the time when its VM was first found running (RFC 3339). From then on
	// the VM is not created or configured, only kept.
	PoweredOnAnnotation = "infrastructure.cluster.x-k8s.io/powered-on-at"
	// BootstrapDataRemovedAnnotation on a VCDMachine is set when its VM was found without bootstrap data: the boot id
	// of its Node, or true, while it ran, or PoweredOff, after which it cannot come back.
	BootstrapDataRemovedAnnotation = "infrastructure.cluster.x-k8s.io/bootstrap-data-removed"
	// ShutdownRequestedAnnotation on a VCDMachine is the time of the request to shut its guest down before deletion.
	ShutdownRequestedAnnotation = "infrastructure.cluster.x-k8s.io/shutdown-requested-at"
	// DeleteRequestedAnnotation on a VCDMachine is the time of the first delete request for its VM (RFC 3339). It is
	// stored before the request is sent.
	DeleteRequestedAnnotation = "infrastructure.cluster.x-k8s.io/delete-requested-at"
	// MissingSinceAnnotation on a VCDMachine is the time when its VM was first not found although VCD returned other
	// objects that the user can see (RFC 3339). It is removed when the VM is found again.
	MissingSinceAnnotation = "infrastructure.cluster.x-k8s.io/missing-since"
	// VMNotFoundSinceAnnotation on a VCDMachine is the time when its VM was proved to be gone (RFC 3339). It is
	// removed when the VM is found again.
	VMNotFoundSinceAnnotation = "infrastructure.cluster.x-k8s.io/vm-not-found-since"
	// VMGoneAnnotation on a VCDMachine, with the value "true", declares that its VM is gone. A user or the
	// controller, with proof, sets it. The VM is not searched for any more.
	VMGoneAnnotation = "infrastructure.cluster.x-k8s.io/vm-gone"
	// VMRecordedAnnotation on a VCDMachine is the configuration with which its VM was created, as JSON. Drift is a
	// difference from it. Remove it to accept the VM as it is.
	VMRecordedAnnotation = "infrastructure.cluster.x-k8s.io/vm-recorded"
	// VMMetadataAnnotation on a VCDMachine is the metadata that the controller wrote to its VM, as JSON: other metadata
	// of the VM is left alone. Remove it to have all of spec.vmMetadata written again.
	VMMetadataAnnotation = "infrastructure.cluster.x-k8s.io/vm-metadata"
	// PoweredOnAgainAnnotation on a VCDMachine is how often in a row its VM was found powered off and powered on
	// again, and the time of the last attempt (RFC 3339). Remove it to retry at once.
	PoweredOnAgainAnnotation = "infrastructure.cluster.x-k8s.io/powered-on-again"
	// DriftInReadyAnnotation on a VCDMachine, with the value "true", makes VMAsSpecified part of Ready, so that a
	// MachineHealthCheck replaces machines whose VM was changed in VCD. Set it in spec.template.metadata of a
	// VCDMachineTemplate.
	DriftInReadyAnnotation = "infrastructure.cluster.x-k8s.io/drift-in-ready"
	// GoneAcknowledgedAnnotation on a VCDCluster, set to "true" by a user, declares that the VMs of the cluster that
	// are missing now are gone. The controller replaces the value with the time (RFC 3339) at once, whether VMs are
	// missing or not: VMs that go missing later are not covered.
	GoneAcknowledgedAnnotation = "infrastructure.cluster.x-k8s.io/gone-acknowledged"
	// TokenChainAnnotation on the Secret of an identity of type ServiceAccount names the user of its token and the
	// tokens before it, as JSON without tokens.
	TokenChainAnnotation = "infrastructure.cluster.x-k8s.io/token-chain"
	// CredentialsAcceptedAnnotation on a VCDDeploymentZone is the version of its identity's Secret that last logged in.
	CredentialsAcceptedAnnotation = "infrastructure.cluster.x-k8s.io/credentials-accepted"
	// DeploymentZoneAnnotation on a VCDMachine is the VCDDeploymentZone that its VM is created in. It is stored before
	// anything is created, and never changes.
	DeploymentZoneAnnotation = "infrastructure.cluster.x-k8s.io/deployment-zone"
	// OVDCIDAnnotation on a VCDMachine in a failure domain is the URN of the VDC that its VM is created in, and never
	// changes.
	OVDCIDAnnotation = "infrastructure.cluster.x-k8s.io/ovdc-id"
	// CloudProviderOfAnnotation on an object in a workload cluster is the id of the cluster whose bundled cloud
	// controller manager it is part of.
	CloudProviderOfAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-of"
	// CloudProviderAppliedAnnotation on such an object is the time when all objects were last applied again because
	// one had been changed (RFC 3339).
	CloudProviderAppliedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-applied-at"
	// CloudProviderWrittenAnnotation on the Secret with the manifests of the cloud controller manager is the time of
	// their last change (RFC 3339).
	CloudProviderWrittenAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-written-at"
	// CloudProviderInventoryAnnotation on that Secret lists the objects in it, as JSON.
	CloudProviderInventoryAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-inventory"
	// CloudProviderDroppedAnnotation on that Secret lists the objects to remove from the workload cluster because
	// they are no longer in the Secret, as JSON.
	CloudProviderDroppedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-dropped"
	// CloudProviderCredentialsAnnotation on that Secret is the version of the credentials in it. They logged in.
	CloudProviderCredentialsAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-credentials"
	// KubeVIPLabel on a Cluster selects it for the ClusterResourceSet with kube-vip's DaemonSet.
	KubeVIPLabel = "infrastructure.cluster.x-k8s.io/kube-vip"
	// CloudProviderLabel on a Cluster selects it for the ClusterResourceSets with its cloud controller manager.
	CloudProviderLabel = "infrastructure.cluster.x-k8s.io/cloud-provider"
	// PodProxyLabel on a Cluster selects it for the ClusterResourceSet with the policies of its pods' proxy.
	PodProxyLabel = "infrastructure.cluster.x-k8s.io/pod-proxy"
	// EndpointMemberAnnotation on a VCDMachine is the address under which it is a member of its cluster's control-plane
	// endpoint on an edge gateway. It is stored before the pool is written.
	EndpointMemberAnnotation = "infrastructure.cluster.x-k8s.io/endpoint-member"
	// KeepLoadBalancersAnnotation on a VCDCluster, with the value "true", leaves the load balancers of its Services,
	// and its control-plane endpoint on an edge gateway, in VCD when it is deleted; its machines do not leave the
	// endpoint before they are deleted then. An event lists what is left. Without it the deletion waits until they are
	// removed.
	KeepLoadBalancersAnnotation = "infrastructure.cluster.x-k8s.io/keep-load-balancers"
	// KeepVAppAnnotation on a VCDCluster or VCDMachine, with the value "true", leaves its vApps in VCD, with everything
	// in them, when the object is deleted, and so its independent disks; an event lists what is left. Only a vApp that
	// holds no VM is deleted all the same, if VCD lets it be. The deletion waits for nothing else in VCD then.
	KeepVAppAnnotation = "infrastructure.cluster.x-k8s.io/keep-vapp"
)
