// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Reasons of any condition. The comment says what to do.
const (
	// ReadyReason is the reason of every condition that is True. No action needed.
	ReadyReason = "Ready"
	// WaitingForEarlierPhaseReason means that an earlier step is not finished. Check the condition in the message.
	WaitingForEarlierPhaseReason = "WaitingForEarlierPhase"
	// InternalErrorReason means that an unexpected error occurred; the controller retries. Check the controller's
	// logs.
	InternalErrorReason = "InternalError"
	// NotSupportedReason means that this release does not support something in the spec. Change the field in the
	// message.
	NotSupportedReason = "NotSupported"
	// KubernetesVersionMismatchReason is the reason of an event: the Kubernetes version of a machine's image differs
	// from its Machine. Set a new VCDMachineTemplate together with a new version.
	KubernetesVersionMismatchReason = "KubernetesVersionMismatch"
	// TaskRunningReason means that a VCD task is running. Wait.
	TaskRunningReason = "TaskRunning"
	// TaskFailedReason means that a VCD task failed with the error in the message; it is retried with increasing
	// backoff. Fix the cause in VCD; a change of the spec retries at once.
	TaskFailedReason = "TaskFailed"
	// QuotaExceededReason means that a quota of the organization, the VDC or the user is exhausted. Free resources, or
	// ask the provider to raise the quota.
	QuotaExceededReason = "QuotaExceeded"
	// RequestRejectedReason means that VCD rejects the request as invalid. Fix what the message describes; the
	// controller retries.
	RequestRejectedReason = "RequestRejected"
	// ForbiddenReason means that the user of the identity lacks a right, or the object is not visible to the user.
	// Grant the right.
	ForbiddenReason = "Forbidden"
	// EntityBusyReason means that another VCD task holds the vApp or VM. Wait; check the tasks in VCD if it lasts.
	EntityBusyReason = "EntityBusy"
	// ThrottledReason means that VCD limits the rate of requests. Wait; lower --vcd-requests-per-second if it lasts.
	ThrottledReason = "Throttled"
	// NameConflictReason means that an object with this name exists and is not managed by this provider, which does not
	// change it. Rename or delete it.
	NameConflictReason = "NameConflict"
)

// Reasons of identities and of objects that log in.
const (
	// IdentityNotFoundReason means that the identity does not exist. Create it, or correct spec.identityRef.
	IdentityNotFoundReason = "IdentityNotFound"
	// NamespaceNotAllowedReason means that the VCDClusterIdentity may not be used from the namespace. List or select it
	// in spec.allowedNamespaces.
	NamespaceNotAllowedReason = "NamespaceNotAllowed"
	// SiteNotAllowedReason means that the site of the identity differs from that of the VCDCluster; its credentials are
	// not sent there. Correct spec.site of the VCDCluster or of the identity.
	SiteNotAllowedReason = "SiteNotAllowed"
	// OrgNotAllowedReason means that the VCDClusterIdentity may not be used for the organization. Correct spec.org of
	// the VCDCluster, or add it to spec.orgs of the identity.
	OrgNotAllowedReason = "OrgNotAllowed"
	// SecretNotFoundReason means that the Secret of the identity does not exist. Create it, or correct spec.secretRef.
	SecretNotFoundReason = "SecretNotFound"
	// SecretIncompleteReason means that the Secret lacks keys. Add username and password, or apiToken.
	SecretIncompleteReason = "SecretIncomplete"
	// SecretInOtherNamespaceReason means that a VCDCluster of CAPVCD refers to a Secret in another namespace, which is
	// not read. Copy the Secret and create the VCDIdentity in the message, or set another identity in spec.identityRef.
	SecretInOtherNamespaceReason = "SecretInOtherNamespace"
	// InUseReason means that objects still use the identity, zone or failure domain that is being deleted. Delete the
	// objects in the message, or change their reference.
	InUseReason = "InUse"
	// TokenInUseReason means that the token of the service account is already in use elsewhere. Each login rotates the
	// token, so only one client may use it. Set another identity, or grant the service account again and store the new
	// token in the Secret.
	TokenInUseReason = "TokenInUse"
	// TokenOutdatedReason means that the Secret of a service account was reset to an old token, which VCD has replaced.
	// Stop the tool that restores the Secret, grant the service account again, and store the new token in the Secret.
	TokenOutdatedReason = "TokenOutdated"
	// TokenNotWritableReason means that the service account does not log in, because its next token could not be
	// stored. Allow the manager to update the Secret.
	TokenNotWritableReason = "TokenNotWritable"
	// CredentialsRejectedReason means that VCD rejects the credentials for this organization. Correct the Secret of
	// the identity, or spec.org: each version of the Secret is tried once.
	CredentialsRejectedReason = "CredentialsRejected"
	// CertificateNotTrustedReason means that the certificate of the site is not signed by a known authority. Add the
	// authority to spec.tls.caBundle of the identity, or to ca.crt in its Secret.
	CertificateNotTrustedReason = "CertificateNotTrusted"
	// SiteInvalidReason means that the server at the site cannot be used as a VCD. Correct spec.site and spec.org.
	SiteInvalidReason = "SiteInvalid"
	// SiteUnreachableReason means that VCD does not respond. Check spec.site, the network and VCD itself.
	SiteUnreachableReason = "SiteUnreachable"
)

// Reasons of VCDClusters.
const (
	// VDCNotFoundReason means that the VDC does not exist or is not visible to the user. Correct spec.ovdc, or grant
	// access.
	VDCNotFoundReason = "VDCNotFound"
	// NetworkNotFoundReason means that the network does not exist in the VDC. Correct the field in the message.
	NetworkNotFoundReason = "NetworkNotFound"
	// EndpointMissingReason means that the spec has no endpoint. Set spec.controlPlaneEndpoint.host, or poolRefs in
	// spec.controlPlaneLoadBalancer.kubeVIP.
	EndpointMissingReason = "EndpointMissing"
	// WaitingForEndpointReason means that the external endpoint is not set yet. Set spec.controlPlaneEndpoint.
	WaitingForEndpointReason = "WaitingForEndpoint"
	// VIPInvalidReason means that the address cannot be used as a virtual IP. Choose another in
	// spec.controlPlaneLoadBalancer.kubeVIP.
	VIPInvalidReason = "VIPInvalid"
	// VIPOutsideNetworkReason means that the virtual IP is not in a subnet of the nodes' network. Choose another one.
	VIPOutsideNetworkReason = "VIPOutsideNetwork"
	// VIPInStaticPoolReason means that the virtual IP is in the network's static pool, so VCD could assign it to a VM.
	// Choose another, or remove it from the pool.
	VIPInStaticPoolReason = "VIPInStaticPool"
	// VIPInDHCPRangeReason means that the virtual IP is in a DHCP range of the network. Choose another, or remove it
	// from the range.
	VIPInDHCPRangeReason = "VIPInDHCPRange"
	// VIPInUseReason means that another cluster or an object in VCD uses the virtual IP. Choose another.
	VIPInUseReason = "VIPInUse"
	// VIPFamilyConflictReason means that both virtual IPs have the same IP family. Set pools of the other family in
	// spec.controlPlaneLoadBalancer.kubeVIP.secondaryPoolRefs.
	VIPFamilyConflictReason = "VIPFamilyConflict"
	// NameResolutionFailedReason means that DNS has no address for the name of the endpoint. Create the record.
	NameResolutionFailedReason = "NameResolutionFailed"
	// PeerPasswordMissingReason means that the Secret with the password of a BGP peer, or its key, does not exist.
	// Create it.
	PeerPasswordMissingReason = "PeerPasswordMissing"
	// ProxyCredentialsMissingReason means that the Secret with the credentials of the proxy, or its key username or
	// password, does not exist. Create it.
	ProxyCredentialsMissingReason = "ProxyCredentialsMissing"
	// ControlPlaneNetworkMismatchReason means that control planes are in different networks, so ARP cannot move the
	// virtual IP. Set spec.controlPlaneLoadBalancer.kubeVIP.bgp, or use an endpoint of type EdgeGateway or External.
	ControlPlaneNetworkMismatchReason = "ControlPlaneNetworkMismatch"
	// EdgeGatewayNotFoundReason means that the edge gateway of the endpoint does not exist or is not visible to the
	// user, or ovdcNetwork is not connected to one. Correct spec.controlPlaneLoadBalancer.edgeGateway.name, or grant
	// access.
	EdgeGatewayNotFoundReason = "EdgeGatewayNotFound"
	// EndpointAddressInvalidReason means that an address of the endpoint does not belong to the edge gateway, is in
	// use, or none is free. Correct the field in the message, or ask the provider for addresses.
	EndpointAddressInvalidReason = "EndpointAddressInvalid"
	// EndpointFamilyMismatchReason means that a control plane has no address of the IP family of the endpoint, so it
	// cannot be a member. Correct spec.controlPlaneEndpoint, or use nodes with addresses of both families.
	EndpointFamilyMismatchReason = "EndpointFamilyMismatch"
	// EndpointPortInUseReason means that another object uses the port of the endpoint's address. Correct the field in
	// the message.
	EndpointPortInUseReason = "EndpointPortInUse"
	// EngineGroupUnavailableReason means that the edge gateway has no service engine group, lacks the one in the spec,
	// or has none with free capacity. Correct the field in the message, or ask the provider.
	EngineGroupUnavailableReason = "EngineGroupUnavailable"
	// LoadBalancerUnavailableReason means that the edge gateway has no load balancer, or does not support the spec. Ask
	// the provider, or correct the field in the message.
	LoadBalancerUnavailableReason = "LoadBalancerUnavailable"
	// EndpointPendingReason means that the control-plane endpoint on the edge gateway does not match the spec yet.
	// Wait.
	EndpointPendingReason = "EndpointPending"
	// RealizationFailedReason means that VCD could not realize an object of the endpoint, even after a retry. The
	// controller retries periodically. Ask the provider.
	RealizationFailedReason = "RealizationFailed"
	// InfraIDInvalidReason means that spec.infraID cannot be used in ownership markers, so nothing is created. Recreate
	// the cluster with an ID without spaces.
	InfraIDInvalidReason = "InfraIDInvalid"
	// InfraIDInUseReason means that another VCDCluster has the same spec.infraID, for example because a manifest was
	// copied; it owns the objects in VCD. Recreate the cluster without spec.infraID and the annotations of the other
	// cluster.
	InfraIDInUseReason = "InfraIDInUse"
	// WaitingForMachineDeletionReason means that VCDMachines of the cluster still exist. Wait, or check them.
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"
	// LoadBalancersNotDeletedReason means that load balancers of the cluster may remain on an edge gateway that cannot
	// be read or changed, or does not respond, so the deletion waits. Grant the right, or keep them with the annotation
	// in the message.
	LoadBalancersNotDeletedReason = "LoadBalancersNotDeleted"
	// WaitingForFinalCheckReason means that the load balancers of the cluster are removed and a final check is pending,
	// in case its cloud controller manager created another one before it stopped. Wait.
	WaitingForFinalCheckReason = "WaitingForFinalCheck"
	// VAppNotEmptyReason means that the vApp contains VMs or disks of other owners, VMs or disks to retain, or a VM
	// without a VCDMachine. Move or delete them in VCD.
	VAppNotEmptyReason = "VAppNotEmpty"
	// LegacyDriverInstalledReason means that a version of VMware's CSI driver or cloud provider runs in the workload
	// cluster that searches a single vApp for nodes, which is not compatible with layout PerMachine or several zones.
	// Replace or remove it.
	LegacyDriverInstalledReason = "LegacyDriverInstalled"
	// ServingCertificateNotApprovedReason means that a kubelet requests a serving certificate that does not match its
	// machine. Check the Node; approve the request manually if it is valid, or deny it.
	ServingCertificateNotApprovedReason = "ServingCertificateNotApproved"
	// WorkloadClusterUnreachableReason means that the API server of the workload cluster does not respond, and the next
	// step depends on it. Wait, or check the Cluster.
	WorkloadClusterUnreachableReason = "WorkloadClusterUnreachable"
	// WorkloadRequestRejectedReason means that the API server of the workload cluster rejected a request of the manager, for
	// example because of an admission policy. Follow the message.
	WorkloadRequestRejectedReason = "WorkloadRequestRejected"
	// VAppUnverifiedReason means that the vApp is not found, but its deletion is not proved. Wait, or follow the
	// message.
	VAppUnverifiedReason = "VAppUnverified"
)

// Reasons of addresses, of VCDClusters and VCDMachines.
const (
	// WaitingForIPAddressClaimReason means that an address is claimed, but the pool has not assigned one yet. Check the
	// IPAddressClaim and the pool.
	WaitingForIPAddressClaimReason = "WaitingForIPAddressClaim"
	// AddressClaimLostReason means that the claim of an address in use was deleted. While the condition is True, the
	// IPAddress is protected and no action is needed. Otherwise the pool may assign the address again: replace the
	// machine.
	AddressClaimLostReason = "AddressClaimLost"
	// AddressInUseReason means that another object in VCD uses the address, or it is the virtual IP of a cluster.
	// Exclude the address from its pool and delete the IPAddressClaim, or choose another address.
	AddressInUseReason = "AddressInUse"
	// PoolExhaustedReason means that the pool has no free address. Add addresses to it, or use another pool.
	PoolExhaustedReason = "PoolExhausted"
	// PoolNotFoundReason means that the pool, or its kind, does not exist. Create the pool, install the IPAM provider,
	// or correct the reference in the message.
	PoolNotFoundReason = "PoolNotFound"
	// AddressInvalidReason means that an address does not match its network. Correct spec.networks, or the network.
	AddressInvalidReason = "AddressInvalid"
)

// Reasons of failure domains and of objects in them.
const (
	// FailureDomainNotFoundReason means that a VCDDeploymentZone or VCDFailureDomain does not exist, or is being
	// deleted. Create it, or correct the field in the message.
	FailureDomainNotFoundReason = "FailureDomainNotFound"
	// FailureDomainMismatchReason means that the site or organization of a zone differs from that of the cluster, or
	// another VDC with the same name replaced its VDC. Use another zone, or correct spec.site or spec.org.
	FailureDomainMismatchReason = "FailureDomainMismatch"
	// FailureDomainNotSelectedReason means that spec.failureDomainSelector of the VCDCluster does not select the zone
	// of a machine. Label the zone, or assign another failure domain to the Machine.
	FailureDomainNotSelectedReason = "FailureDomainNotSelected"
	// FailureDomainUnusedReason means that no VCDDeploymentZone refers to the failure domain, so there is no identity
	// for it. Create one.
	FailureDomainUnusedReason = "FailureDomainUnused"
	// NoFailureDomainReason means that no usable zone matches spec.failureDomainSelector, or none of them allows
	// control planes. Check the VCDDeploymentZones in the message.
	NoFailureDomainReason = "NoFailureDomain"
	// FailureDomainsExcludedReason means that some of the selected zones cannot be used and get no new machines; the
	// condition is True because other zones are usable. Check the VCDDeploymentZones in the message.
	FailureDomainsExcludedReason = "FailureDomainsExcluded"
	// PlacementInvalidReason means that the settings of machine, zone and cluster conflict, or a required setting is
	// missing. Correct the field in the message.
	PlacementInvalidReason = "PlacementInvalid"
	// VDCDisabledReason means that the VDC is disabled, so VCD creates nothing in it. Ask the provider to enable it, or
	// use another VDC.
	VDCDisabledReason = "VDCDisabled"
)

// Reasons of cloud controller managers.
const (
	// WaitingForControlPlaneReason means that the control plane does not respond yet. Wait, or check the Cluster.
	WaitingForControlPlaneReason = "WaitingForControlPlane"
	// CloudProviderConflictReason means that another cloud controller manager is installed in the workload cluster.
	// Remove the objects in the message, or set spec.cloudProvider.mode to External.
	CloudProviderConflictReason = "CloudProviderConflict"
	// CloudProviderConfigConflictReason means that the configuration of another cloud controller manager in the
	// workload cluster cannot be read, or differs from the configuration of this provider, so load balancers could
	// move. Set the fields in the message, or delete the ConfigMap if the change is intended.
	CloudProviderConfigConflictReason = "CloudProviderConfigConflict"
	// IdentityNotSharedReason means that the identity does not allow its credentials in workload clusters. Set
	// spec.shareWithClusters of the identity, or set another one in spec.cloudProvider.identityRef.
	IdentityNotSharedReason = "IdentityNotShared"
	// IdentityNotShareableReason means that credentials of this kind are never copied into workload clusters: those of
	// a VCDClusterIdentity, of a system administrator, and a service account that the manager uses itself. Set another
	// identity in spec.cloudProvider.identityRef.
	IdentityNotShareableReason = "IdentityNotShareable"
	// LoadBalancerInvalidReason means that spec.loadBalancer cannot be used: a gateway or network is not found or not
	// routed, or a range is invalid, or overlaps other addresses. Correct the field in the message, or grant access.
	LoadBalancerInvalidReason = "LoadBalancerInvalid"
	// CloudProviderApplyingReason means that the manifests are not completely applied in the workload cluster. Wait;
	// check the ClusterResourceSet in the message if it lasts.
	CloudProviderApplyingReason = "CloudProviderApplying"
	// CloudProviderUnavailableReason means that no pod of the cloud controller manager is ready, or pods of an earlier
	// version are still running. Check its Deployment and its log.
	CloudProviderUnavailableReason = "CloudProviderUnavailable"
	// KubeVIPUnavailableReason means that no pod of kube-vip that announces addresses of Services is ready, or that pods
	// of an earlier version still run. Check its DaemonSet and its log.
	KubeVIPUnavailableReason = "KubeVIPUnavailable"
)

// Reasons of affinity, and of the proxy of pods.
const (
	// AdmissionPoliciesNotServedReason means that the workload cluster does not serve mutating admission policies,
	// which give pods the proxy's environment. Upgrade it to Kubernetes 1.36, enable the API as described in the
	// message, or set spec.proxy.pods to None.
	AdmissionPoliciesNotServedReason = "AdmissionPoliciesNotServed"
	// PodProxyApplyingReason means that the policies that give pods the proxy's environment are not completely applied
	// in the workload cluster. Wait; check the ClusterResourceSet in the message if it lasts.
	PodProxyApplyingReason = "PodProxyApplying"
	// AffinityConflictReason means that VMs of the cluster are in affinity or anti-affinity rules of another owner, and a
	// VM can be in only one rule of each kind. Remove them from the rules in the message.
	AffinityConflictReason = "AffinityConflict"
)

// Reasons of runtime defined entities.
const (
	// RDEExcludedReason means that spec.infraID begins with NO_RDE_: the cluster has no runtime defined entity. Set
	// spec.rde.mode to None, or set an entity in spec.rde.id.
	RDEExcludedReason = "RDEExcluded"
	// RDEUnavailableReason means that the type of runtime defined entities for clusters does not exist, the user of the
	// identity has no right to it, or the entity is not visible to the user. Follow the message; the controller retries
	// every ten minutes.
	RDEUnavailableReason = "RDEUnavailable"
	// RDEInvalidReason means that the entity does not match the schema of its type, because another client changed it
	// or the schema is newer. Correct the entity in VCD.
	RDEInvalidReason = "RDEInvalid"
	// RDEOwnerMismatchReason means that the entity belongs to another cluster, so it is not changed. Correct
	// spec.rde.id.
	RDEOwnerMismatchReason = "RDEOwnerMismatch"
	// RDEInUseReason means that another VCDCluster has the same entity, or the same spec.infraID, so the entity is not
	// changed. Correct spec.rde.id of one of them.
	RDEInUseReason = "RDEInUse"
	// RDEVersionNotSupportedReason means that the version of the entity's type has another layout, so the entity is not
	// changed. Set an entity of type capvcdCluster 1.1.0 or a later 1.x in spec.rde.id.
	RDEVersionNotSupportedReason = "RDEVersionNotSupported"
)

// Reasons of VCDRemediations.
const (
	// MachineNotFoundReason means that the Machine of the VCDRemediation, or its VCDMachine, does not exist or is being
	// deleted. No action needed: the VCDRemediation is deleted with the Machine.
	MachineNotFoundReason = "MachineNotFound"
	// MachinePausedReason means that the Machine or its VCDMachine has the annotation cluster.x-k8s.io/paused. Remove it.
	MachinePausedReason = "MachinePaused"
	// ResettingReason means that the VM is about to be reset. Wait; check VMReset of the VCDMachine if it lasts.
	ResettingReason = "Resetting"
	// WaitingForHealthyMachineReason means that the VM was reset. The Machine is replaced, or its VM reset once more, unless it
	// becomes healthy in time. Wait.
	WaitingForHealthyMachineReason = "WaitingForHealthyMachine"
	// MachineHealthyReason means that the Machine is healthy again, so no action is taken. A MachineHealthCheck deletes
	// the VCDRemediation; delete one that you created yourself.
	MachineHealthyReason = "MachineHealthy"
	// ResetsExhaustedReason means that the Machine did not become healthy within the resets of the strategy. Check the
	// events of the Node and the log of the guest for the cause.
	ResetsExhaustedReason = "ResetsExhausted"
	// ResetNotApplicableReason means that a reset cannot help because the VM is deleted or never became a Node. The
	// Machine is replaced.
	ResetNotApplicableReason = "ResetNotApplicable"
	// ResetRejectedReason means that VCD did not reset the VM in time. The Machine is replaced. The message contains
	// the reason of VCD.
	ResetRejectedReason = "ResetRejected"
	// NoOwnerReason means that the Machine has no owner that can replace it. Delete the Machine, and create another one.
	NoOwnerReason = "NoOwner"
)

// Reasons of VCDMachineTemplates.
const (
	// ClusterUnknownReason means that the VCD, organization and VDC of the template's machines are unknown. Label the
	// template with the name of its cluster.
	ClusterUnknownReason = "ClusterUnknown"
)

// Reasons of VCDMachines.
const (
	// WaitingForClusterReason means that the infrastructure of the cluster is not ready. Check the VCDCluster.
	WaitingForClusterReason = "WaitingForCluster"
	// ClusterNotFoundReason means that the VCDCluster is deleted, so the VM cannot be located. Delete the VM manually,
	// then remove the finalizer.
	ClusterNotFoundReason = "ClusterNotFound"
	// WaitingForBootstrapDataReason means that the bootstrap provider has not provided data yet. Wait, or check the
	// Machine.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// BootstrapDataInvalidReason means that the bootstrap data cannot be used. Correct the bootstrap config.
	BootstrapDataInvalidReason = "BootstrapDataInvalid"
	// BootstrapDataTooLargeReason means that the bootstrap data is too large. Add large files to the VM template.
	BootstrapDataTooLargeReason = "BootstrapDataTooLarge"
	// VMNameInvalidReason means that spec.vmNamingTemplate produces an invalid name. Correct the template.
	VMNameInvalidReason = "VMNameInvalid"
	// CatalogNotFoundReason means that the catalog does not exist. Correct spec.catalog, or share the catalog.
	CatalogNotFoundReason = "CatalogNotFound"
	// TemplateNotFoundReason means that the template does not exist, or none matches the selector. Correct spec.template or
	// spec.templateSelector, or put it in the catalog.
	TemplateNotFoundReason = "TemplateNotFound"
	// ExtraConfigNotAllowedReason means that the identity does not allow a key of spec.extraConfig. Leave it out, or have
	// the owner of the identity add it to spec.allowedExtraConfig.
	ExtraConfigNotAllowedReason = "ExtraConfigNotAllowed"
	// TemplateInvalidReason means that the template has no VM, or is not ready. Use another template, or repair it.
	TemplateInvalidReason = "TemplateInvalid"
	// SizingPolicyNotFoundReason means that the VDC does not have the sizing policy. Correct spec.sizingPolicy, or
	// assign it.
	SizingPolicyNotFoundReason = "SizingPolicyNotFound"
	// PlacementPolicyNotFoundReason means that the VDC does not have the placement policy. Correct
	// spec.placementPolicy, or assign it.
	PlacementPolicyNotFoundReason = "PlacementPolicyNotFound"
	// StorageProfileNotFoundReason means that the VDC does not have the storage profile. Correct spec.storageProfile,
	// or add it.
	StorageProfileNotFoundReason = "StorageProfileNotFound"
	// DiskTooSmallReason means that spec.diskSize is smaller than the disk of the template, or of the VM. Set at
	// least that size.
	DiskTooSmallReason = "DiskTooSmall"
	// DiskIOPSInvalidReason means that the storage profile of a disk does not allow its I/O operations per second. Set a
	// number within the range of the message, or leave it out.
	DiskIOPSInvalidReason = "DiskIOPSInvalid"
	// DuplicateMarkerReason means that several VMs have the ownership marker of the machine, so none is changed. Delete
	// or rename the others.
	DuplicateMarkerReason = "DuplicateMarker"
	// AdoptionUnverifiedReason means that the ownership of a VM or vApp that CAPVCD may have created is not proved, so
	// it is neither changed nor deleted. Follow the message.
	AdoptionUnverifiedReason = "AdoptionUnverified"
	// VMNotOwnedReason means that the recorded VM lacks the ownership marker of the machine, or another VCDMachine owns
	// it, so it is neither changed nor deleted. Follow the message.
	VMNotOwnedReason = "VMNotOwned"
	// VMUnverifiedReason means that the VM is not found, but its deletion is not proved. Search for it in VCD, or
	// follow the message.
	VMUnverifiedReason = "VMUnverified"
	// VMNotFoundReason means that the VM is deleted, which is proved or declared by a user. Replace the machine: delete
	// it, or use a MachineHealthCheck.
	VMNotFoundReason = "VMNotFound"
	// TooManyVMsMissingReason means that more than a third of the cluster's VMs are missing at the same time. Check
	// VCD: after ten minutes, they are treated as deleted, one by one.
	TooManyVMsMissingReason = "TooManyVMsMissing"
	// VMLossUnacknowledgedReason means that VMs of three clusters of the site are missing at the same time, so no VM of
	// the site is treated as deleted until a user acknowledges it. Check VCD, then follow the message.
	VMLossUnacknowledgedReason = "VMLossUnacknowledged"
	// AddressChangedReason means that a NIC has another address in VCD than in its guest. Revert the change, or replace
	// the machine.
	AddressChangedReason = "AddressChanged"
	// NICsChangedReason means that a NIC of the VM was removed, added or connected to another network. Revert the
	// change, or replace the machine.
	NICsChangedReason = "NICsChanged"
	// MarkerNotFoundReason means that the description of the VM no longer contains the ownership marker of the machine,
	// so the VM is not changed. Add the marker in the message to the description.
	MarkerNotFoundReason = "MarkerNotFound"
	// WaitingForNodeReason means that the bootstrap data is removed once the guest is a Node. No action needed.
	WaitingForNodeReason = "WaitingForNode"
	// ExtraConfigHiddenReason means that the extra configuration of the VM is not visible, so bootstrap data may remain
	// in it. Grant the user of the identity the right to view it.
	ExtraConfigHiddenReason = "ExtraConfigHidden"
	// VMRenamedReason means that the VM was renamed. Rename it back: its Node keeps the old name.
	VMRenamedReason = "VMRenamed"
	// VMMovedReason means that the VM was moved to another vApp or VDC. Move it back, or replace the machine.
	VMMovedReason = "VMMoved"
	// ComputeChangedReason means that CPUs or memory of the VM were changed. Revert the change, or replace the machine.
	ComputeChangedReason = "ComputeChanged"
	// PolicyChangedReason means that the sizing policy, placement policy or storage profile of the VM was changed.
	// Revert the change, or replace the machine.
	PolicyChangedReason = "PolicyChanged"
	// DiskChangedReason means that the first disk of the VM has another size than spec.diskSize or the template
	// defines. Set spec.diskSize to its size.
	DiskChangedReason = "DiskChanged"
	// PoweredOnTooEarlyReason means that another client powered on the VM before it had its bootstrap data. Power it
	// off.
	PoweredOnTooEarlyReason = "PoweredOnTooEarly"
	// WaitingForAffinityRuleReason means that the VM requires a separate host, or the host of its group, and is powered on once
	// it is in the rule of its group. Wait; check AffinityRulesReady of the VCDCluster if it lasts.
	WaitingForAffinityRuleReason = "WaitingForAffinityRule"
	// VMPoweredOffReason means that the VM of a machine that was running is powered off. Power it on, or set
	// spec.powerOffPolicy; with PowerOn, check why it does not stay powered on.
	VMPoweredOffReason = "VMPoweredOff"
	// VMSuspendedReason means that the VM is suspended. Resume it.
	VMSuspendedReason = "VMSuspended"
	// VMInconsistentReason means that VCD reports an unusable state of the VM. Check it in VCD.
	VMInconsistentReason = "VMInconsistent"
	// LeaseLimitedReason means that the organization limits leases: VCD stops the vApp unless its lease is renewed in
	// time. Ask the provider to remove the limit and to grant the right to change leases.
	LeaseLimitedReason = "LeaseLimited"
	// WaitingForAddressReason means that an address is not known yet. Wait; check the DHCP server if it lasts.
	WaitingForAddressReason = "WaitingForAddress"
	// NoNameserversReason means that neither the networks of the machine nor its NICs have DNS servers, so its guest
	// may not resolve names. Set DNS servers of the network in VCD, or nameservers in spec.networks.
	NoNameserversReason = "NoNameservers"
	// WaitingForLoadBalancersReason means that load balancers may still send requests to the node of a machine that is being
	// deleted. Wait: the cloud controller manager updates them, and the deletion continues after 30 s in any case.
	WaitingForLoadBalancersReason = "WaitingForLoadBalancers"
	// ShuttingDownReason means that the guest is shutting down, before deletion or for an in-place update. Wait.
	ShuttingDownReason = "ShuttingDown"
	// HardwareRejectedReason means that VCD rejected new CPUs or memory of an in-place update. The VM runs with its
	// previous ones. Fix the cause in the message and remove spec.recordedState.restart of the VCDMachine, or replace the
	// machine.
	HardwareRejectedReason = "HardwareRejected"
	// GuestNotShutDownReason means that the guest does not shut down, and spec.powerOffMode Soft prevents the power-off
	// of its VM. Shut down the guest, or set spec.powerOffMode to TrySoft.
	GuestNotShutDownReason = "GuestNotShutDown"
)
