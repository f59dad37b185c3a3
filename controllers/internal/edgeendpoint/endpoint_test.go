// SPDX-License-Identifier: Apache-2.0

package edgeendpoint_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func create(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, o := range objects {
		if err := c.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// calls counts reads of gateways and writes to them, without what finds the cluster's session, VDC and network.
func (w *world) calls() (reads, writes int) {
	for _, r := range w.requests() {
		switch {
		case !strings.Contains(r.Path, "edgeGateways/") && !strings.Contains(r.Path, "loadBalancer") &&
			!strings.Contains(r.Path, "ipSpaces") && !strings.Contains(r.Path, "firewallGroups") &&
			!strings.Contains(r.Path, "applicationPortProfiles"):
		case r.Method == http.MethodGet:
			reads++
		case r.Changes():
			writes++
		}
	}
	return reads, writes
}

func TestAnEndpointIsMadeWithFewCalls(t *testing.T) {
	for _, tt := range []struct {
		name          string
		config        vcdsim.Config
		spec          *infrav1.EdgeGatewayEndpoint
		reads, writes int
		within        string
	}{
		{"on a block of addresses", instant(), nil, 7, 2, "203.0.113.0/24"},
		{"of an IP Space", onSpaces(), nil, 8, 4, "198.51.100.0/24"},
		{"in one-arm mode", instant(), &infrav1.EdgeGatewayEndpoint{ArmMode: infrav1.ArmModeOneArm}, 8, 4, "192.168.8.0/24"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.config, tt.spec)

			w.Ready()

			c := w.VCDCluster()
			reads, writes := w.calls()
			w.Expect(writes).To(BeNumerically("<=", tt.writes), "writes")
			w.Expect(reads).To(BeNumerically("<=", tt.reads), "reads")
			w.Expect(c.Spec.ControlPlaneEndpoint.Port).To(BeEquivalentTo(6443))
			found := endpoint(w.Sim.State())
			w.Expect(found).To(HaveLen(1))
			w.Expect(netip.MustParsePrefix(tt.within).Contains(found[0].Address)).To(BeTrue(), "%s", found[0].Address)
			w.Expect(found[0].Monitor).To(Equal([]string{"TCP"}))
			w.Expect(found[0].Members).To(BeEmpty())
			if tt.spec == nil {
				w.Expect(c.Spec.ControlPlaneEndpoint.Host).To(Equal(found[0].Address.String()))
			}

			w.DeleteCluster()
			w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
			w.Expect(w.Sim.State().Documents).NotTo(ContainElement(HaveField("Body", ContainSubstring("cluster="))))
		})
	}
}

func TestControlPlanesAreMembersFromBeforeTheyRunUntilTheyAreDeleted(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	for _, name := range []string{"a", "b", "c"} {
		w.add(name)
		w.mark()
		w.EventuallyMachine(name, infrav1.EndpointJoinedCondition, infrav1.ReadyReason)
		w.Expect(w.members()).To(ContainElement(w.addressOf(name)))
		w.Ready(name)
		on := false
		for _, r := range w.requests() {
			on = on || strings.Contains(r.Operation, "powerOn")
			w.Expect(on && r.Changes() && strings.Contains(r.Path, "loadBalancer")).To(BeFalse(),
				"the pool is written before power-on")
		}
		_, writes := w.calls()
		w.Expect(writes).To(Equal(1))
	}
	w.Expect(w.members()).To(HaveLen(3))
	gone := w.addressOf("b")
	w.mark()

	w.DeleteMachine("b")

	w.Expect(w.members()).To(And(HaveLen(2), Not(ContainElement(gone))))
	_, writes := w.calls()
	w.Expect(writes).To(Equal(1))
	first := ""
	for _, r := range w.requests() {
		if r.Changes() && first == "" {
			first = r.Path
		}
	}
	w.Expect(first).To(ContainSubstring("loadBalancer/pools"), "it left before its VM was touched")

	w.DeleteMachine("a")
	w.DeleteMachine("c")
	w.Expect(w.members()).To(BeEmpty())
	w.DeleteCluster()
	w.Expect(endpoint(w.Sim.State())).To(BeEmpty())
}

// deleteMachine deletes the Machine of a control plane. Its VCDMachine is deleted later.
func (w *world) deleteMachine(name string) {
	m := &clusterv1.Machine{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name}, m)).To(Succeed())
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
}

// settle reconciles the cluster and machines often enough for any change of the endpoint to be complete.
func (w *world) settle(machines ...string) {
	for range 20 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		for _, name := range machines {
			_, err := w.ReconcileMachine(name)
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
}

func TestAControlPlaneLeavesTheEndpointWhenItsMachineIsDeleted(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a", "b")
	w.Ready("a", "b")
	stays := w.addressOf("a")
	w.mark()

	w.deleteMachine("b")
	w.Eventually(func() (string, error) {
		_, err := w.ReconcileMachine("b")
		return w.VCDMachine("b").Spec.RecordedState.EndpointMember, err
	}, controllertest.Patience, "5ms").Should(BeEmpty())

	w.Expect(w.members()).To(ConsistOf(stays))
	w.Restart(t, events.NewFakeRecorder(100))
	w.settle("a", "b")
	w.Expect(w.members()).To(ConsistOf(stays), "it does not join again")
	_, writes := w.calls()
	w.Expect(writes).To(Equal(1))
	w.Expect(w.Sim.State().VMs).To(HaveLen(2))
	w.Expect(conditions.IsTrue(w.VCDMachine("b"), clusterv1.ReadyCondition)).To(BeTrue())

	w.DeleteMachine("b")
	w.Expect(w.members()).To(ConsistOf(stays))
}

func TestAControlPlaneStaysInTheEndpointUntilItIsDeleted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []string
		joins  string // a machine that is a member but does not run yet
		edit   func(*infrav1.VCDCluster)
		left   int // members after the deletion of the VCDMachine
	}{
		{
			name: "the only one",
		},
		{
			name:  "the only one that runs",
			joins: "b",
			left:  1,
		},
		{
			name:   "one of a cluster whose user keeps load balancers",
			others: []string{"b"},
			edit: func(c *infrav1.VCDCluster) {
				c.Annotations = map[string]string{infrav1.KeepLoadBalancersAnnotation: "true"}
			},
			left: 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, instant(), nil)
			w.Ready()
			w.add(append(tt.others, "a")...)
			w.Ready(append(tt.others, "a")...)
			if tt.edit != nil {
				w.edit(tt.edit)
			}
			if tt.joins != "" {
				w.add(tt.joins)
				w.EventuallyMachine(tt.joins, infrav1.EndpointJoinedCondition, infrav1.ReadyReason)
			}
			members := w.members()
			w.Expect(members).To(ContainElement(w.addressOf("a")))

			w.deleteMachine("a")
			w.settle("a")

			w.Expect(w.members()).To(Equal(members))
			w.addressOf("a") // is still recorded
			w.DeleteMachine("a")
			w.Expect(w.members()).To(HaveLen(tt.left))
		})
	}
}

func TestWorkersAreNoMembers(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.Expect(create(w.Ctx, w.Client, controllertest.NewMachine("worker")...)).To(Succeed())

	w.Ready("worker")

	w.Expect(w.members()).To(BeEmpty())
	w.Expect(w.VCDMachine("worker").Status.Conditions).NotTo(
		ContainElement(HaveField("Type", infrav1.EndpointJoinedCondition)))
	w.DeleteMachine("worker")
}

func TestAnEndpointAtRestCostsNothing(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a")
	w.Ready("a")
	w.Ready()
	before := w.VCDCluster().ResourceVersion
	w.mark()

	for range 5 {
		res, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(res.RequeueAfter).To(BeNumerically(">", 0), "it is compared again later")
		_, err = w.ReconcileMachine("a")
		w.Expect(err).NotTo(HaveOccurred())
	}

	reads, writes := w.calls()
	w.Expect(reads).To(BeZero())
	w.Expect(writes).To(BeZero())
	w.Expect(w.VCDCluster().ResourceVersion).To(Equal(before))
	w.ExpectSettled("a")
	w.Expect(w.reason(clusterv1.ReadyCondition)).To(Equal(infrav1.ReadyReason))
}

func TestAMachineWhoseVMIsAnothersDoesNotJoinTheEndpoint(t *testing.T) {
	w := newWorld(t, instant(), nil)
	w.Ready()
	w.add("a", "forged")
	w.Ready("a")
	forged := w.VCDMachine("forged")
	forged.Spec.ProviderID = w.VCDMachine("a").Spec.ProviderID
	forged.Spec.RecordedState = infrav1.VCDMachineRecordedState{
		PoweredOnAt: ptr.To(metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)),
		InstanceID:  string(forged.UID),
		VMName:      "forged",
	}
	w.Expect(w.Client.Update(w.Ctx, forged)).To(Succeed())

	w.EventuallyMachine("forged", infrav1.EndpointJoinedCondition, infrav1.VMNotOwnedReason)

	w.Expect(w.VCDMachine("forged").Spec.RecordedState.EndpointMember).To(BeZero())
}
