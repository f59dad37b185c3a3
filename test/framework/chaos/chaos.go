// SPDX-License-Identifier: Apache-2.0

// Package chaos kills a program before and after each of its writes to a simulated VMware Cloud Director, and restarts
// it. Tests use it to check that the program continues from any intermediate state.
package chaos

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A Victim is a program that can be killed and restarted.
type Victim interface {
	Kill() error
	Start(ctx context.Context) error
}

// A Write is a request that changes something in VCD. Requests with the same operation and path are the same write.
type Write struct {
	Operation, Path string
	// Number is the number of earlier writes in the flow. It is zero without Options.Numbered.
	Number int
}

// Options are the options of a Killer.
type Options struct {
	Victim Victim
	// Flow is the flow in which the victim is killed. If it is empty, the victim is never killed and its writes are
	// only recorded.
	Flow string
	// Numbered distinguishes equal requests by the number of earlier writes, so that each of them is a kill point. It
	// requires a program that sends one write at a time.
	Numbered bool
	// Observe, if set, is called before and after every request.
	Observe func()
}

// A Killer kills a program twice at each write of one flow: when the write first arrives, so that VCD does not execute
// it, and after VCD first executed it, so that the program does not receive the response.
type Killer struct {
	tb    testing.TB
	o     Options
	found chan struct{} // signals a held write

	mu      sync.Mutex
	flow    string             // current flow; empty between flows
	started time.Time          // start of the flow
	writes  map[string][]Write // accepted writes by flow
	held    []string
	release chan struct{} // closed when the program that sent the held writes is dead
	killed  map[vcdsim.Moment]map[Write]bool
}

// New returns a Killer. Set its Gate in the simulator.
func New(tb testing.TB, o Options) *Killer {
	tb.Helper()
	return &Killer{
		tb:      tb,
		o:       o,
		found:   make(chan struct{}, 1),
		writes:  map[string][]Write{},
		release: make(chan struct{}),
		killed:  map[vcdsim.Moment]map[Write]bool{vcdsim.Arrived: {}, vcdsim.Worked: {}},
	}
}

// Gate implements vcdsim.Gate. It holds a write at which the program must be killed until the program is dead.
func (k *Killer) Gate(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
	if k.o.Observe != nil {
		k.o.Observe()
	}
	if !r.Changes() {
		return true
	}
	release := k.hold(m, r)
	if release == nil {
		return true
	}
	select {
	case k.found <- struct{}{}:
	default:
	}
	<-release
	return false
}

// hold records an accepted write. It returns nil if the request may pass, or a channel that is closed when the program
// is dead.
func (k *Killer) hold(m vcdsim.Moment, r vcdsim.Request) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := Write{Operation: r.Operation, Path: r.Path}
	accepted := m == vcdsim.Worked &&
		r.Status < http.StatusMultipleChoices
	if k.o.Numbered {
		w.Number = len(k.writes[k.flow])
	}
	if accepted && k.flow != "" {
		k.writes[k.flow] = append(k.writes[k.flow], w)
	}
	due := m == vcdsim.Arrived || accepted && k.killed[vcdsim.Arrived][w]
	if !k.fatal() || !due || k.killed[m][w] {
		return nil
	}
	k.killed[m][w] = true
	k.held = append(k.held, moments[m]+" "+w.Operation)
	return k.release
}

// fatal reports whether the program is killed in the current flow.
func (k *Killer) fatal() bool { return k.flow != "" && k.flow == k.o.Flow }

var moments = map[vcdsim.Moment]string{vcdsim.Arrived: "before", vcdsim.Worked: "after"}

// During runs a flow and records its writes to VCD. If it is the killer's flow, the program is killed at these writes.
func (k *Killer) During(flow string, do func()) {
	k.tb.Helper()
	k.set(flow)
	ctx, cancel := context.WithCancel(k.tb.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.run(ctx)
	}()
	defer func() {
		k.set("")
		cancel()
		<-done
	}()
	do()
}

// Writes returns the writes that VCD accepted in a flow, in order.
func (k *Killer) Writes(flow string) []Write {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes[flow]
}

// Killed reports whether the program was killed before (Arrived) or after (Worked) a write.
func (k *Killer) Killed(m vcdsim.Moment, w Write) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed[m][w]
}

// Kills returns the number of writes of an operation at which the program was killed. An empty operation counts all
// writes.
func (k *Killer) Kills(m vcdsim.Moment, operation string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for w := range k.killed[m] {
		if operation == "" || w.Operation == operation {
			n++
		}
	}
	return n
}

func (k *Killer) set(flow string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flow = flow
	if flow != "" {
		k.started = time.Now()
	}
}

// run kills and restarts the program whenever a write is held, until ctx ends.
func (k *Killer) run(ctx context.Context) {
	for {
		select {
		case <-k.found:
			k.restart(ctx)
		case <-ctx.Done():
			select {
			case <-k.found: // held at the end of the flow
				k.restart(ctx)
			default:
			}
			return
		}
	}
}

// restart kills the program, drops its held writes and restarts it.
func (k *Killer) restart(ctx context.Context) {
	<-time.After(50 * time.Millisecond) // so that concurrent writes are held too
	if err := k.o.Victim.Kill(); err != nil {
		k.tb.Errorf("killing the program: %s", err)
	}
	k.mu.Lock()
	k.tb.Logf("%s: killed %s; %s after the start of the flow", k.o.Flow, strings.Join(k.held, " and "),
		time.Since(k.started).Round(time.Millisecond))
	k.held = nil
	close(k.release)
	k.release = make(chan struct{})
	k.mu.Unlock()
	if err := k.o.Victim.Start(context.WithoutCancel(ctx)); err != nil {
		k.tb.Errorf("restarting the program: %s", err)
	}
}
