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

// A flow is a part of a cluster's life.
type flow struct {
	name string
	do   func(*life)
}

// whole returns the flows of a life from creation to deletion.
func whole(between []flow) []flow {
	return slices.Concat([]flow{{"create", (*life).born}}, between, []flow{{"delete", (*life).die}})
}

// changes returns changes by users and health checks, in order. Each begins where the previous one ends.
func changes() []flow {
	return []flow{
		{"scale up", func(l *life) { l.scale(l.workers + 1) }},
		{"scale down", func(l *life) { l.scale(l.workers - 1) }},
		{"roll", func(l *life) { l.roll("larger", larger) }},
		{"repair", (*life).repair},
	}
}

// upkeep returns the remaining flows that write. They run in another life, because a single life with all flows would
// take longest.
func upkeep() []flow {
	return []flow{
		{"clean up", (*life).cleanUp},
		{"renew the lease", (*life).renewLease},
		{"roll the control plane", func(l *life) { l.rollControlPlane("larger-control-plane", larger) }},
	}
}

func larger(m *infrav1.VCDMachineSpec) { m.SizingPolicy = "large" }

// flows returns all flows.
func flows() []flow { return whole(slices.Concat(changes(), upkeep())) }

// TestCrashMatrix kills the manager before and after each write to VCD in each flow. Each flow runs in a separate life,
// and all lives run in parallel. Two more lives without kills record the writes.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	var changed, kept *chaos.Killer
	var mu sync.Mutex
	disturbed := map[string]*chaos.Killer{}
	t.Run("lives", func(t *testing.T) {
		t.Run("no kills", func(t *testing.T) {
			t.Parallel()
			changed = live(newLife(t, shared.replica, 1), "", whole(changes())...)
		})
		t.Run("no kills in its upkeep", func(t *testing.T) {
			t.Parallel()
			kept = live(newLife(t, newReplica(t, "upkeep"), 1), "", whole(upkeep())...)
		})
		for _, f := range flows() {
			t.Run("killed in "+f.name, func(t *testing.T) {
				t.Parallel()
				c := newReplica(t, "killed-in-"+strings.ReplaceAll(f.name, " ", "-"), quickPoll)
				k := live(newLife(t, c, 1), f.name, needed(f.name)...)
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
		g.Expect(own).To(HaveLen(len(expected)), "%s: operations of the life with kills and of the one without", f.name)
		for _, op := range slices.Sorted(maps.Keys(expected)) {
			before := k.Kills(vcdsim.Arrived, op)
			after := k.Kills(vcdsim.Worked, op)
			t.Logf("%-22s %-50s undisturbed: %d, killed before: %d, killed after: %d", f.name, op, expected[op], before,
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
	t.Logf("%d times the manager died at a write", cells)
}

// live runs flows, and kills the manager in one of them. The cluster is deleted at the end.
func live(l *life, fatal string, flows ...flow) *chaos.Killer {
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

// needed returns the flows that a life needs to reach the named one and its end.
func needed(name string) []flow {
	var out []flow
	for _, f := range flows() {
		if f.name == name || f.name == "create" || f.name == "delete" || f.name == "scale up" && name == "scale down" {
			out = append(out, f)
		}
	}
	return out
}

// count counts writes by operation. Two writes to the same object, such as the expansion of a disk and then bootstrap
// data, count as one: the manager is killed at the first.
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
