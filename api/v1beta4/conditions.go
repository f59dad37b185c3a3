// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Condition types of a VCDCluster.
const (
	// IdentityReadyCondition is True when the identity may be used for the namespace, site and organization of the
	// cluster, and its credentials log in.
	IdentityReadyCondition = "IdentityReady"
	// FailureDomainsReadyCondition is True when status.failureDomains lists zones, among them one for control planes.
	// Its message lists the selected zones that cannot be used. It exists if spec.failureDomainSelector is set.
	FailureDomainsReadyCondition = "FailureDomainsReady"
	// NetworkReadyCondition is True when the VDC and the network exist.
	NetworkReadyCondition = "NetworkReady"
	// PreflightPassedCondition is False while the state of the VDC prevents the creation of machines. It exists once
	// the VDC and the network are found. It is not part of Ready, because running machines are not affected.
	PreflightPassedCondition = "PreflightPassed"
	// EndpointReadyCondition is True when the control-plane endpoint is assigned and configured.
	EndpointReadyCondition = "EndpointReady"
	// NodeProxyReadyCondition is True when the Secret with the proxy settings of nodes is written. It exists once
	// spec.proxy was set.
	NodeProxyReadyCondition = "NodeProxyReady"
	// VAppLayoutReadyCondition is True when all drivers in the workload cluster support the vApp layout. It exists only
	// with layout PerMachine.
	VAppLayoutReadyCondition = "VAppLayoutReady"
	// VAppMetadataReadyCondition is True when the vApps of the cluster have the metadata of spec.vAppMetadata. It exists if
	// that is or was set, and is not part of Ready.
	VAppMetadataReadyCondition = "VAppMetadataReady"
	// VMLossSuspectedCondition is True while VMs of several clusters of the site are missing together, until a user
	// acknowledges that they are deleted. Until then, no missing VM of the cluster is treated as deleted. Otherwise it
	// does not exist. It is not part of Ready.
	VMLossSuspectedCondition = "VMLossSuspected"
	// CloudProviderReadyCondition is True when the bundled cloud controller manager runs in the workload cluster. It
	// exists if spec.cloudProvider.mode is Managed. It is not part of Ready: machines are created before it can run.
	CloudProviderReadyCondition = "CloudProviderReady"
	// AffinityRulesReadyCondition is True when VCD has the rules for spec.antiAffinity and spec.affinity of
	// VCDMachines. It exists if a VCDMachine sets one of these fields. It is not part of Ready, because Nodes work without the rules.
	AffinityRulesReadyCondition = "AffinityRulesReady"
	// PodProxyReadyCondition is True when the policies that give pods the proxy's environment are in the workload
	// cluster. It exists if spec.proxy names a proxy and spec.proxy.pods is Inject. It is not part of Ready.
	PodProxyReadyCondition = "PodProxyReady"
	// ServingCertificatesApprovedCondition is True when the certificate signing requests of kubelets were checked. Its
	// message lists the requests that are not approved. It exists if spec.kubeletServingCertificates is Approve, and is
	// not part of Ready.
	ServingCertificatesApprovedCondition = "ServingCertificatesApproved"
	// RDEReadyCondition is True when the runtime defined entity of the cluster is up to date. It exists if
	// spec.rde.mode is Project, and is not part of Ready: clusters do not depend on it.
	RDEReadyCondition = "RDEReady"
)

// Condition types of VCDFailureDomains and VCDDeploymentZones.
const (
	// VDCReadyCondition is True when the VDC of a failure domain, and its placement policy, exist in VCD, and the VDC
	// is enabled.
	VDCReadyCondition = "VDCReady"
	// FailureDomainReadyCondition is True when the VCDFailureDomain of a zone and the VCD objects to which it refers
	// exist.
	FailureDomainReadyCondition = "FailureDomainReady"
	// ConstraintReadyCondition is True when all VCD objects in spec.placementConstraint of a zone exist.
	ConstraintReadyCondition = "ConstraintReady"
)

// Condition types of a VCDMachine.
const (
	// BootstrapReadyCondition is True when the bootstrap data exists and fits into the guest properties.
	BootstrapReadyCondition = "BootstrapReady"
	// PlacementReadyCondition is True when the VDC, template, policies and networks of the machine exist.
	PlacementReadyCondition = "PlacementReady"
	// VAppReadyCondition is True when the vApp of the machine exists and belongs to the cluster.
	VAppReadyCondition = "VAppReady"
	// VMCreatedCondition is True when the VM exists.
	VMCreatedCondition = "VMCreated"
	// AdoptedCondition is True when the machine's ownership of a VM that CAPVCD created is proved. It exists on
	// machines with such a VM. On a VCDCluster that CAPVCD created, it is True when the ownership of the vApp is
	// proved.
	AdoptedCondition = "Adopted"
	// BootstrapInjectedCondition is True when bootstrap data and network configuration are written to the VM.
	BootstrapInjectedCondition = "BootstrapInjected"
	// EndpointJoinedCondition is True when a control plane is a member of its cluster's endpoint on an edge gateway:
	// before its VM is powered on, or with DHCP, once its address is known. It exists on control planes of clusters
	// with such an endpoint.
	EndpointJoinedCondition = "EndpointJoined"
	// PoweredOnCondition is True while the VM is powered on.
	PoweredOnCondition = "PoweredOn"
	// HardwareUpdatedCondition is True when the VM has the CPUs and memory of the spec. It exists while Cluster API
	// updates the machine in place.
	HardwareUpdatedCondition = "HardwareUpdated"
	// AddressesClaimedCondition is True when the addresses from IPAM pools or from the spec are known and valid. It
	// exists on machines with such addresses.
	AddressesClaimedCondition = "AddressesClaimed"
	// AddressesReadyCondition is True when the addresses of the machine are known.
	AddressesReadyCondition = "AddressesReady"
	// VMInSyncCondition is True while the VM matches its configuration at creation and its disk has the size in the
	// spec. It is not part of Ready unless the annotation drift-in-ready is set, because a Node usually keeps working
	// after a change of its VM.
	VMInSyncCondition = "VMInSync"
	// BootstrapDataRemovedCondition is True when the VM no longer contains bootstrap data. It is not part of Ready.
	BootstrapDataRemovedCondition = "BootstrapDataRemoved"
	// VMMetadataReadyCondition is True when the VM has the metadata of spec.vmMetadata. It exists if that is or was
	// set, and is not part of Ready.
	VMMetadataReadyCondition = "VMMetadataReady"
	// VMResetCondition is True when the reset of the VM for a VCDRemediation was sent to VCD. It exists while a
	// VCDRemediation does, and is not part of Ready.
	VMResetCondition = "VMReset"
	// LeaseLimitedCondition is True while the vApp has a runtime lease: VCD stops it unless the lease is renewed.
	// Otherwise it does not exist. It is not part of Ready.
	LeaseLimitedCondition = "LeaseLimited"
)

// Condition types of a VCDRemediation.
const (
	// MachineFoundCondition is True when the Machine and its VCDMachine exist and are not being deleted.
	MachineFoundCondition = "MachineFound"
	// ResetsCompletedCondition is True when all resets of the strategy were done and the Machine did not become
	// healthy, or when a reset cannot help.
	ResetsCompletedCondition = "ResetsCompleted"
	// ReplacementRequestedCondition is True when the owner of the Machine was asked to replace it.
	ReplacementRequestedCondition = "ReplacementRequested"
)

// Condition types of a VCDMachineTemplate.
const (
	// CapacityKnownCondition is True when status.capacity contains the capacity of a machine, so that an autoscaler can
	// scale from zero.
	CapacityKnownCondition = "CapacityKnown"
)

// Condition types of identities.
const (
	// SecretReadyCondition is True when the Secret exists and is complete.
	SecretReadyCondition = "SecretReady"
	// LoggedInCondition is True while the credentials log in to the organizations of the VCDClusters that use the
	// identity. It does not exist while no VCDCluster uses the identity.
	LoggedInCondition = "LoggedIn"
)

// Condition types of objects that are being deleted.
const (
	// NodeWithdrawnCondition is True when no load balancer of the workload cluster sends requests to the node of a
	// VCDMachine, or after 30 s. The VM is powered off afterwards. It exists if the machine became a node.
	NodeWithdrawnCondition = "NodeWithdrawn"
	// VMDeletedCondition is True when the VM of a VCDMachine is deleted.
	VMDeletedCondition = "VMDeleted"
	// LoadBalancersDeletedCondition is True when all objects that the cloud controller manager of a VCDCluster created
	// on edge gateways are deleted.
	LoadBalancersDeletedCondition = "LoadBalancersDeleted"
	// AffinityRulesDeletedCondition is True when the affinity and anti-affinity rules of a VCDCluster are deleted. It exists if
	// there were any.
	AffinityRulesDeletedCondition = "AffinityRulesDeleted"
	// VAppDeletedCondition is True when the vApp is deleted or is in use by other objects.
	VAppDeletedCondition = "VAppDeleted"
	// RemovedFromEndpointCondition is True when a VCDMachine is no longer a member of the control-plane endpoint on an
	// edge gateway. It exists if the machine was a member.
	RemovedFromEndpointCondition = "RemovedFromEndpoint"
	// EndpointDeletedCondition is True when the control-plane endpoint on an edge gateway is deleted. It exists on
	// VCDClusters with such an endpoint, which is deleted after their other objects in VCD.
	EndpointDeletedCondition = "EndpointDeleted"
	// DisksDeletedCondition is True when the independent disks of a VCDCluster are deleted. It exists if
	// spec.orphanedDiskPolicy is Delete.
	DisksDeletedCondition = "DisksDeleted"
	// RDEDeletedCondition is True when the runtime defined entity of a VCDCluster, which is deleted last, is deleted.
	// It exists if spec.rde.mode is Project.
	RDEDeletedCondition = "RDEDeleted"
	// ReleasedCondition is True when the object's claims and finalizer are removed. The API server then deletes the
	// object.
	ReleasedCondition = "Released"
)
