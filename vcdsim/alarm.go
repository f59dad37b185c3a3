package vcdsim

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// An alarm is what will happen at a time. It is data, so that it is in a dump; what it does is in bells. Nothing else
// may wait for the clock.
type alarm struct {
	Bell       string
	ID         string // of what it is about
	Generation int    // of a boot
	End        time.Time
	At         time.Time
}

// Bells by name.
const (
	bellTask  = "task"
	bellBoot  = "boot"
	bellLease = "lease"
)

// bells are what alarms do.
func bells() map[string]func(*Simulator, alarm) {
	return map[string]func(*Simulator, alarm){
		bellTask:  func(s *Simulator, a alarm) { s.finish(a.ID) },
		bellBoot:  func(s *Simulator, a alarm) { s.bootNow(a.ID, a.Generation) },
		bellLease: func(s *Simulator, a alarm) { s.endLease(a.ID, a.End) },
	}
}

// after rings an alarm under the lock when d has passed on the simulator's clock.
func (s *Simulator) after(d time.Duration, a alarm) {
	a.At = s.clock.Now().Add(d)
	s.store.alarmCount++
	s.store.alarms[s.store.alarmCount] = a
	s.arm(s.store.alarmCount, d)
}

func (s *Simulator) arm(number int, d time.Duration) {
	set := s.store
	s.clock.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ctx.Err() != nil || s.store != set { // restored meanwhile
			return
		}
		s.ring(number)
		s.settle()
	})
}

func (s *Simulator) ring(number int) {
	a, ok := s.store.alarms[number]
	if !ok {
		return
	}
	delete(s.store.alarms, number)
	s.bells[a.Bell](s, a)
}

// rearm sets the alarms of a restored store; those that are overdue ring at once, in order.
func (s *Simulator) rearm() {
	now := s.clock.Now()
	numbers := slices.SortedFunc(maps.Keys(s.store.alarms), func(a, b int) int {
		return cmp.Or(s.store.alarms[a].At.Compare(s.store.alarms[b].At), cmp.Compare(a, b))
	})
	for _, n := range numbers {
		if d := s.store.alarms[n].At.Sub(now); d > 0 {
			s.arm(n, d)
			continue
		}
		s.ring(n)
		s.settle()
	}
}
