package controllers

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// vanish removes VMs without a trace.
func (w *world) vanish(names ...string) {
	w.sim.Edit(func(e *vcdsim.Editor) {
		for _, name := range names {
			e.DeleteVM(e.VM(name))
		}
	})
}

// expectReady makes sure what Ready of a machine says.
func (w *world) expectReady(m *infrav1.VCDMachine, status metav1.ConditionStatus, reason string) {
	c := conditions.Get(m, clusterv1.ReadyCondition)
	w.Expect([]string{string(c.Status), c.Reason}).To(Equal([]string{string(status), reason}), "%s: %s", m.Name, c.Message)
}

// expectNobodyGone looks at machines for two days, across restarts, and makes sure that none is declared gone.
func (w *world) expectNobodyGone(t *testing.T, names ...string) {
	t.Helper()
	for _, at := range []time.Duration{lookEvery, lookEvery + 62*time.Second, lookEvery + 12*time.Minute, time.Hour, 23 * time.Hour} {
		w.restart(t, events.NewFakeRecorder(100))
		for _, name := range names {
			m := w.passAt(at, name)
			w.Expect(conditions.IsFalse(m, clusterv1.ReadyCondition)).To(BeFalse(), "%s: %s", name, conditions.GetMessage(m, clusterv1.ReadyCondition))
			w.Expect(m.Annotations).NotTo(HaveKey(infrav1.VMNotFoundSinceAnnotation))
		}
	}
}

func TestLiveVMThatSomebodyDeletedIsGoneAtTheSecondLook(t *testing.T) {
	w := newWorld(t, machines("a", "b", "c")...)
	w.ready("a", "b", "c")
	w.vanish("a")

	w.expectReady(w.passAt(lookEvery, "a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	w.Expect(w.vcdMachine("a").Annotations).To(HaveKey(infrav1.MissingSinceAnnotation))
	w.expectReady(w.passAt(lookEvery+30*time.Second, "a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	recorder := events.NewFakeRecorder(100)
	w.restart(t, recorder)
	w.events = recorder.Events
	w.expectReady(w.passAt(lookEvery+62*time.Second, "a"), metav1.ConditionFalse, infrav1.VMNotFoundReason)

	w.Expect(w.eventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.VMNotFoundReason)))
	w.expectReady(w.passAt(lookEvery+62*time.Second, "b"), metav1.ConditionTrue, infrav1.ReadyReason)
	w.expectSettled("a")
	w.Expect(w.sim.State().VMs).To(HaveLen(2), "nothing is made anew")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
	w.Expect(w.isGone("a")).To(BeTrue(), "what was proved need not be proved again")
}

func TestVMIsNotGoneBecauseTheClockWasPutForward(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.ready("a", "b")
	w.vanish("a")
	m := w.passAt(lookEvery, "a")
	w.expectReady(m, metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	m.Annotations[infrav1.MissingSinceAnnotation] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) // as the clock has it that was put forward
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.expectReady(w.passAt(lookEvery+2*time.Second, "a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)

	w.expectReady(w.passAt(lookEvery+65*time.Second, "a"), metav1.ConditionFalse, infrav1.VMNotFoundReason)
}

func TestLiveVMThatIsSeenAgainIsBack(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.ready("a", "b")
	var dump bytes.Buffer
	w.Expect(w.sim.Dump(&dump)).To(Succeed())
	w.vanish("a")
	w.passAt(lookEvery, "a")
	w.expectReady(w.passAt(lookEvery+62*time.Second, "a"), metav1.ConditionFalse, infrav1.VMNotFoundReason)

	w.Expect(w.sim.Restore(&dump)).To(Succeed())
	w.restart(t, events.NewFakeRecorder(100))

	m := w.passAt(2*lookEvery, "a")
	w.expectReady(m, metav1.ConditionTrue, infrav1.ReadyReason)
	w.Expect(m.Annotations).NotTo(Or(HaveKey(infrav1.MissingSinceAnnotation), HaveKey(infrav1.VMNotFoundSinceAnnotation)))
}

func TestLiveVMIsGoneOnceAPersonSaysSo(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready("a")
	w.hide(testCluster, true)
	m := w.vcdMachine("a")
	m.Annotations[infrav1.VMGoneAnnotation] = "true"
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.expectReady(w.passAt(0, "a"), metav1.ConditionFalse, infrav1.VMNotFoundReason)
}

func TestNobodyIsGoneBecauseVCDShowsNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		spoil, mend func(*world)
		stays       bool // a machine that is deleted, until all is seen again
	}{
		{
			"the query for VMs answers 200 with nothing",
			func(w *world) {
				w.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query type=vm", Status: http.StatusOK, Body: vcdsim.BodyNothing})
			},
			func(w *world) { w.sim.Faults().Clear() }, false,
		},
		{
			"every query answers 200 with nothing, and VMs are forbidden",
			func(w *world) {
				w.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/query*", Status: http.StatusOK, Body: vcdsim.BodyNothing})
				w.sim.Faults().Add(vcdsim.Fault{Operation: readVMCall, Status: http.StatusForbidden})
			},
			func(w *world) { w.sim.Faults().Clear() }, true,
		},
		{
			"the right to see the vApp is withdrawn",
			func(w *world) { w.hide(testCluster, true) }, func(w *world) { w.hide(testCluster, false) }, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, machines("a", "b")...)
			w.ready("a", "b")
			tt.spoil(w)

			w.expectNobodyGone(t, "a", "b")

			w.expectReady(w.vcdMachine("a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
			w.Expect(w.client.Delete(w.ctx, w.vcdMachine("b"))).To(Succeed())
			w.expectNobodyGone(t, "a")
			if tt.stays {
				w.expectNobodyGone(t, "b")
			}
			tt.mend(w)
			w.restart(t, events.NewFakeRecorder(100))
			w.expectReady(w.passAt(24*time.Hour, "a"), metav1.ConditionTrue, infrav1.ReadyReason)
			w.Eventually(func() bool { return w.isGone("b") }, patience, "5ms").Should(BeTrue())
			w.Expect(w.sim.State().VMs).To(HaveLen(1), "nothing is leaked")
		})
	}
}

// lossy is an inventory whose pages shift while they are read, so that rows are missing.
type lossy struct {
	inventory

	lost []string
}

func (l lossy) VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error) {
	rows, err := l.inventory.VMs(ctx, vdc, vApp, maxAge)
	return slices.DeleteFunc(rows, func(r vcd.VMRecord) bool { return slices.Contains(l.lost, r.Name) }), err
}

func TestRowLostBetweenPagesIsAskedForByItself(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.ready("a", "b")
	sessions := w.machine.Sessions
	w.machine.Sessions = func(ctx context.Context, config vcd.Config) (*session, error) {
		s, err := sessions(ctx, config)
		if err != nil {
			return nil, err
		}
		with := *s
		with.inventory = lossy{s.inventory, []string{"a"}}
		return &with, nil
	}

	for _, at := range []time.Duration{lookEvery, lookEvery + 62*time.Second, time.Hour} {
		m := w.passAt(at, "a")
		w.expectReady(m, metav1.ConditionTrue, infrav1.ReadyReason)
		w.Expect(m.Annotations).NotTo(HaveKey(infrav1.MissingSinceAnnotation))
	}
}

func TestNobodyIsGoneBecauseVCDWasSetBack(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.ready("a")
	var dump bytes.Buffer
	w.Expect(w.sim.Dump(&dump)).To(Succeed())
	w.ready("b")

	w.Expect(w.sim.Restore(&dump)).To(Succeed())

	w.expectNobodyGone(t, "a", "b")
	w.expectReady(w.vcdMachine("a"), metav1.ConditionTrue, infrav1.ReadyReason)
	m := w.vcdMachine("b")
	w.expectReady(m, metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(And(ContainSubstring("set back"), ContainSubstring(infrav1.VMGoneAnnotation+"=true")))
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())
	w.expectNobodyGone(t, "b")
	m = w.vcdMachine("b")
	m.Annotations[infrav1.VMGoneAnnotation] = "true"
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.isGone("b")).To(BeTrue(), "a person knows better")
}

func TestManyMissingMachinesAreReleasedOneByOne(t *testing.T) {
	w := newWorld(t, machines("a", "b", "c", "d")...)
	w.ready("a", "b", "c", "d")
	w.vanish("a", "b", "c")
	missing := []string{"a", "b", "c"}
	declared := func(at time.Duration) int {
		n := 0
		for _, name := range missing {
			if conditions.GetReason(w.passAt(at, name), clusterv1.ReadyCondition) == infrav1.VMNotFoundReason {
				n++
			}
		}
		return n
	}

	w.Expect(declared(lookEvery)).To(BeZero())
	w.Expect(declared(lookEvery + 2*time.Minute)).To(BeZero())
	w.expectReady(w.vcdMachine("b"), metav1.ConditionUnknown, infrav1.GoneHeldBackReason)
	w.restart(t, events.NewFakeRecorder(100))
	w.Expect(declared(lookEvery + 9*time.Minute)).To(BeZero())
	w.Expect(declared(lookEvery + 11*time.Minute)).To(Equal(1))
	w.Expect(declared(lookEvery + 11*time.Minute + 30*time.Second)).To(Equal(1))
	w.Expect(declared(lookEvery + 13*time.Minute)).To(Equal(2))
	w.Expect(declared(lookEvery + 15*time.Minute)).To(Equal(3))
	w.expectReady(w.passAt(lookEvery+15*time.Minute, "d"), metav1.ConditionTrue, infrav1.ReadyReason)
}

func TestVAppDeletedByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		delete func(*testing.T, *world)
		reason string
	}{
		{"is proved by VCD's log of tasks", func(t *testing.T, w *world) {
			t.Helper()
			admin := w.admin(t)
			vApp := "urn:vcloud:vapp:" + w.sim.State().VApps[0].ID
			for _, vm := range w.sim.State().VMs {
				task, err := admin.VMs.PowerOff(w.ctx, "urn:vcloud:vm:"+vm.ID)
				w.Expect(err).NotTo(HaveOccurred())
				w.await(admin, task)
			}
			for len(w.sim.State().VApps) > 0 { // It is undeployed first.
				task, err := admin.VApps.DeleteVApp(w.ctx, vApp)
				w.Expect(err).NotTo(HaveOccurred())
				w.await(admin, task)
			}
		}, infrav1.GoneHeldBackReason},
		{"without a trace is not proved", func(_ *testing.T, w *world) {
			w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp(testCluster)) })
		}, infrav1.VMUnverifiedReason},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, machines("a", "b")...)
			w.ready("a", "b")

			tt.delete(t, w)

			for _, at := range []time.Duration{lookEvery, lookEvery + 62*time.Second} {
				w.passAt(at, "a")
				w.passAt(at, "b")
			}
			w.expectReady(w.passAt(lookEvery+65*time.Second, "a"), metav1.ConditionUnknown, tt.reason)
		})
	}
}

// addCluster adds another cluster with one machine of the same name, and waits until that is ready.
func (w *world) addCluster(n int) string {
	name := fmt.Sprintf("c%d", n)
	labels := map[string]string{clusterv1.ClusterNameLabel: name}
	cluster := testCAPICluster()
	cluster.ObjectMeta = meta(name)
	cluster.Labels, cluster.Spec.InfrastructureRef.Name = labels, name
	vcdCluster := testVCDCluster(w.sim)
	vcdCluster.ObjectMeta = meta(name)
	vcdCluster.UID = "uid-of-vcd-" + vcdCluster.UID
	vcdCluster.Labels = labels
	vcdCluster.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: cluster.UID}}
	vcdCluster.Spec.Endpoint.KubeVIP.Address = fmt.Sprintf("192.168.100.%d", 200+n)
	objects := append(testMachine(name+"-cp"), cluster, vcdCluster)
	for _, o := range objects {
		o.SetLabels(labels)
		w.Expect(w.client.Create(w.ctx, o)).To(Succeed())
	}
	w.Eventually(func(g Gomega) {
		w.reconcileNamed(g, vcdCluster)
		g.Expect(conditions.IsTrue(vcdCluster, clusterv1.ReadyCondition)).To(BeTrue())
	}, patience, "5ms").Should(Succeed())
	w.eventuallyMachine(name+"-cp", clusterv1.ReadyCondition, infrav1.ReadyReason)
	return name + "-cp"
}

// reconcileNamed reconciles a VCDCluster, and reads it again.
func (w *world) reconcileNamed(g Gomega, c *infrav1.VCDCluster) {
	key := client.ObjectKeyFromObject(c)
	_, err := reconcile.AsReconciler(w.client, w.cluster).Reconcile(w.ctx, ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.client.Get(w.ctx, key, c)).To(Succeed())
}

func TestMachinesMissingInThreeClustersStopASite(t *testing.T) {
	w := newWorld(t)
	all := []string{w.addCluster(2), w.addCluster(3), w.addCluster(4)}
	w.vanish(all...)
	passes := func(at time.Duration) {
		for _, name := range all {
			w.passAt(at, name)
		}
	}

	passes(lookEvery)
	passes(lookEvery + 62*time.Second)
	passes(lookEvery + 80*time.Second)
	w.expectNobodyGone(t, all...)

	m := w.vcdMachine(all[0])
	w.expectReady(m, metav1.ConditionUnknown, infrav1.GoneStoppedReason)
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(ContainSubstring("annotate VCDCluster c2 with " + infrav1.GoneAcknowledgedAnnotation + "=true"))
	c := &infrav1.VCDCluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "c2"}, c)).To(Succeed())
	w.Expect(c.Annotations).To(HaveKey(infrav1.GoneStoppedAnnotation))
	w.reconcileNamed(w, c)
	w.Expect(conditions.GetReason(c, infrav1.GoneTrustedCondition)).To(Equal(infrav1.GoneStoppedReason))
	w.Expect(conditions.IsTrue(c, clusterv1.ReadyCondition)).To(BeTrue(), "the cluster itself works")
	c.Annotations[infrav1.GoneAcknowledgedAnnotation] = "true"
	w.Expect(w.client.Update(w.ctx, c)).To(Succeed())

	passes(23*time.Hour + time.Minute)
	passes(23*time.Hour + 2*time.Minute)
	w.expectReady(w.vcdMachine(all[0]), metav1.ConditionFalse, infrav1.VMNotFoundReason)
	w.expectReady(w.vcdMachine(all[1]), metav1.ConditionUnknown, infrav1.GoneStoppedReason)
	w.reconcileNamed(w, c)
	w.Expect(c.Annotations).NotTo(HaveKey(infrav1.GoneStoppedAnnotation))
	w.Expect(conditions.Has(c, infrav1.GoneTrustedCondition)).To(BeFalse())
	w.Expect(c.Annotations[infrav1.GoneAcknowledgedAnnotation]).NotTo(Equal("true"), "the word of a person holds for what was missing then")
}
