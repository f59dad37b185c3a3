// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"

// A Catalog holds templates.
type Catalog = store.Catalog

// A Certificate is an entry of an organization's certificate library.
type Certificate = store.Certificate

// A Compute is a VDC's share of the hardware of its provider VDC. It is stored and returned, but limits nothing.
type Compute = store.Compute

// A ComputePolicy is a VM sizing or placement policy.
type ComputePolicy = store.ComputePolicy

// A Duration is a length of time, written as "168h" in a file.
type Duration = store.Duration

// An EdgeGateway connects networks of a VDC, or of the VDC group that Group names, to external networks.
type EdgeGateway = store.EdgeGateway

// An ExternalNetwork leads to the outside. Edge gateways have uplinks to it. They get their addresses from its
// subnets, or from its IP Spaces if it uses them.
type ExternalNetwork = store.ExternalNetwork

// An ExternalSubnet is a subnet of an external network.
type ExternalSubnet = store.ExternalSubnet

// A Fleet is a number of equal vApps with equal VMs, created from the VDC's first network and the organization's
// first template with VMs. Powered-on VMs of a fleet have addresses, but the simulator does not boot guests in them.
type Fleet = store.Fleet

// An IPSpace holds addresses and prefixes that tenants allocate.
type IPSpace = store.IPSpace

// A LoadBalancer is NSX ALB on an edge gateway.
type LoadBalancer = store.LoadBalancer

// A Media is an image in a catalog, usually an ISO.
type Media = store.Media

// A Model describes the objects that exist before the first request. Empty IDs are filled from the seed, so the same
// model and seed give the same IDs. IDs are bare UUIDs.
type Model = store.Model

// A Network is an org VDC network.
type Network = store.Network

// NetworkDHCP holds the settings of a network's DHCP service.
type NetworkDHCP = store.NetworkDHCP

// A NetworkType is the way a network is connected.
type NetworkType = store.NetworkType

// OperationLimits limit the concurrent operations of an organization's users; 0 means unlimited. Operations over the
// limit wait in the queued state. Operations over the limit of queued operations are refused.
type OperationLimits = store.OperationLimits

// An Org is an organization.
type Org = store.Org

// OrgSettings are settings of an Org that are stored but have no effect in the simulator.
type OrgSettings = store.OrgSettings

// A PrefixPool is a run of equally long prefixes of an IP Space.
type PrefixPool = store.PrefixPool

// A Range is a range of addresses, including both ends.
type Range = store.Range

// A RightsBundle is a set of rights that an organization may grant to its roles.
type RightsBundle = store.RightsBundle

// A Role is a set of rights for users. Reading requires no right, except for edge gateways, certificates and IP Spaces.
// Users see vApps of other users only if these are shared with them.
type Role = store.Role

// A SecondSubnet is the second subnet of a network.
type SecondSubnet = store.SecondSubnet

// A ServiceEngineGroup is a group of load balancer appliances. Edge gateways can be assigned a share of it.
type ServiceEngineGroup = store.ServiceEngineGroup

// A SpaceUplink makes an IP Space available to the gateways of an external network.
type SpaceUplink = store.SpaceUplink

// IOPS limits the I/O operations per second of a storage profile. The limits apply to disks of VMs, not to independent
// disks.
type IOPS = store.IOPS

// A StorageProfile is a storage policy of a VDC.
type StorageProfile = store.StorageProfile

// A Template is a vApp template with its catalog item.
type Template = store.Template

// A TemplateVM is a VM of a template.
type TemplateVM = store.TemplateVM

// An Uplink is a connection of an edge gateway to an external network.
type Uplink = store.Uplink

// An UplinkSubnet is an edge gateway's share of a subnet of its external network.
type UplinkSubnet = store.UplinkSubnet

// A User can log in to its Org.
type User = store.User

// UserDetails are fields of a User that are stored but have no effect in the simulator.
type UserDetails = store.UserDetails

// A VDC is an organization virtual data center.
type VDC = store.VDC

// A VDCGroup is a data center group: VDCs of an organization that share networks.
type VDCGroup = store.VDCGroup

// A State is a copy of everything in the simulator, sorted by ID.
type State = store.State

// A VApp is a vApp. IDs are bare UUIDs; URN returns the form that the API uses.
type VApp = store.VApp

// A VAppNetwork connects a vApp to a network, or is isolated.
type VAppNetwork = store.VAppNetwork

// A VAppDHCP is the DHCP service of a vApp network.
type VAppDHCP = store.VAppDHCP

// A VM is a virtual machine.
type VM = store.VM

// A VMDisk is a disk of a VM. DiskID is set for an attached independent disk.
type VMDisk = store.VMDisk

// A NIC is a network connection of a VM.
type NIC = store.NIC

// A Boot is the known state of the guest of a powered-on VM.
type Boot = store.Boot

// A Share is a VM's reservation, limit and shares of a resource of its host.
type Share = store.Share

// BootOptions are the boot settings of a VM.
type BootOptions = store.BootOptions

// A Customization is the guest customization of a VM.
type Customization = store.Customization

// A Snapshot is an earlier state of a VM. A VM has at most one.
type Snapshot = store.Snapshot

// A Disk is an independent disk.
type Disk = store.Disk

// A Lease is the lease of a vApp; 0 never expires. Deployed is the time of its last deployment, or zero if it is not
// deployed. Stopped is the time when it was last undeployed.
type Lease = store.Lease

// A Metadata is one metadata entry.
type Metadata = store.Metadata

// A Property is a property of a product section. The OVF environment passes it to the software in a VM or vApp.
type Property = store.Property

// An AffinityRule keeps VMs of a VDC on one host, or apart.
type AffinityRule = store.AffinityRule

// A Document is an object of the JSON API (cloudapi) that is stored as it was received: a role, a certificate, an
// entity.
type Document = store.Document

// An Access is the list of users and organizations that an entity is shared with.
type Access = store.Access

// A Grant is the access level of a user or an organization.
type Grant = store.Grant

// An APIClient is a client that is registered for tokens: a user's API token, or a service account.
type APIClient = store.APIClient

// A Task is an asynchronous operation. Its effect is stored as data (Work), so that a running task can be dumped.
type Task = store.Task

// A TaskStatus is the state of a task, as VCD names it.
type TaskStatus = store.TaskStatus

// A Status is VCD's number for the state of a vApp or VM.
type Status = store.Status

// An IPAllocation is an address or prefix of an IP Space that is allocated to an organization.
type IPAllocation = store.IPAllocation

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

// Kinds of networks, of IP Spaces and of their allocations.
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

// URN returns the URN of an object of a kind, as the API returns it.
func URN(kind, id string) string { return store.URN(kind, id) }
