package integration

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/killer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A flow is a part of a cluster's life.
type flow struct {
	name string
	do   func(*life)
}

// flows are a cluster's life in order: each begins where the one before ends.
func flows() []flow {
	return []flow{
		{"create", (*life).born},
		{"scale up", func(l *life) { l.scale(l.workers + 1) }},
		{"scale down", func(l *life) { l.scale(l.workers - 1) }},
		{"roll", func(l *life) { l.roll("larger", func(m *infrav1.VCDMachineSpec) { m.SizingPolicy = "large" }) }},
		{"repair", (*life).repair},
		{"delete", (*life).die},
	}
}

// TestCrashMatrix kills the manager before and after every write to VCD of every flow: for each flow in a life of its own, all lives
// at the same time. One more life, in which nobody is killed, says which writes there are.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	var undisturbed *killer.Killer
	var mu sync.Mutex
	disturbed := map[string]*killer.Killer{}
	t.Run("lives", func(t *testing.T) {
		t.Run("nobody is killed", func(t *testing.T) {
			t.Parallel()
			undisturbed = live(newLife(t, house.crew, 1), "", flows()...)
		})
		for _, f := range flows() {
			t.Run("killed in "+f.name, func(t *testing.T) {
				t.Parallel()
				c := newCrew(t, "killed-in-"+strings.ReplaceAll(f.name, " ", "-"), quickPoll)
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
	g, cells := NewWithT(t), 0
	for _, f := range flows() {
		k := disturbed[f.name]
		expected, own := count(undisturbed.Writes(f.name)), count(k.Writes(f.name))
		g.Expect(own).To(HaveLen(len(expected)), "%s: operations of the life with kills and of the one without", f.name)
		for _, op := range slices.Sorted(maps.Keys(expected)) {
			before, after := k.Kills(vcdsim.Arrived, op), k.Kills(vcdsim.Worked, op)
			t.Logf("%-10s %-50s undisturbed: %d, killed before: %d, killed after: %d", f.name, op, expected[op], before, after)
			g.Expect(before).To(BeNumerically(">=", expected[op]), "%s before %s", f.name, op)
			g.Expect(after).To(BeNumerically(">=", expected[op]), "%s after %s", f.name, op)
			cells += before + after
		}
		for _, w := range k.Writes(f.name) {
			g.Expect(k.Killed(vcdsim.Arrived, w)).To(BeTrue(), "in %s, nobody was killed before %v", f.name, w)
			g.Expect(k.Killed(vcdsim.Worked, w)).To(BeTrue(), "in %s, nobody was killed after %v", f.name, w)
		}
	}
	t.Logf("%d times the manager died at a write", cells)
}

// live lives through flows, and is killed in one of them. The cluster is deleted at the end.
func live(l *life, fatal string, flows ...flow) *killer.Killer {
	l.t.Helper()
	seen := &witness{marked: map[string]map[string]bool{}}
	k := killer.New(l.t, killer.Options{Victim: l.crew, Flow: fatal, Look: func() { seen.look(l.State()) }})
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

// needed are the flows that a life needs to get to one, and to its end.
func needed(name string) []flow {
	var out []flow
	for _, f := range flows() {
		if f.name == name || f.name == "create" || f.name == "delete" || f.name == "scale up" && name == "scale down" {
			out = append(out, f)
		}
	}
	return out
}

func count(writes []killer.Write) map[string]int {
	out := map[string]int{}
	for _, w := range writes {
		out[w.Operation]++
	}
	return out
}
