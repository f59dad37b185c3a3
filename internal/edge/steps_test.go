// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// steps plans the steps to create a load balancer, with its address recorded.
func (w *fixture) steps(d *lb.Desired) []lb.Step {
	w.t.Helper()
	plan, err := w.plan(d)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Steps).NotTo(BeEmpty())
	d.Intent = plan.Intent
	return stepsOf(plan)
}

// stepsOf returns the steps of a plan for an edge gateway.
func stepsOf(plan loadbalancer.Plan) []lb.Step {
	var out []lb.Step
	for _, s := range plan.Steps {
		out = append(out, s.(lb.Step))
	}
	return out
}

// run runs a step that must succeed.
func (w *fixture) run(step lb.Step) {
	w.t.Helper()
	w.Expect(w.driver.Run(w.t.Context(), w.gateway, step)).To(Succeed())
}

func TestStepsAreIdempotent(t *testing.T) {
	for _, shape := range shapes()[:4] {
		t.Run(shape.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, shape.model())
			d := shape.desired(service("c1", "web"), 80)
			for range 4 {
				plan, err := w.plan(&d)
				w.Expect(err).NotTo(HaveOccurred())
				if d.Intent = append(d.Intent, plan.Intent...); plan.Done() {
					break
				}
				for _, step := range stepsOf(plan) {
					w.run(step)
					step.Stored = true // as in every later plan
					w.run(step)
					w.restart() // another process does not know the completed steps
					w.run(step)
				}
			}
			w.stands(d, 1)
			gone := absent(d)
			for _, step := range w.steps(&gone) {
				w.run(step)
				w.run(step)
				w.restart()
				w.run(step)
			}
			w.remove(d)
			w.Expect(w.left("")).To(BeEmpty())
		})
	}
}

func TestForeignObjectsAreNotTouched(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	var pool lb.Step
	for _, step := range w.steps(&d) {
		if step.Kind == lb.KindPool {
			pool = step
			break
		}
		w.run(step)
	}
	org := w.sim.State().Model.Orgs[1].ID
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.AddDocument("1.0.0/loadBalancer/pools", "loadBalancerPool", org, w.gateway, map[string]any{
			"name":        pool.Name,
			"description": "made by hand",
			"enabled":     true,
		})
	})

	err := w.driver.Run(t.Context(), w.gateway, pool)

	w.Expect(err).To(MatchError(loadbalancer.ErrRefused))
	w.Expect(err).To(MatchError(ContainSubstring("an object of another owner has this name")))
}

func TestErrorsSuggestARemedy(t *testing.T) {
	tests := []struct {
		name  string
		fault vcdsim.Fault
		kind  error
	}{
		{"the gateway is busy", vcdsim.Fault{Busy: vcdsim.BusyTenant}, loadbalancer.ErrBusy},
		{"invalid input", vcdsim.Fault{Status: http.StatusBadRequest}, loadbalancer.ErrRefused},
		{"a missing right", vcdsim.Fault{Status: http.StatusForbidden}, loadbalancer.ErrRefused},
		{"a quota", vcdsim.Fault{Status: http.StatusBadRequest, Code: "QUOTA_EXCEEDED"}, loadbalancer.ErrRefused},
		{"VCD fails internally", vcdsim.Fault{Status: http.StatusInternalServerError}, loadbalancer.ErrUnknown},
		{"no answer", vcdsim.Fault{DropAfter: true}, loadbalancer.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			d := desired(service("c1", "web"), 80)
			steps := w.steps(&d)
			tt.fault.Operation = "POST /cloudapi/1.0.0/firewallGroups"
			if tt.name == "a missing right" {
				tt.fault.Operation = "POST /cloudapi/1.0.0/loadBalancer/*"
				w.run(steps[0])
				steps = steps[1:]
				steps[0].Pool.Group = lb.Ref{}
				steps[0].Pool.Members = d.Members
			}
			w.sim.Faults().Add(tt.fault)

			err := w.driver.Run(t.Context(), w.gateway, steps[0])

			w.Expect(err).To(MatchError(tt.kind))
			w.Expect(err.Error()).To(HavePrefix(steps[0].String() + ": "))
		})
	}
}

func TestObservationFailsClosed(t *testing.T) {
	for _, path := range []string{
		"virtualServiceSummaries", "poolSummaries", "summaries", "nat/rules",
		"applicationPortProfiles", "certificateLibrary",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			for _, operation := range []string{
				"GET /cloudapi/*/*/*/" + path,
				"GET /cloudapi/*/*/" + path,
				"GET /cloudapi/*/" + path,
			} {
				w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusInternalServerError, Operation: operation})
			}
			_, err := w.driver.Observe(t.Context(), w.gateway,
				lb.Query{Owner: service("c1", "web"), Facts: lb.Forwardings | lb.Certificates})
			w.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
			_, err = w.driver.Owners(t.Context(), w.gateway, "c1")
			w.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
		})
	}
}

func TestARevokedRightIsNoProofOfAbsence(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := oneArm(service("c1", "web"), 80)
	w.sim.Faults().Add(vcdsim.Fault{
		Status:    http.StatusForbidden,
		Operation: "GET /cloudapi/1.0.0/ssl/certificateLibrary",
	})
	w.converge(&d)
	w.Expect(w.driver.Owners(t.Context(), w.gateway, "c1")).To(ConsistOf(d.Owner, loadbalancer.Owner{Cluster: "c1"}),
		"a user who cannot view certificates has none")

	w.sim.Faults().Add(vcdsim.Fault{
		Status:    http.StatusForbidden,
		Operation: "GET /cloudapi/1.0.0/edgeGateways/nat/rules",
	})
	_, err := w.driver.Owners(t.Context(), w.gateway, "c1")
	w.Expect(err).To(MatchError(loadbalancer.ErrRefused), "there were rules")
}

func TestWithoutTheRightToIPSets(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusForbidden, Operation: "POST /cloudapi/1.0.0/firewallGroups"})
	d := desired(service("c1", "web"), 80)

	_, err := w.reach(&d)
	w.Expect(err).To(MatchError(loadbalancer.ErrBusy), "the next plan omits it")
	plan := w.converge(&d)

	w.Expect(plan.Done()).To(BeTrue())
	w.Expect(w.driver.Capabilities(t.Context(), w.gateway)).To(HaveField("MemberSets", false))
	seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner, Facts: lb.FullPools})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.Pools).To(ConsistOf(HaveField("Members", ConsistOf(d.Members))))
	w.calls()
	d.Members = append(d.Members, netip.MustParseAddr("192.168.100.13"))
	w.converge(&d)
	_, writes, calls := w.calls()
	w.Expect(writes).To(Equal(1), "%v", calls)
}

func TestAFloatingIPOfAnotherOrganization(t *testing.T) {
	model := vcdsim.IPSpaces()
	w := newFixture(t, model)
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.Model.IPSpaces[0].Allocations = []vcdsim.IPAllocation{{
			Type:  vcdsim.FloatingIP,
			Value: "198.51.100.10",
			OrgID: "another",
		}}
	})
	d := desired(service("c1", "web"), 80)

	_, err := w.reach(&d)
	w.Expect(err).To(MatchError(loadbalancer.ErrBusy))
	plan := w.converge(&d)

	w.Expect(plan.Done()).To(BeTrue())
	w.Expect(plan.Status.Addresses).NotTo(ContainElement(netip.MustParseAddr("198.51.100.10")))
	w.remove(d)
	w.Expect(w.left("c1")).To(BeEmpty())
}

func TestAConcurrentlyAllocatedFloatingIPIsNotTaken(t *testing.T) {
	for name, requested := range map[string]bool{"chosen": false, "requested": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, vcdsim.IPSpaces())
			d := desired(service("c1", "web"), 80)
			p, err := w.plan(&d)
			w.Expect(err).NotTo(HaveOccurred())
			address := stepsOf(p)[0].Address.Value
			if requested {
				d.Requested = []netip.Addr{address}
			}
			org := w.sim.State().Model.Orgs[1].ID
			w.sim.Edit(func(e *vcdsim.Editor) { // the list of floating IPs was read earlier
				e.Model.IPSpaces[0].Allocations = []vcdsim.IPAllocation{
					{Type: vcdsim.FloatingIP, Value: address.String(), OrgID: org},
				}
			})
			editManually := And(HaveField("Value", address.String()), HaveField("Description", ""))

			_, err = w.reach(&d)
			w.Expect(err).To(MatchError(loadbalancer.ErrBusy))
			plan := w.converge(&d)

			w.Expect(plan.Status.Addresses).To(HaveLen(1))
			w.Expect(slices.Contains(plan.Status.Addresses, address)).To(Equal(requested))
			w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(ContainElement(editManually))
			w.Expect(d.Intent).NotTo(ContainElement(address), "after a restart it would be considered taken")
			w.restart()
			w.converge(&d)
			w.remove(d)
			w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(ConsistOf(editManually))
		})
	}
}

func TestARejectedFloatingIPRemainsForeignAfterReallocation(t *testing.T) {
	for name, absent := range map[string]bool{"wanted": false, "deleted": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, vcdsim.IPSpaces())
			d := desired(service("c1", "web"), 80)
			p, err := w.plan(&d)
			w.Expect(err).NotTo(HaveOccurred())
			address := stepsOf(p)[0].Address.Value
			org := w.sim.State().Model.Orgs[1].ID
			allocate := func(id string) {
				w.sim.Edit(func(e *vcdsim.Editor) {
					e.Model.IPSpaces[0].Allocations = []vcdsim.IPAllocation{
						{ID: id, Type: vcdsim.FloatingIP, Value: address.String(), OrgID: org},
					}
				})
			}
			allocate("11111111-1111-4111-8111-111111111111")
			_, err = w.reach(&d)
			w.Expect(err).To(MatchError(loadbalancer.ErrBusy))
			w.Expect(d.Intent).To(ConsistOf(address))

			allocate("22222222-2222-4222-8222-222222222222")
			d.Absent = absent
			plan, err := w.driver.Plan(t.Context(), w.gateway, d, edge.PlanOptions{Fresh: true})
			w.Expect(err).NotTo(HaveOccurred())
			for _, step := range plan.Steps {
				w.Expect(step.(lb.Step).Name).NotTo(Equal(address.String()), "%s", step)
			}
			w.converge(&d)

			w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(ContainElement(
				And(HaveField("Value", address.String()), HaveField("Description", ""))))
		})
	}
}

func TestAReleasedFloatingIPBelongsToItsNextAllocator(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	d := desired(service("c1", "web"), 80)
	address := w.converge(&d).Status.Addresses[0]
	d.Absent = true
	d.Intent = []netip.Addr{address}
	_, err := w.round(&d)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.sim.State().Model.IPSpaces[0].Allocations).To(BeEmpty())
	org := w.sim.State().Model.Orgs[1].ID
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.Model.IPSpaces[0].Allocations = []vcdsim.IPAllocation{
			{Type: vcdsim.FloatingIP, Value: address.String(), OrgID: org},
		}
	})

	plan, err := w.driver.Plan(t.Context(), w.gateway, d, edge.PlanOptions{Fresh: true})

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(plan.Steps).To(BeEmpty())
	w.Expect(plan.Done()).To(BeTrue())
}

func TestAForeignMarkerIsKept(t *testing.T) {
	w := newFixture(t, vcdsim.IPSpaces())
	d := desired(service("c1", "web"), 80)
	steps := w.steps(&d)
	w.run(steps[0])
	theirs := lb.Marker{Owner: service("c2", "web")}.String()
	w.sim.Edit(func(e *vcdsim.Editor) { e.Model.IPSpaces[0].Allocations[0].Description = theirs })

	w.Expect(w.driver.Run(t.Context(), w.gateway, steps[1])).To(MatchError(loadbalancer.ErrBusy))

	w.Expect(w.sim.State().Model.IPSpaces[0].Allocations[0].Description).To(Equal(theirs))
	plan := w.converge(&d)
	w.Expect(plan.Done()).To(BeTrue())
	w.Expect(w.left("c1")).To(HaveLen(4), "its own address, an IP set, a pool and a virtual service")
}

func TestAnEndlessTaskTimesOut(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	w.opts = edge.Options{TaskTimeout: 50 * time.Millisecond}
	w.restart()
	w.sim.Faults().Add(vcdsim.Fault{StickTask: true})
	step := lb.Step{
		Verb: lb.Create,
		Kind: lb.KindSet,
		Name: "nodes",
		Set:  &lb.Set{Object: lb.Object{Description: lb.Marker{Owner: loadbalancer.Owner{Cluster: "c1"}}.String()}},
	}

	err := w.driver.Run(t.Context(), w.gateway, step)

	w.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	w.Expect(err).To(MatchError(ContainSubstring("did not complete the task")))
}

func TestDriftIsDetected(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	now := newTestClock()
	w.opts = edge.Options{Clock: now}
	w.restart()
	d := desired(service("c1", "web"), 80, 443)
	w.converge(&d)
	seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner})
	w.Expect(err).NotTo(HaveOccurred())
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.DeleteDocument(seen.Services[0].ID)
		e.Document(seen.Pools[1].ID, func(body map[string]any) { body["healthMonitors"] = []any{} })
		e.Document(seen.Sets[0].ID, func(body map[string]any) { body["ipAddresses"] = []any{"10.9.9.9"} })
	})

	for range 4 { // two pools and a set, one per minute
		now.Advance(time.Minute)
		w.converge(&d)
	}

	seen, err = w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner, Facts: lb.FullPools, Fresh: true})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.Services).To(HaveLen(2), "deleted objects are recreated")
	w.Expect(seen.Pools).To(HaveEach(HaveField("Monitors", HaveLen(1))), "including objects that lists do not show")
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.Document(seen.Sets[0].ID, func(body map[string]any) {
			w.Expect(body["ipAddresses"]).To(ConsistOf("192.168.100.11", "192.168.100.12"))
		})
	})
}

func TestObjectsOfOlderVersions(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	const cluster = "urn:vcloud:entity:vmware:capvcdCluster:11111111-2222-3333-4444-555555555555"
	short := "capvcdCluster:11111111-2222-3333-4444-555555555555"
	org := w.sim.State().Model.Orgs[1].ID
	w.sim.Edit(func(e *vcdsim.Editor) {
		pool := e.AddDocument("1.0.0/loadBalancer/pools", "loadBalancerPool", org, w.gateway, map[string]any{
			"name":           "ingress-pool-web-" + short + "-http",
			"enabled":        true,
			"defaultPort":    30080.0,
			"healthMonitors": []any{map[string]any{"type": "TCP"}},
			"members": []any{map[string]any{
				"ipAddress": "192.168.100.11",
				"port":      30080.0,
				"enabled":   true,
				"ratio":     1.0,
			}},
		})
		e.AddDocument("1.0.0/loadBalancer/virtualServices", "loadBalancerVirtualService", org, w.gateway,
			map[string]any{
				"name":                "ingress-vs-web-" + short + "-http",
				"enabled":             true,
				"virtualIpAddress":    "203.0.113.50",
				"loadBalancerPoolRef": map[string]any{"id": pool},
				"applicationProfile":  map[string]any{"type": "L4"},
				"servicePorts": []any{map[string]any{
					"portStart":     80.0,
					"portEnd":       80.0,
					"tcpUdpProfile": map[string]any{"type": "TCP_PROXY"},
				}},
			})
	})
	owner := loadbalancer.Owner{Cluster: cluster, Namespace: "default", Name: "web", UID: "u"}

	seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: owner, Facts: lb.FullPools})

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.Services).To(ConsistOf(And(HaveField("VIPs", ConsistOf(netip.MustParseAddr("203.0.113.50"))),
		HaveField("Port", 80))))
	w.Expect(seen.Pools).To(ConsistOf(And(HaveField("Members", ConsistOf(netip.MustParseAddr("192.168.100.11"))),
		HaveField("NodePort", 30080))))
	w.Expect(w.driver.Owners(t.Context(), w.gateway, cluster)).To(ConsistOf(HaveField("Name", "web")))
	other := owner
	other.Cluster = "another"
	seen, err = w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: other})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.Services).To(BeEmpty())
	w.Expect(seen.Taken).To(ConsistOf(HaveField("Address", netip.MustParseAddr("203.0.113.50"))))
}

// stuck makes the next task of a kind hang, and returns a function that releases it.
func (w *fixture) stuck(operation string) (free func()) {
	id := w.sim.Faults().Add(vcdsim.Fault{Hang: true, Operation: operation})
	return func() { w.sim.Faults().Remove(id) }
}

func TestWritesAreSerialized(t *testing.T) {
	model := vcdsim.K8sTenant()
	second := model.Orgs[1].VDCs[0].EdgeGateways[0]
	second.Name = "second"
	second.Uplinks = []vcdsim.Uplink{{
		Network: "internet",
		Subnets: []vcdsim.UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Primary: netip.MustParseAddr("203.0.113.200"),
			Addresses: []vcdsim.Range{{
				From: netip.MustParseAddr("203.0.113.200"),
				To:   netip.MustParseAddr("203.0.113.210"),
			}},
		}},
	}}
	model.Orgs[1].VDCs[0].EdgeGateways = append(model.Orgs[1].VDCs[0].EdgeGateways, second)
	w := newFixture(t, model)
	w.opts.MaxWaiting = 2
	w.restart()
	d := desired(service("c1", "web"), 80)
	step := w.steps(&d)[0]
	w.stuck("POST /cloudapi/1.0.0/firewallGroups")
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 4)
	for range 4 {
		go func() { errs <- w.driver.Run(ctx, w.gateway, step) }()
	}

	var err error
	w.Eventually(errs).Should(Receive(&err))
	w.Expect(err).To(MatchError(loadbalancer.ErrBusy), "one writes, two wait, the fourth is rejected")
	w.Expect(err).To(MatchError(ContainSubstring("other writers wait for the edge gateway")))
	w.sim.Faults().Clear()
	other := *w
	other.gateway = vcdsim.URN("gateway", w.sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[1].ID)
	elsewhere := desired(service("c1", "elsewhere"), 80)
	other.converge(&elsewhere)
	w.Consistently(errs, "20ms").ShouldNot(Receive(), "the first still waits for its response")

	cancel()
	for range 3 {
		w.Eventually(errs).Should(Receive(&err))
		w.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
		w.Expect(err).To(MatchError(context.Canceled))
	}
}

func TestACanceledCallerDoesNotWaitForATask(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := desired(service("c1", "web"), 80)
	step := w.steps(&d)[0]
	w.sim.Faults().Add(vcdsim.Fault{StickTask: true})
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- w.driver.Run(ctx, w.gateway, step) }()
	w.Eventually(func() []vcdsim.Task { return w.sim.State().Tasks }).Should(ContainElement(HaveField("Status",
		vcdsim.TaskRunning)))
	cancel()

	var err error
	w.Eventually(gaveUp).Should(Receive(&err))
	w.Expect(err).To(MatchError(loadbalancer.ErrUnknown))
	w.Expect(err).To(MatchError(context.Canceled))
	seen, err := w.driver.Observe(t.Context(), w.gateway, lb.Query{Owner: d.Owner})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen.Sets).To(ConsistOf(HaveField("State", lb.Pending)), "an incomplete object is noticed")
}
