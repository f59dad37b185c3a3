// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Annotations that the controllers write. They are part of what must survive `clusterctl move`, which restores no
// status.
const (
	// InstanceIDAnnotation on an IPAddressClaim or IPAddress is the instance ID of the machine that the address was claimed
	// for.
	InstanceIDAnnotation = "infrastructure.cluster.x-k8s.io/instance-id"
	// VMGoneAnnotation on a VCDMachine, with the value "true", declares that its VM is gone. A user sets it. The VM is not
	// searched for any more.
	VMGoneAnnotation = "infrastructure.cluster.x-k8s.io/vm-gone"
	// DriftInReadyAnnotation on a VCDMachine, with the value "true", makes VMInSync part of Ready, so that a
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
