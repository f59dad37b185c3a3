// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	// settleTime is the time until a system without changes is idle: guests boot, bootstrap data is removed, and cached
	// lookups expire.
	settleTime = 30 * time.Minute
	// heapGrowth is the maximum growth of the heap in a day in bytes, including the simulator's request log. A leak of
	// fifty bytes in each reconcile of each machine exceeds it.
	heapGrowth = 1 << 20
)

func TestIdleDay(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		const machines = 50
		b.cluster(1, machines)
		b.cluster(2, 3, withProxy, withKubeVIPDaemonSet)
		b.awaitReady(machines+3, time.Hour)
		<-time.After(settleTime)
		start := time.Now()
		before := b.Counters()
		versions := b.versions()
		var heap []uint64
		for range 24 {
			<-time.After(time.Hour)
			heap = append(heap, liveHeap())
		}
		calls := map[string]int{}
		for op, n := range b.Counters() {
			if n -= before[op]; n > 0 {
				calls[op] = n
			}
		}
		total := 0
		for _, n := range calls {
			total += n
		}
		t.Logf("an idle day with %d machines: %.1f calls per hour\n%s", machines+3, float64(total)/24, table(calls))
		t.Logf("live heap: %.2f MiB after the first hour, %.2f MiB after the last", mib(heap[0]), mib(heap[23]))

		b.Expect(b.writes(start)).To(BeEmpty())
		b.Expect(b.versions()).To(Equal(versions), "Kubernetes objects should not change")
		b.Expect(b.sessions()).To(BeNumerically("<=", 2), "the current session, and for some minutes the previous one")
		b.Expect(heap[23]).To(BeNumerically("<", heap[0]+heapGrowth), "%v", heap)
	})
}

// withProxy sets a proxy for a cluster, which the manager also uses for requests to VCD.
func withProxy(c *infrav1.VCDCluster) {
	c.Spec.Proxy = infrav1.ProxySpec{
		HTTPProxy:  "http://proxy.example.com:3128",
		HTTPSProxy: "http://proxy.example.com:3128",
		Site:       infrav1.SiteByProxy,
	}
}

// withKubeVIPDaemonSet makes a DaemonSet of kube-vip announce the virtual IP of a cluster.
func withKubeVIPDaemonSet(c *infrav1.VCDCluster) {
	c.Spec.ControlPlaneLoadBalancer.KubeVIP.Mode = infrav1.KubeVIPDaemonSet
}

func TestLeasesAreRenewed(t *testing.T) {
	const lease = 12 * time.Hour
	inBubble(t, func(c *vcdsim.Config) {
		c.Profile = vcdsim.Fast
		c.Model.Orgs[1].RuntimeLease = vcdsim.Duration(lease)
	}, func(b *bubble) {
		b.cluster(1, 3)
		b.awaitReady(3, time.Hour)
		<-time.After(settleTime)
		start := time.Now()

		<-time.After(48 * time.Hour)

		for _, vm := range b.State().VMs {
			b.Expect(vm.PoweredOn).To(BeTrue(), vm.Name)
		}
		writes := b.writes(start)
		t.Logf("two days with a lease of %s: %v", lease, writes)
		for _, op := range writes {
			b.Expect(op).To(HavePrefix("PUT /api/vApp/vapp/leaseSettingsSection"))
		}
		b.Expect(len(writes)).To(BeNumerically("<=", 2*2*48/12),
			"each renewal first requests an unlimited lease, then the longest")
	})
}

// sessions returns the number of active sessions in VCD.
func (b *bubble) sessions() int {
	n := 0
	for _, s := range b.State().Sessions {
		if s.Expires.After(time.Now()) {
			n++
		}
	}
	return n
}

// liveHeap returns the bytes in use after a garbage collection.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// table formats counts, one per line.
func table(counts map[string]int) string {
	var lines []string
	for _, op := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%6d %s", counts[op], op))
	}
	return strings.Join(lines, "\n")
}
