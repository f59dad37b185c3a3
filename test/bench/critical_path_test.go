// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// Limits for the ratio of the total time to the critical path of VCD's tasks. The rest is the overhead of the manager:
// detecting that a task ended, reading objects, and starting the next task.
const (
	oneMachine   = 1.1 // one machine, including the login and the lookups with an empty cache
	nineMachines = 1.2 // nine machines in three vApps
)

func TestMachineTakesLittleLongerThanItsTasks(t *testing.T) {
	for seed := range int64(3) {
		inBubble(t, func(c *vcdsim.Config) { c.Seed = seed }, func(b *bubble) {
			b.cluster(1, 1)

			cold := b.awaitReady(1, 10*time.Minute)

			b.compare(fmt.Sprintf("one machine, cold, seed %d", seed), cold, criticalPath(b.State(), time.Time{}),
				oneMachine)
			since := time.Now()
			b.machine("c1", "c1-second")

			warm := b.awaitReady(2, 10*time.Minute)

			b.compare(fmt.Sprintf("one machine, warm, seed %d", seed), warm, criticalPath(b.State(), since), oneMachine)
		})
	}
}

func TestNineMachinesFollowTheCriticalPath(t *testing.T) {
	for seed := range int64(2) {
		inBubble(t, func(c *vcdsim.Config) { c.Seed = seed }, func(b *bubble) {
			for n := range 3 {
				b.cluster(n, 3)
			}

			took := b.awaitReady(9, 20*time.Minute)

			b.compare(fmt.Sprintf("nine machines in three vApps, seed %d", seed), took,
				criticalPath(b.State(), time.Time{}), nineMachines)
			b.Expect(b.tasks("vdcComposeVapp")+b.tasks("vdcRecomposeVapp")).To(Equal(3),
				"machines that wait at the same time should be created together")
		})
	}
}

// compare checks the ratio of a time to its critical path.
func (b *bubble) compare(what string, took, path time.Duration, limit float64) {
	b.t.Helper()
	ratio := took.Seconds() / path.Seconds()
	b.t.Logf("%s: %.1f s, critical path of VCD's tasks %.1f s, ratio %.3f", what, took.Seconds(), path.Seconds(), ratio)
	b.Expect(ratio).To(BeNumerically(">=", 1), "the critical path cannot be longer than the total time")
	b.Expect(ratio).To(BeNumerically("<=", limit), what)
}

// tasks counts the tasks of an operation.
func (b *bubble) tasks(operation string) int {
	n := 0
	for _, t := range b.State().Tasks {
		if t.OperationName == operation {
			n++
		}
	}
	return n
}

// criticalPath returns the minimum time that VCD needs for the tasks since a time, according to its task log. VCD runs
// the tasks of a vApp sequentially. Then it runs the tasks of its VMs: in parallel across VMs, sequentially per VM.
func criticalPath(state vcdsim.State, since time.Time) time.Duration {
	vApps := map[string]time.Duration{}
	vms := map[string]time.Duration{}
	for _, t := range state.Tasks {
		switch took := t.Ended.Sub(t.Started); {
		case t.Started.Before(since):
		case t.Owner.Kind == "vapp":
			vApps[t.Owner.ID] += took
		case t.Owner.Kind == "vm":
			vms[t.Owner.ID] += took
		}
	}
	var longest time.Duration
	for _, vm := range state.VMs {
		if own := vms[vm.ID]; own > 0 {
			longest = max(longest, vApps[vm.VAppID]+own)
		}
	}
	return longest
}
