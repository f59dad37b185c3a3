// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/chaos"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A flow is a part of the lifecycle of a cluster.
type flow struct {
	name string
	do   func(*testCluster)
}

// lifecycle returns the flows of a cluster from its creation to its deletion.
func lifecycle(between []flow) []flow {
	return slices.Concat([]flow{{"create", (*testCluster).provision}}, between, []flow{{"delete", (*testCluster).destroy}})
}

// changes returns the flows of changes by users and health checks, in order. Each starts from the result of the
// previous one.
func changes() []flow {
	return []flow{
		{"scale up", func(l *testCluster) { l.scale(l.workers + 1) }},
		{"scale down", func(l *testCluster) { l.scale(l.workers - 1) }},
		{"roll", func(l *testCluster) { l.roll("larger", larger) }},
		{"repair", (*testCluster).repair},
	}
}

// maintenance returns the remaining flows that write to VCD. They run in another cluster, because a single cluster with
// all flows would take longest.
func maintenance() []flow {
	return []flow{
		{"clean up", (*testCluster).cleanUp},
		{"renew the lease", (*testCluster).renewLease},
		{"roll the control plane", func(l *testCluster) { l.rollControlPlane("larger-control-plane", larger) }},
	}
}

func larger(m *infrav1.VCDMachineSpec) { m.SizingPolicy = "large" }

// flows returns all flows.
func flows() []flow { return lifecycle(slices.Concat(changes(), maintenance())) }

// TestCrashMatrix kills the manager before and after each write to VCD in each flow. Each flow runs in a separate
// cluster, and all clusters run in parallel. Two more clusters without kills record the writes.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	var changed, kept *chaos.Killer
	var mu sync.Mutex
	disturbed := map[string]*chaos.Killer{}
	t.Run("clusters", func(t *testing.T) {
		t.Run("no kills", func(t *testing.T) {
			t.Parallel()
			changed = runFlows(newTestCluster(t, shared.replica, 1), "", lifecycle(changes())...)
		})
		t.Run("no kills during maintenance", func(t *testing.T) {
			t.Parallel()
			kept = runFlows(newTestCluster(t, newReplica(t, "upkeep"), 1), "", lifecycle(maintenance())...)
		})
		for _, f := range flows() {
			t.Run("kills during "+f.name, func(t *testing.T) {
				t.Parallel()
				c := newReplica(t, "killed-in-"+strings.ReplaceAll(f.name, " ", "-"), quickPoll)
				k := runFlows(newTestCluster(t, c, 1), f.name, flowsFor(f.name)...)
				mu.Lock()
				defer mu.Unlock()
				disturbed[f.name] = k
			})
		}
	})
	if t.Failed() {
		return
	}
	g := NewWithT(t)
	cells := 0
	for _, f := range flows() {
		k := disturbed[f.name]
		expected := count(changed.Writes(f.name))
		own := count(k.Writes(f.name))
		if len(expected) == 0 {
			expected = count(kept.Writes(f.name))
		}
		g.Expect(expected).NotTo(BeEmpty(), "writes of %s", f.name)
		g.Expect(own).To(HaveLen(len(expected)), "%s: operations with and without kills", f.name)
		for _, op := range slices.Sorted(maps.Keys(expected)) {
			before := k.Kills(vcdsim.Arrived, op)
			after := k.Kills(vcdsim.Worked, op)
			t.Logf("%-22s %-50s without kills: %d, killed before: %d, killed after: %d", f.name, op, expected[op], before,
				after)
			g.Expect(before).To(BeNumerically(">=", expected[op]), "%s before %s", f.name, op)
			g.Expect(after).To(BeNumerically(">=", expected[op]), "%s after %s", f.name, op)
			cells += before + after
		}
		for _, w := range k.Writes(f.name) {
			g.Expect(k.Killed(vcdsim.Arrived, w)).To(BeTrue(), "in %s, the manager was not killed before %v", f.name, w)
			g.Expect(k.Killed(vcdsim.Worked, w)).To(BeTrue(), "in %s, the manager was not killed after %v", f.name, w)
		}
	}
	t.Logf("the manager was killed %d times at a write", cells)
}

// runFlows runs flows, and kills the manager at each write of the fatal one. If fatal is empty, it does not kill the
// manager. It attaches a disk to a worker before the flow "delete".
func runFlows(l *testCluster, fatal string, flows ...flow) *chaos.Killer {
	l.t.Helper()
	seen := &tracker{marked: map[string]map[string]bool{}}
	k := chaos.New(l.t, chaos.Options{Victim: l.replica, Flow: fatal, Observe: func() { seen.observe(l.State()) }})
	l.SetGate(k.Gate)
	for _, f := range flows {
		if f.name == "delete" {
			l.attachDisk()
		}
		k.During(f.name, func() { f.do(l) })
	}
	l.g.Expect(seen.duplicates()).To(BeEmpty())
	return k
}

// flowsFor returns the named flow with its prerequisites, between the creation and the deletion of the cluster.
func flowsFor(name string) []flow {
	var out []flow
	for _, f := range flows() {
		if f.name == name || f.name == "create" || f.name == "delete" || f.name == "scale up" && name == "scale down" {
			out = append(out, f)
		}
	}
	return out
}

// count counts writes by operation. Two writes to the same object, such as the expansion of a disk and the injection of
// bootstrap data, count as one, because the manager is killed only at the first.
func count(writes []chaos.Write) map[string]int {
	out := map[string]int{}
	seen := map[chaos.Write]bool{}
	for _, w := range writes {
		if !seen[w] {
			out[w.Operation]++
		}
		seen[w] = true
	}
	return out
}
