// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

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

// Network finds the network of a vApp by name.
func (v *VApp) Network(name string) *VAppNetwork {
	for i := range v.Networks {
		if v.Networks[i].Name == name {
			return &v.Networks[i]
		}
	}
	return nil
}

// Clone returns a deep copy.
func (v *VApp) Clone() VApp {
	c := *v
	c.Networks = slices.Clone(v.Networks)
	c.Metadata = maps.Clone(v.Metadata)
	c.Properties = maps.Clone(v.Properties)
	return c
}

// Entity returns the reference that tasks and answers use.
func (v *VApp) Entity() Entity { return Entity{Kind: "vapp", ID: v.ID, Name: v.Name} }

// A Property is one of a product section, which the OVF environment passes to the software in a VM or vApp.
type Property struct {
	Value, Default           string
	Type, Label, Description string
	UserConfigurable         bool
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
	Features    string // the XML element, of which only DHCP has an effect
}

// Segment is the network whose addresses a vApp network uses: the organization's, or its own.
func (n *VAppNetwork) Segment() string {
	if n.ParentID != "" {
		return n.ParentID
	}
	return n.ID
}

// A Lease is the lease of a vApp; 0 never expires. Deployed is when it was last deployed, zero if it is not;
// Stopped when it was last undeployed.
type Lease struct {
	Runtime  time.Duration
	Storage  time.Duration
	Deployed time.Time
	Stopped  time.Time
}

// Undeploys is when the runtime lease ends, zero if never.
func (l Lease) Undeploys() time.Time {
	if l.Runtime == 0 || l.Deployed.IsZero() {
		return time.Time{}
	}
	return l.Deployed.Add(l.Runtime)
}

// Deletes is when the storage lease ends, zero if never. It runs only while the vApp is stopped.
func (l Lease) Deletes() time.Time {
	if l.Storage == 0 || !l.Deployed.IsZero() || l.Stopped.IsZero() {
		return time.Time{}
	}
	return l.Stopped.Add(l.Storage)
}

// A Metadata is one metadata value.
type Metadata struct {
	Type       string // MetadataStringValue …
	Value      string
	Visibility string // PRIVATE, READONLY; empty is public
}

// A VAppDHCP is the DHCP service of a vApp's own network.
type VAppDHCP struct {
	Enabled      bool
	DefaultLease int64
	MaxLease     int64
	Range        Range
}

// VMsOf returns the VMs of a vApp in the order they were made.
func (s *Store) VMsOf(vappID string) []*VM { return s.Children[vappID] }

// Status computes the status VCD shows for a vApp, which has a power state of its own beside those of its VMs.
func (s *Store) Status(v *VApp) Status {
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
func (s *Store) common(v *VApp) Status {
	result := Resolved
	for _, vm := range s.VMsOf(v.ID) {
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

// Running reports whether VCD wants the vApp stopped before it is deleted or loses a network.
func (s *Store) Running(v *VApp) bool {
	status := s.Status(v)
	return status == PoweredOn || status == Mixed
}

func (s *Store) anyUndeployed(v *VApp) bool {
	return slices.ContainsFunc(s.VMsOf(v.ID), func(vm *VM) bool { return !vm.Deployed })
}

// Deployed reports whether the vApp or a VM of it is deployed.
func (s *Store) Deployed(v *VApp) bool { return v.Deployed || s.AnyDeployed(v) }

// AnyDeployed reports whether a VM of the vApp is deployed.
func (s *Store) AnyDeployed(v *VApp) bool {
	return slices.ContainsFunc(s.VMsOf(v.ID), func(vm *VM) bool { return vm.Deployed })
}

// UserOf is a VM of a vApp with a NIC on a network, nil if there is none.
func (s *Store) UserOf(v *VApp, network string) *VM {
	for _, vm := range s.VMsOf(v.ID) {
		if slices.ContainsFunc(vm.NICs, func(nic NIC) bool { return nic.Network == network }) {
			return vm
		}
	}
	return nil
}

// Home is the vApp that a VM is in, nil if there is no such VM.
func (s *Store) Home(vmID string) *VApp {
	if vm := s.VMs[vmID]; vm != nil {
		return s.VApps[vm.VAppID]
	}
	return nil
}
