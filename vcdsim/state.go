// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Status is the number VCD gives the state of a vApp or VM.
type Status int

// States of vApps, VMs and templates.
const (
	FailedCreation Status = -1
	Unresolved     Status = 0
	Resolved       Status = 1
	Suspended      Status = 3
	PoweredOn      Status = 4
	PoweredOff     Status = 8
	Mixed          Status = 10
)

// text is how the query service writes a status.
func (s Status) text() string {
	switch s {
	case FailedCreation:
		return "FAILED_CREATION"
	case Resolved:
		return "RESOLVED"
	case Suspended:
		return "SUSPENDED"
	case PoweredOn:
		return "POWERED_ON"
	case PoweredOff:
		return "POWERED_OFF"
	case Mixed:
		return "MIXED"
	default:
		return "UNRESOLVED"
	}
}

// A State is a copy of everything in the simulator, sorted by id.
type State struct {
	Model    Model
	VApps    []VApp
	VMs      []VM
	Disks    []Disk
	Uploads  []Upload
	Affinity []AffinityRule
	Tasks    []Task
	Sessions []Session
	// Metadata is that of objects of the model, by bare id; vApps, VMs and disks have their own.
	Metadata   map[string]map[string]Metadata
	Documents  []Document // by path, oldest first
	Access     []Access
	APIClients []APIClient // oldest first
}

// A VApp is a vApp. IDs are bare UUIDs; URN gives the form the API uses.
type VApp struct {
	ID          string
	Name        string
	Description string
	OrgID       string
	VDCID       string
	OwnerID     string
	Status      Status // as VCD shows it; computed from the VMs unless creation is unfinished
	Deployed    bool
	Created     time.Time
	Networks    []VAppNetwork
	AutoNature  bool // of a standalone VM, with which it goes
	Lease       Lease
	Metadata    map[string]Metadata
	Properties  map[string]Property // product section, by key
}

// A VAppNetwork connects a vApp to a network, or stands alone.
type VAppNetwork struct {
	ID          string
	Name        string
	ParentID    string // org VDC network; empty for NICs on nothing
	FenceMode   string
	Gateway     netip.Prefix // of networks with a subnet of their own
	Pool        []Range
	DNS         []netip.Addr
	DNSSuffix   string
	Description string
	Retain      bool // addresses, while the vApp is not deployed
	GuestVLANs  bool // guests may tag
	DHCP        *VAppDHCP
}

// A Lease is the lease of a vApp; 0 never expires. Deployed is when it was last deployed, zero if it is not;
// Stopped when it was last undeployed.
type Lease struct {
	Runtime  time.Duration
	Storage  time.Duration
	Deployed time.Time
	Stopped  time.Time
}

// A Metadata is one metadata value.
type Metadata struct {
	Type       string // MetadataStringValue …
	Value      string
	Visibility string // PRIVATE, READONLY; empty is public
}

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
}

// A Disk is an independent disk.
type Disk struct {
	ID               string
	Name             string
	Description      string
	OrgID            string
	VDCID            string
	OwnerID          string
	SizeMiB          int64
	Status           Status
	BusType          string
	BusSubType       string
	SharingType      string
	UUID             string
	StorageProfileID string
	AttachedTo       []string // VMs, several only of a disk that is shared
	Metadata         map[string]Metadata
}

// URN gives the identifier the API shows for a kind and an id.
func URN(kind, id string) string {
	if id == "" {
		return ""
	}
	return "urn:vcloud:" + kind + ":" + id
}

// bare takes any form of reference to a bare id.
func bare(ref string) string {
	ref = strings.TrimSuffix(ref, "/")
	if len(ref) < 36 {
		return ref
	}
	return ref[len(ref)-36:]
}

func (v *VApp) clone() VApp {
	c := *v
	c.Networks = slices.Clone(v.Networks)
	c.Metadata = maps.Clone(v.Metadata)
	c.Properties = maps.Clone(v.Properties)
	return c
}

func (v *VM) clone() VM {
	c := *v
	c.PoweredOn = v.Status == PoweredOn
	c.Snapshot = v.Snapshot.clone()
	c.Disks = slices.Clone(v.Disks)
	c.NICs = slices.Clone(v.NICs)
	c.SecurityTags = slices.Clone(v.SecurityTags)
	c.ExtraConfig = maps.Clone(v.ExtraConfig)
	c.Metadata = maps.Clone(v.Metadata)
	c.Properties = maps.Clone(v.Properties)
	return c
}

// A store is the live state; everything in it is guarded by the simulator's lock. Dumps contain it as JSON, so fields are
// exported unless they follow from others.
type store struct {
	Model      Model
	VApps      map[string]*VApp
	VMs        map[string]*VM
	Disks      map[string]*Disk
	Tasks      map[string]*Task
	Sessions   map[string]*Session            // by token
	Locks      map[string]string              // entity -> task
	Metadata   map[string]map[string]Metadata // of what the model holds, by id
	Affinity   map[string]*AffinityRule       // by id
	Uploads    map[string]*Upload             // by id
	Documents  documents
	Access     map[string]Access // by the id of what is shared
	Clients    []*APIClient      // oldest first
	Alarms     map[int]alarm     // by number
	AlarmCount int

	children map[string][]*VM // vApp -> VMs in the order they were made
	order    []*VM            // all VMs by id
}

// A storedForm is a store as dumps have it. The order in which VMs were made does not follow from anything else.
type storedForm struct {
	*plainStore

	Children map[string][]string // vApp -> ids of its VMs in the order they were made
}

// A plainStore is a store without methods.
type plainStore store

// MarshalJSON implements json.Marshaler.
func (s *store) MarshalJSON() ([]byte, error) {
	form := storedForm{plainStore: (*plainStore)(s), Children: map[string][]string{}}
	for vapp, vms := range s.children {
		for _, vm := range vms {
			form.Children[vapp] = append(form.Children[vapp], vm.ID)
		}
	}
	return json.Marshal(form)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses fields that it does not know, and a store whose VMs are not
// those of its vApps.
func (s *store) UnmarshalJSON(encoded []byte) error {
	form := storedForm{plainStore: (*plainStore)(s)}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&form); err != nil {
		return fmt.Errorf("reading the store: %w", err)
	}
	return s.arrange(form.Children)
}

// arrange derives the order of VMs from the ids of the VMs of each vApp.
func (s *store) arrange(children map[string][]string) error {
	s.children = map[string][]*VM{}
	s.order = nil
	for vapp, ids := range children {
		for _, id := range ids {
			vm := s.VMs[id]
			if vm == nil || vm.VAppID != vapp {
				return fmt.Errorf("reading the store: vApp %s has no VM %s", vapp, id)
			}
			s.children[vapp] = append(s.children[vapp], vm)
			s.order = append(s.order, vm)
		}
	}
	if len(s.order) != len(s.VMs) {
		return fmt.Errorf("reading the store: %d of %d VMs are in a vApp", len(s.order), len(s.VMs))
	}
	slices.SortFunc(s.order, func(a, b *VM) int { return strings.Compare(a.ID, b.ID) })
	return nil
}

func newStore(m Model) *store {
	return &store{
		Model:     m,
		VApps:     map[string]*VApp{},
		VMs:       map[string]*VM{},
		Disks:     map[string]*Disk{},
		Tasks:     map[string]*Task{},
		Sessions:  map[string]*Session{},
		Locks:     map[string]string{},
		children:  map[string][]*VM{},
		Metadata:  map[string]map[string]Metadata{},
		Documents: documents{},
		Uploads:   map[string]*Upload{},
		Affinity:  map[string]*AffinityRule{},
		Access:    map[string]Access{},
		Alarms:    map[int]alarm{},
	}
}

func (s *store) addVM(vm *VM) {
	s.VMs[vm.ID] = vm
	s.children[vm.VAppID] = append(s.children[vm.VAppID], vm)
	i, _ := slices.BinarySearchFunc(s.order, vm.ID, compareVMID)
	s.order = slices.Insert(s.order, i, vm)
}

func compareVMID(vm *VM, id string) int { return strings.Compare(vm.ID, id) }

func (s *store) removeVM(vm *VM) {
	delete(s.VMs, vm.ID)
	if i, found := slices.BinarySearchFunc(s.order, vm.ID, compareVMID); found {
		s.order = slices.Delete(s.order, i, i+1)
	}
	s.children[vm.VAppID] = slices.DeleteFunc(slices.Clone(s.children[vm.VAppID]), func(x *VM) bool { return x == vm })
}

// sorted returns the values of a map in the order of its keys.
func sorted[T any](m map[string]*T) []*T {
	out := make([]*T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// vmsOf returns the VMs of a vApp in the order they were made.
func (s *store) vmsOf(vappID string) []*VM { return s.children[vappID] }

// status computes the status VCD shows for a vApp, which has a power state of its own beside those of its VMs.
func (s *store) status(v *VApp) Status {
	if v.Status == Unresolved || v.Status == FailedCreation {
		return v.Status
	}
	result := s.common(v)
	switch {
	case result == Resolved && v.Deployed:
		return PoweredOn // an empty vApp that was started
	case result == PoweredOff && v.Deployed && s.anyUndeployed(v):
		return Mixed // the vApp is on, the VM within is not
	}
	return result
}

// common is the state that all resolved VMs of a vApp share, MIXED if they differ, RESOLVED without VMs.
func (s *store) common(v *VApp) Status {
	result := Resolved
	for _, vm := range s.vmsOf(v.ID) {
		switch {
		case vm.Status == Unresolved || vm.Status == FailedCreation:
			continue
		case result == Resolved:
			result = vm.Status
		case result != vm.Status:
			return Mixed
		}
	}
	return result
}

// running reports whether VCD wants the vApp stopped before it is deleted or loses a network.
func (s *store) running(v *VApp) bool {
	status := s.status(v)
	return status == PoweredOn || status == Mixed
}

func (s *store) anyUndeployed(v *VApp) bool {
	return slices.ContainsFunc(s.vmsOf(v.ID), func(vm *VM) bool { return !vm.Deployed })
}

// deployed reports whether the vApp or a VM of it is deployed.
func (s *store) deployed(v *VApp) bool { return v.Deployed || s.anyDeployed(v) }

func (s *store) anyDeployed(v *VApp) bool {
	return slices.ContainsFunc(s.vmsOf(v.ID), func(vm *VM) bool { return vm.Deployed })
}

// snapshot copies everything.
func (s *store) snapshot() State {
	out := State{Model: s.Model.clone()}
	for _, v := range sorted(s.VApps) {
		c := v.clone()
		c.Status = s.status(v)
		out.VApps = append(out.VApps, c)
	}
	for _, v := range sorted(s.VMs) {
		c := v.clone()
		if vapp := s.VApps[v.VAppID]; vapp != nil {
			c.VAppName = vapp.Name
		}
		out.VMs = append(out.VMs, c)
	}
	for _, d := range sorted(s.Disks) {
		c := *d
		c.Metadata = maps.Clone(d.Metadata)
		c.AttachedTo = slices.Clone(d.AttachedTo)
		out.Disks = append(out.Disks, c)
	}
	for _, t := range sorted(s.Tasks) {
		out.Tasks = append(out.Tasks, t.clone())
	}
	for _, x := range sorted(s.Sessions) {
		out.Sessions = append(out.Sessions, *x)
	}
	s.snapshotDocuments(&out)
	return out
}
