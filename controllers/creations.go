package controllers

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A creation is a VM that waits for its turn in a vApp.
type creation struct {
	key   string // of the machine
	spec  vcd.VMSpec
	alone bool // failed in company: others must not suffer from it

	follow func(step, vcd.Task) // called when the request that creates the VM was accepted
	wake   func()
}

// creations lets one machine at a time ask VCD to create VMs in a vApp, for all that wait for it: VCD does one thing
// after the other in a vApp, and several VMs in one request take little longer than one. The zero value is usable.
type creations struct {
	mu     sync.Mutex
	byVApp map[string]*line
}

// A line is who waits for a vApp.
type line struct {
	waiting  map[string]creation
	underWay map[string]bool // nil: nobody has the turn
}

// A turn is the right to create VMs in a vApp.
type turn struct {
	vms []creation // sorted by name
	end func()
}

// take puts c in line for a vApp. It returns the turn unless somebody has it; then c is created by them or is
// woken when they are ready.
func (q *creations) take(vApp string, c creation) (turn, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byVApp == nil {
		q.byVApp = map[string]*line{}
	}
	l := q.byVApp[vApp]
	if l == nil {
		l = &line{waiting: map[string]creation{}}
		q.byVApp[vApp] = l
	}
	l.waiting[c.key] = c
	if l.underWay != nil {
		return turn{}, false
	}
	l.underWay = map[string]bool{}
	t := turn{end: func() { q.end(vApp) }}
	for key, other := range l.waiting {
		if key == c.key || !c.alone && !other.alone {
			t.vms = append(t.vms, other)
			l.underWay[key] = true
			delete(l.waiting, key)
		}
	}
	slices.SortFunc(t.vms, func(a, b creation) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return t, true
}

// end gives the turn back and wakes who came in the meantime.
func (q *creations) end(vApp string) {
	q.mu.Lock()
	l := q.byVApp[vApp]
	l.underWay = nil
	waiting := slices.Collect(maps.Values(l.waiting))
	if len(waiting) == 0 {
		delete(q.byVApp, vApp)
	}
	q.mu.Unlock()
	for _, c := range waiting {
		c.wake()
	}
}

// leave takes a machine out of the line for a vApp. It reports false while a request that may create its VM is under
// way.
func (q *creations) leave(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	if l == nil {
		return true
	}
	delete(l.waiting, key)
	return !l.underWay[key]
}
