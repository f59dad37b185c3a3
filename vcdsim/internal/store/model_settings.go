// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// OrgSettings are settings of an Org that are stored but have no effect in the simulator.
type OrgSettings struct {
	CanPublishCatalogs   bool     `json:"canPublishCatalogs,omitzero"`
	CanPublishExternally bool     `json:"canPublishExternally,omitzero"`
	CanSubscribe         bool     `json:"canSubscribe,omitzero"`
	DeployedVMQuota      int64    `json:"deployedVMQuota,omitzero"`
	StoredVMQuota        int64    `json:"storedVMQuota,omitzero"`
	PowerOnDelay         Duration `json:"powerOnDelay,omitzero"`
	ServerBootSequence   bool     `json:"serverBootSequence,omitzero"`
	// KeepExpired and KeepRunning invert the defaults, which are to delete expired objects and to power them off.
	KeepExpired          bool     `json:"keepExpired,omitzero"`
	KeepRunning          bool     `json:"keepRunning,omitzero"`
	TemplateLease        Duration `json:"templateLease,omitzero"`
	KeepExpiredTemplates bool     `json:"keepExpiredTemplates,omitzero"`
}

// Entity returns the reference for tasks and responses.
func (o *Org) Entity() Entity { return Entity{Kind: "org", ID: o.ID, Name: o.Name} }

// NewLease returns the lease of new vApps.
func (o *Org) NewLease() Lease {
	return Lease{
		Runtime: time.Duration(o.RuntimeLease),
		Storage: time.Duration(o.StorageLease),
	}
}

// UserDetails are fields of a User that are stored but have no effect in the simulator.
type UserDetails struct {
	Description     string `json:"description,omitzero"`
	Email           string `json:"email,omitzero"`
	Telephone       string `json:"telephone,omitzero"`
	IM              string `json:"im,omitzero"`
	External        bool   `json:"external,omitzero"`
	Provider        string `json:"provider,omitzero"` // INTEGRATED, SAML, OAUTH
	StoredVMQuota   int64  `json:"storedVMQuota,omitzero"`
	DeployedVMQuota int64  `json:"deployedVMQuota,omitzero"`
}

// Entity returns the reference for tasks and responses.
func (v *VDC) Entity() Entity { return Entity{Kind: "vdc", ID: v.ID, Name: v.Name} }

// A Fleet is a number of equal vApps with equal VMs, created from the VDC's first network and the organization's first
// template with VMs. Powered-on VMs of a fleet have addresses, but the simulator does not boot guests in them.
type Fleet struct {
	VApps      int    `json:"vApps,omitzero"`
	VMsPerVApp int    `json:"vmsPerVApp,omitzero"`
	PoweredOff bool   `json:"poweredOff,omitzero"`
	Owner      string `json:"owner,omitzero"` // name of a user; "" means the first of the organization
}

// OperationLimits limit the concurrent operations of an organization's users; 0 means unlimited. Operations over the
// limit wait in the queued state. Operations over the limit of queued operations are refused.
type OperationLimits struct {
	PerUser       int `json:"perUser,omitzero"`
	PerOrg        int `json:"perOrg,omitzero"`
	QueuedPerUser int `json:"queuedPerUser,omitzero"`
	QueuedPerOrg  int `json:"queuedPerOrg,omitzero"`
}

// Compute is a VDC's share of the hardware of its provider VDC. It is stored and returned, but limits nothing.
type Compute struct {
	CPUAllocated     int64   `json:"cpuAllocated,omitzero"`    // MHz
	CPULimit         int64   `json:"cpuLimit,omitzero"`        // MHz
	MemoryAllocated  int64   `json:"memoryAllocated,omitzero"` // MiB
	MemoryLimit      int64   `json:"memoryLimit,omitzero"`     // MiB
	CPUGuaranteed    float64 `json:"cpuGuaranteed,omitzero"`
	MemoryGuaranteed float64 `json:"memoryGuaranteed,omitzero"`
	CPUSpeed         int64   `json:"cpuSpeed,omitzero"`     // of a virtual CPU, in MHz; 0 means 1000
	NetworkQuota     *int    `json:"networkQuota,omitzero"` // nil means 1000
	ThickDisks       bool    `json:"thickDisks,omitzero"`
	NoOvercommit     bool    `json:"noOvercommit,omitzero"`
	Elastic          bool    `json:"elastic,omitzero"`
	NoMemoryOverhead bool    `json:"noMemoryOverhead,omitzero"` // exclude it from accounting
}
