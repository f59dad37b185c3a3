// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// A VApp is a vApp. IDs are bare UUIDs; URN returns the form that the API uses.
type VApp struct {
	ID          string
	Name        string
	Description string
	OrgID       string
	VDCID       string
	OwnerID     string
	Status      Status // as VCD returns it; computed from the VMs after creation
	Deployed    bool
	Created     time.Time
	Networks    []VAppNetwork
	AutoNature  bool // belongs to a standalone VM and is deleted with it
	Lease       Lease
	Metadata    map[string]Metadata
	Properties  map[string]Property // product section, by key
}

// Network returns a network of the vApp by name, or nil if it does not exist.
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

// Entity returns the reference for tasks and responses.
func (v *VApp) Entity() Entity { return Entity{Kind: "vapp", ID: v.ID, Name: v.Name} }

// A Property is a property of a product section. The OVF environment passes it to the software in a VM or vApp.
type Property struct {
	Value, Default           string
	Type, Label, Description string
	UserConfigurable         bool
}

// A VAppNetwork connects a vApp to a network, or is isolated.
type VAppNetwork struct {
	ID          string
	Name        string
	ParentID    string // org VDC network; empty for NICs without a network
	FenceMode   string
	Gateway     netip.Prefix // only of networks with a separate subnet
	Pool        []Range
	DNS         []netip.Addr
	DNSSuffix   string
	Description string
	Retain      bool // keep addresses while the vApp is undeployed
	GuestVLANs  bool // guests may use VLAN tags
	DHCP        *VAppDHCP
	Features    string // the XML element; only DHCP has an effect
}

// Segment returns the ID of the network whose addresses a vApp network uses: an org VDC network or itself.
func (n *VAppNetwork) Segment() string {
	if n.ParentID != "" {
		return n.ParentID
	}
	return n.ID
}

// A Lease is the lease of a vApp; 0 never expires. Deployed is the time of its last deployment, or zero if it is not
// deployed. Stopped is the time when it was last undeployed.
type Lease struct {
	Runtime  time.Duration
	Storage  time.Duration
	Deployed time.Time
	Stopped  time.Time
}

// Undeploys returns the end of the runtime lease, or zero if it never ends.
func (l Lease) Undeploys() time.Time {
	if l.Runtime == 0 || l.Deployed.IsZero() {
		return time.Time{}
	}
	return l.Deployed.Add(l.Runtime)
}

// Deletes returns the end of the storage lease, or zero if it never ends. It runs only while the vApp is stopped.
func (l Lease) Deletes() time.Time {
	if l.Storage == 0 || !l.Deployed.IsZero() || l.Stopped.IsZero() {
		return time.Time{}
	}
	return l.Stopped.Add(l.Storage)
}

// A Metadata is one metadata entry.
type Metadata struct {
	Type       string // for example MetadataStringValue
	Value      string
	Visibility string // PRIVATE, READONLY; empty means public
}

// A VAppDHCP is the DHCP service of a vApp network.
type VAppDHCP struct {
	Enabled      bool
	DefaultLease int64
	MaxLease     int64
	Range        Range
}

// VMsOf returns the VMs of a vApp in order of creation.
func (s *Store) VMsOf(vappID string) []*VM { return s.Children[vappID] }

// Status returns the status that VCD returns for a vApp. A vApp has its own power state in addition to those of its
// VMs.
func (s *Store) Status(v *VApp) Status {
	if v.Status == Unresolved || v.Status == FailedCreation {
		return v.Status
	}
	result := s.commonStatus(v)
	switch {
	case result == Resolved && v.Deployed:
		return PoweredOn // an empty vApp that was started
	case result == PoweredOff && v.Deployed && s.anyUndeployed(v):
		return Mixed // the vApp is on, but a VM in it is not
	}
	return result
}

// commonStatus returns the common state of all resolved VMs of a vApp. It is MIXED if they differ, and RESOLVED without VMs.
func (s *Store) commonStatus(v *VApp) Status {
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

// Running reports whether VCD requires that the vApp is stopped before it is deleted or a network is removed.
func (s *Store) Running(v *VApp) bool {
	status := s.Status(v)
	return status == PoweredOn || status == Mixed
}

func (s *Store) anyUndeployed(v *VApp) bool {
	return slices.ContainsFunc(s.VMsOf(v.ID), func(vm *VM) bool { return !vm.Deployed })
}

// Deployed reports whether the vApp or one of its VMs is deployed.
func (s *Store) Deployed(v *VApp) bool { return v.Deployed || s.AnyDeployed(v) }

// AnyDeployed reports whether a VM of the vApp is deployed.
func (s *Store) AnyDeployed(v *VApp) bool {
	return slices.ContainsFunc(s.VMsOf(v.ID), func(vm *VM) bool { return vm.Deployed })
}

// UserOf returns a VM of a vApp with a NIC on a network, or nil if there is none.
func (s *Store) UserOf(v *VApp, network string) *VM {
	for _, vm := range s.VMsOf(v.ID) {
		if slices.ContainsFunc(vm.NICs, func(nic NIC) bool { return nic.Network == network }) {
			return vm
		}
	}
	return nil
}

// Home returns the vApp of a VM, or nil if the VM does not exist.
func (s *Store) Home(vmID string) *VApp {
	if vm := s.VMs[vmID]; vm != nil {
		return s.VApps[vm.VAppID]
	}
	return nil
}
