// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// OrgSettings are the settings of an Org that change nothing in the simulator but are kept.
type OrgSettings struct {
	CanPublishCatalogs   bool
	CanPublishExternally bool
	CanSubscribe         bool
	DeployedVMQuota      int64
	StoredVMQuota        int64
	PowerOnDelay         time.Duration
	ServerBootSequence   bool
	// KeepExpired and KeepRunning invert the defaults: what expired is deleted, and powered off.
	KeepExpired          bool
	KeepRunning          bool
	TemplateLease        time.Duration
	KeepExpiredTemplates bool
}

// Entity returns the reference that tasks and answers use.
func (o *Org) Entity() Entity { return Entity{Kind: "org", ID: o.ID, Name: o.Name} }

// UserDetails are fields of a User that are stored and have no effect in the simulator.
type UserDetails struct {
	Description     string
	Email           string
	Telephone       string
	IM              string
	External        bool
	Provider        string // INTEGRATED, SAML, OAUTH
	StoredVMQuota   int64
	DeployedVMQuota int64
}

// Entity returns the reference that tasks and answers use.
func (v *VDC) Entity() Entity { return Entity{Kind: "vdc", ID: v.ID, Name: v.Name} }

// A Fleet is a number of equal vApps with equal VMs, made from the VDC's first network and the organization's first
// template with VMs. Those that are powered on have their addresses, but no guest was asked to boot in them.
type Fleet struct {
	VApps, VMsPerVApp int
	PoweredOff        bool
	Owner             string // name of a user; "" is the first of the organization
}

// OperationLimits limit concurrent operations of an organization's users; 0 is unlimited. Operations over the limit
// wait in the state queued; those over the limit of queued ones are refused.
type OperationLimits struct {
	PerUser       int
	PerOrg        int
	QueuedPerUser int
	QueuedPerOrg  int
}

// Compute is a VDC's share of its provider's hardware. It is stored and shown, and limits nothing.
type Compute struct {
	CPUAllocated, CPULimit       int64 // MHz
	MemoryAllocated, MemoryLimit int64 // MiB
	CPUGuaranteed                float64
	MemoryGuaranteed             float64
	CPUSpeed                     int64 // of a virtual CPU in MHz; 0 is 1000
	NetworkQuota                 *int  // nil is 1000
	ThickDisks                   bool
	NoOvercommit                 bool
	Elastic                      bool
	NoMemoryOverhead             bool // in what is accounted
}
