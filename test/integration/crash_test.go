// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	crashes = 20
	// quickPoll shortens the polling interval for tasks, for tests that do not depend on it.
	quickPoll = "--vcd-task-poll=500ms"
)

// TestManagerIsKilledAtRandomMoments kills the manager at random moments, each time while one machine is created and
// another is deleted. CRASH_SEED repeats a run.
func TestManagerIsKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSiteOf(t, newReplica(t, "killed", quickPoll), func(c *vcdsim.Config) { c.Profile = brisk })
	c := s.cluster("crash")
	s.ready(c)
	seen := s.tracker()
	old := s.machine("crash", "crash-0")
	s.ready(old)

	for i := range crashes {
		next := s.machine("crash", fmt.Sprintf("crash-%d", i+1))
		s.g.Expect(shared.client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: s.meta(old.Name)})).To(Succeed())
		s.crashAfter(time.Duration(random.Int64N(int64(3 * time.Second))))
		s.ready(next)
		s.deleteMachine(old.Name)
		vms := s.State().VMs
		s.g.Expect(vms).To(HaveLen(1), "VMs after the crash while %s was created and %s deleted", next.Name, old.Name)
		s.g.Expect(next.Spec.ProviderID).To(HaveSuffix(vms[0].ID))
		old = next
	}

	s.deleteMachine(old.Name)
	s.deleteCluster("crash")
	s.empty()
	s.g.Expect(seen.duplicates()).To(BeEmpty())
	s.g.Expect(seen.created()).To(Equal(crashes+2), "one vApp, and one VM per machine")
}

// seeded returns the random source. CRASH_SEED repeats a run.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("CRASH_SEED"); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
	t.Logf("CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// crashAfter kills the manager after a delay and starts it again.
func (s *site) crashAfter(d time.Duration) {
	s.t.Helper()
	<-time.After(d)
	s.g.Expect(s.replica.Kill()).To(Succeed())
	s.g.Expect(s.replica.Start(s.t.Context())).To(Succeed())
}
