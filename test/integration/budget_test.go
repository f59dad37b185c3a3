// SPDX-License-Identifier: Apache-2.0

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

// Maximum numbers of calls for the creation of a machine, in addition to one task query every two seconds. For the
// first machine of a site, the manager also logs in and looks up all objects.
const (
	coldBudget = 22
	warmBudget = 10
)

const taskQuery = "GET /api/query type=task"

func TestRequestsPerMachineStayWithinBudget(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast })
	c := s.cluster("cheap")

	cold := s.machine("cheap", "cold")
	s.ready(cold)
	coldCalls := s.calls(0)

	s.quiet() // Calls after the first machine, such as the check of the steady state, do not count for the second one.
	since := len(s.Requests())
	warm := s.machine("cheap", "warm")
	s.ready(warm)
	warmCalls := s.calls(since)

	t.Logf("cold, with its cluster: %s", list(coldCalls))
	t.Logf("warm: %s", list(warmCalls))
	s.g.Expect(sum(coldCalls)).To(BeNumerically("<=", coldBudget), list(coldCalls))
	s.g.Expect(sum(warmCalls)).To(BeNumerically("<=", warmBudget), list(warmCalls))
	s.expectFewTaskQueries()

	s.deleteMachine("cold")
	s.deleteMachine("warm")
	s.deleteCluster(c.Name)
	s.empty()
}

// quiet waits until no requests to VCD and no writes to objects happen for a while. On a busy machine, the manager may
// take seconds to continue.
func (s *site) quiet(objects ...conditioned) {
	s.t.Helper()
	now := func() (seen []string) {
		seen = []string{fmt.Sprint(len(s.Requests()), " requests")}
		for _, obj := range objects {
			s.g.Expect(s.get(obj)).To(Succeed())
			seen = append(seen, obj.GetResourceVersion())
		}
		return seen
	}
	s.g.Eventually(func() bool {
		before := now()
		<-time.After(3 * time.Second)
		return slices.Equal(now(), before)
	}, timeout, "1ms").Should(BeTrue())
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

// expectFewTaskQueries checks that a session queries tasks at most once every two seconds on average. Because latencies
// differ, two queries may arrive at a shorter interval than they were sent.
func (s *site) expectFewTaskQueries() {
	s.t.Helper()
	arrived := map[string][]time.Time{}
	for _, r := range s.Requests() {
		if r.Operation == taskQuery {
			arrived[r.User] = append(arrived[r.User], r.Time)
		}
	}
	const every = 2 * time.Second
	for user, times := range arrived {
		span := times[len(times)-1].Sub(times[0])
		s.g.Expect(len(times)).To(BeNumerically("<=", 2+int(span/every)), "task queries of %s in %s", user, span)
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
