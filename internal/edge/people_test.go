// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAManuallyAddedMonitorIsKept(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	now := newTestClock()
	w.opts = edge.Options{Clock: now}
	w.restart()
	d := desired(service("c1", "web"), 80)
	w.converge(&d)
	seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner})
	w.Expect(err).NotTo(HaveOccurred())
	monitors := func(edit func([]any) []any) (types []any) {
		w.sim.Edit(func(e *vcdsim.Editor) {
			e.Document(seen.Pools[0].ID, func(body map[string]any) {
				list, _ := body["healthMonitors"].([]any)
				list = edit(list)
				body["healthMonitors"] = list
				for _, m := range list {
					types = append(types, m.(map[string]any)["type"])
				}
			})
		})
		return types
	}
	look := func() []any { return monitors(func(list []any) []any { return list }) }
	turn := func() {
		for range 3 { // a pool and a set, one per minute
			now.Advance(time.Minute)
			w.converge(&d)
		}
	}
	monitors(func(list []any) []any { return append(list, map[string]any{"type": "PING"}) })
	w.calls()

	turn()
	_, writes, calls := w.calls()
	w.Expect(writes).To(BeZero(), "%v", calls)
	w.Expect(look()).To(ConsistOf("TCP", "PING"))

	monitors(func(list []any) []any { return list[1:] })
	turn()
	w.Expect(look()).To(ConsistOf("TCP", "PING"), "our monitor is restored")

	d.Listeners[0].Monitor = lb.MonitorHTTP
	turn()
	w.Expect(look()).To(ConsistOf("HTTP", "PING"), "our monitor is replaced")

	d.Listeners[0].Monitor = lb.MonitorNone
	turn()
	w.Expect(look()).To(ConsistOf("PING"), "ours goes")

	d.Listeners[0].Monitor = ""
	turn()
	w.Expect(look()).To(ConsistOf("TCP", "PING"))
}

func TestAnAbandonedAddressBelongsToItsNextAllocator(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	now := newTestClock()
	w.opts = edge.Options{Clock: now}
	w.restart()
	org := w.sim.State().Model.Orgs[1].ID
	allocate := func(value, description string) {
		w.sim.Edit(func(e *vcdsim.Editor) {
			space := &e.Model.IPSpaces[0]
			space.Allocations = append(space.Allocations,
				vcdsim.IPAllocation{Type: vcdsim.FloatingIP, Value: value, OrgID: org, Description: description})
		})
	}
	d := desired(service("c1", "web"), 80)
	allocate("198.51.100.77", "for "+d.Owner.String())
	left := w.converge(&d).Status.Addresses[0]
	d.Requested = []netip.Addr{netip.MustParseAddr("198.51.100.77")}
	now.Advance(time.Minute)
	w.Expect(w.converge(&d).Status.Addresses).To(Equal(d.Requested))

	allocate(left.String(), "")
	now.Advance(time.Minute)
	w.converge(&d)

	w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(ConsistOf(HaveField("Value", "198.51.100.77"),
		HaveField("Value", left.String())))
	d.Absent = true
	w.converge(&d)
	w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(ConsistOf(HaveField("Value", "198.51.100.77"),
		HaveField("Value", left.String())),
		"people's both")
}

func TestASubnetBeyondTheFirstPageOfFreeAddressesIsUsed(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	space := w.sim.State().Model.IPSpaces[0]
	d := desired(service("c1", "web"), 80)
	d.Subnet = netip.PrefixFrom(space.Ranges[0].To, 28).Masked()

	address := w.converge(&d).Status.Addresses

	w.Expect(address).To(HaveLen(1))
	w.Expect(d.Subnet.Contains(address[0])).To(BeTrue(), "%s", address)
}
