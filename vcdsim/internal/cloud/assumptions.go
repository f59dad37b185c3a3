// SPDX-License-Identifier: Apache-2.0

package cloud

// Assumptions are behaviors that were not verified on a real VCD, with a switch for each. The defaults are the most likely
// behavior, or, where clients must handle both, the more difficult one.
type Assumptions struct {
	// VAppsArePrivate: Users see only the vApps that they own or that are shared with them, with their VMs and tasks.
	// The right "General: Administrator View" shows all vApps of the organization, and "General: Administrator
	// Control" allows every change. A vApp that is shared read-only cannot be changed. Deleting it or sharing it
	// further needs full control. VMware's tenant guides document the levels and both rights. If false, every user of
	// the organization has full control of all vApps.
	VAppsArePrivate bool
	// DisksArePrivate: Independent disks are visible to their owner and to users with the right "General:
	// Administrator View". Only the owner, or a user with "General: Administrator Control", can attach, detach,
	// change or delete a disk. VMware's tenant guide documents the changes, but not the visibility. If false, the
	// rights on disks are sufficient for every user of the organization.
	DisksArePrivate bool
	// RolesAreExact: Users have the rights that are both in their role and in a rights bundle published to the
	// organization. A role that is not defined has no rights. Organization administrators have the rights of the
	// default bundle. VMware's guides document bundles and roles in this way. If false, administrators and undefined
	// roles have all rights.
	RolesAreExact bool
	// ExtraConfigTakesRight: Users need the right "vApp: Allow All Extra Config" to read or change the extra
	// configuration of VMs. VMware's roles for Kubernetes cluster authors have this right. It is unknown whether VCD
	// also hides the extra configuration without it.
	ExtraConfigTakesRight bool
	// EntitiesTakeRights: A defined entity requires a right of its type, and ownership or an access control entry.
	// The administrator rights of the type require no access. Source: VMware's guide to access control of defined
	// entities.
	EntitiesTakeRights bool
	// EntitiesAdmitNull: The validation of an entity against the schema of its type treats null fields as absent.
	// CAPVCD writes null for the previous release with each change of its entity, although the schema requires an
	// object.
	EntitiesAdmitNull bool
	// VMWaitsForVApp: Writes to a VM are rejected with BUSY_ENTITY while its vApp is recomposed or deployed, or while
	// the networks of the vApp change.
	VMWaitsForVApp bool
	// VAppWaitsForVM: Writes to a vApp are rejected with BUSY_ENTITY while one of its VMs has a running task.
	VAppWaitsForVM bool
	// VMWriteLocksVApp: Concurrent writes to two VMs of the same vApp are rejected with BUSY_ENTITY.
	VMWriteLocksVApp bool
	// BusyTextTenant: The message of BUSY_ENTITY is that for tenants ("Unable to perform this action…"). If false, it
	// is that for service providers ("The entity Ref: … is busy…").
	BusyTextTenant bool
	// RecomposeExtraItem: Additional duration of a recompose for each VM after the first, as a fraction of the
	// duration for one VM.
	RecomposeExtraItem float64
	// EmptyHardwareKeepsItems: A VirtualHardwareSection without Items does not change CPU, memory, disks and NICs.
	EmptyHardwareKeepsItems bool
	// RunningVMKeepsHardware: The CPUs and the memory of a VM that is powered on or suspended cannot change, except
	// for additions to a powered-on VM that has hot add for them. Its hot-add settings, operating system and hardware
	// version cannot change. Its number of cores per socket cannot change in any case, as a user of VMware's vcd-cli
	// observed.
	RunningVMKeepsHardware bool
	// GuestWriteBusy: The VM is busy for a few seconds after its guest has written guestinfo.
	GuestWriteBusy bool
	// FailedTaskResidue: A failed instantiation leaves its vApp or VM in state UNRESOLVED. If false, the state is
	// FAILED_CREATION (status -1).
	FailedTaskResidue bool
	// DeployedBlocksDelete: A VM that is powered off but still deployed cannot be deleted before it is undeployed. A
	// vApp of such VMs can be deleted, as the tests of go-vcloud-director do.
	DeployedBlocksDelete bool
	// VAppStaysDeployed: A started vApp stays deployed until it is undeployed, even after its last VM was stopped or
	// deleted. Users of 10.4.1 observed this. An empty vApp can be started, too.
	VAppStaysDeployed bool
	// AttachedDiskBlocksDelete: A VM with an attached independent disk cannot be deleted. If false, the deletion
	// detaches the disk.
	AttachedDiskBlocksDelete bool
	// RunningBlocksNetworkRemoval: Since 10.4.1, a network can be removed from a vApp only while the vApp is stopped.
	RunningBlocksNetworkRemoval bool
	// UsedNetworkStays: A network with connected NICs cannot be removed from a vApp. If false, the removal
	// disconnects the NICs. The tests of go-vcloud-director remove networks with connected VMs.
	UsedNetworkStays bool
	// EmptyPageBeyondEnd: A query for a page after the last one returns 200 without records. If false, it returns
	// 400.
	EmptyPageBeyondEnd bool
	// QueryPageSizeIsCut: A query for more than 128 records per page returns 128. If false, it returns 400. Lists of
	// cloudapi return 400: comments in go-vcloud-director confirm it for two of them.
	QueryPageSizeIsCut bool
	// MaxVMsPerVApp: Maximum number of VMs in a vApp; 0 means no limit. 128 is the documented maximum.
	MaxVMsPerVApp int
	// LinkedClonesKeepSize: In a VDC with fast provisioning, VMs are linked clones. Their disks cannot grow until the
	// VM is consolidated, as with a snapshot. Source: Test_VmConsolidateDisks of go-vcloud-director.
	LinkedClonesKeepSize bool
	// IOPSIgnoredWithoutLimits: VCD ignores the requested IOPS of a disk whose storage profile has no IOPS limits. If false, the
	// request is rejected. A user of VMware's Terraform provider observed the first; VMware's guide says that such a disk
	// cannot use the profile.
	IOPSIgnoredWithoutLimits bool
	// HrefFilterIsText: A filter with the address of an object compares it as text, so an address with a host other
	// than the public address matches nothing. An ID matches in any form. go-vcloud-director filters by URN.
	HrefFilterIsText bool
	// UsedAddressesAreFiltered: The list of the used addresses of a network can be filtered by address, as VMware
	// documents for API 37.2 and 39.1. If false, the filter is rejected.
	UsedAddressesAreFiltered bool
	// PoolAddressKept: A NIC in mode POOL keeps its address while it is connected to the network, even when the VM is
	// powered off.
	PoolAddressKept bool
	// CancelUndoesCompose: Cancelling a compose removes the partial result. If false, the partial result stays in
	// state UNRESOLVED.
	CancelUndoesCompose bool
	// CellStopEndsSessions: Sessions end when the cell that opened them stops or restarts. If false, they continue on
	// the other cells, or after the restart.
	CellStopEndsSessions bool
	// CellStopAbortsTasks: Tasks of a cell are aborted when it stops. If false, another cell continues them.
	CellStopAbortsTasks bool
	// GatewayWritesExclude: While an edge gateway or an object on it changes, other changes are rejected with
	// BUSY_ENTITY. If false, only changes of the same object exclude each other, and the gateway is CONFIGURING until
	// the last change ends.
	GatewayWritesExclude bool
	// BusyGatewayConfiguresAll: All pools and virtual services of an edge gateway are CONFIGURING while one of its
	// objects changes. If false, only the changed object is.
	BusyGatewayConfiguresAll bool
	// MaxNetworkName: Maximum length, in characters, of the names of network objects in cloudapi: pools, virtual
	// services, NAT rules, application port profiles, firewall groups. 0 means no limit. 128 was observed for
	// application port profiles.
	MaxNetworkName int
	// MaxNetworkDescription: Maximum length of the descriptions of these objects; 0 means no limit. NSX itself has a
	// limit of 1,024.
	MaxNetworkDescription int
	// EdgeRuleCreateSince: First API version that can create a single firewall rule of an edge gateway. VMware
	// documents the position of a new rule since 38.1. In 37.2, only all rules at once are documented.
	EdgeRuleCreateSince string
	// EdgeRuleTopSince: First API version that can create a firewall rule at the TOP or BOTTOM. VMware's
	// documentation of 38.1 has only BEFORE and AFTER another rule.
	EdgeRuleTopSince string
	// NewerFieldsRefused: Requests with fields of a newer API version than the requested one are rejected. If false,
	// these fields are ignored.
	NewerFieldsRefused bool
	// SpaceAddressMustBeAllocated: NAT rules and virtual services can use an address of an IP Space only if it is
	// allocated to the organization as a floating IP.
	SpaceAddressMustBeAllocated bool
	// AllocationsNeedType: Requests for the allocations of an IP Space are rejected without a type in the filter, as
	// VMware documents.
	AllocationsNeedType bool
	// UplinkAddressMustBeOwn: NAT rules and virtual services can use an address in a subnet of the external network
	// of a gateway only if it was assigned to the gateway.
	UplinkAddressMustBeOwn bool
	// PremiumFeaturesRefused: Edge gateways with the feature set STANDARD reject pools with an algorithm or
	// persistence, and virtual services with an application profile, that VMware's guides list as PREMIUM.
	PremiumFeaturesRefused bool
	// IPv6NeedsServiceNetwork: A virtual service can have an address of an IP family only if the load balancer of its
	// gateway has a service network of that family. The default service network of VCD has IPv4.
	IPv6NeedsServiceNetwork bool
	// SharedVIPStays: The virtual IP of a virtual service cannot change while another virtual service shares it. Off
	// by default: VMware's cloud provider interface documents this change as unsupported, but its functional tests
	// make it.
	SharedVIPStays bool
	// GroupOwnsFirewallGroups: Firewall groups for an edge gateway in a data center group belong to the data center
	// group. A firewall group that names the gateway as its owner is rejected. VMware's Terraform provider sets the
	// group as the owner.
	GroupOwnsFirewallGroups bool
	// TenantProfilesNeedOrg: An application port profile with scope TENANT is rejected without orgRef, as VMware's
	// SDK documents.
	TenantProfilesNeedOrg bool
	// ManualUseBlocksRelease: An allocation of an IP Space with state USED_MANUAL cannot be released before this
	// state is reset. Off by default: VMware's Terraform provider releases such allocations directly.
	ManualUseBlocksRelease bool
}

// DefaultAssumptions returns the defaults.
func DefaultAssumptions() Assumptions {
	return Assumptions{
		VAppsArePrivate:             true,
		DisksArePrivate:             true,
		RolesAreExact:               true,
		ExtraConfigTakesRight:       true,
		EntitiesTakeRights:          true,
		EntitiesAdmitNull:           true,
		VMWaitsForVApp:              true,
		VAppWaitsForVM:              true,
		BusyTextTenant:              true,
		RecomposeExtraItem:          0.25,
		EmptyHardwareKeepsItems:     true,
		RunningVMKeepsHardware:      true,
		GuestWriteBusy:              true,
		FailedTaskResidue:           true,
		DeployedBlocksDelete:        true,
		VAppStaysDeployed:           true,
		AttachedDiskBlocksDelete:    true,
		RunningBlocksNetworkRemoval: true,
		EmptyPageBeyondEnd:          true,
		QueryPageSizeIsCut:          true,
		MaxVMsPerVApp:               128,
		LinkedClonesKeepSize:        true,
		IOPSIgnoredWithoutLimits:    true,
		HrefFilterIsText:            true,
		UsedAddressesAreFiltered:    true,
		PoolAddressKept:             true,
		CancelUndoesCompose:         true,
		CellStopEndsSessions:        true,
		CellStopAbortsTasks:         true,
		GatewayWritesExclude:        true,
		MaxNetworkName:              128,
		MaxNetworkDescription:       1024,
		EdgeRuleCreateSince:         "38.1",
		EdgeRuleTopSince:            "39.0",
		NewerFieldsRefused:          true,
		SpaceAddressMustBeAllocated: true,
		AllocationsNeedType:         true,
		UplinkAddressMustBeOwn:      true,
		PremiumFeaturesRefused:      true,
		IPv6NeedsServiceNetwork:     true,
		GroupOwnsFirewallGroups:     true,
		TenantProfilesNeedOrg:       true,
		ManualUseBlocksRelease:      false,
	}
}
