// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The tests in this file count requests, so that each uses a separate fixture.

// TestBudgetOfService counts the requests for the first Service of a controller, which include the lookup of the
// gateway and the creation of the cluster's IP set, and for a second Service.
func TestBudgetOfService(t *testing.T) {
	t.Parallel()
	const n = 4 // ports
	g := NewWithT(t)
	four := ports(port("a", 81), port("b", 82), port("c", 83), port("d", 84))
	budget := map[string]int{twoArm: 2 * n, oneArm: 4 * n, ipSpaces: 2*n + 2}
	for _, gateway := range gatewayNames() {
		w := newFixture(t, "budget"+gateway, fixtureOption{settings: only(gateway)})
		g.Eventually(func() []string { return describe(w.cloud.requests(), reading) }, timeout,
			poll).Should(ContainElement(ContainSubstring("certificateLibrary")))
		w.awaitIdle(t) // A controller lists all objects once when it starts.

		first := w.countRequests(t, "the first Service by gateway "+gateway, budget[gateway]+1, four)
		second := w.countRequests(t, "another Service by gateway "+gateway, budget[gateway], four)

		w.cloud.forget()
		second.delete()
		t.Logf("gateway %q: deleted with %d writes, %d reads", gateway, len(describe(w.cloud.requests(), writing)),
			len(describe(w.cloud.requests(), reading)))
		first.delete()
	}
}

// countRequests creates a Service and checks the number of requests against the budget.
func (w *fixture) countRequests(t *testing.T, what string, budget int, changes ...change) *service {
	t.Helper()
	g := NewWithT(t)
	w.cloud.forget()
	s := w.service(t, "web", changes...)
	s.awaitServed()
	w.awaitIdle(t)

	writes := describe(w.cloud.requests(), writing)
	reads := describe(w.cloud.requests(), reading)
	t.Logf("%s: %d writes %v, %d reads %v", what, len(writes), writes, len(reads), reads)
	g.Expect(len(writes)).To(BeNumerically("<=", budget), "writes of %s: %v", what, writes)
	g.Expect(len(reads)).To(BeNumerically("<=", 8), "reads of %s: %v", what, reads)
	return s
}

// awaitIdle waits until the controller has sent no requests for the quiet period.
func (w *fixture) awaitIdle(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func() int {
		before := len(w.cloud.requests())
		<-time.After(quietPeriod)
		return len(w.cloud.requests()) - before
	}, timeout, "1ms").Should(BeZero(), "the controller keeps sending requests")
}

// TestBudgetOfResync counts the requests of a drift check of many Services without drift.
func TestBudgetOfResync(t *testing.T) {
	t.Parallel()
	const services = 100
	g := NewWithT(t)
	all := []string{twoArm}
	if *longForms {
		all = append(all, oneArm)
	}
	for _, gateway := range all {
		w, err := startFixture(t.Context(), "resync"+gateway, fixtureOption{
			settings: onlyEvery(gateway, "40s"),
			vcd:      []vcdOption{instant},
			args:     []string{"--vcd-task-poll=20ms", quickQPS, quickBurst},
		})
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { g.Expect(w.end()).To(Succeed()) }) // This test does not check for leftovers.
		ns := w.namespace(t)
		var all []*service
		for i := range services {
			all = append(all, w.newService(t, ns, fmt.Sprintf("web-%d", i), ports(port("a", 81), port("b", 82))))
		}
		for _, s := range all {
			s.awaitServed()
		}
		g.Expect(w.controller.Restart(t.Context())).To(Succeed())
		<-time.After(quietPeriod) // until the controller has sent its first requests
		w.awaitIdle(t)            // Reads at startup are not part of the resync.
		w.cloud.forget()

		// One drift check of all Services runs 36 to 44 s after the start.
		g.Eventually(func() []string { return describe(w.cloud.requests(), reading) }, timeout,
			poll).ShouldNot(BeEmpty())
		w.awaitIdle(t)

		writes := describe(w.cloud.requests(), writing)
		reads := describe(w.cloud.requests(), reading)
		t.Logf("gateway %q: a resync of %d Services: %d writes, %d reads %v", gateway, services, len(writes), len(reads),
			reads)
		g.Expect(writes).To(BeEmpty())
		full := (2*services + 59) / 60
		budget := map[string]int{twoArm: 6, oneArm: 10}[gateway]
		g.Expect(len(reads)).To(BeNumerically("<=", budget+full), "reads by gateway %q: %v", gateway, reads)
	}
}

// TestBudgetWhenIdle counts the requests of a controller without changes. Lists are cached for 30 s, so each list is
// read at most once in that time.
func TestBudgetWhenIdle(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "rest", fixtureOption{settings: settings{"loadbalancer.driftInterval": "10s"}})
	g := NewWithT(t)
	for _, gateway := range gatewayNames() {
		w.service(t, "web", by(gateway)).awaitServed()
	}
	w.awaitIdle(t)
	w.cloud.forget()

	<-time.After(25 * time.Second)

	g.Expect(describe(w.cloud.requests(), writing, loggingIn)).To(BeEmpty())
	reads := describe(w.cloud.requests(), reading)
	t.Logf("25 s without changes, with a drift check every 10 s: %d reads %v", len(reads), reads)
	times := map[string]int{}
	for _, read := range reads {
		times[read]++
	}
	for read, n := range times {
		g.Expect(n).To(BeNumerically("<=", len(gatewayNames())), "%s: at most once per gateway", read)
	}
}

// budgetOfANode counts the requests for a new node: with IP sets, one read and one write for each gateway.
func budgetOfANode(t *testing.T, h *cluster) {
	t.Helper()
	const listAge = 30 * time.Second // the time for which lists are cached
	began := time.Now()
	w := newFixture(t, "node", fixtureOption{cluster: h, settings: only(twoArm)})
	g := NewWithT(t)
	var all []*service
	for i := range 5 {
		all = append(all, w.service(t, "web", ports(port("a", int32(81+i)), port("b", int32(91+i)))))
	}
	for _, s := range all {
		s.awaitServed()
	}
	w.awaitIdle(t)
	w.cloud.forget()
	m := spare(w, 7)

	w.node(t, m, balanced, initialized(m))
	for _, s := range all {
		s.awaitServed()
	}
	w.awaitIdle(t)

	writes := describe(w.cloud.requests(), writing)
	reads := describe(w.cloud.requests(), reading)
	t.Logf("a new node of %d Services with 2 ports: %d writes %v, %d reads %v", len(all), len(writes), writes,
		len(reads), reads)
	g.Expect(writes).To(HaveLen(1), "one IP set")
	allowed := 2 // one, and another one if a read was in flight
	if time.Since(began) > listAge {
		allowed += 2 // the lists of pools and IP sets, if this machine is so slow that the cached ones expired
	}
	g.Expect(len(reads)).To(BeNumerically("<=", allowed))
}

// TestSlowGatewayDoesNotBlockOthers holds all requests that create NAT rules on one gateway.
func TestSlowGatewayDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "slow", fixtureOption{})
	g := NewWithT(t)
	release := w.vcd().hold("POST /cloudapi/1.0.0/edgeGateways/nat/rules") // Only the one-arm gateway sends these.
	defer release()
	var slow []*service
	for range 12 { // more than the number of workers
		slow = append(slow, w.service(t, "slow", by(oneArm)))
	}
	g.Eventually(func() []string { return w.cloud.leftovers(slow[0].uid) }, timeout, poll).ShouldNot(BeEmpty())

	began := time.Now()
	w.service(t, "quick", by(twoArm)).awaitServed()
	w.service(t, "quick", by(ipSpaces)).awaitServed()
	t.Logf("two Services were served in %s while another gateway did not respond", time.Since(began))

	release()
	for _, s := range slow {
		s.awaitServed()
	}
}
