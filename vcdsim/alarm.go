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

// bells are what alarms run, by name.
func bells() map[string]func(*Simulator, store.Alarm) {
	return map[string]func(*Simulator, store.Alarm){
		bellTask:  func(s *Simulator, a store.Alarm) { s.tasks.finish(a.ID) },
		bellBoot:  func(s *Simulator, a store.Alarm) { s.guests.bootNow(a.ID, a.Generation) },
		bellLease: func(s *Simulator, a store.Alarm) { s.leases.end(a.ID, a.End) },
	}
}

// alarms runs timers on the simulator's clock.
type alarms struct {
	sim   *Simulator
	bells map[string]func(*Simulator, store.Alarm)
}

// after runs an alarm under the lock when d has passed on the simulator's clock.
func (al *alarms) after(d time.Duration, a store.Alarm) {
	a.At = al.sim.clock.Now().Add(d)
	al.sim.store.AlarmCount++
	al.sim.store.Alarms[al.sim.store.AlarmCount] = a
	al.arm(al.sim.store.AlarmCount, d)
}

func (al *alarms) arm(number int, d time.Duration) {
	set := al.sim.store
	al.sim.clock.AfterFunc(d, func() {
		al.sim.mu.Lock()
		defer al.sim.mu.Unlock()
		if al.sim.ctx.Err() != nil || al.sim.store != set { // restored meanwhile
			return
		}
		al.ring(number)
		al.sim.settle()
	})
}

func (al *alarms) ring(number int) {
	a, ok := al.sim.store.Alarms[number]
	if !ok {
		return
	}
	delete(al.sim.store.Alarms, number)
	al.bells[a.Bell](al.sim, a)
}

// rearm starts the alarms of a restored store; overdue ones run at once, in order.
func (al *alarms) rearm() {
	now := al.sim.clock.Now()
	numbers := slices.SortedFunc(maps.Keys(al.sim.store.Alarms), func(a, b int) int {
		return cmp.Or(al.sim.store.Alarms[a].At.Compare(al.sim.store.Alarms[b].At), cmp.Compare(a, b))
	})
	for _, n := range numbers {
		if d := al.sim.store.Alarms[n].At.Sub(now); d > 0 {
			al.arm(n, d)
			continue
		}
		al.ring(n)
		al.sim.settle()
	}
}
