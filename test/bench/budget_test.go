package bench

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// steadyCalls is how many calls a resync of a cluster of fifty machines may take, whatever else is in the VDC. What
// the cluster stands in, its VDC and its network, is read once an hour on top, and the session renewed.
const (
	steadyCalls = 2
	hourlyCalls = 5
)

func TestASteadyResyncAsksNextToNothingBeside10000VMsOfOthers(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 50)
		b.awaitReady(50, time.Hour)
		b.addForeign(10_000)
		<-time.After(atRest)

		b.expectSteady(2 * time.Hour)
	})
}

func TestASteadyResyncOfMachinesWithAVAppEach(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 50, func(c *infrav1.VCDCluster) { c.Spec.VApp.Layout = infrav1.VAppPerMachine })
		b.awaitReady(50, time.Hour)
		<-time.After(atRest)

		b.expectSteady(2 * time.Hour)
	})
}

// expectSteady watches the resyncs of a while.
func (b *bubble) expectSteady(long time.Duration) {
	b.t.Helper()
	var perResync []int
	many := 0
	for range long / resync {
		start := time.Now()
		<-time.After(resync)
		calls := len(b.requests(start))
		perResync = append(perResync, calls)
		if calls > steadyCalls {
			many++
			b.Expect(calls).To(BeNumerically("<=", steadyCalls+hourlyCalls), "%v", byOperation(b.requests(start)))
		}
	}
	b.t.Logf("calls per resync of 50 machines, in a row: %v", perResync)
	b.Expect(many).To(BeNumerically("<=", 2*(int(long/time.Hour)+1)),
		"the VDC and the session are renewed once an hour")
}

func TestOneSessionServesAllClustersOfAnIdentity(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		for n := range 20 {
			b.cluster(n, 1)
		}
		b.awaitReady(20, time.Hour)

		counts := b.Counters()
		b.Expect(b.State().Sessions).To(HaveLen(1))
		b.Expect(counts["POST /cloudapi/1.0.0/sessions"]).To(Equal(1))
		b.Expect(counts["GET /api/query type=orgVdc"]).To(BeNumerically("<=", 2), "they share look-ups, too")
		t.Logf("20 clusters of one machine, all at once:\n%s", table(counts))
	})
}

// addForeign fills the VDC with VMs of others.
func (b *bubble) addForeign(n int) {
	b.Edit(func(e *vcdsim.Editor) {
		ours := e.VApp("c1")
		for i := range n / 50 {
			e.CopyVApp(ours, fmt.Sprintf("foreign-%d", i))
		}
	})
	b.Expect(len(b.State().VMs)).To(BeNumerically(">=", n))
}
