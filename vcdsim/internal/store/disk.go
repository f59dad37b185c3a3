// SPDX-License-Identifier: Apache-2.0

package store

import "slices"

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
	IOPS             int64
	SharingType      string
	UUID             string
	StorageProfileID string
	AttachedTo       []string // IDs of VMs; several only for a shared disk
	Metadata         map[string]Metadata
}

// Entity returns the reference for tasks and responses.
func (d *Disk) Entity() Entity { return Entity{Kind: "disk", ID: d.ID, Name: d.Name} }

// Release detaches the disk from a VM.
func (d *Disk) Release(vmID string) {
	d.AttachedTo = slices.DeleteFunc(slices.Clone(d.AttachedTo), func(id string) bool { return id == vmID })
}

// IOPSAllocated returns the total I/O operations per second of the disks of VMs on a storage profile.
func (s *Store) IOPSAllocated(profileID string) int64 {
	var sum int64
	for _, vm := range s.VMs {
		for _, d := range vm.Disks {
			if d.StorageProfileID == profileID && d.DiskID == "" {
				sum += d.IOPS.Reservation
			}
		}
	}
	return sum
}

// StorageUsed returns the total size of the disks on a storage profile, in MiB.
func (s *Store) StorageUsed(profileID string) int64 {
	var sum int64
	for _, vm := range s.VMs {
		for _, d := range vm.Disks {
			if d.StorageProfileID == profileID && d.DiskID == "" {
				sum += d.SizeMiB
			}
		}
	}
	for _, d := range s.Disks {
		if d.StorageProfileID == profileID {
			sum += d.SizeMiB
		}
	}
	return sum
}
