// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// Bells by name.
const (
	bellTask  = "task"
	bellBoot  = "boot"
	bellLease = "lease"
)

// alarms runs timers on the simulator's clock.
type alarms struct {
	cloud *cloud
	bells map[string]func(store.Alarm)
}

// after runs an alarm under the lock when d has passed on the simulator's clock.
func (al *alarms) after(d time.Duration, a store.Alarm) {
	a.At = al.cloud.clock.Now().Add(d)
	al.cloud.store.AlarmCount++
	al.cloud.store.Alarms[al.cloud.store.AlarmCount] = a
	al.arm(al.cloud.store.AlarmCount, d)
}

func (al *alarms) arm(number int, d time.Duration) {
	set := al.cloud.store
	al.cloud.clock.AfterFunc(d, func() {
		al.cloud.mu.Lock()
		defer al.cloud.mu.Unlock()
		if al.cloud.ctx.Err() != nil || al.cloud.store != set { // restored meanwhile
			return
		}
		al.ring(number)
		al.cloud.settle()
	})
}

func (al *alarms) ring(number int) {
	a, ok := al.cloud.store.Alarms[number]
	if !ok {
		return
	}
	delete(al.cloud.store.Alarms, number)
	al.bells[a.Bell](a)
}

// rearm starts the alarms of a restored store; overdue ones run at once, in order.
func (al *alarms) rearm() {
	now := al.cloud.clock.Now()
	numbers := slices.SortedFunc(maps.Keys(al.cloud.store.Alarms), func(a, b int) int {
		return cmp.Or(al.cloud.store.Alarms[a].At.Compare(al.cloud.store.Alarms[b].At), cmp.Compare(a, b))
	})
	for _, n := range numbers {
		if d := al.cloud.store.Alarms[n].At.Sub(now); d > 0 {
			al.arm(n, d)
			continue
		}
		al.ring(n)
		al.cloud.settle()
	}
}
