// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// These tests count, in fixtures of their own.

// TestBudgetOfAService counts the cost of Services: of the first one of a controller, which looks up the gateway and
// creates the IP set of the cluster, and of later ones.
func TestBudgetOfAService(t *testing.T) {
	t.Parallel()
	const n = 4 // ports
	g := NewWithT(t)
	four := ports(port("a", 81), port("b", 82), port("c", 83), port("d", 84))
	budget := map[string]int{twoArm: 2 * n, oneArm: 4 * n, ipSpaces: 2*n + 2}
	for _, way := range ways() {
		w := newFixture(t, "budget"+way, fixtureOption{settings: only(way)})
		g.Eventually(func() []string { return describe(w.cloud.requests(), reading) }, patience,
			poll).Should(ContainElement(ContainSubstring("certificateLibrary")))
		w.settles(t) // A controller lists everything once when it starts.

		first := w.counted(t, "the first Service by gateway "+way, budget[way]+1, four)
		second := w.counted(t, "another Service by gateway "+way, budget[way], four)

		w.cloud.forget()
		second.delete()
		t.Logf("gateway %q: deleted with %d writes, %d reads", way, len(describe(w.cloud.requests(), writing)),
			len(describe(w.cloud.requests(), reading)))
		first.delete()
	}
}

// counted creates a Service and counts the requests.
func (w *fixture) counted(t *testing.T, what string, budget int, changes ...change) *service {
	t.Helper()
	g := NewWithT(t)
	w.cloud.forget()
	s := w.service(t, "web", changes...)
	s.served()
	w.settles(t)

	writes := describe(w.cloud.requests(), writing)
	reads := describe(w.cloud.requests(), reading)
	t.Logf("%s: %d writes %v, %d reads %v", what, len(writes), writes, len(reads), reads)
	g.Expect(len(writes)).To(BeNumerically("<=", budget), "writes of %s: %v", what, writes)
	g.Expect(len(reads)).To(BeNumerically("<=", 8), "reads of %s: %v", what, reads)
	return s
}

// settles waits until the controller has sent no requests for a while.
func (w *fixture) settles(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func() int {
		before := len(w.cloud.requests())
		<-time.After(pause)
		return len(w.cloud.requests()) - before
	}, patience, "1ms").Should(BeZero(), "it asks for something all the time")
}

// TestBudgetOfAResync makes a controller check many Services without drift.
func TestBudgetOfAResync(t *testing.T) {
	t.Parallel()
	const services = 100
	g := NewWithT(t)
	all := []string{twoArm}
	if *longForms {
		all = append(all, oneArm)
	}
	for _, way := range all {
		w, err := startFixture(t.Context(), "resync"+way, fixtureOption{
			settings: onlyEvery(way, "40s"),
			vcd:      []vcdOption{instant},
			args:     []string{"--vcd-task-poll=20ms", quickQPS, quickBurst},
		})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(w.end()).To(Succeed()) }) // This test does not check that Services leave nothing.
		ns := w.namespace(t)
		var all []*service
		for i := range services {
			all = append(all, w.newService(t, ns, fmt.Sprintf("web-%d", i), ports(port("a", 81), port("b", 82))))
		}
		for _, s := range all {
			s.served()
		}
		g.Expect(w.controller.Restart(t.Context())).To(Succeed())
		<-time.After(pause) // until it has begun
		w.settles(t)        // Reads at its start are not part of the resync.
		w.cloud.forget()

		// One check of all of them, 36 to 44 s after its start.
		g.Eventually(func() []string { return describe(w.cloud.requests(), reading) }, patience,
			poll).ShouldNot(BeEmpty())
		w.settles(t)

		writes := describe(w.cloud.requests(), writing)
		reads := describe(w.cloud.requests(), reading)
		t.Logf("gateway %q: a resync of %d Services: %d writes, %d reads %v", way, services, len(writes), len(reads),
			reads)
		g.Expect(writes).To(BeEmpty())
		full := (2*services + 59) / 60
		budget := map[string]int{twoArm: 6, oneArm: 10}[way]
		g.Expect(len(reads)).To(BeNumerically("<=", budget+full), "reads by gateway %q: %v", way, reads)
	}
}

// TestBudgetAtRest counts the requests when nothing happens. Lists are cached for 30 s, so that no list is read twice
// in less time.
func TestBudgetAtRest(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "rest", fixtureOption{settings: settings{"loadbalancer.driftInterval": "10s"}})
	g := NewWithT(t)
	for _, way := range ways() {
		w.service(t, "web", by(way)).served()
	}
	w.settles(t)
	w.cloud.forget()

	<-time.After(25 * time.Second)

	g.Expect(describe(w.cloud.requests(), writing, knocking)).To(BeEmpty())
	reads := describe(w.cloud.requests(), reading)
	t.Logf("in 25 s at rest, looked at every 10 s: %d reads %v", len(reads), reads)
	times := map[string]int{}
	for _, read := range reads {
		times[read]++
	}
	for read, n := range times {
		g.Expect(n).To(BeNumerically("<=", len(ways())), "%s: once for each gateway", read)
	}
}

// budgetOfANode counts the cost of a node that joins: with IP sets, one read and one write for each gateway.
func budgetOfANode(t *testing.T, h *cluster) {
	t.Helper()
	const listAge = 30 * time.Second // after that, cached lists are read again
	began := time.Now()
	w := newFixture(t, "node", fixtureOption{cluster: h, settings: only(twoArm)})
	g := NewWithT(t)
	var all []*service
	for i := range 5 {
		all = append(all, w.service(t, "web", ports(port("a", int32(81+i)), port("b", int32(91+i)))))
	}
	for _, s := range all {
		s.served()
	}
	w.settles(t)
	w.cloud.forget()
	m := spare(w, 7)

	w.node(t, m, balanced, initialized(m))
	for _, s := range all {
		s.served()
	}
	w.settles(t)

	writes := describe(w.cloud.requests(), writing)
	reads := describe(w.cloud.requests(), reading)
	t.Logf("a node that joins %d Services with 2 ports: %d writes %v, %d reads %v", len(all), len(writes), writes,
		len(reads), reads)
	g.Expect(writes).To(HaveLen(1), "one IP set")
	allowed := 2 // one, and one more if a read was in flight
	if time.Since(began) > listAge {
		allowed += 2 // the lists of pools and IP sets, on a machine that is too slow to use cached ones
	}
	g.Expect(len(reads)).To(BeNumerically("<=", allowed))
}

// TestASlowGatewayHoldsUpNoOther holds all requests that create pools on one gateway.
func TestASlowGatewayHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "slow", fixtureOption{})
	g := NewWithT(t)
	release := w.vcd().hold("POST /cloudapi/1.0.0/edgeGateways/nat/rules") // Only the one-arm gateway sends these.
	defer release()
	var slow []*service
	for range 12 { // more than the number of workers
		slow = append(slow, w.service(t, "slow", by(oneArm)))
	}
	g.Eventually(func() []string { return w.cloud.left(slow[0].uid) }, patience, poll).ShouldNot(BeEmpty())

	began := time.Now()
	w.service(t, "quick", by(twoArm)).served()
	w.service(t, "quick", by(ipSpaces)).served()
	t.Logf("two Services were served in %s beside a gateway that hangs", time.Since(began))

	release()
	for _, s := range slow {
		s.served()
	}
}
