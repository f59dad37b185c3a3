// SPDX-License-Identifier: Apache-2.0

package cloud

// Assumptions are behaviours that could not be verified on a real VCD, one switch each. DefaultAssumptions is what is
// thought most likely, or, where a client must cope with both, what is harder for it.
type Assumptions struct {
	// VAppsArePrivate: a user sees the vApps, with their VMs and tasks, that are his own or shared with him; the right
	// "General: Administrator View" shows all of the organization, and "General: Administrator Control" allows
	// everything with them. A vApp that is shared read-only cannot be changed; only with full control it can be deleted
	// or shared on. (VMware's guides of tenants have the levels and both rights.) If false, everyone in the
	// organization has full control of all vApps.
	VAppsArePrivate bool
	// DisksArePrivate: an independent disk is shown to its owner and with the right "General: Administrator View", and
	// only its owner or a user with "General: Administrator Control" attaches, detaches, changes or deletes it.
	// (VMware's guide for tenants says the second; of who is shown one it says nothing.) If false, all is allowed to
	// everyone in the organization who has the rights on disks.
	DisksArePrivate bool
	// RolesAreExact: a user has the rights that both his role and a rights bundle published to the organization have; a
	// role that is not defined has none, and administrators of an organization have what the default bundle has.
	// (VMware's guides say so of bundles and roles.) If false, administrators and roles that are not defined have all
	// rights.
	RolesAreExact bool
	// ExtraConfigTakesRight: extra configuration of VMs is changed and shown only with the right "vApp: Allow All Extra
	// Config". (VMware's roles for authors of Kubernetes clusters have it for that; whether VCD hides it is not known.)
	ExtraConfigTakesRight bool
	// EntitiesTakeRights: a defined entity takes the right of its type, and access by owning it or an access control;
	// the administrator's rights of the type need no access. (VMware's guide to access control of defined entities.)
	EntitiesTakeRights bool
	// EntitiesAdmitNull: a field that is null counts as absent when an entity is held to the schema of its type. (CAPVCD
	// writes a previous release that is null with each change of its entity, and the schema wants an object there.)
	EntitiesAdmitNull bool
	// VMWaitsForVApp: a write to a VM is refused with BUSY_ENTITY while its vApp is being recomposed, deployed or has
	// its networks changed.
	VMWaitsForVApp bool
	// VAppWaitsForVM: a write to a vApp is refused with BUSY_ENTITY while one of its VMs has a running task.
	VAppWaitsForVM bool
	// VMWriteLocksVApp: writes to two VMs of one vApp exclude each other.
	VMWriteLocksVApp bool
	// BusyTextTenant: BUSY_ENTITY uses the sentence a tenant sees ("Unable to perform this action…"), not the
	// provider's ("The entity Ref: … is busy…").
	BusyTextTenant bool
	// RecomposeExtraItem: what each further VM adds to the duration of one recompose, as a share of the first.
	RecomposeExtraItem float64
	// EmptyHardwareKeepsItems: a VirtualHardwareSection without Items leaves CPU, memory, disks and NICs alone.
	EmptyHardwareKeepsItems bool
	// GuestWriteBusy: when the guest writes guestinfo the VM is busy for a few seconds.
	GuestWriteBusy bool
	// FailedTaskResidue: an instantiation that fails leaves its vApp or VM behind as UNRESOLVED (FAILED_CREATION if
	// false: status -1).
	FailedTaskResidue bool
	// DeployedBlocksDelete: a VM that is powered off but still deployed is not deletable; undeploy first. (A vApp of
	// such VMs is: go-vcloud-director's tests delete one.)
	DeployedBlocksDelete bool
	// VAppStaysDeployed: a vApp that was started stays deployed until it is undeployed itself, also when its last VM is
	// stopped or deleted. (Users of 10.4.1 saw it; an empty vApp can be started, too.)
	VAppStaysDeployed bool
	// AttachedDiskBlocksDelete: a VM with an attached independent disk is not deletable. If false the disk is detached.
	AttachedDiskBlocksDelete bool
	// RunningBlocksNetworkRemoval: since 10.4.1 a network leaves a vApp only while the vApp is stopped.
	RunningBlocksNetworkRemoval bool
	// UsedNetworkStays: a network does not leave a vApp while NICs are on it; if false they are disconnected.
	// (go-vcloud-director's tests take away networks that VMs are on.)
	UsedNetworkStays bool
	// EmptyPageBeyondEnd: a query for a page past the last answers 200 without records; if false, 400.
	EmptyPageBeyondEnd bool
	// QueryPageSizeIsCut: a query for more than 128 records on a page is answered with 128; if false, 400. (Lists of
	// cloudapi refuse it: go-vcloud-director says so of two.)
	QueryPageSizeIsCut bool
	// MaxVMsPerVApp is how many VMs a vApp takes; 0 is any number. 128 is VMware's documented maximum.
	MaxVMsPerVApp int
	// LinkedClonesKeepSize: VMs of a VDC with fast provisioning are linked clones, whose disks keep their size until
	// the VM is consolidated, as with a snapshot. (go-vcloud-director's Test_VmConsolidateDisks.)
	LinkedClonesKeepSize bool
	// IOPSIgnoredWithoutLimits: a disk on a storage profile without IOPS limiting stays without a number of its own,
	// whatever is asked for; if false the request is refused. (A user of VMware's Terraform provider saw the former;
	// VMware's guide says that such a disk cannot use the profile.)
	IOPSIgnoredWithoutLimits bool
	// HrefFilterIsText: a filter that gives a reference as an address compares it as text, so that one with another
	// host than the public address finds nothing; an id is found in any form. (go-vcloud-director filters by URN.)
	HrefFilterIsText bool
	// PoolAddressKept: a NIC of mode POOL keeps its address while it stays on the network, also powered off.
	PoolAddressKept bool
	// CancelUndoesCompose: cancelling a compose removes what it had begun; if false the residue stays UNRESOLVED.
	CancelUndoesCompose bool
	// CellStopEndsSessions: sessions that were opened on a cell end when it stops or restarts; if false they go on at
	// the other cells, or when it is back.
	CellStopEndsSessions bool
	// CellStopAbortsTasks: tasks that a cell runs end aborted when it stops; if false another cell goes on with them.
	CellStopAbortsTasks bool
	// GatewayWritesExclude: while a change of an edge gateway or of something on it runs, another is refused with
	// BUSY_ENTITY. If false only changes of the same object exclude each other; the gateway is CONFIGURING until the
	// last one ends.
	GatewayWritesExclude bool
	// BusyGatewayConfiguresAll: all pools and virtual services of an edge gateway are CONFIGURING while something of it
	// changes; if false only what changes is.
	BusyGatewayConfiguresAll bool
	// MaxNetworkName is how long, in characters, names may be of what cloudapi keeps of networks (pools, virtual
	// services, NAT rules, application port profiles, firewall groups); 0 is any length. 128 was seen for application
	// port profiles.
	MaxNetworkName int
	// MaxNetworkDescription is how long their descriptions may be; 0 is any length. 1,024 is NSX's own limit.
	MaxNetworkDescription int
	// EdgeRuleCreateSince is the API version since which one firewall rule of an edge gateway can be made by itself.
	// VMware's pages have the position of a new rule since 38.1, and its document of 37.2 has only all rules at once.
	EdgeRuleCreateSince string
	// EdgeRuleTopSince is the API version since which a new firewall rule can go to the TOP or BOTTOM of all. VMware's
	// pages of 38.1 know only BEFORE and AFTER another one.
	EdgeRuleTopSince string
	// NewerFieldsRefused: a request with a field that came with a newer API version than it asks for is refused; if
	// false the field is left out.
	NewerFieldsRefused bool
	// SpaceAddressMustBeAllocated: a NAT rule or virtual service may use an address of an IP Space only if the
	// organization has it allocated as a floating IP.
	SpaceAddressMustBeAllocated bool
	// AllocationsNeedType: the list of an IP Space's allocations is refused without a type in its filter, as VMware's
	// document says.
	AllocationsNeedType bool
	// UplinkAddressMustBeOwn: a NAT rule or virtual service may use an address in a subnet of the gateway's external
	// network only if it is among those the gateway was given.
	UplinkAddressMustBeOwn bool
	// PremiumFeaturesRefused: on an edge gateway with the feature set STANDARD, pools with an algorithm or persistence
	// and virtual services with an application profile that VMware's guides list for PREMIUM are refused.
	PremiumFeaturesRefused bool
	// IPv6NeedsServiceNetwork: a virtual service has an address of a family only if the load balancer of its gateway
	// has a service network of it; VCD's default one is of IPv4.
	IPv6NeedsServiceNetwork bool
	// SharedVIPStays: the virtual IP of a virtual service does not change while another one shares it. Off by default:
	// VMware's cloud provider interface documents the change as unsupported, and its functional tests do it.
	SharedVIPStays bool
	// GroupOwnsFirewallGroups: firewall groups for an edge gateway in a data center group belong to that; one with the
	// gateway as its owner is refused. VMware's Terraform provider takes the group as the owner.
	GroupOwnsFirewallGroups bool
	// TenantProfilesNeedOrg: an application port profile of scope TENANT is refused without orgRef, as VMware's SDK
	// documents it.
	TenantProfilesNeedOrg bool
	// ManualUseBlocksRelease: an allocation of an IP Space that is marked USED_MANUAL is not released until that is
	// taken back. Off by default: VMware's Terraform provider releases such allocations directly.
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
