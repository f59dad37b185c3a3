// Package killer kills a program before and after each of its writes to a simulated VMware Cloud Director, and starts it again: what is
// left of the program's work must be enough to go on.
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

// A Victim is a program that can be killed and started again.
type Victim interface {
	Kill() error
	Start(ctx context.Context) error
}

// A Write is a request that changes something in VCD: the same operation on the same thing is the same write.
type Write struct {
	Operation, Path string
	// Number is how many writes were done before in the flow, where that tells writes apart.
	Number int
}

// Options say whom to kill, and when.
type Options struct {
	Victim Victim
	// Flow in which it is killed. Empty kills nobody, and only takes notes.
	Flow string
	// Numbered tells apart what is created by equal requests, by how much was done before. It is for programs that write one
	// thing at a time: then there is no write that they are not killed before and after.
	Numbered bool
	// Look, if set, is called with every request first.
	Look func()
}

// A Killer kills a program at each write of one flow: when the write arrives for the first time, so that VCD never does it; and
// when it was done for the first time, so that nobody learns of it.
type Killer struct {
	tb    testing.TB
	o     Options
	found chan struct{} // somebody is held

	mu      sync.Mutex
	now     string             // the flow at hand
	writes  map[string][]Write // that were done, by flow
	held    []string
	release chan struct{} // closed when the program that those who are held talk to is dead
	killed  map[vcdsim.Moment]map[Write]bool
}

// New returns a killer. Its Gate must be given to the simulator.
func New(tb testing.TB, o Options) *Killer {
	tb.Helper()
	return &Killer{
		tb: tb, o: o, found: make(chan struct{}, 1), writes: map[string][]Write{}, release: make(chan struct{}),
		killed: map[vcdsim.Moment]map[Write]bool{vcdsim.Arrived: {}, vcdsim.Worked: {}},
	}
}

// Gate holds the writes that are to be somebody's last. It is a vcdsim.Gate.
func (k *Killer) Gate(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
	if k.o.Look != nil {
		k.o.Look()
	}
	if !r.Changes() {
		return true
	}
	release := k.holds(m, r)
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

// holds returns nil if a request may pass, else what to wait for.
func (k *Killer) holds(m vcdsim.Moment, r vcdsim.Request) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, accepted := Write{Operation: r.Operation, Path: r.Path}, m == vcdsim.Worked && r.Status < http.StatusMultipleChoices
	if k.o.Numbered {
		w.Number = len(k.writes[k.now])
	}
	if accepted && k.now != "" {
		k.writes[k.now] = append(k.writes[k.now], w)
	}
	due := m == vcdsim.Arrived || accepted && k.killed[vcdsim.Arrived][w]
	if !k.fatal() || !due || k.killed[m][w] {
		return nil
	}
	k.killed[m][w] = true
	k.held = append(k.held, moments[m]+" "+w.Operation)
	return k.release
}

// fatal says whether the flow at hand is the one in which the program is killed.
func (k *Killer) fatal() bool { return k.now != "" && k.now == k.o.Flow }

var moments = map[vcdsim.Moment]string{vcdsim.Arrived: "before", vcdsim.Worked: "after"}

// During does what makes up a flow. What is written to VCD meanwhile is noted and, if it is the killer's flow, fatal.
func (k *Killer) During(flow string, do func()) {
	k.tb.Helper()
	k.set(flow)
	ctx, cancel := context.WithCancel(k.tb.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.lurk(ctx)
	}()
	defer func() {
		k.set("")
		cancel()
		<-done
	}()
	do()
}

// Writes are those that were done in a flow, in their order.
func (k *Killer) Writes(flow string) []Write {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes[flow]
}

// Killed says whether the program was killed before (Arrived) or after (Worked) a write.
func (k *Killer) Killed(m vcdsim.Moment, w Write) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed[m][w]
}

// Kills is how many writes of an operation the program was killed at; of all, if it is empty.
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
	k.now = flow
}

// lurk kills the program whenever a write is held, until ctx ends.
func (k *Killer) lurk(ctx context.Context) {
	for {
		select {
		case <-k.found:
			k.strike(ctx)
		case <-ctx.Done():
			select {
			case <-k.found: // held in the last moment of the flow
				k.strike(ctx)
			default:
			}
			return
		}
	}
}

// strike kills the program, drops what it waits for and starts another.
func (k *Killer) strike(ctx context.Context) {
	<-time.After(50 * time.Millisecond) // What is asked for at the same time dies at the same time.
	if err := k.o.Victim.Kill(); err != nil {
		k.tb.Errorf("killing the program: %s", err)
	}
	k.mu.Lock()
	k.tb.Logf("%s: killed %s", k.o.Flow, strings.Join(k.held, " and "))
	k.held = nil
	close(k.release)
	k.release = make(chan struct{})
	k.mu.Unlock()
	if err := k.o.Victim.Start(context.WithoutCancel(ctx)); err != nil {
		k.tb.Errorf("starting the program again: %s", err)
	}
}
