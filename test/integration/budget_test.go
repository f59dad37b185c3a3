package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// The calls that creating one machine may take, besides at most one task query in two seconds: the first one of a
// site logs in and looks everything up, the next ones don't.
const (
	coldBudget = 22
	warmBudget = 10
)

const taskQuery = "GET /api/query type=task"

func TestCreatingAMachineCosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast })
	c := s.cluster("cheap")

	cold := s.machine("cheap", "cold")
	s.ready(cold)
	coldCalls := s.calls(0)

	s.quiet() // What follows the first machine, such as a look at the steady state, is not the second one's.
	since := len(s.Requests())
	warm := s.machine("cheap", "warm")
	s.ready(warm)
	warmCalls := s.calls(since)

	t.Logf("cold, with its cluster: %s", list(coldCalls))
	t.Logf("warm: %s", list(warmCalls))
	s.g.Expect(sum(coldCalls)).To(BeNumerically("<=", coldBudget), list(coldCalls))
	s.g.Expect(sum(warmCalls)).To(BeNumerically("<=", warmBudget), list(warmCalls))
	s.tasksAreAskedSeldom()

	s.deleteMachine("cold")
	s.deleteMachine("warm")
	s.deleteCluster(c.Name)
	s.empty()
}

// quiet waits until VCD was not asked for anything for a second.
func (s *site) quiet() {
	s.t.Helper()
	s.g.Eventually(func() bool {
		last := s.Requests()
		return time.Since(last[len(last)-1].Time) > time.Second
	}, patience, "100ms").Should(BeTrue())
}

// calls counts the requests since index by operation, without task queries.
func (s *site) calls(since int) map[string]int {
	counts := map[string]int{}
	for _, r := range s.Requests()[since:] {
		if r.Operation != taskQuery {
			counts[r.Operation]++
		}
	}
	return counts
}

// tasksAreAskedSeldom checks that a session asks for tasks at most once in two seconds.
func (s *site) tasksAreAskedSeldom() {
	s.t.Helper()
	last := map[string]time.Time{}
	for _, r := range s.Requests() {
		if r.Operation != taskQuery {
			continue
		}
		if before, ok := last[r.User]; ok {
			s.g.Expect(r.Time.Sub(before)).To(BeNumerically(">", 1900*time.Millisecond), "two task queries of one session")
		}
		last[r.User] = r.Time
	}
}

func sum(calls map[string]int) int {
	total := 0
	for _, n := range calls {
		total += n
	}
	return total
}

func list(calls map[string]int) string {
	lines := []string{fmt.Sprintf("%d calls", sum(calls))}
	for _, op := range slices.Sorted(maps.Keys(calls)) {
		lines = append(lines, fmt.Sprintf("%3d %s", calls[op], op))
	}
	return strings.Join(lines, "\n")
}
