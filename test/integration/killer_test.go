package integration

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A write is a request that changes something in VCD: the same operation on the same thing is the same write.
type write struct{ operation, path string }

// A killer kills a life's manager at each write of one flow: when the write arrives for the first time, so that VCD never does it;
// and when it was done for the first time, so that nobody learns of it.
type killer struct {
	t    *testing.T
	life *life
	flow string // in which it kills

	witness *witness
	found   chan struct{} // somebody is held

	mu      sync.Mutex
	now     string             // the flow at hand
	writes  map[string][]write // that were done, by flow
	held    []string
	release chan struct{} // closed when the manager that those who are held talk to is dead
	killed  map[vcdsim.Moment]map[write]bool
}

// watchOver makes a killer for a life. An empty flow kills nobody, and only takes notes.
func watchOver(l *life, flow string) *killer {
	k := &killer{
		t: l.t, life: l, flow: flow, witness: &witness{marked: map[string]map[string]bool{}}, found: make(chan struct{}, 1),
		writes: map[string][]write{}, release: make(chan struct{}),
		killed: map[vcdsim.Moment]map[write]bool{vcdsim.Arrived: {}, vcdsim.Worked: {}},
	}
	l.SetGate(k.gate)
	return k
}

// gate holds the writes that are to be somebody's last.
func (k *killer) gate(_ context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
	k.witness.look(k.life.State())
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
func (k *killer) holds(m vcdsim.Moment, r vcdsim.Request) chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, accepted := write{r.Operation, r.Path}, m == vcdsim.Worked && r.Status < http.StatusMultipleChoices
	if accepted && k.now != "" {
		k.writes[k.now] = append(k.writes[k.now], w)
	}
	running := k.now != "" && k.now == k.flow
	due := m == vcdsim.Arrived || accepted && k.killed[vcdsim.Arrived][w]
	if !running || !due || k.killed[m][w] {
		return nil
	}
	k.killed[m][w] = true
	k.held = append(k.held, moments[m]+" "+w.operation)
	return k.release
}

var moments = map[vcdsim.Moment]string{vcdsim.Arrived: "before", vcdsim.Worked: "after"}

// during does what makes up a flow. What is written to VCD meanwhile is noted and, if it is the killer's flow, fatal.
func (k *killer) during(flow string, do func()) {
	k.t.Helper()
	k.set(flow)
	ctx, cancel := context.WithCancel(k.t.Context())
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

func (k *killer) set(flow string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = flow
}

// lurk kills the manager whenever a write is held, until ctx ends.
func (k *killer) lurk(ctx context.Context) {
	for {
		select {
		case <-k.found:
			k.strike(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// strike kills the manager, drops what it waits for and starts another.
func (k *killer) strike(ctx context.Context) {
	<-time.After(50 * time.Millisecond) // What is asked for at the same time dies at the same time.
	if err := k.life.crew.Kill(); err != nil {
		k.t.Errorf("killing the manager: %s", err)
	}
	k.mu.Lock()
	k.t.Logf("%s: killed %s", k.flow, strings.Join(k.held, " and "))
	k.held = nil
	close(k.release)
	k.release = make(chan struct{})
	k.mu.Unlock()
	if err := k.life.crew.Start(context.WithoutCancel(ctx)); err != nil {
		k.t.Errorf("starting the manager again: %s", err)
	}
}
