// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A shape is a way to build load balancers.
type shape struct {
	name    string
	model   func() vcdsim.Model
	desired func(o loadbalancer.Owner, ports ...int) lb.Desired
	writes  int // for two ports, with the first IP set of the cluster
	reads   int // at most, if the facts of the gateway are cached
	resync  int // reads for a hundred Services with two ports each, at most
}

func oneArm(o loadbalancer.Owner, ports ...int) lb.Desired {
	d := desired(o, ports...)
	d.OneArm = &lb.Range{First: netip.MustParseAddr("192.168.8.2"), Last: netip.MustParseAddr("192.168.8.200")}
	return d
}

func shapes() []shape {
	roomy := func(m vcdsim.Model) func() vcdsim.Model {
		m.ServiceEngineGroups[0].MaxService = 1000
		return func() vcdsim.Model { return m }
	}
	spaces := vcdsim.IPSpaces()
	spaces.IPSpaces[0].RangeQuota = -1
	blocks := vcdsim.K8sTenant()
	blocks.Orgs[1].VDCs[0].EdgeGateways[0].Uplinks[0].Subnets[0].Addresses = []vcdsim.Range{
		{From: netip.MustParseAddr("203.0.113.10"), To: netip.MustParseAddr("203.0.113.240")},
	}
	return []shape{
		{"on block addresses", roomy(blocks), desired, 2*2 + 1, 8, 6},
		{"on floating IPs", roomy(spaces), desired, 2*2 + 2 + 1, 8, 6},
		{"one-armed", roomy(blocks), oneArm, 4*2 + 1, 8, 10},
		{"one-armed on floating IPs", roomy(spaces), oneArm, 4*2 + 2 + 1, 9, 10},
		{"in a VDC group", vcdsim.VDCGroupTenant, desired, 2*2 + 1, 8, 6},
	}
}

func TestTheOwnerIsIdentifiedByItsUIDUnderAnotherClusterID(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	w.converge(&d)
	w.restart()
	d.Owner.Cluster = "c2"
	d.Intent = nil

	plan, err := w.plan(&d)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", lb.ClusterIDMismatch),
		HaveField("Message", ContainSubstring(`"c1"`)))))
}

func TestLoadBalancersAreCreatedAndDeleted(t *testing.T) {
	for _, shape := range shapes() {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, shape.model())
			now := newTestClock()
			w.opts.MaxAge = 30 * time.Second
			w.opts.Clock = now
			w.restart()
			before := shape.desired(service("c2", "earlier"), 80)
			w.converge(&before)
			now.Advance(time.Minute)
			w.calls()
			d := shape.desired(service("c1", "web"), 80, 443)

			plan := w.converge(&d)
			reads, writes, calls := w.calls()
			w.Expect(plan.Done()).To(BeTrue())
			w.Expect(plan.Status.Addresses).To(HaveLen(1))
			w.Expect(writes).To(Equal(shape.writes), "%v", calls)
			w.Expect(reads).To(BeNumerically("<=", shape.reads), "%v", calls)

			w.converge(&d)
			reads, writes, calls = w.calls()
			w.Expect(reads+writes).To(BeZero(), "%v", calls)

			w.restart()
			plan = w.converge(&d)
			_, writes, calls = w.calls()
			w.Expect(writes).To(BeZero(), "another process observes the same: %v %v", plan, calls)

			w.remove(d, before)
			w.Expect(w.left("")).To(BeEmpty())
			w.Expect(w.sim.Unhandled()).To(BeEmpty())
		})
	}
}

func TestResyncOfManyServices(t *testing.T) {
	if testing.Short() {
		t.Skip("creates 400 objects per shape")
	}
	for _, shape := range shapes()[:3] {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, shape.model())
			balancers := make([]lb.Desired, 100)
			for i := range balancers {
				balancers[i] = shape.desired(service("c1", fmt.Sprint("web-", i)), 80, 443)
				if shape.name == "on floating IPs" && i >= 90 {
					balancers[i] = balancers[0] // the space has no more addresses
					continue
				}
				w.converge(&balancers[i])
			}
			now := newTestClock()
			w.opts.MaxAge = 30 * time.Second
			w.opts.Clock = now
			w.restart()
			resync := func() {
				for i := range balancers {
					plan, err := w.round(&balancers[i])
					w.Expect(err).NotTo(HaveOccurred())
					w.Expect(plan.Steps).To(BeEmpty())
				}
			}
			resync() // the gateway is cached now
			w.calls()
			now.Advance(time.Minute)
			resync()
			rolled := w.sim.Counters()[rolling]
			reads, writes, calls := w.calls()
			w.Expect(writes).To(BeZero())
			w.Expect(reads).To(BeNumerically("<=", shape.resync), "%v", calls)
			w.Expect(rolled).To(BeNumerically("~", 4, 1), "one sixtieth of all objects with members")
		})
	}
}

func TestAddingANode(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	a := desired(service("c1", "a"), 80, 81)
	b := desired(service("c1", "b"), 80)
	w.converge(&a)
	w.converge(&b)
	w.calls()
	for _, d := range []*lb.Desired{&a, &b} {
		d.Members = append(d.Members, netip.MustParseAddr("192.168.100.13"))
		w.converge(d)
	}
	reads, writes, calls := w.calls()
	w.Expect([]int{reads, writes}).To(Equal([]int{1, 1}), "one set for the whole cluster: %v", calls)
}
