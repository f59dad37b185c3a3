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

// spare returns a machine of the shared fixture that has no node yet. Each test of nodes uses a different one.
func spare(w *fixture, n int) machine { return w.cloud.machines()[standing+n] }

// TestNodes runs the scenarios of Nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	nodeScenarios(t, shared(t))
}

// nodeScenarios runs the scenarios of each cloud.
func nodeScenarios(t *testing.T, w *fixture) {
	t.Helper()
	for name, run := range map[string]func(*testing.T, *fixture){
		"a Node that knows its provider ID is initialized": func(t *testing.T, w *fixture) {
			t.Helper()
			isInitialized(t, w, spare(w, 0))
		},
		"a Node that only has the name of its machine is initialized": func(t *testing.T, w *fixture) {
			t.Helper()
			isInitialized(t, w, spare(w, 1), unnamed)
		},
		"a Node of another cloud is left alone":                     foreignNode,
		"a Node that is switched off is tainted until it is back":   switchedOff,
		"a Node goes when its machine is proved gone, and no other": provedGone,
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

	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))

	n, err := w.getNode(m.Name)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(n.Spec.ProviderID).To(Equal(m.ProviderID))
	g.Eventually(func() ([]netip.Addr, error) {
		n, err := w.getNode(m.Name)
		return internal(n), err
	}, patience, poll).Should(Equal(m.Addresses))
	g.Expect(n.Labels).To(HaveKey(corev1.LabelTopologyZone))

	// A taint that reappears, as when kubelet registers again, is removed again.
	g.Eventually(func() error {
		n, err := w.getNode(m.Name)
		if err != nil {
			return err
		}
		n.Spec.Taints = append(n.Spec.Taints,
			corev1.Taint{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		return w.client.Update(t.Context(), n)
	}, patience, poll).Should(Succeed())
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))
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

func switchedOff(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	m := spare(w, 2)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))

	w.cloud.powerOff(m.Name)
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	g.Eventually(w.taints(m.Name), patience, poll).Should(ContainElement(shutdown))
	g.Expect(w.exists(m.Name)()).To(BeTrue())

	w.cloud.powerOn(m.Name)
	w.setReady(t, m.Name, corev1.ConditionTrue)
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(shutdown))
}

func provedGone(t *testing.T, w *fixture) {
	t.Helper()
	g := NewWithT(t)
	m := spare(w, 3)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))

	w.cloud.remove(m.Name)
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	began := time.Now()

	g.Eventually(w.exists(m.Name), 4*time.Minute, poll).Should(BeFalse())
	g.Expect(time.Since(began)).To(BeNumerically(">", time.Minute), "it is looked for twice, a minute apart")
}

// TestLossOfRightsDeletesNoNode removes the rights to view objects. None may be treated as gone.
func TestLossOfRightsDeletesNoNode(t *testing.T) {
	t.Parallel()
	w := newFixture(t, "blind", fixtureOption{cluster: ownCluster(t, "blind"), args: []string{nodeControllers}})
	g := NewWithT(t)
	v := w.vcd()
	m := spare(w, 0)
	w.node(t, m)
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))

	v.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM(m.Name)) }) // Even a deleted VM cannot be proved gone.
	v.Faults().Add(vcdsim.Fault{Operation: "GET /api/vApp/*", Status: http.StatusForbidden})
	v.Faults().Add(vcdsim.Fault{Operation: "GET /api/vdc*", Status: http.StatusForbidden})
	w.setReady(t, m.Name, corev1.ConditionUnknown)
	for _, other := range v.machines()[:standing] {
		w.setReady(t, other.Name, corev1.ConditionUnknown)
	}

	g.Consistently(func() int {
		nodes := &corev1.NodeList{}
		g.Expect(w.client.List(t.Context(), nodes)).To(Succeed())
		return len(nodes.Items)
	}, "80s", "1s").Should(Equal(standing + 1))
}

// TestMembersFollowNodes has a cluster of its own, because it changes the nodes to which all its load balancers send
// traffic.
func TestMembersFollowNodes(t *testing.T) {
	t.Parallel()
	h := ownCluster(t, "members")
	for _, tc := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"at the price of one read and one write", budgetOfANode},
		{"whatever becomes of them", membersFollow},
		{"though the controller dies again and again", crashesWhileNodesComeAndGo},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, h) })
	}
}

func membersFollow(t *testing.T, h *cluster) {
	t.Helper()
	w := newFixture(t, "members", fixtureOption{cluster: h, args: []string{nodeControllers}})
	g := NewWithT(t)
	var all []*service
	for _, way := range ways() {
		all = append(all, w.service(t, "web", by(way), ports(port("a", 81), port("b", 82))))
	}
	served := func() {
		t.Helper()
		for _, s := range all {
			s.served()
		}
	}
	served()
	m := spare(w, 4)

	n := w.node(t, m, balanced)
	g.Eventually(w.taints(m.Name), patience, poll).ShouldNot(ContainElement(uninitialized))
	served()

	t.Log("A node that is not ready stays a member: health checks are for that.")
	w.setReady(t, m.Name, corev1.ConditionFalse)
	served()
	w.setReady(t, m.Name, corev1.ConditionTrue)

	t.Log("A node whose address changes is followed.")
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
	}, patience, poll).Should(Succeed())
	w.cloud.readdress(m.Name, netip.MustParseAddr("10.40.60.60"))
	served()

	t.Log("A node that is deleted is no member any more.")
	g.Expect(w.client.Delete(t.Context(), n)).To(Succeed())
	served()
}
