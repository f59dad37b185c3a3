// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestFailedObjectsAreWrittenAgain(t *testing.T) {
	for what, operation := range map[string]string{
		"a pool":            "createLoadBalancerPool",
		"a virtual service": "createLoadBalancerVirtualService",
		"an IP set":         "createFirewallGroup",
		"a port profile":    "createApplicationPortProfile",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			d := oneArm(service("c1", "web"), 80)
			fault := w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: operation, Count: 1})

			plan := w.converge(&d)

			w.Expect(plan.Done()).To(BeTrue())
			w.Expect(w.sim.Faults().Remove(fault)).To(BeFalse(), "an object had failed")
			w.restart()
			seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner, Facts: lb.Forwardings})
			w.Expect(err).NotTo(HaveOccurred())
			right := HaveExactElements(HaveField("State", lb.Realized))
			w.Expect(seen.Pools).To(right)
			w.Expect(seen.Services).To(right)
			w.Expect(seen.Sets).To(right)
			w.Expect(seen.Profiles).To(right)
		})
	}
}

func TestUnrealizedObjectsAreReportedAndRetriedWithBackoff(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	now := newTestClock()
	w.opts = edge.Options{Clock: now}
	w.restart()
	d := desired(service("c1", "web"), 80)
	w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "createLoadBalancerPool", Count: 1})
	w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "updateLoadBalancerPool"})
	writes := func() (n int) {
		for call, times := range w.sim.Counters() {
			if strings.HasPrefix(call, "PUT ") {
				n += times
			}
		}
		return n
	}

	var plan loadbalancer.Plan
	for range 3 * 60 {
		_, _ = w.round(&d)
		plan, _ = w.round(&d)
		now.Advance(time.Minute)
	}

	w.Expect(writes()).To(BeNumerically("~", 14, 2), "in three hours")
	now.Advance(-time.Minute)
	plan, err := w.plan(&d)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Stuck).To(ConsistOf(HaveField("Reason", lb.RealizationFailed)))
	w.Expect(plan.Steps).To(BeEmpty())
	w.Expect(plan.Done()).To(BeFalse())
	w.Expect(plan.Done()).To(BeFalse())
	w.Expect(plan.Status.Ports).To(ConsistOf(HaveField("Problem", "RealizationFailed")))

	w.sim.Faults().Clear()
	now.Advance(time.Hour)
	w.Expect(w.converge(&d).Done()).To(BeTrue())
	w.remove(d)
	w.Expect(w.left("")).To(BeEmpty())
}
