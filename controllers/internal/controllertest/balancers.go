// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// NewBalancedOn returns an environment with a ready cluster. The second organization of the model must have an edge
// gateway in its first VDC.
func NewBalancedOn(t *testing.T, model vcdsim.Model) *Env {
	t.Helper()
	w := NewWith(t, vcdsim.Config{Profile: vcdsim.Instant, Model: model})
	w.Gateway = vcdsim.URN("gateway", w.Sim.State().Model.Orgs[1].VDCs[0].EdgeGateways[0].ID)
	session := w.Admin(t)
	w.balancing = edge.New(func(context.Context) (*vcd.Session, error) { return session, nil }, edge.Options{})
	w.Ready()
	return w
}

// Balance creates a load balancer for a Service of a cluster.
func (w *Env) Balance(cluster, name string, oneArm *lb.Range) {
	d := lb.Desired{
		Desired: loadbalancer.Desired{
			Owner:    loadbalancer.Owner{Cluster: cluster, Namespace: "shop", Name: name, UID: "uid-of-" + cluster + "-" + name},
			Families: []loadbalancer.Family{loadbalancer.IPv4},
		},
		OneArm:  oneArm,
		Members: []netip.Addr{netip.MustParseAddr("192.168.100.11")},
		Listeners: []lb.Listener{
			{Name: "http", Protocol: loadbalancer.TCP, Application: lb.L4, Port: 80, NodePort: 30080},
			{Name: "admin", Protocol: loadbalancer.TCP, Application: lb.L4, Port: 81, NodePort: 30081},
		},
	}
	for range 20 {
		plan, err := w.balancing.Plan(w.Ctx, w.Gateway, d, edge.PlanOptions{Fresh: true})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(plan.Refusals).To(BeEmpty())
		if plan.Done() {
			return
		}
		d.Intent = append(d.Intent, plan.Intent...)
		for _, step := range plan.Steps {
			err := w.balancing.Run(w.Ctx, w.Gateway, step)
			if errors.Is(err, loadbalancer.ErrBusy) {
				d.Intent = nil // The address is taken by an object that a killed manager began to create.
				break
			}
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
	w.Expect(name).To(BeEmpty(), "a load balancer that is never done")
}

// Owners returns the owners in a cluster that have objects on the gateway.
func (w *Env) Owners(cluster string) []loadbalancer.Owner {
	found, err := w.balancing.Owners(w.Ctx, w.Gateway, cluster)
	w.Expect(err).NotTo(HaveOccurred())
	return found
}

// ByHand deletes the objects of a cluster that have one of the kinds.
func (w *Env) ByHand(cluster string, kinds ...loadbalancer.Kind) {
	for _, owner := range slices.Backward(w.Owners(cluster)) {
		nothing := lb.Desired{Desired: loadbalancer.Desired{
			Owner:  owner,
			Absent: true,
		}}
		plan, err := w.balancing.Plan(w.Ctx, w.Gateway, nothing, edge.PlanOptions{Fresh: true})
		w.Expect(err).NotTo(HaveOccurred())
		for _, step := range plan.Steps {
			own, ok := step.(lb.Step)
			w.Expect(ok).To(BeTrue())
			if slices.Contains(kinds, own.Kind) {
				w.Expect(w.balancing.Run(w.Ctx, w.Gateway, step)).To(Succeed())
			}
		}
	}
}

// Profiles lists the application port profiles of a cluster.
func (w *Env) Profiles(cluster string) []string {
	var found []string
	for _, doc := range w.Sim.State().Documents {
		if strings.HasSuffix(doc.Path, "applicationPortProfiles") && strings.Contains(string(doc.Body), cluster) {
			found = append(found, string(doc.Body))
		}
	}
	return found
}

// LeaveBalancers sets the annotation with which users keep the load balancers of a cluster in VCD.
func (w *Env) LeaveBalancers() {
	c := w.VCDCluster()
	notes.Set(c, infrav1.KeepLoadBalancersAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

// Hurry speeds up the clock of the reconciler, so that the final check follows soon.
func (w *Env) Hurry() {
	began := time.Now()
	w.Cluster.Now = func() time.Time { return began.Add(60 * time.Since(began)) }
}

// LoseNetworks deletes the networks of the cluster's VDC.
func (w *Env) LoseNetworks() {
	w.Sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Networks = nil })
	w.Expect(w.Owners(w.VCDCluster().Spec.InfraID)).NotTo(BeEmpty())
}
