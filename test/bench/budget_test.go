// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// steadyCalls is the budget of calls for a resync of a cluster of fifty machines, regardless of other VMs in the VDC.
// hourlyCalls is the additional budget once an hour, when the VDC and the network of the cluster are read and the
// session is renewed.
const (
	steadyCalls = 2
	hourlyCalls = 5
)

func TestSteadyResyncBeside10000ForeignVMs(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 50)
		b.awaitReady(50, time.Hour)
		b.addForeignVMs(10_000)
		<-time.After(settleTime)

		b.expectSteady(2 * time.Hour)
	})
}

func TestSteadyResyncOfMachinesInSeparateVApps(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Fast }, func(b *bubble) {
		b.cluster(1, 50, func(c *infrav1.VCDCluster) { c.Spec.VApp.Layout = infrav1.VAppPerMachine })
		b.awaitReady(50, time.Hour)
		<-time.After(settleTime)

		b.expectSteady(2 * time.Hour)
	})
}

// A VDC with so many VMs is not always listed as a whole. Its machines are due at the same time, so that each of their
// schedules, two in a resync, needs one list of all VMs.
func TestSteadyResyncOfALargeVDC(t *testing.T) {
	inBubble(t, func(c *vcdsim.Config) { c.Profile = vcdsim.Instant }, func(b *bubble) {
		const clusters, machines, pageSize = 11, 50, 128
		for n := range clusters {
			b.cluster(n, machines)
		}
		b.awaitReady(clusters*machines, time.Hour)
		<-time.After(settleTime)
		start := time.Now()
		<-time.After(3 * resync)

		lists := 0
		for _, r := range b.requests(start) {
			if strings.Contains(r.Path, "/api/query") {
				lists++
			}
		}
		pages := (clusters*machines + pageSize - 1) / pageSize
		t.Logf("%d pages of lists in three resyncs; a list of all VMs has %d", lists, pages)
		b.Expect(lists).To(BeNumerically("<=", 3*2*pages+hourlyCalls))
	})
}

// expectSteady checks the number of calls of each resync in a period.
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
	b.t.Logf("calls of consecutive resyncs of 50 machines: %v", perResync)
	b.Expect(many).To(BeNumerically("<=", 2*(int(long/time.Hour)+1)),
		"the VDC is read and the session is renewed only once an hour")
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
		b.Expect(counts["GET /api/query type=orgVdc"]).To(BeNumerically("<=", 2), "clusters should share lookups")
		t.Logf("20 clusters with one machine, created at the same time:\n%s", table(counts))
	})
}

// growingCalls is the budget of calls, without queries of running tasks, until a cluster with three control planes and
// three workers is ready. Control planes are created sequentially, as by the kubeadm control plane provider.
const growingCalls = 70

func TestAClusterThatGrowsSendsNoRequestThatItsOwnTasksMakeVCDRefuse(t *testing.T) {
	inBubble(t, guestsDoNotWrite, func(b *bubble) {
		b.cluster(1, 1)
		b.awaitReady(1, time.Hour)
		for range 2 { // The next control plane joins while workers are created.
			b.machine("c1", fmt.Sprintf("c1-md%d", b.machines()))
			<-time.After(20 * time.Second)
			b.machine("c1", fmt.Sprintf("c1-cp%d", b.machines()))
			<-time.After(75 * time.Second)
		}
		b.machine("c1", "c1-md5")
		b.awaitReady(6, time.Hour)
		b.t.Logf("3+3 machines: %s", table(b.Counters()))

		b.Expect(b.refused()).To(BeEmpty())
		b.Expect(b.repeated()).To(BeEmpty())
		b.Expect(len(b.Requests()) - b.Counters()["GET /api/query type=task"]).To(BeNumerically("<=", growingCalls))
		<-time.After(guestBoots) // Only booted guests shut down.
		b.remove("c1-md5")
		b.machine("c1", "c1-md6")
		<-time.After(30 * time.Second)
		b.remove("c1-cp2") // while another machine is created in the vApp
		b.awaitReady(5, time.Hour)
		b.Expect(b.refused()).To(BeEmpty())
	})
}

// guestsDoNotWrite prevents guests from changing their VMs. Otherwise, VCD would refuse requests of the manager while
// guests write.
func guestsDoNotWrite(c *vcdsim.Config) {
	assume := vcdsim.DefaultAssumptions()
	assume.GuestWriteBusy = false
	c.Assumptions = &assume
}

// machines returns the number of VCDMachines.
func (b *bubble) machines() int {
	list := &infrav1.VCDMachineList{}
	b.Expect(b.client.List(b.ctx, list)).To(Succeed())
	return len(list.Items)
}

// remove deletes a VCDMachine.
func (b *bubble) remove(name string) {
	m := &infrav1.VCDMachine{}
	m.Namespace = namespace
	m.Name = name
	b.Expect(b.client.Delete(b.ctx, m)).To(Succeed())
}

// refused returns the writes that VCD refused.
func (b *bubble) refused() []string {
	var refused []string
	for _, r := range b.Requests() {
		if r.Status >= http.StatusBadRequest && r.Changes() {
			refused = append(refused, fmt.Sprintf("%s %d", r.Operation, r.Status))
		}
	}
	return refused
}

// repeated returns the paths of reads that were sent again within a second.
func (b *bubble) repeated() []string {
	var repeated []string
	last := map[string]time.Time{}
	for _, r := range b.Requests() {
		if r.Changes() {
			continue
		}
		if before, ok := last[r.Path]; ok && r.Time.Sub(before) < time.Second {
			repeated = append(repeated, r.Path)
		}
		last[r.Path] = r.Time
	}
	return repeated
}

// addForeignVMs adds n VMs with other owners to the VDC.
func (b *bubble) addForeignVMs(n int) {
	b.Edit(func(e *vcdsim.Editor) {
		ours := e.VApp("c1")
		for i := range n / 50 {
			e.CopyVApp(ours, fmt.Sprintf("foreign-%d", i))
		}
	})
	b.Expect(len(b.State().VMs)).To(BeNumerically(">=", n))
}
