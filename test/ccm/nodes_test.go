// SPDX-License-Identifier: Apache-2.0

package ccm

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// spare returns a machine of a fixture without a node. Each test of a fixture uses a different one.
func spare(w *fixture, n int) machine { return w.cloud.machines()[baseNodes+n] }

// TestNodes runs the scenarios of Nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	nodeScenarios(t, shared(t))
}

// nodeScenarios runs the scenarios of each cloud.
func nodeScenarios(t *testing.T, w *fixture) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, *fixture){
		"a Node with a provider ID is initialized": func(t *testing.T, w *fixture) {
			t.Helper()
			isInitialized(t, w, spare(w, 0))
		},
		"a Node without a provider ID is initialized by name": func(t *testing.T, w *fixture) {
			t.Helper()
			isInitialized(t, w, spare(w, 1), withoutProviderID)
		},
		"a Node of another cloud is ignored":                     foreignNode,
		"a powered-off Node is tainted until it is powered on":   poweredOffNode,
		"a Node is deleted only when its machine is proved gone": deletedMachine,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}

func isInitialized(t *testing.T, w *fixture, m machine, changes ...nodeChange) {
	t.Helper()
	g := NewWithT(t)
	w.node(t, m, changes...)

	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))

	n, err := w.getNode(m.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n.Spec.ProviderID).To(Equal(m.ProviderID))
	g.Eventually(func() ([]netip.Addr, error) {
		n, err := w.getNode(m.Name)
		return internal(n), err
	}, timeout, poll).Should(Equal(m.Addresses))
	g.Expect(n.Labels).To(HaveKey(corev1.LabelTopologyZone))

	// If kubelet registers the Node again, the taint reappears and must be removed again.
	g.Eventually(func() error {
		n, err := w.getNode(m.Name)
		if err != nil {
			return err
		}
		n.Spec.Taints = append(n.Spec.Taints,
			corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		return w.client.Update(t.Context(), n)
	}, timeout, poll).Should(Succeed())
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))
}

func foreignNode(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	w.node(t, machine{Name: "foreign", ProviderID: "static://foreign"})

	w.setReady(t, "foreign", corev1.ConditionUnknown)

	g.Consistently(w.exists("foreign"), "12s", poll).Should(BeTrue())
	g.Expect(w.taints("foreign")()).To(ContainElement(uninitialized))
	g.Expect(w.taints("foreign")()).NotTo(ContainElement(shutdown))
}

func poweredOffNode(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	m := spare(w, 2)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))

	w.cloud.powerOff(m.Name)
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	g.Eventually(w.taints(m.Name), timeout, poll).Should(ContainElement(shutdown))
	g.Expect(w.exists(m.Name)()).To(BeTrue())

	w.cloud.powerOn(m.Name)
	w.setReady(t, m.Name, corev1.ConditionTrue)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(shutdown))
}

func deletedMachine(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	m := spare(w, 3)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))

	w.cloud.remove(m.Name)
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	began := time.Now()

	g.Eventually(w.exists(m.Name), 4*time.Minute, poll).Should(BeFalse())
	g.Expect(time.Since(began)).To(BeNumerically(">", time.Minute), "two lookups, a minute apart")
}

// TestLossOfRightsDeletesNoNode removes the rights to view objects. No machine may be treated as gone.
func TestLossOfRightsDeletesNoNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "blind", fixtureOption{cluster: ownCluster(t, "blind"), args: []string{nodeControllers}})
	g := NewWithT(t)
	v := w.vcd()
	m := spare(w, 0)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))

	v.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM(m.Name)) }) // Even a deleted VM cannot be proved gone.
	v.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: http.StatusForbidden})
	v.Faults().Add(vcdsim.Fault{Operation: "GET /api/vdc*", Status: http.StatusForbidden})
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	for _, other := range v.machines()[:baseNodes] {
		w.setReady(t, other.Name, corev1.ConditionUnknown)
	}

	g.Consistently(func() int {
		nodes := &corev1.NodeList{}
		g.Expect(w.client.List(t.Context(), nodes)).To(Succeed())
		return len(nodes.Items)
	}, "80s", "1s").Should(Equal(baseNodes + 1))
}

// TestMembersFollowNodes uses a separate cluster, because it changes the nodes that are members of all load balancers.
func TestMembersFollowNodes(t *testing.T) {
	t.Parallel()
	h := ownCluster(t, "members")
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"with one read and one write per gateway", budgetOfANode},
		{"through all changes of nodes", membersFollowNodes},
		{"despite repeated crashes of the controller", crashesWhileNodesChange},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, h) })
	}
}

func membersFollowNodes(t *testing.T, h *cluster) {
	t.Helper()
	w := newFixture(t, "members", fixtureOption{cluster: h, args: []string{nodeControllers}})
	g := NewWithT(t)
	var all []*service
	for _, gateway := range gatewayNames() {
		all = append(all, w.service(t, "web", by(gateway), ports(port("a", 81), port("b", 82))))
	}
	served := func() {
		t.Helper()
		for _, s := range all {
			s.awaitServed()
		}
	}
	served()
	m := spare(w, 4)

	n := w.node(t, m, balanced)
	g.Eventually(w.taints(m.Name), timeout, poll).ShouldNot(ContainElement(uninitialized))
	served()

	t.Log("A node that is not ready stays a member, because health checks exclude it.")
	w.setReady(t, m.Name, corev1.ConditionFalse)
	served()
	w.setReady(t, m.Name, corev1.ConditionTrue)

	t.Log("Members follow a changed address of a node.")
	g.Eventually(func() error {
		n, err := w.getNode(m.Name)
		if err != nil {
			return err
		}
		for i := range n.Status.Addresses {
			if n.Status.Addresses[i].Type == corev1.NodeInternalIP {
				n.Status.Addresses[i].Address = "10.40.60.60"
			}
		}
		return w.client.Status().Update(t.Context(), n)
	}, timeout, poll).Should(Succeed())
	w.cloud.readdress(m.Name, netip.MustParseAddr("10.40.60.60"))
	served()

	t.Log("A deleted node is no longer a member.")
	g.Expect(w.client.Delete(t.Context(), n)).To(Succeed())
	served()
}
