// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// stateChanges are changes to the desired state of a load balancer.
var stateChanges = []func(r *rand.Rand, d *lb.Desired){
	func(r *rand.Rand, d *lb.Desired) {
		d.Listeners[0].Protocol = pickOne(r, loadbalancer.TCP, loadbalancer.UDP)
	},
	func(r *rand.Rand, d *lb.Desired) { d.Listeners[0].Port += 10 * (1 - 2*r.IntN(2)) },
	func(r *rand.Rand, d *lb.Desired) { d.Listeners[0].NodePort = 30000 + r.IntN(2000) },
	func(r *rand.Rand, d *lb.Desired) {
		d.Listeners[0].Monitor = pickOne(r, "", lb.MonitorNone, lb.MonitorPing)
	},
	func(r *rand.Rand, d *lb.Desired) {
		second := d.Listeners[0]
		second.Port += 200
		second.NodePort = 32500 + r.IntN(100)
		d.Listeners = append(d.Listeners[:1:1], second)
	},
	func(_ *rand.Rand, d *lb.Desired) { d.Listeners = d.Listeners[:1] },
	func(r *rand.Rand, d *lb.Desired) { d.OneArm = pickOne(r, nil, oneArm(d.Owner).OneArm) },
	func(r *rand.Rand, d *lb.Desired) { d.Share = pickOne(r, "", "all") },
	func(r *rand.Rand, d *lb.Desired) {
		d.SourceRanges = pickOne(r, nil, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	},
	func(_ *rand.Rand, d *lb.Desired) {
		d.Internal = true
		d.Subnet = netip.MustParsePrefix("192.168.77.0/24")
	},
	func(_ *rand.Rand, d *lb.Desired) {
		d.Internal = false
		d.Subnet = netip.Prefix{}
	},
	func(r *rand.Rand, d *lb.Desired) {
		d.Members = append(d.Members[:1:1], netip.MustParseAddr(fmt.Sprintf("192.168.100.%d", 20+r.IntN(9))))
	},
	func(_ *rand.Rand, d *lb.Desired) { d.Sticky = !d.Sticky },
	func(_ *rand.Rand, d *lb.Desired) { d.Absent = true },
}

func pickOne[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// TestChangingDesiredStatesConverge repeatedly changes how three Services are reached and with which Services they
// share addresses. None of them may get stuck, and no object may be left.
func TestChangingDesiredStatesConverge(t *testing.T) {
	for name, model := range map[string]func() vcdsim.Model{
		"on IP blocks": vcdsim.K8sTenant,
		"on IP Spaces": vcdsim.IPSpaces,
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				w := newFixture(t, model())
				r := rand.New(rand.NewPCG(seed, 1))
				w.opts.SourceRanges = true
				w.restart()
				all := []lb.Desired{
					desired(service("c1", "a"), 81),
					desired(service("c1", "b"), 82),
					desired(service("c1", "c"), 83),
				}
				for i := range all {
					all[i].Share = "all"
				}
				for range 25 {
					d := &all[r.IntN(len(all))]
					d.Absent = false
					pickOne(r, stateChanges...)(r, d)
					plan := w.converge(d)
					w.Expect(plan.Done() || d.Absent).To(BeTrue(), "%+v of %+v", plan, d)
					d.Published = plan.Status.Addresses
				}
				w.remove(all...)
				w.Expect(w.left("c1")).To(BeEmpty())
			})
		}
	}
}
