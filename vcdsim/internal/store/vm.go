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
	VAppName    string // filled in copies
	Status      Status
	Deployed    bool
	PoweredOn   bool // filled in copies
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
	MediaID         string // in the drive
	Snapshot        *Snapshot
	LinkedClone     bool // its disks hold only the differences to those of its template
	ExtraConfig     map[string]string
	Metadata        map[string]Metadata
	Properties      map[string]Property // product section, by key
	Firmware        string              // bios, efi; empty is bios
	BootOptions     BootOptions

	CPUHotAdd, MemoryHotAdd, NestedHypervisor bool

	TimeSync bool // with its host

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

// Entity returns the reference that tasks and answers use.
func (vm *VM) Entity() Entity { return Entity{Kind: "vm", ID: vm.ID, Name: vm.Name} }

// Tag replaces the security tags.
func (vm *VM) Tag(tags []string) {
	slices.Sort(tags)
	vm.SecurityTags = slices.Compact(tags)
}

// TakeSnapshot returns a snapshot of the VM as it is now.
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

// Disconnect takes the NICs of a VM off networks that the vApp no longer has.
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

// Primary is the primary NIC, nil without NICs.
func (vm *VM) Primary() *NIC {
	for i := range vm.NICs {
		if vm.NICs[i].Index == vm.PrimaryNIC {
			return &vm.NICs[i]
		}
	}
	return nil
}

// Storage is the size of all disks in MiB.
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
	VMs       []string // at least two, less when VMs were deleted since
}

// Entity returns the reference that tasks and answers use.
func (a *AffinityRule) Entity() Entity { return Entity{Kind: "vmAffinityRule", ID: a.ID, Name: a.Name} }

// Clone returns a deep copy.
func (a *AffinityRule) Clone() AffinityRule {
	c := *a
	c.VMs = slices.Clone(a.VMs)
	return c
}

// MustSeparate reports whether a rule has to keep a VM apart from others.
func (a *AffinityRule) MustSeparate(id string) bool {
	return a.Enabled && a.Mandatory && a.Polarity == PolarityApart && slices.Contains(a.VMs, id)
}

// A Snapshot is what a VM was at a time; a VM has one at most.
type Snapshot struct {
	Created        time.Time
	PoweredOn      bool // whether its memory is in it
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

// A Boot is what is known of the guest of a powered-on VM.
type Boot struct {
	Generation int       // counts power-ons
	Due        time.Time // when the guest is asked, zero once it was
	Up         bool      // the guest came up
	Failure    string    // why it did not
	Hostname   string
}

// A VMDisk is a disk of a VM; DiskID is set when it is an attached independent disk.
type VMDisk struct {
	ID               string // "2000" …
	SizeMiB          int64
	Bus              int
	Unit             int
	Adapter          string // number of the kind of controller; empty is 5, paravirtual SCSI
	StorageProfileID string
	DiskID           string
	IOPS             Share // operations per second
}

// A DiskSlot is a place for a disk of a VM.
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
	Address   string // as VCD knows it
	Adapter   string
	Connected bool
	Lease     string // address the DHCP server keeps for it
	// Secondary is the address of the network's second subnet.
	Secondary     string
	SecondaryMode string // POOL or MANUAL; empty without such an address
}

// A Customization is the guest customization of a VM.
type Customization struct {
	Enabled      bool
	ComputerName string
	Script       string
	ChangeSID    bool

	// Of a domain of Windows.

	JoinDomain      bool
	UseOrgSettings  bool
	Domain          string
	DomainUser      string
	DomainPassword  string
	MachineObjectOU string

	// Of the password of the administrator. AdminPasswordGiven: it is AdminPassword, not one that VCD makes up.

	AdminPasswordEnabled  bool
	AdminPasswordGiven    bool
	AdminPassword         string
	AutoLogon             bool
	AutoLogonCount        int64
	ResetPasswordRequired bool
}

// A Share is what a VM is guaranteed of a resource of its host, and how much of it at most.
type Share struct {
	Reservation int64
	Limit       int64  // 0 is no limit
	Level       string // LOW, NORMAL, HIGH, CUSTOM; empty is NORMAL
	Shares      int64
}

// BootOptions are how a VM starts.
type BootOptions struct {
	DelayMS         int64
	EnterBIOS       bool // at the next start, which takes it back
	Retry           bool
	RetryDelayMS    int64
	SecureBoot      bool
	NetworkProtocol string // of booting from a network; empty is IPv4
}

// LeaveRules takes a VM that is removed out of its rules, which stay.
func (s *Store) LeaveRules(id string) {
	for _, a := range s.Affinity {
		a.VMs = slices.DeleteFunc(a.VMs, func(vm string) bool { return vm == id })
	}
}
