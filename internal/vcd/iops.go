// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// IOPSLimits are the limits of a storage profile for the I/O operations per second (IOPS) of its disks.
type IOPSLimits struct {
	// Enabled is true if IOPS can be set for each disk.
	Enabled bool
	// Max is the maximum IOPS of a disk; 0: no limit.
	Max int64
	// PerGB is the maximum IOPS of a disk per GB of its size; 0: no limit.
	PerGB int64
}

// MaxOf returns the maximum IOPS of a disk of the given size. limited is false if there is no maximum.
func (l IOPSLimits) MaxOf(sizeMiB int64) (most int64, limited bool) {
	ofSize := l.PerGB * sizeMiB / mebibytesPerGB
	switch {
	case l.PerGB == 0:
		return l.Max, l.Max > 0
	case l.Max == 0:
		return ofSize, true
	}
	return min(l.Max, ofSize), true
}

const mebibytesPerGB = 1024

// IOPSLimits reads the IOPS limits of a storage profile. It caches the result.
func (v *VDCs) IOPSLimits(ctx context.Context, profile StorageProfile) (IOPSLimits, error) {
	return cache.Lookup(ctx, v.lookups, cache.Key("iops", profile.ID), func(ctx context.Context) (IOPSLimits, error) {
		var doc struct {
			Enabled bool  `xml:"IopsSettings>Enabled"`
			Max     int64 `xml:"IopsSettings>DiskIopsMax"`
			PerGB   int64 `xml:"IopsSettings>DiskIopsPerGbMax"`
		}
		if err := v.client.GetXML(ctx, urn.Path(urn.StorageProfile, profile.ID), &doc); err != nil {
			return IOPSLimits{}, fmt.Errorf("reading storage profile %s: %w", profile.Name, err)
		}
		return IOPSLimits(doc), nil
	})
}

// setIOPS sets the IOPS of the first disk that is not independent. VCD omits the current number from documents for
// users who lack the right to view it.
func setIOPS(vm *wire.Node, iops int64) error {
	spec, disk, err := firstDisk(vm)
	if err != nil {
		return err
	}
	allocation, err := wire.NewNode(wire.IOPSAllocation{Reservation: iops})
	if err != nil {
		return err
	}
	spec.SetAttr("Modified", "true")
	disk.Keep(func(child *wire.Node) bool { return child.Name.Local != "IopsAllocation" && child.Name.Local != "iops" })
	disk.InsertBefore("VirtualQuantityUnit", allocation)
	return nil
}
