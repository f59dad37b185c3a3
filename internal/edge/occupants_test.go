// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	servicesDocument = "1.0.0/loadBalancer/virtualServices"
	rulesOfNAT       = "1.0.0/edgeGateways/{gateway}/nat/rules"
)

func TestAConcurrentlyTakenAddress(t *testing.T) {
	service8080 := func(address string) map[string]any {
		return map[string]any{
			"virtualIpAddress": address,
			"servicePorts":     []any{map[string]any{"portStart": 8080.0, "portEnd": 8080.0}},
		}
	}
	rule8080 := map[string]any{
		"type":              "DNAT",
		"externalAddresses": "203.0.113.11",
		"internalAddresses": "192.168.7.7",
		"dnatExternalPort":  "8080",
		"enabled":           true,
	}
	tests := []struct {
		name, path, kind string
		address          string
		desired          func(loadbalancer.Owner, ...int) lb.Desired
		body             map[string]any
	}{
		{
			name:    "of a virtual service",
			path:    servicesDocument,
			kind:    "loadBalancerVirtualService",
			address: "203.0.113.11",
			desired: desired,
			body:    service8080("203.0.113.11"),
		},
		{name: "inside", path: servicesDocument, kind: "loadBalancerVirtualService", address: "192.168.8.2", desired: oneArm, body: service8080("192.168.8.2")},
		{name: "of a NAT rule", path: rulesOfNAT, kind: "natRule", address: "203.0.113.11", desired: oneArm, body: rule8080},
		{name: "of a virtual service by a NAT rule", path: rulesOfNAT, kind: "natRule", address: "203.0.113.11", desired: desired, body: rule8080},
		{
			name:    "of a NAT rule by a virtual service",
			path:    servicesDocument,
			kind:    "loadBalancerVirtualService",
			address: "203.0.113.11",
			desired: oneArm,
			body:    service8080("203.0.113.11"),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, vcdsim.K8sTenant())
			d := tt.desired(service("c1", "web"), 80)
			steps := w.steps(&d)
			body := map[string]any{"name": "theirs", "description": lb.Marker{Owner: service("c2", "web")}.String()}
			for field, value := range tt.body {
				body[field] = value
			}
			org := w.sim.State().Model.Orgs[1].ID
			w.sim.Edit(func(e *vcdsim.Editor) { e.AddDocument(tt.path, tt.kind, org, w.gateway, body) })
			var err error
			for i := 0; i < len(steps) && err == nil; i++ {
				err = w.driver.Run(t.Context(), w.gateway, steps[i])
			}
			w.Expect(err).To(MatchError(loadbalancer.ErrBusy))
			w.Expect(err).To(MatchError(ContainSubstring("taken at the same time by theirs")))

			plan := w.converge(&d)
			w.Expect(plan.Done()).To(BeTrue())
			for _, doc := range w.sim.State().Documents {
				if doc.Path == servicesDocument || doc.Path == rulesOfNAT {
					theirs := strings.Contains(string(doc.Body), `"theirs"`)
					has := strings.Contains(string(doc.Body), `"`+tt.address+`"`)
					w.Expect(has).To(Equal(theirs), "each has one owner")
				}
			}
		})
	}
}

// TestTwoClustersTakeOneAddressInDifferentWays makes both clusters send their requests before VCD has responded to
// either: one for a virtual service on the address, the other for a NAT rule.
func TestTwoClustersTakeOneAddressInDifferentWays(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant(), func(c *vcdsim.Config) {
		c.Assumptions = ptr(vcdsim.DefaultAssumptions())
		c.Assumptions.GatewayWritesExclude = false // otherwise one request would be rejected as busy
	})
	other := *w
	other.restart()
	a := desired(service("c1", "web"), 80)
	b := oneArm(service("c2", "web"), 80)
	aSteps := w.steps(&a)
	bSteps := other.steps(&b)
	w.Expect(a.Intent).To(Equal(b.Intent), "both have observed it as free")
	last := func(w *fixture, steps []lb.Step, kind loadbalancer.Kind) lb.Step {
		for _, step := range steps {
			if step.Kind == kind {
				return step
			}
			w.run(step)
		}
		t.Fatal("no such step")
		return lb.Step{}
	}
	aStep := last(w, aSteps, lb.KindService)
	bStep := last(&other, bSteps, lb.KindRule)
	together := meet("POST /cloudapi/1.0.0/loadBalancer/virtualServices", "POST /cloudapi/1.0.0/edgeGateways/nat/rules")
	w.sim.SetGate(together)

	var aErr, bErr error
	both(func() { aErr = w.driver.Run(t.Context(), w.gateway, aStep) },
		func() { bErr = other.driver.Run(t.Context(), w.gateway, bStep) })

	w.sim.SetGate(nil)
	w.Expect([]error{aErr, bErr}).To(ContainElement(MatchError(loadbalancer.ErrBusy)), "at least one gives up")
	w.converge(&a)
	other.converge(&b)
	w.restart()
	other.restart()
	one := w.converge(&a)
	two := other.converge(&b)
	w.Expect(one.Done() && two.Done()).To(BeTrue())
	w.Expect(one.Status.Addresses).NotTo(Equal(two.Status.Addresses), "each has one owner")
}

// meet returns a gate that holds the first requests of two operations until both have arrived.
func meet(operations ...string) vcdsim.Gate {
	var mu sync.Mutex
	waiting := map[string]bool{}
	for _, op := range operations {
		waiting[op] = true
	}
	all := make(chan struct{})
	return func(ctx context.Context, m vcdsim.Moment, r vcdsim.Request) bool {
		mu.Lock()
		first := m == vcdsim.Arrived && waiting[r.Operation]
		delete(waiting, r.Operation)
		if first && len(waiting) == 0 {
			close(all)
		}
		mu.Unlock()
		if first {
			select {
			case <-all:
			case <-ctx.Done():
			}
		}
		return true
	}
}

func ptr[T any](v T) *T { return &v }
