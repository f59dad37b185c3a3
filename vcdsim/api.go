// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"

// The model that a simulator begins with: see [Model].
type ( //nolint:revive // Each is documented where it is declared.
	Catalog            = store.Catalog
	Certificate        = store.Certificate
	Compute            = store.Compute
	ComputePolicy      = store.ComputePolicy
	EdgeGateway        = store.EdgeGateway
	ExternalNetwork    = store.ExternalNetwork
	ExternalSubnet     = store.ExternalSubnet
	Fleet              = store.Fleet
	IPSpace            = store.IPSpace
	LoadBalancer       = store.LoadBalancer
	Media              = store.Media
	Model              = store.Model
	Network            = store.Network
	NetworkDHCP        = store.NetworkDHCP
	NetworkType        = store.NetworkType
	OperationLimits    = store.OperationLimits
	Org                = store.Org
	OrgSettings        = store.OrgSettings
	PrefixPool         = store.PrefixPool
	Range              = store.Range
	RightsBundle       = store.RightsBundle
	Role               = store.Role
	SecondSubnet       = store.SecondSubnet
	ServiceEngineGroup = store.ServiceEngineGroup
	SpaceUplink        = store.SpaceUplink
	StorageProfile     = store.StorageProfile
	Template           = store.Template
	TemplateVM         = store.TemplateVM
	Uplink             = store.Uplink
	UplinkSubnet       = store.UplinkSubnet
	User               = store.User
	UserDetails        = store.UserDetails
	VDC                = store.VDC
	VDCGroup           = store.VDCGroup
)

// What a simulator contains: see [State].
type ( //nolint:revive // Each is documented where it is declared.
	State         = store.State
	VApp          = store.VApp
	VAppNetwork   = store.VAppNetwork
	VAppDHCP      = store.VAppDHCP
	VM            = store.VM
	VMDisk        = store.VMDisk
	NIC           = store.NIC
	Boot          = store.Boot
	BootOptions   = store.BootOptions
	Customization = store.Customization
	Snapshot      = store.Snapshot
	Disk          = store.Disk
	Lease         = store.Lease
	Metadata      = store.Metadata
	Property      = store.Property
	AffinityRule  = store.AffinityRule
	Document      = store.Document
	Access        = store.Access
	Grant         = store.Grant
	APIClient     = store.APIClient
	Task          = store.Task
	TaskStatus    = store.TaskStatus
	Status        = store.Status
	IPAllocation  = store.IPAllocation
)

// States of vApps, VMs and templates.
const (
	FailedCreation = store.FailedCreation
	Unresolved     = store.Unresolved
	Resolved       = store.Resolved
	Suspended      = store.Suspended
	PoweredOn      = store.PoweredOn
	PoweredOff     = store.PoweredOff
	Mixed          = store.Mixed
)

// States of tasks.
const (
	TaskQueued   = store.TaskQueued
	TaskRunning  = store.TaskRunning
	TaskSuccess  = store.TaskSuccess
	TaskError    = store.TaskError
	TaskAborted  = store.TaskAborted
	TaskCanceled = store.TaskCanceled
)

// Kinds of networks, of IP Spaces and of what is allocated from them.
const (
	BackingSegment = store.BackingSegment
	BackingTier0   = store.BackingTier0
	BackingVRF     = store.BackingVRF
	FloatingIP     = store.FloatingIP
	IPPrefix       = store.IPPrefix
	Isolated       = store.Isolated
	Opaque         = store.Opaque
	Routed         = store.Routed
	SpacePrivate   = store.SpacePrivate
	SpacePublic    = store.SpacePublic
	SpaceShared    = store.SpaceShared
	UsageFree      = store.UsageFree
	UsageManual    = store.UsageManual
	UsageUsed      = store.UsageUsed
)

// URN returns the identifier that the API shows for a kind and an id.
func URN(kind, id string) string { return store.URN(kind, id) }
