// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A fixture is a simulated VCD with a gateway, and a driver for it.
type fixture struct {
	*WithT

	t       *testing.T
	sim     *vcdsim.Simulator
	config  vcd.Config
	pool    *vcd.Pool
	gateway string
	driver  *edge.Driver
	opts    edge.Options
}

func newFixture(t *testing.T, model vcdsim.Model, mods ...func(*vcdsim.Config)) *fixture {
	t.Helper()
	w := &fixture{WithT: NewWithT(t), t: t}
	config := vcdsim.Config{Model: model, Profile: vcdsim.Instant, Seed: 1}
	for _, mod := range mods {
		mod(&config)
	}
	sim, err := vcdsim.New(config)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { w.Expect(sim.Close()).To(Succeed()) })
	w.sim = sim
	w.config = vcd.Config{
		Site:        sim.URL(),
		Org:         "acme",
		CABundle:    sim.CA(),
		Version:     "1",
		Credentials: vcd.Credentials{Username: "ccm", Password: "password"},
	}
	w.pool = vcd.NewPool(vcd.PoolOptions{TaskPoll: 2 * time.Millisecond, RequestsPerSecond: 100000, Burst: 100000})
	t.Cleanup(func() {
		w.sim.Faults().Clear()
		w.Expect(w.pool.Close(context.WithoutCancel(t.Context()))).To(Succeed())
	})
	w.gateway = vcdsim.URN("gateway", sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	w.opts = edge.Options{MaxAge: time.Hour}
	w.restart()
	return w
}

// restart replaces the driver, as a restart of the process does.
func (w *fixture) restart() {
	w.driver = edge.New(func(ctx context.Context) (*vcd.Session, error) { return w.pool.Session(ctx, w.config) },
		w.opts)
}

// service returns an owner with the name of a Service.
func service(cluster, name string) loadbalancer.Owner {
	return loadbalancer.Owner{Cluster: cluster, Namespace: "default", Name: name, UID: "uid-" + cluster + "-" + name}
}

// desired returns the desired state of a simple load balancer: TCP ports on an address.
func desired(o loadbalancer.Owner, ports ...int) lb.Desired {
	d := lb.Desired{
		Desired: loadbalancer.Desired{
			Owner:    o,
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		Members: []netip.Addr{netip.MustParseAddr("192.168.100.11"), netip.MustParseAddr("192.168.100.12")},
	}
	for _, p := range ports {
		d.Listeners = append(d.Listeners,
			lb.Listener{Name: fmt.Sprint("p", p), Protocol: loadbalancer.TCP, Application: lb.L4, Port: p, NodePort: 30000 + p})
	}
	return d
}

// absent returns the desired state of a deleted load balancer.
func absent(d lb.Desired) lb.Desired {
	d.Absent = true
	return d
}

// nothing returns the desired state without the objects that all owners of a cluster share.
func nothing(cluster string) lb.Desired {
	return absent(lb.Desired{Desired: loadbalancer.Desired{Owner: loadbalancer.Owner{Cluster: cluster}}})
}

// plan observes the state and plans.
func (w *fixture) plan(d *lb.Desired) (loadbalancer.Plan, error) {
	return w.driver.Plan(w.t.Context(), w.gateway, *d, edge.PlanOptions{})
}

// round does what the cloud controller manager does: it observes, plans, stores the intent, and runs the steps.
func (w *fixture) round(d *lb.Desired) (loadbalancer.Plan, error) {
	plan, err := w.plan(d)
	if err != nil {
		return plan, err
	}
	if len(plan.Intent) > 0 {
		d.Intent = plan.Intent
	}
	d.Intent = slices.DeleteFunc(slices.Clone(d.Intent),
		func(a netip.Addr) bool { return slices.Contains(plan.Unused, a) })
	for _, step := range plan.Steps {
		if err := w.driver.Run(w.t.Context(), w.gateway, step); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// reach runs rounds until no steps remain.
func (w *fixture) reach(d *lb.Desired) (loadbalancer.Plan, error) {
	var plan loadbalancer.Plan
	var err error
	for range 8 {
		if plan, err = w.round(d); err != nil {
			return plan, err
		}
		if plan.Done() || len(plan.Refusals) > 0 {
			return plan, nil
		}
	}
	return plan, fmt.Errorf("no end: %+v", plan)
}

// converge applies the desired state until it is reached, and fails the test otherwise.
func (w *fixture) converge(d *lb.Desired) loadbalancer.Plan {
	w.t.Helper()
	var plan loadbalancer.Plan
	w.Eventually(func() (err error) { // After failures, VCD is not called for some seconds.
		plan, err = w.reach(d)
		return err
	}).Should(Succeed())
	return plan
}

// remove deletes load balancers, and the shared objects of their clusters.
func (w *fixture) remove(balancers ...lb.Desired) {
	w.t.Helper()
	for _, d := range balancers {
		d = absent(d)
		w.converge(&d)
	}
	for _, d := range balancers {
		whole := nothing(d.Owner.Cluster)
		w.converge(&whole)
	}
}

// left lists the objects of a cluster in VCD, or of all clusters if it is empty.
func (w *fixture) left(cluster string) []string {
	var found []string
	for _, doc := range w.sim.State().Documents {
		for _, path := range []string{
			"loadBalancer/pools", "loadBalancer/virtualServices", "nat/rules",
			"applicationPortProfiles", "firewallGroups", "ssl/certificateLibrary",
		} {
			if strings.HasSuffix(doc.Path, path) && strings.Contains(string(doc.Body), "cluster="+cluster) {
				found = append(found, doc.Path+" "+string(doc.Body))
			}
		}
	}
	for _, space := range w.sim.State().Model.IPSpaces {
		for _, a := range space.Allocations {
			if cluster == "" || strings.Contains(a.Description, "cluster="+cluster) {
				found = append(found, "allocation "+a.Value+" "+a.Description)
			}
		}
	}
	return found
}

// rolling matches the reads that refresh pools in portions.
const rolling = "GET /cloudapi/1.0.0/loadBalancer/pools"

// calls counts the reads and writes since the last call, except requests for tasks and reads of portions.
func (w *fixture) calls() (reads, writes int, all map[string]int) {
	all = w.sim.Counters()
	maps.DeleteFunc(all, func(op string, _ int) bool {
		return strings.Contains(op, "task") || op == rolling || strings.Contains(op, "sessions") ||
			strings.Contains(op, "versions")
	})
	for _, op := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(op, "GET ") {
			reads += all[op]
		} else {
			writes += all[op]
		}
	}
	w.sim.ResetCounters()
	return reads, writes, all
}

// A testClock is a manual clock. Waits take real time.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newTestClock() *testClock { return &testClock{now: time.Now()} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *testClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
