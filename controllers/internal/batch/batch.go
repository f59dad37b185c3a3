// Package batch lets machines that need VMs in the same vApp share one request.
package batch

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Member is a VM that waits for its turn in a vApp.
type Member struct {
	Key     string               // of the machine: its UID
	Machine types.NamespacedName // the VCDMachine
	Spec    vcd.VMSpec
	Alone   bool // failed in company: others must not suffer from it
	First   bool // VCD was never asked for it before; set by company

	Follow func(step string, t vcd.Task) // called when the request that creates the VM was accepted
	Wake   func()
}

// Queue lets one machine at a time ask VCD to create VMs in a vApp, for all that wait for it: VCD does one thing
// after the other in a vApp, and several VMs in one request take little longer than one. The zero value is usable.
type Queue struct {
	mu     sync.Mutex
	byVApp map[string]*line
}

// A line is who waits for a vApp.
type line struct {
	waiting  map[string]Member
	underWay map[string]bool // nil: nobody has the turn
	running  func() bool     // whether the task of the last request still holds the vApp; nil: there is none
}

// A Turn is the right to create VMs in a vApp.
type Turn struct {
	VMs []Member // sorted by name
	End func()
}

// Join puts c in line for a vApp. Whoever has the turn next creates it.
func (q *Queue) Join(vApp string, c Member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lineOf(vApp).waiting[c.Key] = c
}

func (q *Queue) lineOf(vApp string) *line {
	if q.byVApp == nil {
		q.byVApp = map[string]*line{}
	}
	if q.byVApp[vApp] == nil {
		q.byVApp[vApp] = &line{waiting: map[string]Member{}}
	}
	return q.byVApp[vApp]
}

// Take puts c in line for a vApp. It returns the turn unless somebody has it; then c is created by them or is
// woken when they are ready.
func (q *Queue) Take(vApp string, c Member) (Turn, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lineOf(vApp)
	l.waiting[c.Key] = c
	if l.underWay != nil || l.running != nil && l.running() {
		return Turn{}, false
	}
	l.underWay = map[string]bool{}
	t := Turn{End: func() { q.end(vApp) }}
	for key, other := range l.waiting {
		if key == c.Key || !c.Alone && !other.Alone {
			t.VMs = append(t.VMs, other)
			l.underWay[key] = true
			delete(l.waiting, key)
		}
	}
	slices.SortFunc(t.VMs, func(a, b Member) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return t, true
}

// Started keeps everybody from the vApp while the task of the request runs. Whoever has the turn calls it.
func (q *Queue) Started(vApp string, running func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byVApp[vApp].running = running
}

// Ended lets the next have the vApp.
func (q *Queue) Ended(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byVApp[vApp]; l != nil {
		l.running = nil
		q.next(vApp, l)
	}
}

// end gives the turn back.
func (q *Queue) end(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	l.underWay = nil
	q.next(vApp, l)
}

// next wakes who waits for a free vApp, and forgets the line when nobody does.
func (q *Queue) next(vApp string, l *line) {
	if l.underWay != nil || l.running != nil {
		return
	}
	if len(l.waiting) == 0 {
		delete(q.byVApp, vApp)
	}
	for _, c := range l.waiting {
		c.Wake()
	}
}

// Leave takes a machine out of the line for a vApp. It reports false while a request that may create its VM is under
// way.
func (q *Queue) Leave(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	if l == nil {
		return true
	}
	delete(l.waiting, key)
	return !l.underWay[key]
}

// Creating says whether a request that may create a machine's VM in a vApp is under way.
func (q *Queue) Creating(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	return l != nil && l.underWay[key]
}
