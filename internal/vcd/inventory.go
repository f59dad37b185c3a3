// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/metrics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A VMRecord is a VM in the result of the inventory query.
type VMRecord struct {
	Ref

	VApp           Ref
	VDC            Ref
	Status         Status
	Busy           bool // locked by a task
	PrimaryAddress string
	// LeaseEnd is the time when VCD stops the VM; zero means never.
	LeaseEnd time.Time
	// StorageEnd is the time when VCD deletes the VM with its stopped vApp; zero means never.
	StorageEnd time.Time

	// The following values may be outdated, because VCD updates them periodically. They are empty or 0 if VCD does not
	// report them.
	CPUs              int64
	MemoryMiB         int64
	StorageMiB        string // of all disks, in VCD's format: only suitable to detect changes
	StorageProfile    string // name
	SizingPolicyID    string
	PlacementPolicyID string
	PrimaryNetwork    string // name
}

// forgetVApp is how long a vApp stays in the inventory after it was last requested.
const forgetVApp = 30 * time.Minute

// Inventory lists VMs with queries that all callers share.
type Inventory struct {
	client  *api.Client
	clock   Clock
	metrics metrics.Site

	mu   sync.Mutex
	vdcs map[string]*inventory // by URN of the VDC
}

func newInventory(c *api.Client, clock Clock, m metrics.Site) *Inventory {
	return &Inventory{
		client:  c,
		clock:   clock,
		metrics: m,
		vdcs:    map[string]*inventory{},
	}
}

// An inventory caches the VMs of one VDC in all vApps that were requested. One query updates all of them.
type inventory struct {
	querying chan struct{} // held during a query

	mu         sync.Mutex
	requested  map[string]time.Time // time of the last request for each vApp, by name
	shot       snapshot
	complete   time.Time // start of the last successful query; zero: never
	generation int       // number of invalidations
	changed    time.Time // snapshots that started earlier are outdated
}

// A snapshot is the complete result of one query, or its error.
type snapshot struct {
	started    time.Time // time before the query
	generation int       // generation of the inventory at that time
	vApps      map[string]bool
	rows       map[string][]VMRecord // by vApp name
	err        error
}

// VMs returns the VMs of a vApp, sorted by name, from the inventory of the VDC. If the inventory is older than maxAge
// or has been invalidated, VMs updates it with one query for all vApps of the VDC that callers request.
func (i *Inventory) VMs(ctx context.Context, vdc VDC, vApp string, maxAge time.Duration) ([]VMRecord, error) {
	if err := fiql.CheckName("vApp", vApp, "VDC "+vdc.Name); err != nil {
		return nil, err
	}
	inv := i.of(vdc)
	since := i.clock.Now()
	inv.note(vApp, since)
	if shot, ok := inv.usable(vApp, since, maxAge); ok {
		return slices.Clone(shot.rows[vApp]), shot.err
	}
	select {
	case inv.querying <- struct{}{}:
		defer func() { <-inv.querying }()
	case <-i.clock.After(transport.MaxWait):
		return nil, transport.ErrSlow
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if shot, ok := inv.usable(vApp, since, maxAge); ok {
		return slices.Clone(shot.rows[vApp]), shot.err
	}
	shot := i.takeSnapshot(ctx, vdc, inv)
	return slices.Clone(shot.rows[vApp]), shot.err
}

// InvalidateBefore makes the next [Inventory.VMs] of the VDC query VCD, unless the inventory was queried at or after a
// time. Call it after a task has finished, with the time when that was noticed: all followers of the task share a query.
func (i *Inventory) InvalidateBefore(vdc VDC, at time.Time) {
	inv := i.of(vdc)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if at.After(inv.changed) {
		inv.changed = at
	}
}

// Invalidate makes the next [Inventory.VMs] of the VDC query VCD. Call it after a write.
func (i *Inventory) Invalidate(vdc VDC) {
	inv := i.of(vdc)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.generation++
}

func (i *Inventory) of(vdc VDC) *inventory {
	i.mu.Lock()
	defer i.mu.Unlock()
	inv, ok := i.vdcs[vdc.ID]
	if !ok {
		inv = &inventory{querying: make(chan struct{}, 1), requested: map[string]time.Time{}}
		i.vdcs[vdc.ID] = inv
	}
	return inv
}

func (inv *inventory) note(vApp string, now time.Time) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.requested[vApp] = now
}

// usable returns the snapshot if it contains the vApp and is new enough for a request at the time since. An error is
// only shared by callers that waited for it.
func (inv *inventory) usable(vApp string, since time.Time, maxAge time.Duration) (snapshot, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	shot := inv.shot
	if !shot.vApps[vApp] || shot.generation != inv.generation || shot.started.Before(inv.changed) {
		return snapshot{}, false
	}
	oldest := since
	if shot.err == nil {
		oldest = since.Add(-maxAge)
	}
	return shot, !shot.started.Before(oldest)
}

// age returns the age of the last complete snapshot, if any vApp in it was requested recently.
func (inv *inventory) age(now time.Time) (time.Duration, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, last := range inv.requested {
		if now.Sub(last) <= forgetVApp {
			return now.Sub(inv.complete), !inv.complete.IsZero()
		}
	}
	return 0, false
}

// age returns the age of the oldest inventory that was requested recently.
func (i *Inventory) age(now time.Time) (oldest time.Duration, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, inv := range i.vdcs {
		if age, known := inv.age(now); known {
			oldest = max(oldest, age)
			ok = true
		}
	}
	return oldest, ok
}

// begin returns an empty snapshot and the vApps to query. It removes vApps that were not requested for a long time.
func (inv *inventory) begin(now time.Time) (snapshot, []string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	maps.DeleteFunc(inv.requested, func(_ string, last time.Time) bool { return now.Sub(last) > forgetVApp })
	names := slices.Sorted(maps.Keys(inv.requested))
	shot := snapshot{started: now, generation: inv.generation, vApps: map[string]bool{}, rows: map[string][]VMRecord{}}
	for _, name := range names {
		shot.vApps[name] = true
	}
	return shot, names
}

func (i *Inventory) takeSnapshot(ctx context.Context, vdc VDC, inv *inventory) snapshot {
	shot, names := inv.begin(i.clock.Now())
	shot.err = i.fillSnapshot(transport.Shared(ctx), vdc, names, shot.rows)
	if ctx.Err() != nil {
		return shot // the caller gave up: no result for others, who query again
	}
	i.metrics.InventoryQueried(shot.err)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.shot = shot
	if shot.err == nil {
		inv.complete = shot.started
	}
	return shot
}

func (i *Inventory) fillSnapshot(ctx context.Context, vdc VDC, names []string, rows map[string][]VMRecord) error {
	in := fiql.AllOf(fiql.Is("vdc", vdc.ID), fiql.Is("isVAppTemplate", "false"))
	for _, chunk := range fiql.AnyOfChunks("containerName", names, api.MaxFilter) {
		records, err := i.queryVMs(ctx, in+";"+fiql.AnyOf(chunk...))
		if err != nil {
			clear(rows)
			return err
		}
		for _, record := range records {
			if !record.VAppTemplate && !record.Deleted {
				rows[record.ContainerName] = append(rows[record.ContainerName], vmRecord(record))
			}
		}
	}
	for _, of := range rows {
		slices.SortFunc(of, func(a, b VMRecord) int { return compareRefs(a.Ref, b.Ref) })
	}
	return nil
}

// QueryVM searches for a VM by its URN in the whole organization. It fails with [ErrNotFound] if no row has that ID.
// Together with a failed [VMs.VM], this is part of the proof that a VM is gone.
func (i *Inventory) QueryVM(ctx context.Context, id string) (VMRecord, error) {
	records, err := i.queryVMs(ctx, fiql.AllOf(fiql.Is("id", id), fiql.Is("isVAppTemplate", "false")))
	if err != nil {
		return VMRecord{}, err
	}
	for _, record := range records {
		if row := vmRecord(record); row.ID == id {
			return row, nil
		}
	}
	return VMRecord{}, &LookupError{Kind: "VM", Name: id, In: "organization " + i.client.Org, Err: ErrNotFound}
}

// AtAddress finds the visible VMs with a primary address.
func (i *Inventory) AtAddress(ctx context.Context, address netip.Addr) ([]VMRecord, error) {
	records, err := i.queryVMs(ctx, fiql.AllOf(fiql.Is("ipAddress", address.String()), fiql.Is("isVAppTemplate", "false")))
	var found []VMRecord
	for _, record := range records {
		found = append(found, vmRecord(record))
	}
	return found, err
}

// queryVMs returns all VM records that match a filter.
func (i *Inventory) queryVMs(ctx context.Context, filter string) ([]*types.QueryResultVMRecordType, error) {
	return api.QueryAll(ctx, i.client, "vm", "VMs", filter, "name",
		func(r *types.QueryResultVMRecordType) string { return r.HREF },
		func(found *types.QueryResultRecordsType) (tenant, provider []*types.QueryResultVMRecordType) {
			return found.VMRecord, found.AdminVMRecord
		})
}

func vmRecord(r *types.QueryResultVMRecordType) VMRecord {
	return VMRecord{
		Ref:            Ref{ID: urn.Of(urn.VM, r.HREF), Name: r.Name},
		VApp:           Ref{ID: urn.Of(urn.VApp, r.ContainerID), Name: r.ContainerName},
		VDC:            Ref{ID: urn.Of(urn.VDC, r.VdcHREF), Name: r.VdcName},
		Status:         parseStatus(r.Status),
		Busy:           r.Busy,
		PrimaryAddress: r.IpAddress,
		LeaseEnd:       wire.Time(r.AutoUndeployDate),
		StorageEnd:     wire.Time(r.AutoDeleteDate),

		CPUs:              int64(r.Cpus),
		MemoryMiB:         int64(r.MemoryMB),
		StorageMiB:        r.TotalStorageAllocatedMb,
		StorageProfile:    r.StorageProfileName,
		SizingPolicyID:    urn.Of(urn.ComputePolicy, r.VmSizingPolicyId),
		PlacementPolicyID: urn.Of(urn.ComputePolicy, r.VmPlacementPolicyId),
		PrimaryNetwork:    r.NetworkName,
	}
}
