// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"flag"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long the clients work before they delete what is theirs")
	seed     = flag.Uint64("seed", 1, "chooses what the clients do; 0 is another one each time")
)

const (
	// workers is how many clients work at once. The IP Space has an address for each.
	workers = 8
	// maxTasks is how many finished tasks the simulator keeps.
	maxTasks = 20000
)

// profile makes tasks take a part of a millisecond: most have ended when their client looks first, which otherwise
// sleeps for three seconds, and some make what they work on busy for the other clients.
var profile = vcdsim.Profile{Name: "soak", Scale: 0.00003}

// Random work of many clients leaves nothing behind: no object, no session, no more tasks than are kept, and no answer
// that blames the server.
func TestRandomWorkLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("20 seconds of work; not in short mode")
	}
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	t.Logf("Seed %d", number)
	failures := &answers{}
	sim := start(t, failures)
	before := inventory(t, sim)
	sessions := len(sim.State().Sessions)

	done := work(t, sim, number)

	for _, name := range slices.Sorted(maps.Keys(done)) {
		t.Logf("%6d × %s", done[name], name)
	}
	expectSame(t, before, inventory(t, sim))
	state := sim.State()
	if len(state.Sessions) > sessions {
		t.Errorf("%d sessions are left, of %d before", len(state.Sessions), sessions)
	}
	if len(state.Tasks) > maxTasks+workers {
		t.Errorf("%d tasks are kept, more than %d", len(state.Tasks), maxTasks)
	}
	for _, text := range failures.list() {
		t.Error(text)
	}
}

// start starts a simulator of everything a tenant may have.
func start(t *testing.T, failures *answers) *vcdsim.Simulator {
	t.Helper()
	sim, err := vcdsim.New(vcdsim.Config{
		Model:   vcdsim.CloudProvider(),
		Profile: profile,
		Observe: failures.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	return sim
}

// work lets all workers work and returns how often they did what.
func work(t *testing.T, sim *vcdsim.Simulator, number uint64) map[string]int {
	t.Helper()
	until := time.Now().Add(*duration)
	total := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			w, err := newWorker(sim, i, rand.New(rand.NewPCG(number, uint64(i))))
			if err != nil {
				t.Errorf("worker %d: %s", i, err)
				return
			}
			w.run(until)
			mu.Lock()
			defer mu.Unlock()
			for name, n := range w.done {
				total[name] += n
			}
			for _, problem := range w.problems {
				t.Error(problem)
			}
		})
	}
	wg.Wait()
	return total
}

// answers are the answers that blame the server.
type answers struct {
	mu  sync.Mutex
	bad []string
}

// maxReported is how many answers are reported.
const maxReported = 10

func (a *answers) observe(x vcdsim.Exchange) {
	if x.Status < http.StatusInternalServerError {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.bad) < maxReported {
		a.bad = append(a.bad, x.Operation+": "+string(x.Response))
	}
}

func (a *answers) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.bad)
}
