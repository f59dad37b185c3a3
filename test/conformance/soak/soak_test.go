// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

var (
	duration = flag.Duration("duration", 20*time.Second, "how long the clients work before they delete their objects")
	seed     = flag.Uint64("seed", 1, "seed of the random operations; 0 selects a different one each time")
)

// maxTasks is the number of finished tasks that the simulator keeps.
const maxTasks = 20000

// maxRunning is the maximum number of additional running tasks.
const maxRunning = 100

// profile makes tasks take a fraction of a millisecond. Most tasks have ended when their client first checks them;
// otherwise some clients sleep for three seconds. Running tasks make objects busy for other clients.
var profile = vcdsim.Profile{Name: "soak", Scale: 0.00003}

// TestRandomWorkLeavesNothingBehind checks that random work of many clients leaves no objects and sessions, that the
// simulator keeps only the configured number of tasks, and that no response is an unexpected error.
func TestRandomWorkLeavesNothingBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 seconds; not in short mode")
	}
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	t.Logf("Seed %d", number)
	failures := &responseLog{}
	sim := start(t, failures)
	before := inventory(t, sim)
	sessions := len(sim.State().Sessions)

	done := runWorkers(t, sim, number)

	logCounts(t, done)
	logCounts(t, failures.refused)
	failures.check(t)
	expectSame(t, before, inventory(t, sim))
	state := sim.State()
	if len(state.Sessions) > sessions {
		t.Errorf("%d sessions are left, there were %d before", len(state.Sessions), sessions)
	}
	if len(state.Tasks) > maxTasks+maxRunning {
		t.Errorf("%d tasks are kept, the limit is %d", len(state.Tasks), maxTasks)
	}
}

// logCounts logs counts by name.
func logCounts(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d × %s", counts[name], name)
	}
}

// start starts a simulator with all kinds of objects that tenants use.
func start(t *testing.T, failures *responseLog) *vcdsim.Simulator {
	t.Helper()
	model := vcdsim.CloudProvider()
	model.IPSpaces[0].RangeQuota = -1
	for i := range model.ServiceEngineGroups {
		model.ServiceEngineGroups[i].MaxService = 200
	}
	sim, err := vcdsim.New(vcdsim.Config{
		Model:   model,
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

// runWorkers runs the workers of all programs, and returns the number of executions of each operation.
func runWorkers(t *testing.T, sim *vcdsim.Simulator, number uint64) map[string]int {
	t.Helper()
	until := time.Now().Add(*duration)
	total := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, p := range programs {
		for j := range p.workers {
			a := assignment{sim: sim, number: j, rng: rand.New(rand.NewPCG(number, uint64(i*100+j)))}
			wg.Go(func() {
				w, err := newWorker(p, a, t.Errorf)
				if err != nil {
					t.Errorf("%s-%d: %s", p.name, j, err)
					return
				}
				w.run(until)
				mu.Lock()
				defer mu.Unlock()
				for name, n := range w.done {
					total[name] += n
				}
			})
		}
	}
	wg.Wait()
	return total
}
