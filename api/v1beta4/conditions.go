// SPDX-License-Identifier: Apache-2.0

package v1beta4

// Condition types of a VCDCluster.
const (
	// IdentityReadyCondition is True when the identity may be used for the namespace, site and organization of the
	// cluster, and its credentials log in.
	IdentityReadyCondition = "IdentityReady"
	// FailureDomainsReadyCondition is True when status.failureDomains lists zones, among them one for control planes.
	// Its message names those that are selected and cannot be used. It exists if spec.failureDomainSelector is set.
	FailureDomainsReadyCondition = "FailureDomainsReady"
	// NetworkReadyCondition is True when VDC and network are found.
	NetworkReadyCondition = "NetworkReady"
	// PreflightPassedCondition is False while what is known of the VDC would keep machines from being created. It
	// exists once VDC and network were found, and is not part of Ready: machines that run are not affected.
	PreflightPassedCondition = "PreflightPassed"
	// EndpointReadyCondition is True when the control-plane endpoint is known and prepared.
	EndpointReadyCondition = "EndpointReady"
	// NodeProxyReadyCondition is True when the Secret with the proxy settings of nodes is written. It exists once
	// spec.proxy was set.
	NodeProxyReadyCondition = "NodeProxyReady"
	// VAppLayoutReadyCondition is True when everything in the workload cluster works with the layout. It exists with
	// layout PerMachine only.
	VAppLayoutReadyCondition = "VAppLayoutReady"
	// VMLossSuspectedCondition is True while VMs of several clusters of the site are missing together, until a user
	// acknowledges that they are gone: no missing VM of the cluster counts as gone. It does not exist otherwise, and is
	// not part of Ready.
	VMLossSuspectedCondition = "VMLossSuspected"
	// CloudProviderReadyCondition is True when the bundled cloud controller manager runs in the workload cluster. It
	// exists if spec.cloudProvider.mode is Managed. It is not part of Ready: machines are created before it can run.
	CloudProviderReadyCondition = "CloudProviderReady"
	// AntiAffinityReadyCondition is True when VCD has the rules that spec.antiAffinity of VCDMachines asks for. It exists
	// if any of them does.
	// It is not part of Ready: a Node works on where VCD runs it.
	AntiAffinityReadyCondition = "AntiAffinityReady"
	// PodProxyReadyCondition is True when the policies that give pods the proxy's environment are in the workload
	// cluster. It exists if spec.proxy names a proxy and spec.proxy.pods is Inject. It is not part of Ready.
	PodProxyReadyCondition = "PodProxyReady"
	// ServingCertificatesApprovedCondition is True when the certificate signing requests of kubelets were checked. Its
	// message names those that are not approved. It exists if spec.kubeletServingCertificates is Approve, and is not part
	// of Ready.
	ServingCertificatesApprovedCondition = "ServingCertificatesApproved"
	// RDEReadyCondition is True when the runtime defined entity of the cluster shows it as it is. It exists if
	// spec.rde.mode is Project, and is not part of Ready: clusters do not depend on it.
	RDEReadyCondition = "RDEReady"
)

// Condition types of VCDFailureDomains and VCDDeploymentZones.
const (
	// VDCReadyCondition is True when the VDC of a failure domain, and its placement policy, are found in VCD, and the
	// VDC is enabled.
	VDCReadyCondition = "VDCReady"
	// FailureDomainReadyCondition is True when the VCDFailureDomain of a zone, and what it names in VCD, are found.
	FailureDomainReadyCondition = "FailureDomainReady"
	// ConstraintReadyCondition is True when everything that spec.placementConstraint of a zone names is found in VCD.
	ConstraintReadyCondition = "ConstraintReady"
)

// Condition types of a VCDMachine.
const (
	// BootstrapReadyCondition is True when the bootstrap data exists and fits into the guest properties.
	BootstrapReadyCondition = "BootstrapReady"
	// PlacementReadyCondition is True when VDC, template, policies and networks of the machine are found.
	PlacementReadyCondition = "PlacementReady"
	// VAppReadyCondition is True when the vApp of the machine exists and belongs to the cluster.
	VAppReadyCondition = "VAppReady"
	// VMCreatedCondition is True when the VM exists.
	VMCreatedCondition = "VMCreated"
	// AdoptedCondition is True when the VM that CAPVCD created is proved to be the machine's. It exists on machines with
	// such a VM. On a VCDCluster that CAPVCD created, it is True when the vApp is proved to be the cluster's.
	AdoptedCondition = "Adopted"
	// BootstrapInjectedCondition is True when bootstrap data and network configuration are written to the VM.
	BootstrapInjectedCondition = "BootstrapInjected"
	// EndpointJoinedCondition is True when a control plane is a member of its cluster's endpoint on an edge gateway:
	// before its VM is powered on, or, if its address comes by DHCP, once that is known. It exists on control planes of
	// clusters with such an endpoint.
	EndpointJoinedCondition = "EndpointJoined"
	// PoweredOnCondition is True while the VM is powered on.
	PoweredOnCondition = "PoweredOn"
	// AddressesClaimedCondition is True when the addresses that a pool of IPAM gives, or the spec lists, are known and
	// can be used. It exists on machines with such addresses.
	AddressesClaimedCondition = "AddressesClaimed"
	// AddressesReadyCondition is True when the addresses of the machine are known.
	AddressesReadyCondition = "AddressesReady"
	// VMInSyncCondition is True while the VM is as it was created, and its disk has the size in the spec. It is
	// not part of Ready unless the annotation drift-in-ready is set: a Node works on after a change of its VM, and need
	// not be replaced.
	VMInSyncCondition = "VMInSync"
	// BootstrapDataRemovedCondition is True when the VM shows that its bootstrap data was removed. It is not part of
	// Ready.
	BootstrapDataRemovedCondition = "BootstrapDataRemoved"
	// VMMetadataReadyCondition is True when the VM has the metadata of spec.vmMetadata. It exists if that is or was
	// set, and is not part of Ready.
	VMMetadataReadyCondition = "VMMetadataReady"
	// VMResetCondition is True when the reset of the VM that a VCDRemediation asks for was sent to VCD. It exists while a
	// VCDRemediation does, and is not part of Ready.
	VMResetCondition = "VMReset"
	// LeaseLimitedCondition is True while the vApp has a runtime lease: VCD stops it unless the lease is renewed. It
	// does not exist otherwise, and is not part of Ready.
	LeaseLimitedCondition = "LeaseLimited"
)

// Condition types of a VCDRemediation.
const (
	// MachineFoundCondition is True when the Machine and its VCDMachine are found, and are not being deleted.
	MachineFoundCondition = "MachineFound"
	// ResetsCompletedCondition is True when the VM was reset as often as the strategy allows, and the Machine did not
	// become healthy, or when no reset can help.
	ResetsCompletedCondition = "ResetsCompleted"
	// ReplacementRequestedCondition is True when the owner of the Machine was asked to replace it.
	ReplacementRequestedCondition = "ReplacementRequested"
)

// Condition types of a VCDMachineTemplate.
const (
	// CapacityKnownCondition is True when status.capacity is the capacity of a machine, so that an autoscaler can scale
	// from zero.
	CapacityKnownCondition = "CapacityKnown"
)

// Condition types of identities.
const (
	// SecretReadyCondition is True when the Secret exists and is complete.
	SecretReadyCondition = "SecretReady"
	// LoggedInCondition is True while the credentials log in to the organizations of the VCDClusters that use the
	// identity. It does not exist while none does.
	LoggedInCondition = "LoggedIn"
)

// Condition types of objects that are being deleted.
const (
	// VMDeletedCondition is True when the VM of a VCDMachine is gone.
	VMDeletedCondition = "VMDeleted"
	// LoadBalancersDeletedCondition is True when everything that the cloud controller manager of a VCDCluster created
	// on edge gateways is gone.
	LoadBalancersDeletedCondition = "LoadBalancersDeleted"
	// AffinityRulesDeletedCondition is True when the anti-affinity rules of a VCDCluster are gone. It exists if there
	// were any.
	AffinityRulesDeletedCondition = "AffinityRulesDeleted"
	// VAppDeletedCondition is True when the vApp is gone, unless other objects use it.
	VAppDeletedCondition = "VAppDeleted"
	// RemovedFromEndpointCondition is True when a VCDMachine is no member of the control-plane endpoint on an edge gateway any
	// more. It exists if the machine was one.
	RemovedFromEndpointCondition = "RemovedFromEndpoint"
	// EndpointDeletedCondition is True when the control-plane endpoint on an edge gateway is gone. It exists on
	// VCDClusters with such an endpoint, and is the last to be deleted of what they have in VCD.
	EndpointDeletedCondition = "EndpointDeleted"
	// DisksDeletedCondition is True when the independent disks of a VCDCluster are gone. It exists if
	// spec.orphanedDiskPolicy is Delete.
	DisksDeletedCondition = "DisksDeleted"
	// RDEDeletedCondition is True when the runtime defined entity of a VCDCluster is gone, which is deleted last. It
	// exists if spec.rde.mode is Project.
	RDEDeletedCondition = "RDEDeleted"
	// ReleasedCondition is True when the object's claims and finalizer are removed. The object disappears with it.
	ReleasedCondition = "Released"
)
