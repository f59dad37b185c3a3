// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
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

const (
	// forgetVApp is how long a vApp stays in the inventory after it was last requested.
	forgetVApp = 30 * time.Minute
	// usedFor is how long a vApp counts as in use after a request. A query also lists the vApps in use whose lists are
	// not younger than young, because their next requests may need newer ones.
	usedFor = time.Minute
	young   = 20 * time.Second
	// fewVMs is the size of an inventory that is always queried as a whole, so that callers share as many queries as
	// possible: four pages.
	fewVMs = 4 * api.PageSize
)

// Inventory lists VMs with queries that all callers share.
type Inventory struct {
	client *api.Client
	site   *transport.Site

	mu   sync.Mutex
	vdcs map[string]*inventory // by URN of the VDC
}

func newInventory(c *api.Client, site *transport.Site) *Inventory {
	return &Inventory{
		client: c,
		site:   site,
		vdcs:   map[string]*inventory{},
	}
}

// An inventory caches the VMs of one VDC in all vApps that were requested.
type inventory struct {
	querying chan struct{} // held during a query

	mu      sync.Mutex
	vApps   map[string]*vAppList // by name
	queried time.Time            // start of the last successful query; zero: never
}

// A vAppList is the list of the VMs of one vApp, from the last query that included it.
type vAppList struct {
	requested  time.Time // time of the last request
	generation int       // number of invalidations
	outdates   time.Time // lists of queries that started earlier are outdated

	queried time.Time // time before the query; zero: never
	of      int       // generation at that time
	rows    []VMRecord
	err     error
}

// A request asks for the list of a vApp.
type request struct {
	vApp   string
	since  time.Time // start of the request
	oldest time.Time // start of the oldest query that satisfies the request
	due    bool      // the lists of all vApps are due for a query when theirs started earlier than that
}

// VMs returns the VMs of a vApp, sorted by name. If the list is older than maxAge or has been invalidated, VMs queries
// it again. One query lists the vApps of the VDC that other callers need, too: see [inventory.cover].
func (i *Inventory) VMs(ctx context.Context, vdc VDC, vApp string, maxAge time.Duration) ([]VMRecord, error) {
	now := i.site.Clock.Now()
	return i.list(ctx, vdc, request{vApp: vApp, since: now, oldest: now.Add(-maxAge)})
}

// DueVMs is like [Inventory.VMs] for a request that all vApps of the VDC send at the same time. lastDue returns when they
// were last due. The first request queries all lists that were last queried before that. A maximum age instead would be
// relative to the time of each request, and a request that was delayed a little would query all lists again.
func (i *Inventory) DueVMs(ctx context.Context, vdc VDC, vApp string, lastDue func(now time.Time) time.Time) ([]VMRecord, error) {
	now := i.site.Clock.Now()
	return i.list(ctx, vdc, request{vApp: vApp, since: now, oldest: lastDue(now), due: true})
}

func (i *Inventory) list(ctx context.Context, vdc VDC, r request) ([]VMRecord, error) {
	if err := fiql.CheckName("vApp", r.vApp, "VDC "+vdc.Name); err != nil {
		return nil, err
	}
	inv := i.of(vdc)
	inv.note(r)
	if rows, ok, err := inv.usable(r); ok {
		return rows, err
	}
	select {
	case inv.querying <- struct{}{}:
		defer func() { <-inv.querying }()
	case <-i.site.Clock.After(transport.MaxWait):
		return nil, i.site.WaitedTooLong(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if rows, ok, err := inv.usable(r); ok {
		return rows, err
	}
	return i.query(ctx, vdc, inv, r)
}

// InvalidateBefore makes the next [Inventory.VMs] of the vApp query VCD, unless its list was queried at or after a
// time. Call it after a task has finished, with the time when that was noticed: all followers of the task share a query.
func (i *Inventory) InvalidateBefore(vdc VDC, vApp string, at time.Time) {
	i.of(vdc).invalidate(vApp, func(list *vAppList) {
		if at.After(list.outdates) {
			list.outdates = at
		}
	})
}

// Invalidate makes the next [Inventory.VMs] of the vApp query VCD. Call it after a write.
func (i *Inventory) Invalidate(vdc VDC, vApp string) {
	i.of(vdc).invalidate(vApp, func(list *vAppList) { list.generation++ })
}

func (i *Inventory) of(vdc VDC) *inventory {
	i.mu.Lock()
	defer i.mu.Unlock()
	inv, ok := i.vdcs[vdc.ID]
	if !ok {
		inv = &inventory{querying: make(chan struct{}, 1), vApps: map[string]*vAppList{}}
		i.vdcs[vdc.ID] = inv
	}
	return inv
}

func (inv *inventory) note(r request) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	list, ok := inv.vApps[r.vApp]
	if !ok {
		list = &vAppList{}
		inv.vApps[r.vApp] = list
	}
	list.requested = r.since
}

// invalidate changes the list of a vApp. A vApp that nobody requested has no list that could be outdated.
func (inv *inventory) invalidate(vApp string, change func(*vAppList)) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if list, ok := inv.vApps[vApp]; ok {
		change(list)
	}
}

// usable returns the list of a vApp, or the error of its query, if it is new enough for a request. An error is only shared
// by callers that waited for it.
func (inv *inventory) usable(r request) (rows []VMRecord, ok bool, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	list := inv.vApps[r.vApp]
	if list == nil || list.outdated() {
		return nil, false, nil
	}
	if list.err != nil {
		return nil, !list.queried.Before(r.since), list.err
	}
	return slices.Clone(list.rows), !list.queried.Before(r.oldest), nil
}

// outdated reports whether the vApp was never listed, or has changed since.
func (l *vAppList) outdated() bool {
	return l.queried.IsZero() || l.of != l.generation || l.queried.Before(l.outdates)
}

// isInUse reports whether a caller will probably need a newer list soon.
func (l *vAppList) isInUse(now time.Time) bool {
	return now.Sub(l.requested) < usedFor && now.Sub(l.queried) >= young
}

// age returns the age of the last successful query, if any of its vApps was requested recently.
func (inv *inventory) age(now time.Time) (time.Duration, bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, list := range inv.vApps {
		if now.Sub(list.requested) <= forgetVApp {
			return now.Sub(inv.queried), !inv.queried.IsZero()
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

// An inventoryQuery lists the VMs of several vApps.
type inventoryQuery struct {
	started     time.Time
	names       []string       // of the vApps
	generations map[string]int // of their lists at the start
}

// begin returns the query for a request, and removes the lists of vApps that were not requested for a long time.
func (inv *inventory) begin(r request, now time.Time) inventoryQuery {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	maps.DeleteFunc(inv.vApps, func(_ string, list *vAppList) bool { return now.Sub(list.requested) > forgetVApp })
	q := inventoryQuery{started: now, names: inv.cover(r, now), generations: map[string]int{}}
	for _, name := range q.names {
		q.generations[name] = inv.vApps[name].generation
	}
	return q
}

// cover returns the vApps that the query for a request lists, sorted by name. A small inventory is listed as a whole.
// In a large one, the query lists only the vApps whose lists are outdated, in use or due, so that its cost does not
// depend on the others.
func (inv *inventory) cover(r request, now time.Time) []string {
	vms := 0
	for _, list := range inv.vApps {
		vms += len(list.rows)
	}
	names := []string{}
	for name, list := range inv.vApps {
		isDue := r.due && list.queried.Before(r.oldest)
		if vms <= fewVMs || name == r.vApp || list.outdated() || list.isInUse(now) || isDue {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// query lists the vApp of a request, and those that its query covers.
func (i *Inventory) query(ctx context.Context, vdc VDC, inv *inventory, r request) ([]VMRecord, error) {
	q := inv.begin(r, i.site.Clock.Now())
	rows, err := i.queryVApps(transport.Shared(ctx), vdc, q.names)
	if ctx.Err() == nil { // Otherwise the caller gave up, and others query again.
		i.site.Metrics.InventoryQueried(err)
		inv.store(q, rows, err)
	}
	return slices.Clone(rows[r.vApp]), err
}

// store records the result of a query.
func (inv *inventory) store(q inventoryQuery, rows map[string][]VMRecord, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, name := range q.names {
		list := inv.vApps[name]
		list.queried = q.started
		list.of = q.generations[name]
		list.rows = rows[name]
		list.err = err
	}
	if err == nil {
		inv.queried = q.started
	}
}

// queryVApps returns the VMs of vApps, by the names of the vApps.
func (i *Inventory) queryVApps(ctx context.Context, vdc VDC, names []string) (map[string][]VMRecord, error) {
	in := fiql.AllOf(fiql.Is("vdc", vdc.ID), fiql.Is("isVAppTemplate", "false"))
	rows := map[string][]VMRecord{}
	for _, chunk := range fiql.AnyOfChunks("containerName", names, api.MaxFilter) {
		records, err := i.queryVMs(ctx, in+";"+fiql.AnyOf(chunk...))
		if err != nil {
			return nil, err
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
	return rows, nil
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
