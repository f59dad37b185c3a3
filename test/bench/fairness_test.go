// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestManyMachinesDoNotStarveAnotherCluster(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 1)
		alone := b.awaitReady(1, time.Hour)
		b.cluster(2, 200, func(c *infrav1.VCDCluster) { c.Spec.VApp.Layout = infrav1.VAppPerMachine })
		<-time.After(10 * time.Second)
		start := time.Now()
		b.machine("c1", "c1-second")

		contended := b.awaitMachine("c1-second", time.Hour)

		n, _ := b.ready()
		t.Logf("a cluster with one machine takes %.1f s alone; a machine beside 200 others takes %.1f s, when %d machines are ready", alone.Seconds(), contended.Seconds(), n)
		b.Expect(n).To(BeNumerically("<", 150), "most of the other machines should not be ready yet")
		b.Expect(contended).To(BeNumerically("<", 2*alone+10*time.Second))
		b.awaitReady(202, time.Hour)
		all := time.Since(start)
		calls := len(b.Requests())
		t.Logf("200 machines in separate vApps: %.0f s, %d calls", all.Seconds(), calls)
		b.Expect(float64(calls)).To(BeNumerically(">", 0.6*all.Seconds()*20),
			"the rate limit should be used most of the time")
		b.expectRate(20, 40)
	})
}

// awaitMachine waits until a machine is ready, and returns the elapsed time.
func (b *bubble) awaitMachine(name string, timeout time.Duration) time.Duration {
	b.t.Helper()
	start := time.Now()
	for !b.machineReady(name) {
		if time.Since(start) > timeout {
			b.t.Fatalf("%s is not ready after %s", name, timeout)
		}
		<-time.After(200 * time.Millisecond)
	}
	return time.Since(start)
}

// expectRate checks that no minute has more calls than the rate and the burst allow.
func (b *bubble) expectRate(perSecond, burst int) {
	b.t.Helper()
	perMinute := map[string]int{}
	for _, r := range b.Requests() {
		perMinute[r.Time.Truncate(time.Minute).String()]++
	}
	for minute, n := range perMinute {
		b.Expect(n).To(BeNumerically("<=", 60*perSecond+burst), fmt.Sprint(minute))
	}
}
