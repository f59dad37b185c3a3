// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Annotations that the controllers write. They must survive `clusterctl move`, which does not restore the
// status.
const (
	// InstanceIDAnnotation on an IPAddressClaim or IPAddress is the instance ID of the machine that the address was claimed
	// for.
	InstanceIDAnnotation = "infrastructure.cluster.x-k8s.io/instance-id"
	// VMGoneAnnotation on a VCDMachine, with the value "true", declares that its VM is deleted. A user sets it. The
	// provider then stops searching for the VM.
	VMGoneAnnotation = "infrastructure.cluster.x-k8s.io/vm-gone"
	// DriftInReadyAnnotation on a VCDMachine, with the value "true", makes VMInSync part of Ready, so that a
	// MachineHealthCheck replaces machines whose VM was changed in VCD. Set it in spec.template.metadata of a
	// VCDMachineTemplate.
	DriftInReadyAnnotation = "infrastructure.cluster.x-k8s.io/drift-in-ready"
	// GoneAcknowledgedAnnotation on a VCDCluster, set to "true" by a user, declares that the missing VMs of the cluster
	// are deleted. The controller immediately replaces the value with the time (RFC 3339), even if no VM is missing, so
	// it does not apply to VMs that go missing later.
	GoneAcknowledgedAnnotation = "infrastructure.cluster.x-k8s.io/gone-acknowledged"
	// TokenChainAnnotation on the Secret of an identity of type ServiceAccount records the client of its token and the
	// previous tokens, as JSON without tokens.
	TokenChainAnnotation = "infrastructure.cluster.x-k8s.io/token-chain"
	// CredentialsAcceptedAnnotation on a VCDDeploymentZone is the version of its identity's Secret that last logged in.
	CredentialsAcceptedAnnotation = "infrastructure.cluster.x-k8s.io/credentials-accepted"
	// CloudProviderOfAnnotation on an object in a workload cluster is the ID of the cluster to whose bundled cloud
	// controller manager it belongs.
	CloudProviderOfAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-of"
	// CloudProviderAppliedAnnotation on such an object is the time (RFC 3339) when all objects were last reapplied
	// because one was changed.
	CloudProviderAppliedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-applied-at"
	// CloudProviderWrittenAnnotation on the Secret with the manifests of the cloud controller manager is the time of
	// their last change (RFC 3339).
	CloudProviderWrittenAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-written-at"
	// CloudProviderInventoryAnnotation on that Secret lists the objects in it, as JSON.
	CloudProviderInventoryAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-inventory"
	// CloudProviderDroppedAnnotation on that Secret lists, as JSON, the objects to remove from the workload cluster
	// because they are no longer in the Secret.
	CloudProviderDroppedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-dropped"
	// CloudProviderCredentialsAnnotation on that Secret is the version of its credentials, which logged in.
	CloudProviderCredentialsAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-credentials"
	// KubeVIPLabel on a Cluster selects it for the ClusterResourceSet with kube-vip's DaemonSet.
	KubeVIPLabel = "infrastructure.cluster.x-k8s.io/kube-vip"
	// CloudProviderLabel on a Cluster selects it for the ClusterResourceSets with its cloud controller manager.
	CloudProviderLabel = "infrastructure.cluster.x-k8s.io/cloud-provider"
	// PodProxyLabel on a Cluster selects it for the ClusterResourceSet with the policies of its pods' proxy.
	PodProxyLabel = "infrastructure.cluster.x-k8s.io/pod-proxy"
	// KeepLoadBalancersAnnotation on a VCDCluster, with the value "true", keeps the load balancers of its Services
	// and its control-plane endpoint on an edge gateway in VCD when it is deleted. Its machines are then not removed
	// from the endpoint. An event lists the remaining objects. Without it, the deletion waits until they are
	// removed.
	KeepLoadBalancersAnnotation = "infrastructure.cluster.x-k8s.io/keep-load-balancers"
	// KeepVAppAnnotation on a VCDCluster or VCDMachine, with the value "true", keeps its vApps with all objects in
	// them, and its independent disks, in VCD when the object is deleted. An event lists the remaining objects. An
	// empty vApp is still deleted if VCD allows it. The deletion then waits for nothing else in VCD.
	KeepVAppAnnotation = "infrastructure.cluster.x-k8s.io/keep-vapp"
	// EndpointHookAnnotation on a Machine of a control plane delays the removal of its node until another node holds the
	// virtual IP that kube-vip announces, or until the node is no longer a member of the endpoint on an edge gateway. It is
	// a pre-terminate hook of Cluster API. The provider adds and removes it.
	EndpointHookAnnotation = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/vcd-endpoint"
)
