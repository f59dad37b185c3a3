// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Annotations that the controllers write. They are part of what must survive `clusterctl move`, which restores no
// status.
const (
	// InstanceIDAnnotation on an IPAddressClaim or IPAddress is the instance ID of the machine that the address was claimed
	// for.
	InstanceIDAnnotation = "infrastructure.cluster.x-k8s.io/instance-id"
	// MissingSinceAnnotation on a VCDCluster that is being deleted is the time when its vApp was first not found although
	// VCD returned other objects that the user can see (RFC 3339). It is removed when the vApp is found again.
	MissingSinceAnnotation = "infrastructure.cluster.x-k8s.io/missing-since"
	// VMGoneAnnotation on a VCDMachine, with the value "true", declares that its VM is gone. A user sets it. The VM is not
	// searched for any more.
	VMGoneAnnotation = "infrastructure.cluster.x-k8s.io/vm-gone"
	// DriftInReadyAnnotation on a VCDMachine, with the value "true", makes VMAsSpecified part of Ready, so that a
	// MachineHealthCheck replaces machines whose VM was changed in VCD. Set it in spec.template.metadata of a
	// VCDMachineTemplate.
	DriftInReadyAnnotation = "infrastructure.cluster.x-k8s.io/drift-in-ready"
	// GoneStoppedAnnotation on a VCDCluster is the time since when none of its VMs counts as gone, because VMs of
	// several clusters of the site are missing together (RFC 3339).
	GoneStoppedAnnotation = "infrastructure.cluster.x-k8s.io/gone-stopped-since"
	// GoneAcknowledgedAnnotation on a VCDCluster, set to "true" by a user, declares that the VMs of the cluster that
	// are missing now are gone. The controller replaces the value with the time (RFC 3339) at once, whether VMs are
	// missing or not: VMs that go missing later are not covered.
	GoneAcknowledgedAnnotation = "infrastructure.cluster.x-k8s.io/gone-acknowledged"
	// LastGoneAnnotation on a VCDCluster is the time when the last of several missing VMs was declared gone (RFC
	// 3339).
	LastGoneAnnotation = "infrastructure.cluster.x-k8s.io/last-gone-at"
	// TokenChainAnnotation on the Secret of an identity of type ServiceAccount names the user of its token and the
	// tokens before it, as JSON without tokens.
	TokenChainAnnotation = "infrastructure.cluster.x-k8s.io/token-chain"
	// CredentialsAcceptedAnnotation on a VCDCluster is the version of its identity's Secret that last logged in.
	CredentialsAcceptedAnnotation = "infrastructure.cluster.x-k8s.io/credentials-accepted"
	// OVDCIDAnnotation on a VCDCluster is the URN of its VDC, so that the VDC can be renamed in VCD. Written by the
	// controller with spec.infraID. Remove it to have spec.ovdc looked up again.
	OVDCIDAnnotation = "infrastructure.cluster.x-k8s.io/ovdc-id"
	// OVDCNetworkIDAnnotation on a VCDCluster is the URN of its network, so that the network can be renamed in VCD.
	// Written by the controller with spec.infraID. Remove it to have spec.ovdcNetwork looked up again.
	OVDCNetworkIDAnnotation = "infrastructure.cluster.x-k8s.io/ovdc-network-id"
	// NodeProxyAnnotation on a VCDCluster is set to "true" with the Secret of the proxy settings of nodes. The Secret
	// is kept when spec.proxy is removed, for templates that name it; it sets nothing then. Written by the controller.
	NodeProxyAnnotation = "infrastructure.cluster.x-k8s.io/node-proxy"
	// AffinityRulesAnnotation on a VCDCluster lists the URNs of the VDCs that may have anti-affinity rules of the
	// cluster, separated by commas. Written by the controller before it creates a rule there.
	AffinityRulesAnnotation = "infrastructure.cluster.x-k8s.io/affinity-rules"
	// RDEIDAnnotation on a VCDCluster is the URN of the runtime defined entity that was made for it. Written by the
	// controller, which makes another entity if it is removed.
	RDEIDAnnotation = "infrastructure.cluster.x-k8s.io/rde-id"
	// VAppCreatedAnnotation on a VCDCluster is set to "true" once VCD was asked to create VMs in its
	// vApp, and to their number once it was asked to in further ones.
	VAppCreatedAnnotation = "infrastructure.cluster.x-k8s.io/vapp-created"
	// VAppsAnnotation on a VCDCluster lists the URNs of the vApps of its deleted VMs, and of those that are about to be
	// deleted, separated by commas: a renamed vApp is deleted with the cluster, too. Written by the controller.
	VAppsAnnotation = "infrastructure.cluster.x-k8s.io/vapps"
	// VAppGoneAnnotation on a VCDCluster that is being deleted lists the URNs of those of its vApps that our own tasks
	// deleted, separated by commas. Disks may be deleted when all its vApps are proved gone. Written by the controller.
	VAppGoneAnnotation = "infrastructure.cluster.x-k8s.io/vapp-gone"
	// ZoneVAppsAnnotationPrefix on a VCDCluster, followed by the name of a VCDDeploymentZone, is what the cluster has
	// in that zone: the URN of the VDC, how many vApps VCD was asked to create VMs in, and the URNs of those that VMs
	// were deleted from, separated by blanks. It is stored before the first VM is created there; when the cluster is
	// deleted, its vApps and disks are searched for there. Written by the controller.
	ZoneVAppsAnnotationPrefix = "zone-vapps.infrastructure.cluster.x-k8s.io/"
	// ZoneMissingAnnotationPrefix on a VCDCluster that is being deleted, followed by the name of a VCDDeploymentZone,
	// is the time when its vApp in that zone was first not found (RFC 3339).
	ZoneMissingAnnotationPrefix = "zone-missing.infrastructure.cluster.x-k8s.io/"
	// EdgeGatewaysAnnotation on a VCDCluster lists the URNs of the edge gateways that its network was connected to,
	// separated by commas. When the cluster is deleted, its load balancers are searched for there, even if the
	// network is gone.
	EdgeGatewaysAnnotation = "infrastructure.cluster.x-k8s.io/edge-gateways"
	// LoadBalancerGatewaysAnnotation on a VCDCluster lists the URNs of the edge gateways in
	// spec.loadBalancer.edgeGateways, separated by commas. They are stored before the cloud controller manager uses them;
	// when the cluster is deleted, its load balancers are searched for there, too.
	LoadBalancerGatewaysAnnotation = "infrastructure.cluster.x-k8s.io/load-balancer-gateways"
	// LoadBalancersAllowedAnnotation on a VCDCluster is set to "true" before a cloud controller manager that creates
	// load balancers is first installed. The deletion of such a cluster waits for proof that they are removed, even if
	// load balancers were disabled later. Written by the controller.
	LoadBalancersAllowedAnnotation = "infrastructure.cluster.x-k8s.io/load-balancers-allowed"
	// LoadBalancersRemovedAnnotation on a VCDCluster that is being deleted is the time when its last load balancer
	// was removed, within a few seconds (RFC 3339). Load balancers are searched for once more when no cloud
	// controller manager can be running that creates them again.
	LoadBalancersRemovedAnnotation = "infrastructure.cluster.x-k8s.io/load-balancers-removed"
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
	// CloudProviderInheritedAnnotation on a VCDCluster has what its cloud controller manager takes over from the
	// configuration of another one, as JSON: what spec.loadBalancer leaves open. Remove it to have the defaults.
	CloudProviderInheritedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-inherited"
	// CloudProviderCredentialsAnnotation on that Secret is the version of the credentials in it. They logged in.
	CloudProviderCredentialsAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-credentials"
	// KubeVIPLabel on a Cluster selects it for the ClusterResourceSet with kube-vip's DaemonSet.
	KubeVIPLabel = "infrastructure.cluster.x-k8s.io/kube-vip"
	// CloudProviderLabel on a Cluster selects it for the ClusterResourceSets with its cloud controller manager.
	CloudProviderLabel = "infrastructure.cluster.x-k8s.io/cloud-provider"
	// PodProxyLabel on a Cluster selects it for the ClusterResourceSet with the policies of its pods' proxy.
	PodProxyLabel = "infrastructure.cluster.x-k8s.io/pod-proxy"
	// EndpointGatewayAnnotation on a VCDCluster is the URN of the edge gateway that its control-plane endpoint is on.
	// It is stored before anything is created there. Remove it to have the gateway looked up again.
	EndpointGatewayAnnotation = "infrastructure.cluster.x-k8s.io/endpoint-gateway"
	// EndpointAddressesAnnotation on a VCDCluster lists the addresses of its control-plane endpoint, separated by commas:
	// those that an endpoint on an edge gateway is made on, which are stored before they are used, or the virtual IPs of
	// both families that come from pools.
	EndpointAddressesAnnotation = "infrastructure.cluster.x-k8s.io/endpoint-addresses"
	// KeepLoadBalancersAnnotation on a VCDCluster, with the value "true", leaves the load balancers of its Services,
	// and its control-plane endpoint on an edge gateway, in VCD when it is deleted; its machines do not leave the
	// endpoint before they are deleted then. An event lists what is left. Without it the deletion waits until they are
	// removed.
	KeepLoadBalancersAnnotation = "infrastructure.cluster.x-k8s.io/keep-load-balancers"
	// KeepVAppAnnotation on a VCDCluster or VCDMachine, with the value "true", leaves its vApps in VCD, with everything
	// in them, when the object is deleted, and so its independent disks; an event lists what is left. Only a vApp that
	// holds no VM is deleted all the same, if VCD lets it be. The deletion waits for nothing else in VCD then.
	KeepVAppAnnotation = "infrastructure.cluster.x-k8s.io/keep-vapp"
	// DetachedDiskAnnotationPrefix on a VCDCluster, followed by the id of an independent disk, has the name of the
	// disk. It was detached from a VM of the cluster before the VM was deleted.
	DetachedDiskAnnotationPrefix = "detached-disk.infrastructure.cluster.x-k8s.io/"
)
