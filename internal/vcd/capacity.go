// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"fmt"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// An Amount is a used amount and its limit. A limit of 0 means unlimited.
type Amount struct{ Used, Limit int64 }

// Free returns the free amount. It returns false if there is no limit.
func (a Amount) Free() (int64, bool) { return max(0, a.Limit-a.Used), a.Limit > 0 }

// A Capacity is the usage and the limits of a VDC.
type Capacity struct {
	VMs       Amount
	CPUMHz    Amount
	MemoryMiB Amount
	VCPUMHz   int64             // MHz that one virtual CPU counts as
	Storage   map[string]Amount // MiB, by URN of the storage profile
	Hardware  []string          // versions of virtual hardware, such as vmx-19
}

// Capacity reads the usage and the limits of a VDC. Elastic VDCs may get more from their provider.
func (v *VDCs) Capacity(ctx context.Context, vdc VDC) (Capacity, error) {
	var doc struct {
		types.Vdc

		VCPUMHz int64 `xml:"VCpuInMhz2"`
	}
	if err := v.client.GetXML(ctx, urn.Path(urn.VDC, vdc.ID), &doc); err != nil {
		return Capacity{}, fmt.Errorf("reading VDC %s: %w", vdc.Name, err)
	}
	c := Capacity{
		VMs:     Amount{Limit: int64(doc.VMQuota)},
		VCPUMHz: doc.VCPUMHz,
		Storage: map[string]Amount{},
	}
	for _, share := range doc.ComputeCapacity {
		c.CPUMHz = amountOf(share.CPU)
		c.MemoryMiB = amountOf(share.Memory)
	}
	for _, can := range doc.Capabilities {
		if can.SupportedHardwareVersions != nil {
			for _, version := range can.SupportedHardwareVersions.SupportedHardwareVersion {
				c.Hardware = append(c.Hardware, version.Name)
			}
		}
	}
	var found types.QueryResultRecordsType
	if err := v.client.QueryPage(ctx, "orgVdc", fiql.AllOf(fiql.Is("id", vdc.ID)), 1, "", &found); err != nil {
		return Capacity{}, fmt.Errorf("counting VMs of VDC %s: %w", vdc.Name, err)
	}
	for _, record := range api.Both(found.OrgVdcRecord, found.OrgVdcAdminRecord) {
		if urn.Of(urn.VDC, record.HREF) == vdc.ID {
			c.VMs.Used = wire.Number(record.NumberOfVMs)
		}
	}
	return c, v.readStorage(ctx, vdc, c.Storage)
}

func amountOf(share *types.CapacityWithUsage) Amount {
	if share == nil {
		return Amount{}
	}
	return Amount{Used: share.Used, Limit: share.Limit}
}

func (v *VDCs) readStorage(ctx context.Context, vdc VDC, storage map[string]Amount) error {
	var found types.QueryResultRecordsType
	if err := v.client.QueryPage(ctx, "orgVdcStorageProfile", fiql.AllOf(fiql.Is("vdc", vdc.ID)), 1, "name", &found); err != nil {
		return fmt.Errorf("reading storage of VDC %s: %w", vdc.Name, err)
	}
	for _, r := range found.OrgVdcStorageProfileRecord {
		storage[urn.Of(urn.StorageProfile, r.HREF)] = storageOf(r.StorageUsedMB, r.StorageLimitMB)
	}
	for _, r := range found.AdminOrgVdcStorageProfileRecord {
		storage[urn.Of(urn.StorageProfile, r.HREF)] = storageOf(r.StorageUsedMB, r.StorageLimitMB)
	}
	return nil
}

func storageOf(used, limit uint64) Amount {
	return Amount{Used: int64(used), Limit: int64(limit)} //nolint:gosec // Mebibytes of a VDC.
}
