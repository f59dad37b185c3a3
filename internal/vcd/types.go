// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"net/netip"
	"time"
)

// A Ref names a VCD object. ID is its URN (urn:vcloud:<kind>:<uuid>); Name may change.
type Ref struct {
	ID   string
	Name string
}

// Credentials are what a session logs in with: a user with a password, or an API token. The token wins.
// Username may be written as "org/user" to log in to another organization than the one worked in
// ("System/administrator").
type Credentials struct {
	Username string
	Password string
	APIToken string
}

// String keeps credentials out of everything that prints a value.
func (Credentials) String() string { return redacted }

// GoString keeps credentials out of everything that prints a value in detail.
func (Credentials) GoString() string { return redacted }

// MarshalText keeps credentials out of everything that writes JSON, such as logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// A Config says where and as whom to work. Two equal Configs share one session.
type Config struct {
	Site        string // https://host[:port], without /api
	Org         string // name of the organization
	Credentials Credentials
	CABundle    []byte // PEM; nil uses the system's roots
	Insecure    bool   // skip TLS verification: only by explicit opt-in
	// ServiceAccount replaces Credentials; nil: there is none.
	ServiceAccount *ServiceAccount
	// Version distinguishes revisions of the same credentials (a Secret's resourceVersion): one wrong
	// password is tried once per Version. That of a service account stays while it changes its token itself.
	Version string
	// Accepted is true if VCD accepted these credentials before, maybe in an earlier process: if it refuses them now,
	// they may be right again later.
	Accepted bool
}

// A VDC is an organization virtual data center with what a plan needs to know about it.
type VDC struct {
	Ref

	StorageProfiles []StorageProfile
	// FastProvisioning is true if VMs are linked clones of their templates until they are consolidated.
	FastProvisioning bool
	// Disabled is true if VCD creates and powers on nothing in the VDC.
	Disabled bool
}

// A StorageProfile is a storage profile of a VDC.
type StorageProfile struct {
	Ref

	Default bool
	Enabled bool
}

// A Network is an org VDC network.
type Network struct {
	Ref

	Subnets []Subnet
	// EdgeGateway is the gateway that a routed network is connected to, in its VDC or VDC group; zero if there is none.
	EdgeGateway Ref
}

// A Subnet is one subnet of a network.
type Subnet struct {
	Prefix     netip.Prefix // network address and length
	Gateway    netip.Addr
	DNS        []netip.Addr
	DNSSuffix  string
	StaticPool []AddressRange // addresses VCD hands out for NICs of mode POOL
	DHCPPool   []AddressRange // addresses VCD's DHCP server hands out
}

// An AddressRange is a range of addresses, both ends included.
type AddressRange struct{ From, To netip.Addr }

// Contains reports whether addr is in the range.
func (r AddressRange) Contains(addr netip.Addr) bool {
	return r.From.Compare(addr) <= 0 && addr.Compare(r.To) <= 0
}

// A Use is what a network does with an address.
type Use string

// Uses of addresses.
const (
	UseOutside    Use = "outside"     // it is in no subnet
	UseOfNetwork  Use = "network"     // it is that of the gateway, or of the network itself
	UseStaticPool Use = "static pool" // VCD gives it to VMs
	UseDHCP       Use = "DHCP range"  // VCD leases it
	UseNone       Use = ""
)

// UseOf returns what the network does with an address, and the range that it is in, if any.
func (n Network) UseOf(addr netip.Addr) (Use, AddressRange) {
	for _, subnet := range n.Subnets {
		if !subnet.Prefix.Contains(addr) {
			continue
		}
		if addr == subnet.Gateway || addr == subnet.Prefix.Masked().Addr() {
			return UseOfNetwork, AddressRange{}
		}
		for use, ranges := range map[Use][]AddressRange{UseStaticPool: subnet.StaticPool, UseDHCP: subnet.DHCPPool} {
			for _, r := range ranges {
				if r.Contains(addr) {
					return use, r
				}
			}
		}
		return UseNone, AddressRange{}
	}
	return UseOutside, AddressRange{}
}

// A Policy is a VM sizing or placement policy.
type Policy struct {
	Ref

	CPUs      int64 // 0 when the policy does not fix it
	MemoryMiB int64 // 0 when the policy does not fix it
}

// A Template is a vApp template whose first VM is the image of a machine.
type Template struct {
	Ref

	VM         Ref   // first VM of the template
	CPUs       int64 // of that VM
	MemoryMiB  int64
	DiskMiB    int64 // of its first disk
	Disks      int   // how many it has
	OS         string
	Hardware   string // version of its virtual hardware, such as vmx-19, if known
	NICs       int
	StorageID  string // storage profile of the template's VM, if known
	CatalogRef Ref
	Kubernetes string // version of Kubernetes in the image, such as v1.36.3; empty if nothing says it
}

// Status is the state of a vApp or VM as VCD counts it.
type Status int

// States of vApps and VMs.
const (
	StatusFailedCreation     Status = -1
	StatusUnresolved         Status = 0
	StatusResolved           Status = 1
	StatusSuspended          Status = 3
	StatusPoweredOn          Status = 4
	StatusWaitingForInput    Status = 5
	StatusUnknown            Status = 6
	StatusUnrecognized       Status = 7
	StatusPoweredOff         Status = 8
	StatusInconsistent       Status = 9
	StatusMixed              Status = 10
	StatusPartiallySuspended Status = 20
)

// A VMRecord is what one row of the inventory query says about a VM.
type VMRecord struct {
	Ref

	VApp           Ref
	VDC            Ref
	Status         Status
	Busy           bool // a task holds it
	PrimaryAddress string
	// LeaseEnd is when VCD stops the VM; zero if never.
	LeaseEnd time.Time
	// StorageEnd is when VCD deletes the VM with its vApp, which is stopped; zero if never.
	StorageEnd time.Time

	// What follows is as VCD last counted it; empty or 0 where it does not say.
	CPUs              int64
	MemoryMiB         int64
	StorageMiB        string // of all disks, in VCD's words: only good to see that it changed
	StorageProfile    string // name
	SizingPolicyID    string
	PlacementPolicyID string
	PrimaryNetwork    string // name
}

// A VApp is a vApp with the names of its VMs.
type VApp struct {
	Ref

	Description  string // carries the ownership marker
	Status       Status
	Deployed     bool
	Networks     []string // names of the organization networks it is connected to
	VMs          []Ref
	Tasks        []Task // unfinished tasks that hold it
	RuntimeLease time.Duration
	StorageLease time.Duration
	LeaseEnd     time.Time // zero if never
}

// A VM is a virtual machine in full.
type VM struct {
	Ref

	Description string // carries the ownership marker
	VApp        Ref
	Status      Status
	Deployed    bool
	Tasks       []Task // unfinished tasks that hold it
	NICs        []NIC
	Disks       []Disk
	ExtraConfig map[string]string
	CPUs        int64
	MemoryMiB   int64

	HardwareVersion string // such as vmx-19; empty if VCD does not say

	SizingPolicyID    string
	PlacementPolicyID string
	StorageProfile    Ref
}

// IndependentDisks returns the disks that outlive the VM.
func (v VM) IndependentDisks() []Ref {
	var disks []Ref
	for _, d := range v.Disks {
		if d.Independent != nil {
			disks = append(disks, *d.Independent)
		}
	}
	return disks
}

// AddressMode is how a NIC gets its address, in VCD's words.
type AddressMode string

// Address modes.
const (
	ModePool   AddressMode = "POOL"
	ModeDHCP   AddressMode = "DHCP"
	ModeManual AddressMode = "MANUAL"
	ModeNone   AddressMode = "NONE"
)

// A NIC is a network connection of a VM.
type NIC struct {
	Index   int
	Network string // name of the vApp network
	MAC     string
	Mode    AddressMode
	Address string // what VCD assigned or saw; empty while unknown
	// Secondary is the address of the other family, where a NIC has one; empty otherwise.
	Secondary string
	// SecondaryMode is how a new NIC of mode POOL gets an address of the other family: POOL, or empty without one.
	SecondaryMode AddressMode
	Primary       bool
	Adapter       string // VMXNET3 …
}

// A Disk is a disk of a VM. Independent ("named") disks outlive the VM and are never deleted with it.
type Disk struct {
	ID          string // disk id within the VM
	SizeMiB     int64
	Independent *Ref // set if the disk is an independent one
}

// A VAppSpec is what a new vApp looks like. Leases are set to never expire.
type VAppSpec struct {
	Name        string
	Description string
	Networks    []Ref    // organization networks to connect, bridged
	VMs         []VMSpec // created in the same request
}

// A VMSpec is what a new VM looks like.
type VMSpec struct {
	Name            string
	Description     string
	Template        Template
	NICs            []NIC // Index, Network, Mode, Address (MANUAL), Primary, Adapter
	SizingPolicy    *Policy
	PlacementPolicy *Policy
	StorageProfile  *StorageProfile
	ComputerName    string
}

// A NewDisk is a disk that a VM gets, empty.
type NewDisk struct {
	SizeMiB        int64
	StorageProfile *StorageProfile // nil: that of the VM
}

// A VMChange is one reconfiguration of a VM: nil and zero fields stay as they are. Extra configuration that
// is not named stays.
type VMChange struct {
	ExtraConfig map[string]string
	DiskMiB     int64     // grows the first disk
	NewDisks    []NewDisk // behind those that the VM has, in this order
	CPUs        int64
	MemoryMiB   int64
	// HardwareVersion is one not below the VM's, such as vmx-19.
	HardwareVersion string
}

// hardware reports whether the change is about CPUs, memory or the version of the hardware.
func (c VMChange) hardware() bool { return c.CPUs > 0 || c.MemoryMiB > 0 || c.HardwareVersion != "" }

// TaskState is the state of a task.
type TaskState string

// Task states. Every state but Running is final.
const (
	TaskRunning   TaskState = "running" // queued and preRunning too
	TaskSucceeded TaskState = "success"
	TaskFailed    TaskState = "error" // aborted and canceled too
	TaskUnknown   TaskState = "unknown"
)

// A Task is an asynchronous operation of VCD.
type Task struct {
	ID        string // URN
	Operation string // vappUpdateVm …
	Owner     string // URN of the entity it works on
	State     TaskState
	Progress  int
	Err       error  // why it failed; wraps a sentinel
	Result    string // what VCD says came of it, for those created by the JSON API: a JSON document, mostly empty
	Started   time.Time
	Ended     time.Time

	// asks is true if its starter wants to know what it worked on: the JSON API only returns the address of the task.
	asks bool
}
