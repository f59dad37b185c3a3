// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sizes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// Freshness is how old an inventory a machine accepts.
type freshness struct {
	settled bool        // the last pass was complete
	stale   atomic.Bool // another machine's pass requires a new query
}

// readDue reports whether to read the VM: its row in the inventory changed, only the VM shows what is needed, or it is
// time.
func (o observer) readDue() bool {
	v := o.vm
	if v.row.Busy {
		return false // It is read when the task ends.
	}
	made, ok := o.inputs.made()
	row := unchanging(*v.row)
	first := v.readRow == (vcd.VMRecord{})
	if first {
		v.readRow = row
	}
	switch {
	case !ok, row != v.readRow, first && made.Suspicious(row):
		return true
	case v.known() == nil && (sizes.Disk(&o.inputs.vcdMachine.Spec) > made.DiskMiB || made.Differs()):
		return true // A known difference is confirmed at once after a restart, lest the condition flaps.
	case v.readNext.IsZero(): // After a restart, machines are read apart.
		v.readNext = o.now().Add(spread(o.inputs.key(), readEvery))
	}
	return !o.now().Before(v.readNext)
}

// unchanging returns what stays the same in the row of a VM that is not changed.
func unchanging(row vcd.VMRecord) vcd.VMRecord {
	row.Busy = false
	row.LeaseEnd = time.Time{}
	row.StorageEnd = time.Time{}
	row.Status = 0
	return row
}

// inventoryAge is how old the inventory may be. A machine without problems accepts the last scheduled one, whatever
// caused the pass; what our own tasks changed is queried again anyway.
func (o observer) inventoryAge() time.Duration {
	if f := o.freshness; f.settled && !f.stale.Swap(false) {
		return o.now().Sub(lastInventory(o.now(), o.vdc.ID))
	}
	return inventoryAge
}

// lastInventory is when the inventory was last due for machines of a VDC.
func lastInventory(now time.Time, vdc string) time.Time {
	offset := spread(vdc, inventoryEvery)
	return now.Add(-offset).Truncate(inventoryEvery).Add(offset)
}

// untilNextInventory is when the inventory is due for a machine again.
func untilNextInventory(now time.Time, vdc, uid string) time.Duration {
	return lastInventory(now, vdc).Add(inventoryEvery).Sub(now) + spread(uid, 5*time.Second)
}

// spread returns a time below d that is always the same for a seed.
func spread(seed string, d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed))                // a hash takes everything
	return time.Duration(h.Sum64() % uint64(d)) //nolint:gosec // below d
}
