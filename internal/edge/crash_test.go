// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// life creates, updates and deletes a load balancer. A function, which may be interrupted, reaches each stage.
func (w *fixture) life(shape shape, work func(*lb.Desired)) {
	w.t.Helper()
	d := shape.desired(service("c1", "web"), 80, 443)
	work(&d)
	w.stands(d, 2)
	d.Listeners = append(d.Listeners[1:],
		lb.Listener{Name: "new", Protocol: loadbalancer.UDP, Application: lb.L4, Port: 53, NodePort: 30053})
	d.Listeners[0].NodePort = 31443
	d.Members = append(d.Members, netip.MustParseAddr("192.168.100.13"))
	work(&d)
	w.stands(d, 2)
	gone := absent(d)
	work(&gone)
	whole := nothing("c1")
	work(&whole)
	w.Expect(w.left("")).To(BeEmpty())
}

// stands checks in the simulator that a load balancer is as desired, and that there are no other objects.
func (w *fixture) stands(d lb.Desired, ports int) {
	w.t.Helper()
	w.restart()
	plan := w.converge(&d)
	w.Expect(plan.Steps).To(BeEmpty())
	w.Expect(plan.Done()).To(BeTrue())
	objects := map[string]int{}
	for _, doc := range w.sim.State().Documents {
		objects[doc.Path]++
	}
	w.Expect(objects["1.0.0/loadBalancer/virtualServices"]).To(Equal(ports))
	w.Expect(objects["1.0.0/loadBalancer/pools"]).To(Equal(ports))
	w.Expect(objects["1.0.0/firewallGroups"]).To(Equal(1))
	allocations := 0
	for _, space := range w.sim.State().Model.IPSpaces {
		allocations += len(space.Allocations)
	}
	w.Expect(allocations).To(BeNumerically("<=", 1))
}

// isWrite reports whether an operation of the simulator's counters writes.
func isWrite(operation string) bool {
	return !slices.Contains([]string{"GET", "HEAD"}, operation[:3]) && operation != "POST /cloudapi/1.0.0/sessions"
}

// writesOf counts the writes of a life without interruptions.
func writesOf(t *testing.T, shape shape) int {
	t.Helper()
	w := newFixture(t, shape.model())
	w.life(shape, func(d *lb.Desired) { w.converge(d) })
	n := 0
	for _, r := range w.sim.Requests() {
		if isWrite(r.Operation) {
			n++
		}
	}
	return n
}

var errDied = errors.New("died")

// dieAfter runs rounds until one write is done, stores the intent only if there was one, and stops.
func (w *fixture) dieAfter(d *lb.Desired, write int, done *int) {
	w.t.Helper()
	for range 60 {
		plan, err := w.plan(d)
		w.Expect(err).NotTo(HaveOccurred())
		if plan.Done() || len(plan.Refusals) > 0 {
			return
		}
		if len(plan.Intent) > 0 {
			d.Intent = plan.Intent
		}
		for _, step := range plan.Steps {
			w.Expect(w.driver.Run(w.t.Context(), w.gateway, step)).To(Succeed())
			if *done++; *done == write {
				w.restart()
				break
			}
		}
	}
	w.t.Fatal(errDied, "and does not converge")
}

func TestRestartAfterEveryStep(t *testing.T) {
	for _, shape := range shapes()[:4] {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			steps := writesOf(t, shape)
			NewWithT(t).Expect(steps).To(BeNumerically(">", 15))
			for n := 1; n <= steps; n++ {
				w := newFixture(t, shape.model())
				done := 0
				w.life(shape, func(d *lb.Desired) { w.dieAfter(d, n, &done) })
			}
		})
	}
}

// faults returns the possible faults of a call.
func faults() map[string]vcdsim.Fault {
	return map[string]vcdsim.Fault{
		"is lost before VCD receives it": {DropBefore: true},
		"drops answers":                  {DropAfter: true},
		"fails internally":               {Status: http.StatusInternalServerError},
		"is busy":                        {Busy: vcdsim.BusyTenant},
		"is interrupted":                 {Truncate: true},
	}
}

func TestEveryFaultAtEveryCall(t *testing.T) {
	for _, shape := range []shape{shapes()[0], shapes()[3]} {
		calls := 0
		t.Run(shape.name+" without faults", func(t *testing.T) {
			w := newFixture(t, shape.model())
			w.life(shape, func(d *lb.Desired) { w.converge(d) })
			calls = len(w.sim.Requests())
		})
		for name, fault := range faults() {
			t.Run(fmt.Sprintf("%s, VCD %s", shape.name, name), func(t *testing.T) {
				t.Parallel()
				// the login is tested elsewhere, and every call meets one of the faults
				for skip := 3; skip < calls; skip += 4 {
					w := newFixture(t, shape.model())
					fault.Skip = skip + len(name)%4
					fault.Count = 1
					w.sim.Faults().Add(fault)
					w.life(shape, func(d *lb.Desired) { w.converge(d) })
				}
			})
		}
	}
}

func TestEveryTaskFails(t *testing.T) {
	for _, shape := range []shape{shapes()[0], shapes()[3]} {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			tasks := writesOf(t, shape)
			for skip := range tasks {
				w := newFixture(t, shape.model())
				w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Skip: skip, Count: 1})
				w.life(shape, func(d *lb.Desired) { w.converge(d) })
			}
		})
	}
}

func TestManyTasksFailAndManyResponsesAreLost(t *testing.T) {
	for _, shape := range shapes()[:4] {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, shape.model(), func(c *vcdsim.Config) { c.Seed = 7 })
			w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Probability: 0.2, Count: 5})
			w.sim.Faults().Add(vcdsim.Fault{Busy: vcdsim.BusyProvider, Operation: "P*", Probability: 0.2, Count: 8})
			w.sim.Faults().Add(vcdsim.Fault{DropAfter: true, Operation: "P*", Probability: 0.2, Count: 3})
			w.life(shape, func(d *lb.Desired) { w.converge(d) })
		})
	}
}

func TestTwoClustersOnOneGateway(t *testing.T) {
	for _, shape := range shapes()[:4] {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, shape.model())
			other := *w
			other.restart()
			a := shape.desired(service("c1", "web"), 80, 443)
			b := shape.desired(service("c2", "web"), 80, 8080)
			both(func() { w.converge(&a) }, func() { other.converge(&b) })

			w.restart()
			other.restart()
			one := w.converge(&a)
			two := other.converge(&b)
			w.Expect(one.Done() && two.Done()).To(BeTrue())
			w.Expect(one.Status.Addresses).NotTo(Equal(two.Status.Addresses), "each has one owner")
			w.Expect(w.driver.Owners(t.Context(), w.gateway, "c2")).To(ConsistOf(b.Owner, loadbalancer.Owner{Cluster: "c2"}))
			before := w.left("c2")
			w.remove(a)
			w.Expect(w.left("c1")).To(BeEmpty())
			w.Expect(w.left("c2")).To(Equal(before), "objects of the other cluster are not touched")
			other.remove(b)
			w.Expect(w.left("")).To(BeEmpty())
		})
	}
}

// both runs two functions concurrently.
func both(a, b func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a()
	}()
	b()
	<-done
}
