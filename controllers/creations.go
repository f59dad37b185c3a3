package controllers

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A creation is a VM that waits for its turn in a vApp.
type creation struct {
	key     string               // of the machine: its UID
	machine types.NamespacedName // the VCDMachine
	spec    vcd.VMSpec
	alone   bool // failed in company: others must not suffer from it
	first   bool // VCD was never asked for it before; set by company

	follow func(step string, t vcd.Task) // called when the request that creates the VM was accepted
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
	running  func() bool     // whether the task of the last request still holds the vApp; nil: there is none
}

// A turn is the right to create VMs in a vApp.
type turn struct {
	vms []creation // sorted by name
	end func()
}

// join puts c in line for a vApp. Whoever has the turn next creates it.
func (q *creations) join(vApp string, c creation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lineOf(vApp).waiting[c.key] = c
}

func (q *creations) lineOf(vApp string) *line {
	if q.byVApp == nil {
		q.byVApp = map[string]*line{}
	}
	if q.byVApp[vApp] == nil {
		q.byVApp[vApp] = &line{waiting: map[string]creation{}}
	}
	return q.byVApp[vApp]
}

// take puts c in line for a vApp. It returns the turn unless somebody has it; then c is created by them or is
// woken when they are ready.
func (q *creations) take(vApp string, c creation) (turn, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lineOf(vApp)
	l.waiting[c.key] = c
	if l.underWay != nil || l.running != nil && l.running() {
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

// started keeps everybody from the vApp while the task of the request runs. Whoever has the turn calls it.
func (q *creations) started(vApp string, running func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byVApp[vApp].running = running
}

// ended lets the next have the vApp.
func (q *creations) ended(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byVApp[vApp]; l != nil {
		l.running = nil
		q.next(vApp, l)
	}
}

// end gives the turn back.
func (q *creations) end(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	l.underWay = nil
	q.next(vApp, l)
}

// next wakes who waits for a free vApp, and forgets the line when nobody does.
func (q *creations) next(vApp string, l *line) {
	if l.underWay != nil || l.running != nil {
		return
	}
	if len(l.waiting) == 0 {
		delete(q.byVApp, vApp)
	}
	for _, c := range l.waiting {
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

// creating says whether a request that may create a machine's VM in a vApp is under way.
func (q *creations) creating(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	return l != nil && l.underWay[key]
}
