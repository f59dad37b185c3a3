// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Names of bells.
const (
	BellTask  = "task"
	BellBoot  = "boot"
	BellLease = "lease"
)

// Alarms runs timers on the simulator's clock.
type Alarms struct {
	Cloud *Cloud
	Bells map[string]func(store.Alarm)
}

// After rings a bell under the lock when d has passed on the simulator's clock.
func (al *Alarms) After(d time.Duration, a store.Alarm) {
	a.At = al.Cloud.Clock.Now().Add(d)
	al.Cloud.Store.AlarmCount++
	al.Cloud.Store.Alarms[al.Cloud.Store.AlarmCount] = a
	al.arm(al.Cloud.Store.AlarmCount, d)
}

func (al *Alarms) arm(number int, d time.Duration) {
	set := al.Cloud.Store
	al.Cloud.Clock.AfterFunc(d, func() {
		al.Cloud.Mu.Lock()
		defer al.Cloud.Mu.Unlock()
		if al.Cloud.Ctx.Err() != nil || al.Cloud.Store != set { // a dump was restored in the meantime
			return
		}
		al.ring(number)
		al.Cloud.Settle()
	})
}

func (al *Alarms) ring(number int) {
	a, ok := al.Cloud.Store.Alarms[number]
	if !ok {
		return
	}
	delete(al.Cloud.Store.Alarms, number)
	al.Bells[a.Bell](a)
}

// Rearm starts the alarms of a restored store. Overdue alarms ring at once, in order.
func (al *Alarms) Rearm() {
	now := al.Cloud.Clock.Now()
	numbers := slices.SortedFunc(maps.Keys(al.Cloud.Store.Alarms), func(a, b int) int {
		return cmp.Or(al.Cloud.Store.Alarms[a].At.Compare(al.Cloud.Store.Alarms[b].At), cmp.Compare(a, b))
	})
	for _, n := range numbers {
		if d := al.Cloud.Store.Alarms[n].At.Sub(now); d > 0 {
			al.arm(n, d)
			continue
		}
		al.ring(n)
		al.Cloud.Settle()
	}
}
