// SPDX-License-Identifier: Apache-2.0

// Package drift compares a VM with its state at creation.
package drift

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Baseline is the state of a VM at creation. It is recorded on the VCDMachine, so that it survives a restart and a move
// to another management cluster.
type Baseline infrav1.RecordedVM

// Differs reports whether the last comparison found a difference.
func (m Baseline) Differs() bool { return m.Comparison == infrav1.ComparisonDifferent }

// BaselineOf returns the current state of a VM in a VDC.
func BaselineOf(vm vcd.VM, vdc string) Baseline {
	baseline := Baseline{
		VAppID:            vm.VApp.ID,
		OVDCID:            vdc,
		SizingPolicyID:    vm.SizingPolicyID,
		PlacementPolicyID: vm.PlacementPolicyID,
		StorageProfileID:  vm.StorageProfile.ID,
		CPUs:              vm.CPUs,
		MemoryMiB:         vm.MemoryMiB,
		DiskMiB:           FirstDisk(vm).SizeMiB,
	}
	for _, nic := range vm.NICs {
		n := infrav1.RecordedNIC{MACAddress: nic.MAC, Network: nic.Network}
		if nic.Mode == vcd.ModePool || nic.Mode == vcd.ModeManual {
			n.Address = nic.Address
		}
		baseline.NICs = append(baseline.NICs, n)
	}
	return baseline
}

// FirstDisk returns the disk that spec.diskSize refers to: the first one that is not an independent disk.
func FirstDisk(vm vcd.VM) vcd.Disk {
	for _, disk := range vm.Disks {
		if disk.Independent == nil {
			return disk
		}
	}
	return vcd.Disk{}
}

// A Difference is a difference between a VM and its state at creation.
type Difference struct{ reason, message string }

// Unreachable returns the differences of a VM's NICs that break the network of its guest, which is still configured as
// it was at creation.
func (m Baseline) Unreachable(nics []infrav1.NICStatus) []Difference {
	var found []Difference
	for i, was := range m.NICs {
		at := slices.IndexFunc(nics, func(n infrav1.NICStatus) bool { return strings.EqualFold(n.MACAddress, was.MACAddress) })
		if at < 0 {
			found = append(found,
				Difference{
					infrav1.NICsChangedReason,
					fmt.Sprintf("NIC %d (%s) on network %s was removed", i, was.MACAddress, was.Network),
				})
			continue
		}
		is := nics[at]
		if is.Network != was.Network {
			found = append(found, Difference{
				infrav1.NICsChangedReason,
				fmt.Sprintf("NIC %d (%s) is connected to network %s, but was created on %s",
					i, was.MACAddress, orNone(is.Network), was.Network),
			})
		} else if was.Address != "" && is.Address != "" && is.Address != was.Address {
			found = append(found, Difference{
				infrav1.AddressChangedReason,
				fmt.Sprintf("NIC %d (%s) has address %s in VCD, but its guest is configured with %s",
					i, was.MACAddress, is.Address, was.Address),
			})
		}
	}
	return found
}

// An Observed is the current state of a VM.
type Observed struct {
	Name string // the name at creation
	Row  vcd.VMRecord
	VM   *vcd.VM // nil: not read
	// Marker is the ownership marker of the machine.
	Marker vcd.Marker
	// RequestedMiB is the requested size of the first disk; 0 if the size at creation is acceptable.
	RequestedMiB int64
}

// Differences returns the differences of a VM that do not stop its Node from working. The most severe one comes first.
func (m Baseline) Differences(s Observed) []Difference {
	found := m.location(s)
	if s.VM == nil {
		return found
	}
	if _, marked := vcd.ParseMarker(s.VM.Description); !s.Marker.IsOf(s.VM.Description) && (marked || m.Marker != infrav1.MarkerMissing) {
		found = append([]Difference{{
			infrav1.MarkerNotFoundReason,
			fmt.Sprintf("the description of the VM lacks the ownership marker of this machine, so the VM is not changed: add %q to it", s.Marker),
		}}, found...)
	}
	for _, p := range []struct{ what, was, is string }{
		{"sizing policy", m.SizingPolicyID, s.VM.SizingPolicyID},
		{"placement policy", m.PlacementPolicyID, s.VM.PlacementPolicyID},
		{"storage profile", m.StorageProfileID, s.VM.StorageProfile.ID},
	} {
		if p.was != p.is {
			found = append(found,
				Difference{
					infrav1.PolicyChangedReason,
					fmt.Sprintf("the %s is %s, but was %s at creation", p.what, orNone(p.is), orNone(p.was)),
				})
		}
	}
	if m.CPUs != s.VM.CPUs {
		found = append(found,
			Difference{
				infrav1.ComputeChangedReason,
				fmt.Sprintf("the VM has %d CPUs, but had %d at creation", s.VM.CPUs, m.CPUs),
			})
	}
	if m.MemoryMiB != s.VM.MemoryMiB {
		found = append(found,
			Difference{
				infrav1.ComputeChangedReason,
				fmt.Sprintf("the VM has %d MiB of memory, but had %d at creation", s.VM.MemoryMiB, m.MemoryMiB),
			})
	}
	for _, nic := range s.VM.NICs {
		if !slices.ContainsFunc(m.NICs, func(was infrav1.RecordedNIC) bool { return strings.EqualFold(was.MACAddress, nic.MAC) }) {
			found = append(found,
				Difference{
					infrav1.NICsChangedReason,
					fmt.Sprintf("NIC %s on network %s was added", nic.MAC, orNone(nic.Network)),
				})
		}
	}
	return append(found, m.disk(s)...)
}

// location returns the differences that the inventory shows.
func (m Baseline) location(s Observed) []Difference {
	var found []Difference
	if m.OVDCID != "" && s.Row.VDC.ID != "" && s.Row.VDC.ID != m.OVDCID {
		found = append(found,
			Difference{infrav1.VMMovedReason, fmt.Sprintf("the VM was moved to VDC %s", s.Row.VDC.Name)})
	}
	if m.VAppID != "" && s.Row.VApp.ID != "" && s.Row.VApp.ID != m.VAppID {
		found = append(found,
			Difference{infrav1.VMMovedReason, fmt.Sprintf("the VM was moved to vApp %s", s.Row.VApp.Name)})
	}
	if s.Name != "" && s.Row.Name != s.Name {
		found = append(found,
			Difference{infrav1.VMRenamedReason, fmt.Sprintf("the VM is named %s, but was created as %s", s.Row.Name, s.Name)})
	}
	return found
}

// disk returns a difference if the first disk does not have the larger of the requested size and its size at creation,
// or if the requested size is smaller than the disk.
func (m Baseline) disk(s Observed) []Difference {
	is := FirstDisk(*s.VM).SizeMiB
	expected := max(m.DiskMiB, s.RequestedMiB)
	switch {
	case is != expected:
		return []Difference{{
			infrav1.DiskChangedReason,
			fmt.Sprintf("the first disk has %dMi instead of %dMi: set spec.diskSize to its actual size", is, expected),
		}}
	case s.RequestedMiB > 0 && s.RequestedMiB < is:
		return []Difference{{
			infrav1.DiskTooSmallReason,
			fmt.Sprintf("spec.diskSize is %dMi, the first disk has %dMi and cannot shrink: set spec.diskSize to this size",
				s.RequestedMiB, is),
		}}
	}
	return nil
}

// MayDiffer reports whether a row of the inventory shows a difference for which the VM must be read.
func (m Baseline) MayDiffer(row vcd.VMRecord) bool {
	other := func(was, is string) bool { return is != "" && was != is }
	return row.CPUs != 0 && row.CPUs != m.CPUs || row.MemoryMiB != 0 && row.MemoryMiB != m.MemoryMiB ||
		other(m.SizingPolicyID, row.SizingPolicyID) || other(m.PlacementPolicyID, row.PlacementPolicyID)
}

// Summary returns the reason of the first difference, and a message with all differences.
func Summary(found []Difference) (reason, message string) {
	texts := make([]string, 0, len(found))
	for _, d := range found {
		texts = append(texts, d.message)
	}
	return found[0].reason, strings.Join(texts, "; ")
}

func orNone(name string) string { return cmp.Or(name, "none") }
