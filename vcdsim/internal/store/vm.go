// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"slices"
	"time"
)

// Polarities of affinity rules.
const (
	PolarityTogether = "Affinity"
	PolarityApart    = "Anti-Affinity"
)

// Address modes of NICs.
const (
	ModePool   = "POOL"
	ModeDHCP   = "DHCP"
	ModeManual = "MANUAL"
	ModeNone   = "NONE"
)

// A VM is a virtual machine.
type VM struct {
	ID          string
	Name        string
	Description string
	VAppID      string
	VAppName    string // only set in copies
	Status      Status
	Deployed    bool
	PoweredOn   bool // only set in copies
	Created     time.Time

	OS              string
	HardwareVersion string
	CPUs            int64
	CoresPerSocket  int64
	MemoryMiB       int64
	CPUShare        Share // in MHz
	MemoryShare     Share // in MiB
	Disks           []VMDisk
	NICs            []NIC
	PrimaryNIC      int
	MediaID         string // media in the drive
	Snapshot        *Snapshot
	LinkedClone     bool // its disks contain only the differences to the template's
	ExtraConfig     map[string]string
	Metadata        map[string]Metadata
	Properties      map[string]Property // product section, by key
	Firmware        string              // bios, efi; empty means bios
	BootOptions     BootOptions

	CPUHotAdd, MemoryHotAdd, NestedHypervisor bool

	TimeSync bool // with the host

	Customization Customization

	SecurityTags []string // sorted, in lower case

	StorageProfileID  string
	SizingPolicyID    string
	PlacementPolicyID string

	TemplateID        string
	TemplateName      string
	KubernetesVersion string

	Boot Boot
}

// Size applies a sizing policy.
func (vm *VM) Size(p *ComputePolicy) {
	if p.CPUs > 0 {
		vm.CPUs = p.CPUs
		vm.CoresPerSocket = 1
	}
	if p.MemoryMiB > 0 {
		vm.MemoryMiB = p.MemoryMiB
	}
}

// Entity returns the reference for tasks and responses.
func (vm *VM) Entity() Entity { return Entity{Kind: "vm", ID: vm.ID, Name: vm.Name} }

// Tag replaces the security tags.
func (vm *VM) Tag(tags []string) {
	slices.Sort(tags)
	vm.SecurityTags = slices.Compact(tags)
}

// TakeSnapshot returns a snapshot of the current VM.
func (vm *VM) TakeSnapshot(now time.Time, memory bool) *Snapshot {
	return &Snapshot{
		Created:        now,
		PoweredOn:      memory && vm.Status == PoweredOn,
		CPUs:           vm.CPUs,
		CoresPerSocket: vm.CoresPerSocket,
		MemoryMiB:      vm.MemoryMiB,
		ExtraConfig:    maps.Clone(vm.ExtraConfig),
		SizeMiB:        vm.Storage(),
	}
}

// Clone returns a deep copy.
func (vm *VM) Clone() VM {
	c := *vm
	c.PoweredOn = vm.Status == PoweredOn
	c.Snapshot = vm.Snapshot.Clone()
	c.Disks = slices.Clone(vm.Disks)
	c.NICs = slices.Clone(vm.NICs)
	c.SecurityTags = slices.Clone(vm.SecurityTags)
	c.ExtraConfig = maps.Clone(vm.ExtraConfig)
	c.Metadata = maps.Clone(vm.Metadata)
	c.Properties = maps.Clone(vm.Properties)
	return c
}

// Disconnect disconnects the NICs of a VM from networks that the vApp no longer has.
func (vm *VM) Disconnect(v *VApp) {
	for i := range vm.NICs {
		if nic := &vm.NICs[i]; nic.Network != "none" && v.Network(nic.Network) == nil {
			nic.Network = "none"
			nic.Mode = ModeNone
			nic.Address = ""
			nic.Lease = ""
			nic.Connected = false
		}
	}
}

// Primary returns the primary NIC, or nil if there is none.
func (vm *VM) Primary() *NIC {
	for i := range vm.NICs {
		if vm.NICs[i].Index == vm.PrimaryNIC {
			return &vm.NICs[i]
		}
	}
	return nil
}

// Storage returns the total size of the disks, in MiB.
func (vm *VM) Storage() int64 {
	var sum int64
	for _, d := range vm.Disks {
		sum += d.SizeMiB
	}
	return sum
}

// An AffinityRule keeps VMs of a VDC on one host, or apart.
type AffinityRule struct {
	ID        string
	Name      string
	OrgID     string
	VDCID     string
	Enabled   bool
	Mandatory bool
	Polarity  string   // Affinity, Anti-Affinity
	VMs       []string // at least two at creation; deleted VMs are removed
}

// Entity returns the reference for tasks and responses.
func (a *AffinityRule) Entity() Entity { return Entity{Kind: "vmAffinityRule", ID: a.ID, Name: a.Name} }

// Clone returns a deep copy.
func (a *AffinityRule) Clone() AffinityRule {
	c := *a
	c.VMs = slices.Clone(a.VMs)
	return c
}

// MustSeparate reports whether a mandatory rule keeps a VM apart from others.
func (a *AffinityRule) MustSeparate(id string) bool {
	return a.Enabled && a.Mandatory && a.Polarity == PolarityApart && slices.Contains(a.VMs, id)
}

// A Snapshot is an earlier state of a VM. A VM has at most one.
type Snapshot struct {
	Created        time.Time
	PoweredOn      bool // the snapshot contains the memory
	CPUs           int64
	CoresPerSocket int64
	MemoryMiB      int64
	ExtraConfig    map[string]string
	SizeMiB        int64
}

// Clone returns a deep copy.
func (s *Snapshot) Clone() *Snapshot {
	if s == nil {
		return nil
	}
	c := *s
	c.ExtraConfig = maps.Clone(s.ExtraConfig)
	return &c
}

// A Boot is the known state of the guest of a powered-on VM.
type Boot struct {
	Generation int       // counts power-ons
	Due        time.Time // time of the pending boot; zero if none is pending
	Up         bool      // the guest has booted
	Failure    string    // reason why it failed to boot
	Hostname   string
}

// A VMDisk is a disk of a VM. DiskID is set for an attached independent disk.
type VMDisk struct {
	ID               string // for example "2000"
	SizeMiB          int64
	Bus              int
	Unit             int
	Adapter          string // VCD's number of the controller kind; empty means 5, paravirtual SCSI
	StorageProfileID string
	DiskID           string
	IOPS             Share // I/O operations per second
}

// A DiskSlot is a position of a disk in a VM.
type DiskSlot struct {
	Bus  int
	Unit int
}

// A NIC is a network connection of a VM.
type NIC struct {
	Index     int
	Network   string // name of the vApp network, or "none"
	MAC       string
	Mode      string // POOL, DHCP, MANUAL, NONE
	Address   string // as known to VCD
	Adapter   string
	Connected bool
	Lease     string // address that the DHCP server reserves for it
	// Secondary is the address in the network's second subnet.
	Secondary     string
	SecondaryMode string // POOL or MANUAL; empty without a secondary address
}

// A Customization is the guest customization of a VM.
type Customization struct {
	Enabled      bool
	ComputerName string
	Script       string
	ChangeSID    bool

	// Settings of a Windows domain.

	JoinDomain      bool
	UseOrgSettings  bool
	Domain          string
	DomainUser      string
	DomainPassword  string
	MachineObjectOU string

	// Settings of the administrator's password. If AdminPasswordGiven is false, VCD generates the password.

	AdminPasswordEnabled  bool
	AdminPasswordGiven    bool
	AdminPassword         string
	AutoLogon             bool
	AutoLogonCount        int64
	ResetPasswordRequired bool
}

// A Share is a VM's reservation, limit and shares of a resource of its host.
type Share struct {
	Reservation int64
	Limit       int64  // 0 means no limit
	Level       string // LOW, NORMAL, HIGH, CUSTOM; empty means NORMAL
	Shares      int64
}

// BootOptions are the boot settings of a VM.
type BootOptions struct {
	DelayMS         int64
	EnterBIOS       bool // at the next boot, which resets it
	Retry           bool
	RetryDelayMS    int64
	SecureBoot      bool
	NetworkProtocol string // for network boot; empty means IPv4
}

// LeaveRules removes a deleted VM from its affinity rules. The rules remain.
func (s *Store) LeaveRules(id string) {
	for _, a := range s.Affinity {
		a.VMs = slices.DeleteFunc(a.VMs, func(vm string) bool { return vm == id })
	}
}
