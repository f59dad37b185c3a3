package v1beta4

// Annotations that the controllers write. They are part of what must survive `clusterctl move`, which restores no status.
const (
	// InstanceIDAnnotation on a VCDMachine is what its guest knows itself by and what marks its VM. It never changes.
	InstanceIDAnnotation = "infrastructure.cluster.x-k8s.io/instance-id"
	// VMNameAnnotation on a VCDMachine is the name its VM was, or is going to be, created with.
	VMNameAnnotation = "infrastructure.cluster.x-k8s.io/vm-name"
	// CreationRequestedAnnotation on a VCDMachine is when VCD was last asked to create its VM (RFC 3339). It is stored before the
	// request is sent: without it there never was a VM.
	CreationRequestedAnnotation = "infrastructure.cluster.x-k8s.io/creation-requested-at"
	// PoweredOnAnnotation on a VCDMachine is when its VM was first seen running (RFC 3339): from then on it is looked after, not made.
	PoweredOnAnnotation = "infrastructure.cluster.x-k8s.io/powered-on-at"
	// BootstrapDataRemovedAnnotation on a VCDMachine says that the VM was seen without bootstrap data.
	BootstrapDataRemovedAnnotation = "infrastructure.cluster.x-k8s.io/bootstrap-data-removed"
	// ShutdownRequestedAnnotation on a VCDMachine is when its guest was asked to shut down before deletion.
	ShutdownRequestedAnnotation = "infrastructure.cluster.x-k8s.io/shutdown-requested-at"
	// DeleteRequestedAnnotation on a VCDMachine is when VCD was first asked to delete its VM (RFC 3339). It is stored before the
	// request is sent.
	DeleteRequestedAnnotation = "infrastructure.cluster.x-k8s.io/delete-requested-at"
	// MissingSinceAnnotation on a VCDMachine, or a VCDCluster that is deleted, is when its VM or vApp was first not seen, though VCD
	// showed what else must be there (RFC 3339). It is removed when that is seen again.
	MissingSinceAnnotation = "infrastructure.cluster.x-k8s.io/missing-since"
	// VMNotFoundSinceAnnotation on a VCDMachine is when its VM was declared gone, by proof (RFC 3339). It is removed when the VM is
	// seen again.
	VMNotFoundSinceAnnotation = "infrastructure.cluster.x-k8s.io/vm-not-found-since"
	// VMGoneAnnotation on a VCDMachine, with the value "true", says that its VM is gone: a person knows it, or it was proved. It is
	// not looked for any more.
	VMGoneAnnotation = "infrastructure.cluster.x-k8s.io/vm-gone"
	// VMRecordedAnnotation on a VCDMachine is what its VM was made like, as JSON: what it is compared with. Who removes it accepts the
	// VM as it is.
	VMRecordedAnnotation = "infrastructure.cluster.x-k8s.io/vm-recorded"
	// PoweredOnAgainAnnotation on a VCDMachine is how often in a row its VM was found powered off and powered on again, and when that
	// was last done (RFC 3339). Who removes it makes it be tried at once.
	PoweredOnAgainAnnotation = "infrastructure.cluster.x-k8s.io/powered-on-again"
	// DriftInReadyAnnotation on a VCDMachine, with the value "true", makes VMAsSpecified part of Ready, so that a MachineHealthCheck
	// replaces machines whose VM was changed in VCD. Set it in spec.template.metadata of a VCDMachineTemplate.
	DriftInReadyAnnotation = "infrastructure.cluster.x-k8s.io/drift-in-ready"
	// GoneStoppedAnnotation on a VCDCluster is since when none of its VMs is declared gone, because VMs of several clusters of the site
	// went missing together (RFC 3339).
	GoneStoppedAnnotation = "infrastructure.cluster.x-k8s.io/gone-stopped-since"
	// GoneAcknowledgedAnnotation on a VCDCluster, set to "true" by a person, says that VMs of the cluster that are missing now are
	// really gone. The controller replaces the value by the time (RFC 3339).
	GoneAcknowledgedAnnotation = "infrastructure.cluster.x-k8s.io/gone-acknowledged"
	// LastGoneAnnotation on a VCDCluster is when the last of several of its VMs that are missing was declared gone (RFC 3339).
	LastGoneAnnotation = "infrastructure.cluster.x-k8s.io/last-gone-at"
	// TokenChainAnnotation on the Secret of an identity of type ServiceAccount says who uses its token, and of which it came, as JSON
	// without tokens.
	TokenChainAnnotation = "infrastructure.cluster.x-k8s.io/token-chain"
	// CredentialsAcceptedAnnotation on a VCDCluster is the version of its identity's Secret that last logged in.
	CredentialsAcceptedAnnotation = "infrastructure.cluster.x-k8s.io/credentials-accepted"
	// VAppCreatedAnnotation on a VCDCluster, with the value "true", says that VCD was asked to create VMs in its vApp.
	VAppCreatedAnnotation = "infrastructure.cluster.x-k8s.io/vapp-created"
	// VAppsAnnotation on a VCDCluster lists the URNs of the vApps that VMs of it were made in, once they are deleted, separated by commas: a
	// vApp that somebody renamed is deleted with the cluster, too.
	VAppsAnnotation = "infrastructure.cluster.x-k8s.io/vapps"
	// EdgeGatewaysAnnotation on a VCDCluster lists the URNs of the edge gateways that its network was seen on, separated by commas. Load
	// balancers of a cluster that is deleted are looked for there, also when its network is gone.
	EdgeGatewaysAnnotation = "infrastructure.cluster.x-k8s.io/edge-gateways"
	// LoadBalancerGatewaysAnnotation on a VCDCluster lists the URNs of the edge gateways that spec.loadBalancer.gateways named, separated by
	// commas. They are written down before the cloud controller manager is told of them; load balancers of a cluster that is deleted are looked
	// for there, too.
	LoadBalancerGatewaysAnnotation = "infrastructure.cluster.x-k8s.io/load-balancer-gateways"
	// LoadBalancersRemovedAnnotation on a VCDCluster that is deleted is when one of its load balancers was last removed, to a few seconds
	// (RFC 3339): another manager, too, looks once more when no cloud controller manager can be left that makes it again.
	LoadBalancersRemovedAnnotation = "infrastructure.cluster.x-k8s.io/load-balancers-removed"
	// CloudProviderOfAnnotation on an object in a workload cluster is the id of the cluster whose bundled cloud controller manager it is part of.
	CloudProviderOfAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-of"
	// CloudProviderAppliedAnnotation on such an object is when the whole set was last applied anew, because somebody had changed it (RFC 3339).
	CloudProviderAppliedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-applied-at"
	// CloudProviderWrittenAnnotation on the Secret with the manifests of the cloud controller manager is when they last changed (RFC 3339).
	CloudProviderWrittenAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-written-at"
	// CloudProviderInventoryAnnotation on that Secret lists the objects in it, as JSON.
	CloudProviderInventoryAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-inventory"
	// CloudProviderDroppedAnnotation on that Secret lists what is to be removed from the workload cluster, because it is in the Secret no
	// more, as JSON.
	CloudProviderDroppedAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-dropped"
	// CloudProviderCredentialsAnnotation on that Secret is the version of the credentials in it, which logged in.
	CloudProviderCredentialsAnnotation = "infrastructure.cluster.x-k8s.io/cloud-provider-credentials"
	// CloudProviderLabel on a Cluster has it selected by the ClusterResourceSets with its cloud controller manager.
	CloudProviderLabel = "infrastructure.cluster.x-k8s.io/cloud-provider"
	// KeepLoadBalancersAnnotation on a VCDCluster that is deleted, with the value "true", says that its deletion goes on, whatever load
	// balancers of it are left.
	KeepLoadBalancersAnnotation = "infrastructure.cluster.x-k8s.io/keep-load-balancers"
	// KeepVAppAnnotation on a VCDCluster or VCDMachine that is deleted, with the value "true", says that a person wants its vApp to stay,
	// because of what else is in it.
	KeepVAppAnnotation = "infrastructure.cluster.x-k8s.io/keep-vapp"
	// DetachedDiskAnnotationPrefix on a VCDCluster, followed by the id of an independent disk, has the name of the disk, which was
	// detached from a VM of the cluster before the VM was deleted.
	DetachedDiskAnnotationPrefix = "detached-disk.infrastructure.cluster.x-k8s.io/"
)

// Condition types of objects that are being deleted.
const (
	// VMDeletedCondition says whether the VM of a VCDMachine is gone.
	VMDeletedCondition = "VMDeleted"
	// LoadBalancersDeletedCondition says whether what the cloud controller manager of a VCDCluster made on edge gateways is gone.
	LoadBalancersDeletedCondition = "LoadBalancersDeleted"
	// VAppDeletedCondition says whether the vApp is gone, if it was this object's alone.
	VAppDeletedCondition = "VAppDeleted"
	// DisksDeletedCondition says whether the independent disks of a VCDCluster are gone. It is there if spec.orphanedDiskPolicy is Delete.
	DisksDeletedCondition = "DisksDeleted"
	// ReleasedCondition says whether what the object holds in Kubernetes is released. The object goes with it.
	ReleasedCondition = "Released"
)

// Reasons of any condition. The comment says what to do.
const (
	// ReadyReason is the reason of every true condition. Nothing is to be done.
	ReadyReason = "Ready"
	// WaitingForEarlierPhaseReason means that something else comes first. Look at the condition that the message names.
	WaitingForEarlierPhaseReason = "WaitingForEarlierPhase"
	// InternalErrorReason means that something unexpected happened, which is tried again. Look at the controller's logs.
	InternalErrorReason = "InternalError"
	// NotSupportedReason means that this release does not do what the spec wishes. Change the field that the message names.
	NotSupportedReason = "NotSupported"
	// TaskRunningReason means that VCD works on it. Wait.
	TaskRunningReason = "TaskRunning"
	// TaskFailedReason means that a task in VCD failed with the message; it is tried again, less and less often. Remove the cause
	// in VCD; a change of the spec makes it tried at once.
	TaskFailedReason = "TaskFailed"
	// QuotaExceededReason means that a quota of the organisation, the VDC or the user, or an address pool, is used up. Free some, or
	// have it raised.
	QuotaExceededReason = "QuotaExceeded"
	// RequestRefusedReason means that VCD refuses the request as it is. Correct what the message says; it is tried again.
	RequestRefusedReason = "RequestRefused"
	// ForbiddenReason means that the user of the identity lacks a right, or may not see the object. Grant it.
	ForbiddenReason = "Forbidden"
	// EntityBusyReason means that another task in VCD holds the vApp or VM. Wait; look at VCD's tasks if it lasts.
	EntityBusyReason = "EntityBusy"
	// ThrottledReason means that VCD asks for fewer requests. Wait; lower --vcd-requests-per-second if it lasts.
	ThrottledReason = "Throttled"
	// NameConflictReason means that something of the name exists and is not ours; it is left alone. Rename or delete it.
	NameConflictReason = "NameConflict"
)

// Reasons of identities and of everything that needs to log in.
const (
	// IdentityNotFoundReason means that the identity does not exist. Create it, or correct spec.identityRef.
	IdentityNotFoundReason = "IdentityNotFound"
	// NamespaceNotAllowedReason means that the VCDClusterIdentity may not be used from the namespace. List or select it in
	// spec.allowedNamespaces.
	NamespaceNotAllowedReason = "NamespaceNotAllowed"
	// SiteNotAllowedReason means that the identity is for another site than the VCDCluster's, and is not sent there. Correct
	// spec.site of the VCDCluster or of the identity.
	SiteNotAllowedReason = "SiteNotAllowed"
	// OrgNotAllowedReason means that the VCDClusterIdentity may not be used for the organisation. Correct spec.org of the VCDCluster,
	// or add it to spec.orgs of the identity.
	OrgNotAllowedReason = "OrgNotAllowed"
	// SecretNotFoundReason means that the Secret of the identity does not exist. Create it, or correct spec.secretRef.
	SecretNotFoundReason = "SecretNotFound"
	// SecretIncompleteReason means that the Secret lacks keys. Add username and password, or apiToken.
	SecretIncompleteReason = "SecretIncomplete"
	// InUseReason means that the identity is kept until no VCDCluster refers to it. Delete those, or give them another identity.
	InUseReason = "InUse"
	// TokenTakenReason means that the token of a service account is somebody else's already: it changes with each use, so it has one user.
	// Name another identity, or grant the service account anew and write that token into the Secret.
	TokenTakenReason = "TokenTaken"
	// TokenOutdatedReason means that the Secret of a service account has its first token again, which VCD has replaced. See that nothing
	// writes the Secret back; grant the service account anew, and write that token into the Secret.
	TokenOutdatedReason = "TokenOutdated"
	// TokenNotWritableReason means that nobody logs in as a service account, because its next token could not be written down. Let the
	// manager update the Secret.
	TokenNotWritableReason = "TokenNotWritable"
	// CredentialsRefusedReason means that VCD does not accept the credentials for this organisation. Correct the Secret of the identity,
	// or spec.org: each version of the Secret is tried once.
	CredentialsRefusedReason = "CredentialsRefused"
	// CertificateNotTrustedReason means that the certificate of the site is not signed by a known authority. Put that authority in
	// spec.tls.caBundle of the identity, or in ca.crt of its Secret.
	CertificateNotTrustedReason = "CertificateNotTrusted"
	// SiteInvalidReason means that what answers at the site cannot be used. Correct spec.site and spec.org.
	SiteInvalidReason = "SiteInvalid"
	// SiteUnreachableReason means that VCD does not answer. Check spec.site, the network and VCD itself.
	SiteUnreachableReason = "SiteUnreachable"
)

// Reasons of VCDClusters.
const (
	// VDCNotFoundReason means that there is no such VDC, or the user may not see it. Correct spec.ovdc, or give access.
	VDCNotFoundReason = "VDCNotFound"
	// NetworkNotFoundReason means that there is no such network in the VDC. Correct the field that the message names.
	NetworkNotFoundReason = "NetworkNotFound"
	// EndpointMissingReason means that nothing says where the endpoint is. Set address, poolRef or dnsName in spec.endpoint.kubeVIP.
	EndpointMissingReason = "EndpointMissing"
	// WaitingForEndpointReason means that an external endpoint is not given yet. Set spec.controlPlaneEndpoint.
	WaitingForEndpointReason = "WaitingForEndpoint"
	// AddressClaimedReason means that the virtual IP was claimed and the pool has not given one yet. Look at the IPAddressClaim and
	// the pool.
	AddressClaimedReason = "AddressClaimed"
	// VIPInvalidReason means that the address can be no virtual IP. Choose another in spec.endpoint.kubeVIP.
	VIPInvalidReason = "VIPInvalid"
	// VIPOutsideNetworkReason means that the virtual IP is in no subnet of the nodes' network. Choose one that is.
	VIPOutsideNetworkReason = "VIPOutsideNetwork"
	// VIPInStaticPoolReason means that VCD could give the virtual IP to a VM. Choose another, or take it out of the pool.
	VIPInStaticPoolReason = "VIPInStaticPool"
	// VIPInDHCPRangeReason means that the virtual IP could be leased. Choose another, or take it out of the range.
	VIPInDHCPRangeReason = "VIPInDHCPRange"
	// InfraIDInvalidReason means that what spec.infraID marks could not be recognised again: nothing is created. Make the cluster anew
	// with an id without blanks.
	InfraIDInvalidReason = "InfraIDInvalid"
	// InfraIDInUseReason means that spec.infraID is another VCDCluster's, as after a manifest was copied: what carries it in VCD is that
	// one's. Make the cluster anew without spec.infraID and without the annotations of the other.
	InfraIDInUseReason = "InfraIDInUse"
	// MachinesRemainReason means that the VCDCluster waits for its VCDMachines to be deleted. Wait, or look at them.
	MachinesRemainReason = "MachinesRemain"
	// LoadBalancersRemainReason means that load balancers of the cluster may be left on its edge gateway, which refuses to show or remove them,
	// or does not answer. Grant the right, or remove them by hand and follow the message.
	LoadBalancersRemainReason = "LoadBalancersRemain"
	// LastLookReason means that the load balancers of the cluster are removed, and it is looked once more whether its cloud controller manager
	// made one again before it died. Wait.
	LastLookReason = "LastLook"
	// VAppNotEmptyReason means that a vApp that is to be deleted holds what is not ours, must outlive it or runs without a VCDMachine.
	// Move or delete it in VCD.
	VAppNotEmptyReason = "VAppNotEmpty"
	// LegacyDriverInstalledReason means that VMware's CSI driver or cloud provider runs in the workload cluster in a version that looks for
	// nodes in one vApp, which layout PerMachine does not have. Replace or remove it.
	LegacyDriverInstalledReason = "LegacyDriverInstalled"
	// WorkloadClusterUnreachableReason means that the API server of the workload cluster cannot be asked for what the next step needs to
	// know. Wait, or look at the Cluster.
	WorkloadClusterUnreachableReason = "WorkloadClusterUnreachable"
	// VAppUnverifiedReason means that the vApp is not seen, which is no proof that it is gone. Wait, or follow the message.
	VAppUnverifiedReason = "VAppUnverified"
)

// Reasons of cloud controller managers.
const (
	// WaitingForControlPlaneReason means that nothing can be installed before the control plane answers. Wait, or look at the Cluster.
	WaitingForControlPlaneReason = "WaitingForControlPlane"
	// ForeignCloudProviderReason means that another cloud controller manager is installed in the workload cluster, and ours is not put beside
	// it. Remove what the message names, or set spec.cloudProvider.mode to External.
	ForeignCloudProviderReason = "ForeignCloudProvider"
	// IdentityNotSharedReason means that the identity does not allow that its credentials are put into workload clusters. Set
	// spec.shareWithClusters of the identity, or name another in spec.cloudProvider.identityRef.
	IdentityNotSharedReason = "IdentityNotShared"
	// IdentityNotShareableReason means that credentials of this kind are never put into workload clusters: those of a VCDClusterIdentity, of a
	// system administrator, and a service account that the manager uses itself. Name another in spec.cloudProvider.identityRef.
	IdentityNotShareableReason = "IdentityNotShareable"
	// LoadBalancerInvalidReason means that spec.loadBalancer cannot be used: a gateway or a network that it names is not found, or is not routed,
	// or a range is none. Correct what the message names, or give access.
	LoadBalancerInvalidReason = "LoadBalancerInvalid"
	// CloudProviderApplyingReason means that the manifests are not all as they should be in the workload cluster. Wait; look at the
	// ClusterResourceSet that the message names if it lasts.
	CloudProviderApplyingReason = "CloudProviderApplying"
	// CloudProviderUnavailableReason means that no pod of the cloud controller manager is ready, or that pods of a former version still
	// run. Look at its Deployment, and at its log.
	CloudProviderUnavailableReason = "CloudProviderUnavailable"
)

// Reasons of VCDMachineTemplates.
const (
	// ClusterUnknownReason means that nothing says in which VCD, organisation and VDC the template's machines will be. Label it with the
	// name of its cluster.
	ClusterUnknownReason = "ClusterUnknown"
)

// Reasons of VCDMachines.
const (
	// WaitingForClusterReason means that the infrastructure of the cluster comes first. Look at the VCDCluster.
	WaitingForClusterReason = "WaitingForCluster"
	// ClusterNotFoundReason means that the VCDCluster is gone, so that nobody knows where the VM is. Delete the VM by hand, then the
	// finalizer.
	ClusterNotFoundReason = "ClusterNotFound"
	// WaitingForBootstrapDataReason means that the bootstrap provider has no data yet. Wait, or look at the Machine.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"
	// BootstrapDataInvalidReason means that the bootstrap data cannot be used. Correct the bootstrap config.
	BootstrapDataInvalidReason = "BootstrapDataInvalid"
	// BootstrapDataTooLargeReason means that the bootstrap data does not fit. Put large files in the VM template.
	BootstrapDataTooLargeReason = "BootstrapDataTooLarge"
	// VMNameInvalidReason means that spec.vmNamingTemplate gives no usable name. Correct it.
	VMNameInvalidReason = "VMNameInvalid"
	// CatalogNotFoundReason means that there is no such catalog. Correct spec.catalog, or share the catalog.
	CatalogNotFoundReason = "CatalogNotFound"
	// TemplateNotFoundReason means that there is no such template. Correct spec.template, or put it in the catalog.
	TemplateNotFoundReason = "TemplateNotFound"
	// TemplateInvalidReason means that the template cannot be used: it has no VM, or is not ready. Name another, or repair it.
	TemplateInvalidReason = "TemplateInvalid"
	// SizingPolicyNotFoundReason means that the VDC has no such sizing policy. Correct spec.sizingPolicy, or assign it.
	SizingPolicyNotFoundReason = "SizingPolicyNotFound"
	// PlacementPolicyNotFoundReason means that the VDC has no such placement policy. Correct spec.placementPolicy, or assign it.
	PlacementPolicyNotFoundReason = "PlacementPolicyNotFound"
	// StorageProfileNotFoundReason means that the VDC has no such storage profile. Correct spec.storageProfile, or add it.
	StorageProfileNotFoundReason = "StorageProfileNotFound"
	// DiskTooSmallReason means that spec.diskSize is smaller than the disk of the template, or of the VM. Wish for at least that.
	DiskTooSmallReason = "DiskTooSmall"
	// DuplicateMarkerReason means that several VMs could be the machine's; none is touched. Delete or rename the others.
	DuplicateMarkerReason = "DuplicateMarker"
	// NotOursReason means that the recorded VM does not say it is the machine's; it is not deleted. Follow the message.
	NotOursReason = "NotOurs"
	// VMUnverifiedReason means that the VM is not seen, which is no proof that it is gone. Look for it in VCD, or follow the message.
	VMUnverifiedReason = "VMUnverified"
	// VMNotFoundReason means that the VM is gone, which was proved, or a person said so. Replace the machine: delete it, or let a
	// MachineHealthCheck do so.
	VMNotFoundReason = "VMNotFound"
	// GoneHeldBackReason means that more than a third of the cluster's VMs went missing together. Look at VCD: ten minutes later they
	// count as gone, one by one.
	GoneHeldBackReason = "GoneHeldBack"
	// GoneStoppedReason means that VMs of three clusters of the site went missing together: nothing of the site counts as gone until a
	// person says so. Look at VCD, then follow the message.
	GoneStoppedReason = "GoneStopped"
	// AddressChangedReason means that VCD has another address for a NIC than the guest was told. Set it back, or replace the machine.
	AddressChangedReason = "AddressChanged"
	// NICsChangedReason means that a NIC of the VM was removed, added or connected to another network. Set it back, or replace the
	// machine.
	NICsChangedReason = "NICsChanged"
	// VMRenamedReason means that somebody renamed the VM. Rename it back: its Node keeps the old name.
	VMRenamedReason = "VMRenamed"
	// VMMovedReason means that the VM is in another vApp or VDC than it was made in. Move it back, or replace the machine.
	VMMovedReason = "VMMoved"
	// ComputeChangedReason means that the VM has other CPUs or memory than it was made with. Set them back, or replace the machine.
	ComputeChangedReason = "ComputeChanged"
	// PolicyChangedReason means that the VM has another sizing policy, placement policy or storage profile than it was made with. Set it
	// back, or replace the machine.
	PolicyChangedReason = "PolicyChanged"
	// DiskChangedReason means that the first disk of the VM has another size than spec.diskSize or the template gave it. Set
	// spec.diskSize to what it has.
	DiskChangedReason = "DiskChanged"
	// PoweredOnEarlyReason means that somebody powered the VM on before it had its bootstrap data. Power it off.
	PoweredOnEarlyReason = "PoweredOnEarly"
	// VMPoweredOffReason means that the VM of a machine that ran is powered off. Power it on, or set spec.powerState; with PowerOn, look
	// why it does not stay on.
	VMPoweredOffReason = "VMPoweredOff"
	// VMSuspendedReason means that the VM is suspended. Resume it.
	VMSuspendedReason = "VMSuspended"
	// VMInconsistentReason means that VCD reports a state in which no VM should stay. Look at it in VCD.
	VMInconsistentReason = "VMInconsistent"
	// LeaseLimitedReason means that the organisation limits leases, so that VCD stops the vApp unless we renew its lease in time. Have
	// the limit removed, and grant the right to change leases.
	LeaseLimitedReason = "LeaseLimited"
	// WaitingForAddressReason means that an address is not known yet. Wait; look at the DHCP server if it lasts.
	WaitingForAddressReason = "WaitingForAddress"
	// AddressInvalidReason means that an address does not fit its network. Correct spec.networks, or the network.
	AddressInvalidReason = "AddressInvalid"
	// ShuttingDownReason means that the guest is given time to shut down. Wait.
	ShuttingDownReason = "ShuttingDown"
)
