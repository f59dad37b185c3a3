// SPDX-License-Identifier: Apache-2.0

// Package batch lets machines that need VMs in the same vApp share one request. VCD runs one task at a time in a vApp,
// and creating several VMs in one request takes little longer than creating one.
package batch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A Member is a VM to create in a vApp.
type Member struct {
	Key     string               // UID of the machine
	Machine types.NamespacedName // the VCDMachine
	Spec    vcd.VMSpec
	Alone   bool // its last creation failed: it shares no request
	First   bool // its creation was never requested before; set by the machine that sends the request

	Selected *infrav1.RecordedTemplate // vApp template that a selector selected; nil: the VCDMachine names the template

	Follow func(step string, t vcd.Task) // called when VCD has accepted the request that creates the VM
	Wake   func()
}

// Queues holds the members that wait for each vApp. A vApp has one batch in flight at a time. The zero value is ready
// to use.
type Queues struct {
	mu     sync.Mutex
	byVApp map[string]*queue
}

type queue struct {
	waiting  map[string]Member
	inFlight map[string]bool // keys of the batch; nil: no batch is in flight
	running  func() bool     // reports whether the task of the last request still locks the vApp; nil: no task

	postponed postponement

	writing int               // number of requests in flight about single VMs of the vApp
	held    map[string]func() // wake functions of machines whose requests were held back, by key
}

// A postponement is the wait of a machine whose batch found the vApp locked by a task that no request of ours started.
// No other machine tries before its end.
type postponement struct {
	by    string // key of the machine
	until time.Time
}

// busy reports whether a request or task locks the vApp. VCD then refuses all other writes to it and its VMs.
func (l *queue) busy() bool { return l.inFlight != nil || l.running != nil && l.running() }

// empty reports whether no machine uses or waits for the vApp.
func (l *queue) empty() bool {
	return len(l.waiting) == 0 && len(l.held) == 0 && l.writing == 0 && l.postponed == postponement{} && !l.busy()
}

// A Batch holds the members that one machine creates for all. No other batch of the vApp begins before End or Postpone
// is called.
type Batch struct {
	Members []Member // sorted by name
	End     func()
	// Postpone ends the batch, whose members wait again. Until the given time, no other machine begins a batch.
	Postpone func(until time.Time)
}

// Join adds m to the members that wait for a vApp. The next batch contains it.
func (q *Queues) Join(vApp string, m Member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of(vApp).waiting[m.Key] = m
}

func (q *Queues) of(vApp string) *queue {
	if q.byVApp == nil {
		q.byVApp = map[string]*queue{}
	}
	if q.byVApp[vApp] == nil {
		q.byVApp[vApp] = &queue{waiting: map[string]Member{}, held: map[string]func(){}}
	}
	return q.byVApp[vApp]
}

// Begin joins m, and begins a batch. It returns false while another batch is in flight or postponed, which creates m, or
// wakes it at its end.
func (q *Queues) Begin(vApp string, m Member, now time.Time) (Batch, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of(vApp)
	l.waiting[m.Key] = m
	if l.busy() || l.writing > 0 || now.Before(l.postponed.until) {
		return Batch{}, false
	}
	l.inFlight = map[string]bool{}
	l.postponed = postponement{}
	b := Batch{End: func() { q.end(vApp) }}
	b.Postpone = func(until time.Time) { q.postpone(vApp, postponement{by: m.Key, until: until}, b.Members) }
	for key, other := range l.waiting {
		if key == m.Key || !m.Alone && !other.Alone {
			b.Members = append(b.Members, other)
			l.inFlight[key] = true
			delete(l.waiting, key)
		}
	}
	slices.SortFunc(b.Members, func(a, b Member) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return b, true
}

// Postponed returns how much longer the batch that a machine postponed has to wait; zero or less if it does not wait.
func (q *Queues) Postponed(vApp, key string, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	if l == nil || l.postponed.by != key {
		return 0
	}
	return l.postponed.until.Sub(now)
}

// Started locks the vApp until the task of the batch's request has ended.
func (q *Queues) Started(vApp string, running func() bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byVApp[vApp].running = running
}

// Ended unlocks the vApp after the task of a request.
func (q *Queues) Ended(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if l := q.byVApp[vApp]; l != nil {
		l.running = nil
		q.wake(vApp, l)
	}
}

func (q *Queues) end(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	l.inFlight = nil
	q.wake(vApp, l)
}

// postpone ends a batch without waking its members, which would only find the same lock.
func (q *Queues) postpone(vApp string, p postponement, members []Member) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	l.inFlight = nil
	l.postponed = p
	for _, m := range members {
		l.waiting[m.Key] = m
	}
	q.wakeHeld(l)
}

// Write begins a request about one VM of a vApp. It returns false while a batch or its task locks the vApp, because VCD
// would refuse the request, and calls wake at the end. Call done when VCD has responded to the request.
func (q *Queues) Write(vApp, key string, wake func()) (done func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.of(vApp)
	if l.busy() {
		l.held[key] = wake
		return nil, false
	}
	l.writing++
	return func() { q.written(vApp) }, true
}

func (q *Queues) written(vApp string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	l.writing--
	q.wake(vApp, l)
}

// wake wakes all machines that wait for a vApp if it is free, and drops an empty queue.
func (q *Queues) wake(vApp string, l *queue) {
	if l.busy() || l.writing > 0 {
		return
	}
	if len(l.waiting) == 0 {
		delete(q.byVApp, vApp)
	}
	q.wakeHeld(l)
	for _, m := range l.waiting {
		m.Wake()
	}
}

// wakeHeld wakes the machines whose requests were held back.
func (q *Queues) wakeHeld(l *queue) {
	for key, wake := range l.held {
		delete(l.held, key)
		wake()
	}
}

// Leave removes a machine from the queue of a vApp. It returns false while a request that may create its VM is in
// flight.
func (q *Queues) Leave(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	if l == nil {
		return true
	}
	delete(l.waiting, key)
	if l.postponed.by == key {
		l.postponed = postponement{}
	}
	inFlight := l.inFlight[key]
	if l.empty() {
		delete(q.byVApp, vApp)
	}
	return !inFlight
}

// InFlight reports whether a request that may create a machine's VM in a vApp is in flight.
func (q *Queues) InFlight(vApp, key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.byVApp[vApp]
	return l != nil && l.inFlight[key]
}
