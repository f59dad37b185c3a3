// SPDX-License-Identifier: Apache-2.0

package vcdsim

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"

// A Catalog holds templates.
type Catalog = store.Catalog

// A Certificate is an entry of an organization's certificate library.
type Certificate = store.Certificate

// Compute is a VDC's share of its provider's hardware. It is stored and shown, and limits nothing.
type Compute = store.Compute

// A ComputePolicy is a VM sizing or placement policy.
type ComputePolicy = store.ComputePolicy

// A Duration is a length of time, "168h" in a file.
type Duration = store.Duration

// An EdgeGateway connects networks of a VDC, or of the VDC group that Group names, to external networks.
type EdgeGateway = store.EdgeGateway

// An ExternalNetwork leads outside: edge gateways have uplinks to it and get their addresses from its subnets, or, when
// it uses IP Spaces, from those.
type ExternalNetwork = store.ExternalNetwork

// An ExternalSubnet is a subnet of an external network.
type ExternalSubnet = store.ExternalSubnet

// A Fleet is a number of equal vApps with equal VMs, made from the VDC's first network and the organization's first
// template with VMs. Those that are powered on have their addresses, but no guest was asked to boot in them.
type Fleet = store.Fleet

// An IPSpace holds addresses and prefixes that tenants allocate.
type IPSpace = store.IPSpace

// A LoadBalancer is NSX ALB on an edge gateway.
type LoadBalancer = store.LoadBalancer

// A Media is an image in a catalog, mostly an ISO.
type Media = store.Media

// A Model is what exists before the first request. Empty IDs are filled from the seed, so that the same model and seed
// give the same ids. IDs are bare UUIDs.
type Model = store.Model

// A Network is an org VDC network.
type Network = store.Network

// A NetworkDHCP are the settings of a network's DHCP service.
type NetworkDHCP = store.NetworkDHCP

// NetworkType is how a network is connected.
type NetworkType = store.NetworkType

// OperationLimits limit concurrent operations of an organization's users; 0 is unlimited. Operations over the limit
// wait in the state queued; those over the limit of queued ones are refused.
type OperationLimits = store.OperationLimits

// An Org is an organization.
type Org = store.Org

// OrgSettings are the settings of an Org that change nothing in the simulator but are kept.
type OrgSettings = store.OrgSettings

// A PrefixPool is a run of equally long prefixes of an IP Space.
type PrefixPool = store.PrefixPool

// A Range is a range of addresses, both ends included.
type Range = store.Range

// A RightsBundle are rights that an organization may give to its roles.
type RightsBundle = store.RightsBundle

// A Role is what its users may do. Reading takes no right, except what belongs to edge gateways, certificates and IP
// Spaces; vApps of others must be shared.
type Role = store.Role

// A SecondSubnet is the second subnet of a network.
type SecondSubnet = store.SecondSubnet

// A ServiceEngineGroup is a group of load balancers that edge gateways can be given a share of.
type ServiceEngineGroup = store.ServiceEngineGroup

// A SpaceUplink makes an IP Space available to the gateways of an external network.
type SpaceUplink = store.SpaceUplink

// IOPS are the limits of a storage profile's operations per second. They limit disks of VMs, not independent disks.
type IOPS = store.IOPS

// A StorageProfile is a storage policy of a VDC.
type StorageProfile = store.StorageProfile

// A Template is a vApp template with its catalog item.
type Template = store.Template

// A TemplateVM is a VM inside a template.
type TemplateVM = store.TemplateVM

// An Uplink is a connection of an edge gateway to an external network.
type Uplink = store.Uplink

// An UplinkSubnet is what an edge gateway has of a subnet of its external network.
type UplinkSubnet = store.UplinkSubnet

// A User can log in to its Org.
type User = store.User

// UserDetails are fields of a User that are stored and have no effect in the simulator.
type UserDetails = store.UserDetails

// A VDC is an organization virtual data center.
type VDC = store.VDC

// A VDCGroup is a data center group: VDCs of an organization that share networks.
type VDCGroup = store.VDCGroup

// A State is a copy of everything in the simulator, sorted by id.
type State = store.State

// A VApp is a vApp. IDs are bare UUIDs; URN gives the form the API uses.
type VApp = store.VApp

// A VAppNetwork connects a vApp to a network, or stands alone.
type VAppNetwork = store.VAppNetwork

// A VAppDHCP is the DHCP service of a vApp's own network.
type VAppDHCP = store.VAppDHCP

// A VM is a virtual machine.
type VM = store.VM

// A VMDisk is a disk of a VM; DiskID is set when it is an attached independent disk.
type VMDisk = store.VMDisk

// A NIC is a network connection of a VM.
type NIC = store.NIC

// A Boot is what is known of the guest of a powered-on VM.
type Boot = store.Boot

// A Share is what a VM is guaranteed of a resource of its host, and how much of it at most.
type Share = store.Share

// BootOptions are how a VM starts.
type BootOptions = store.BootOptions

// A Customization is the guest customization of a VM.
type Customization = store.Customization

// A Snapshot is what a VM was at a time; a VM has one at most.
type Snapshot = store.Snapshot

// A Disk is an independent disk.
type Disk = store.Disk

// A Lease is the lease of a vApp; 0 never expires. Deployed is when it was last deployed, zero if it is not;
// Stopped when it was last undeployed.
type Lease = store.Lease

// A Metadata is one metadata value.
type Metadata = store.Metadata

// A Property is one of a product section, which the OVF environment passes to the software in a VM or vApp.
type Property = store.Property

// An AffinityRule keeps VMs of a VDC on one host, or apart.
type AffinityRule = store.AffinityRule

// A Document is an object of the JSON API (cloudapi) that is kept as it came: a role, a certificate, an entity.
type Document = store.Document

// An Access is the list of those an entity is shared with.
type Access = store.Access

// A Grant is the level that a user or an organization has.
type Grant = store.Grant

// An APIClient is what registered for tokens: a user's API token, or a service account.
type APIClient = store.APIClient

// A Task is an asynchronous operation. What it will do is data (Work), so that a running task can be dumped.
type Task = store.Task

// TaskStatus is the state of a task, in VCD's words.
type TaskStatus = store.TaskStatus

// Status is the number VCD gives the state of a vApp or VM.
type Status = store.Status

// An IPAllocation is an address or prefix an organization has of an IP Space.
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
