// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// freshness determines how old an inventory the machine accepts.
type freshness struct {
	settled bool        // the last pass was complete
	stale   atomic.Bool // the pass of another machine requires a new query
}

// readDue reports whether to read the VM: its inventory row changed, the row does not show the required data, or the
// next read is due.
func (o observer) readDue() bool {
	v := o.vm
	if v.listed.Busy {
		return false // The VM is read when the task ends.
	}
	baseline, ok := o.inputs.baseline()
	row := unchanging(*v.listed)
	first := v.listedAtRead == (vcd.VMRecord{})
	if first {
		v.listedAtRead = row
	}
	switch {
	case !ok, row != v.listedAtRead, first && baseline.MayDiffer(row):
		return true
	case v.lastRead() == nil && (sizes.Disk(&o.inputs.vcdMachine.Spec) > baseline.DiskMiB || baseline.Differs()):
		return true // Confirm known drift at once after a restart, so that the condition does not flap.
	case v.nextRead.IsZero(): // After a restart, spread the reads of all machines.
		v.nextRead = o.now().Add(spread(o.inputs.key(), readEvery))
	}
	return !o.now().Before(v.nextRead)
}

// unchanging returns the row without the fields that change although the VM is not modified.
func unchanging(row vcd.VMRecord) vcd.VMRecord {
	row.Busy = false
	row.LeaseEnd = time.Time{}
	row.StorageEnd = time.Time{}
	row.Status = 0
	return row
}

// listVMs returns the VMs of the machine's vApp. A machine without problems accepts the last scheduled inventory,
// regardless of the cause of the pass. The end of one of the manager's tasks always causes a new query.
func (o observer) listVMs(ctx context.Context) ([]vcd.VMRecord, error) {
	if f := o.freshness; f.settled && !f.stale.Swap(false) {
		lastDue := func(now time.Time) time.Time { return lastInventory(now, o.vdc.ID) }
		return o.session.DueVMs(ctx, o.vdc, o.inputs.vAppName(), lastDue)
	}
	return o.session.VMs(ctx, o.vdc, o.inputs.vAppName(), inventoryAge)
}

// lastInventory returns when the inventory was last due for the machines of a VDC.
func lastInventory(now time.Time, vdc string) time.Time {
	offset := spread(vdc, inventoryEvery)
	return now.Add(-offset).Truncate(inventoryEvery).Add(offset)
}

// untilNextInventory returns the time until the inventory is next due for a machine.
func untilNextInventory(now time.Time, vdc, uid string) time.Duration {
	return lastInventory(now, vdc).Add(inventoryEvery).Sub(now) + spread(uid, 5*time.Second)
}

// spread returns a duration from 0 up to, but not including, d. It is always the same for a seed.
func spread(seed string, d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))                // a hash never returns an error
	return time.Duration(h.Sum64() % uint64(d)) //nolint:gosec // below d
}
