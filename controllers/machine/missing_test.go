// SPDX-License-Identifier: Apache-2.0

package machine_test

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
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// vanish removes VMs without a trace in the task log.
func vanish(w *controllertest.Env, names ...string) {
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for _, name := range names {
			e.DeleteVM(e.VM(name))
		}
	})
}

// expectReady checks the Ready condition of a machine.
func expectReady(w *controllertest.Env, m *infrav1.VCDMachine, status metav1.ConditionStatus, reason string) {
	c := conditions.Get(m, clusterv1.ReadyCondition)
	w.Expect([]string{string(c.Status), c.Reason}).To(Equal([]string{string(status), reason}), "%s: %s", m.Name,
		c.Message)
}

// expectNoneGone observes machines for two days, across restarts, and checks that none is declared gone.
func expectNoneGone(t *testing.T, w *controllertest.Env, names ...string) {
	t.Helper()
	for _, at := range []time.Duration{
		machine.InventoryEvery,
		machine.InventoryEvery + 62*time.Second,
		machine.InventoryEvery + 12*time.Minute,
		time.Hour,
		23 * time.Hour,
	} {
		w.Restart(t, events.NewFakeRecorder(100))
		for _, name := range names {
			m := reconcileAt(w, at, name)
			w.Expect(conditions.IsFalse(m, clusterv1.ReadyCondition)).To(BeFalse(), "%s: %s", name,
				conditions.GetMessage(m, clusterv1.ReadyCondition))
			w.Expect(m.Spec.RecordedState.VMNotFoundSince).To(BeZero())
		}
	}
}

func TestManuallyDeletedRunningVMIsGoneAfterTheSecondCheck(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b", "c")...)
	w.Ready("a", "b", "c")
	vanish(w, "a")

	expectReady(w, reconcileAt(w, machine.InventoryEvery, "a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	w.Expect(w.VCDMachine("a").Spec.RecordedState.MissingSince).NotTo(BeZero())
	expectReady(w, reconcileAt(w, machine.InventoryEvery+30*time.Second, "a"), metav1.ConditionUnknown,
		infrav1.VMUnverifiedReason)
	recorder := events.NewFakeRecorder(100)
	w.Restart(t, recorder)
	w.Events = recorder.Events
	expectReady(w, reconcileAt(w, machine.InventoryEvery+62*time.Second, "a"), metav1.ConditionFalse,
		infrav1.VMNotFoundReason)

	w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.VMNotFoundReason)))
	expectReady(w, reconcileAt(w, machine.InventoryEvery+62*time.Second, "b"), metav1.ConditionTrue, infrav1.ReadyReason)
	w.ExpectSettled("a")
	w.Expect(w.Sim.State().VMs).To(HaveLen(2), "nothing is recreated")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.Expect(isGone(w, "a")).To(BeTrue(), "a proof is not repeated")
}

func TestVMIsNotGoneAfterAClockChange(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.Ready("a", "b")
	vanish(w, "a")
	m := reconcileAt(w, machine.InventoryEvery, "a")
	expectReady(w, m, metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	// as the clock has it that was put forward
	m.Spec.RecordedState.MissingSince = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	expectReady(w, reconcileAt(w, machine.InventoryEvery+2*time.Second, "a"), metav1.ConditionUnknown,
		infrav1.VMUnverifiedReason)

	expectReady(w, reconcileAt(w, machine.InventoryEvery+65*time.Second, "a"), metav1.ConditionFalse,
		infrav1.VMNotFoundReason)
}

func TestRunningVMThatReappearsIsFound(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.Ready("a", "b")
	var dump bytes.Buffer
	w.Expect(w.Sim.Dump(&dump)).To(Succeed())
	vanish(w, "a")
	reconcileAt(w, machine.InventoryEvery, "a")
	expectReady(w, reconcileAt(w, machine.InventoryEvery+62*time.Second, "a"), metav1.ConditionFalse,
		infrav1.VMNotFoundReason)

	w.Expect(w.Sim.Restore(&dump)).To(Succeed())
	w.Restart(t, events.NewFakeRecorder(100))

	m := reconcileAt(w, 2*machine.InventoryEvery, "a")
	expectReady(w, m, metav1.ConditionTrue, infrav1.ReadyReason)
	w.Expect(m.Spec.RecordedState).To(And(HaveField("MissingSince", BeNil()), HaveField("VMNotFoundSince", BeNil())))
}

func TestRunningVMIsGoneOnceAUserConfirmsIt(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready("a")
	w.Hide(controllertest.ClusterName, true)
	m := w.VCDMachine("a")
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, infrav1.VMGoneAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	expectReady(w, reconcileAt(w, 0, "a"), metav1.ConditionFalse, infrav1.VMNotFoundReason)
}

func TestNoVMIsGoneWhenVCDReturnsEmptyLists(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		spoil, mend func(*controllertest.Env)
		stays       bool // a machine that is deleted, until all VMs are visible again
	}{
		{
			name: "the VM query responds with an empty list",
			spoil: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{
					Operation: "GET /api/query type=vm",
					Status:    http.StatusOK,
					Body:      vcdsim.BodyNothing,
				})
			},
			mend: func(w *controllertest.Env) { w.Sim.Faults().Clear() },
		},
		{
			name: "every query responds with an empty list, and VMs are forbidden",
			spoil: func(w *controllertest.Env) {
				w.Sim.Faults().Add(vcdsim.Fault{
					Operation: "GET /api/query*",
					Status:    http.StatusOK,
					Body:      vcdsim.BodyNothing,
				})
				w.Sim.Faults().Add(vcdsim.Fault{Operation: readVMCall, Status: http.StatusForbidden})
			},
			mend:  func(w *controllertest.Env) { w.Sim.Faults().Clear() },
			stays: true,
		},
		{
			name:  "the right to view the vApp is revoked",
			spoil: func(w *controllertest.Env) { w.Hide(controllertest.ClusterName, true) },
			mend:  func(w *controllertest.Env) { w.Hide(controllertest.ClusterName, false) },
			stays: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("a", "b")...)
			w.Ready("a", "b")
			tt.spoil(w)

			expectNoneGone(t, w, "a", "b")

			expectReady(w, w.VCDMachine("a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("b"))).To(Succeed())
			expectNoneGone(t, w, "a")
			if tt.stays {
				expectNoneGone(t, w, "b")
			}
			tt.mend(w)
			w.Restart(t, events.NewFakeRecorder(100))
			expectReady(w, reconcileAt(w, 24*time.Hour, "a"), metav1.ConditionTrue, infrav1.ReadyReason)
			w.Eventually(func() bool { return isGone(w, "b") }, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.Sim.State().VMs).To(HaveLen(1), "nothing is leaked")
		})
	}
}

// lossy is an inventory whose pages shift while they are read, so that rows are missing.
type lossy struct {
	session.Inventory

	lost []string
}

func (l lossy) VMs(ctx context.Context, vdc vcd.VDC, vApp string, maxAge time.Duration) ([]vcd.VMRecord, error) {
	rows, err := l.Inventory.VMs(ctx, vdc, vApp, maxAge)
	return l.shown(rows), err
}

func (l lossy) DueVMs(ctx context.Context, vdc vcd.VDC, vApp string, lastDue func(time.Time) time.Time) ([]vcd.VMRecord, error) {
	rows, err := l.Inventory.DueVMs(ctx, vdc, vApp, lastDue)
	return l.shown(rows), err
}

func (l lossy) shown(rows []vcd.VMRecord) []vcd.VMRecord {
	return slices.DeleteFunc(rows, func(r vcd.VMRecord) bool { return slices.Contains(l.lost, r.Name) })
}

func TestRowLostBetweenPagesIsRequestedSeparately(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.Ready("a", "b")
	sessions := w.Machine.Sessions
	w.Machine.Sessions = func(ctx context.Context, config vcd.Config) (*session.Session, error) {
		s, err := sessions(ctx, config)
		if err != nil {
			return nil, err
		}
		with := *s
		with.Inventory = lossy{s.Inventory, []string{"a"}}
		return &with, nil
	}

	for _, at := range []time.Duration{machine.InventoryEvery, machine.InventoryEvery + 62*time.Second, time.Hour} {
		m := reconcileAt(w, at, "a")
		expectReady(w, m, metav1.ConditionTrue, infrav1.ReadyReason)
		w.Expect(m.Spec.RecordedState.MissingSince).To(BeZero())
	}
}

func TestNoVMIsGoneAfterVCDIsRestoredFromABackup(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.Ready("a")
	var dump bytes.Buffer
	w.Expect(w.Sim.Dump(&dump)).To(Succeed())
	w.Ready("b")

	w.Expect(w.Sim.Restore(&dump)).To(Succeed())

	expectNoneGone(t, w, "a", "b")
	expectReady(w, w.VCDMachine("a"), metav1.ConditionTrue, infrav1.ReadyReason)
	m := w.VCDMachine("b")
	expectReady(w, m, metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(And(ContainSubstring("restored from a backup"),
		ContainSubstring(infrav1.VMGoneAnnotation+"=true")))
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	expectNoneGone(t, w, "b")
	m = w.VCDMachine("b")
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, infrav1.VMGoneAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(isGone(w, "b")).To(BeTrue(), "a user can override it")
}

func TestManyMissingMachinesAreReleasedOneByOne(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b", "c", "d")...)
	w.Ready("a", "b", "c", "d")
	vanish(w, "a", "b", "c")
	missing := []string{"a", "b", "c"}
	declared := func(at time.Duration) int {
		n := 0
		for _, name := range missing {
			if conditions.GetReason(reconcileAt(w, at, name), clusterv1.ReadyCondition) == infrav1.VMNotFoundReason {
				n++
			}
		}
		return n
	}

	w.Expect(declared(machine.InventoryEvery)).To(BeZero())
	w.Expect(declared(machine.InventoryEvery + 2*time.Minute)).To(BeZero())
	expectReady(w, w.VCDMachine("b"), metav1.ConditionUnknown, infrav1.TooManyVMsMissingReason)
	w.Restart(t, events.NewFakeRecorder(100))
	w.Expect(declared(machine.InventoryEvery + 9*time.Minute)).To(BeZero())
	w.Expect(declared(machine.InventoryEvery + 11*time.Minute)).To(Equal(1))
	w.Expect(declared(machine.InventoryEvery + 11*time.Minute + 30*time.Second)).To(Equal(1))
	w.Expect(declared(machine.InventoryEvery + 13*time.Minute)).To(Equal(2))
	w.Expect(declared(machine.InventoryEvery + 15*time.Minute)).To(Equal(3))
	expectReady(w, reconcileAt(w, machine.InventoryEvery+15*time.Minute, "d"), metav1.ConditionTrue, infrav1.ReadyReason)
}

// TestAnUnreleasableMachineDoesNotBlockOthers pauses the machine that has been missing for the longest time.
func TestAnUnreleasableMachineDoesNotBlockOthers(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b", "c", "d")...)
	w.Ready("a", "b", "c", "d")
	vanish(w, "a", "b", "c")
	reasonAt := func(at time.Duration, name string) string {
		return conditions.GetReason(reconcileAt(w, at, name), clusterv1.ReadyCondition)
	}
	reasonAt(machine.InventoryEvery, "a")
	for _, at := range []time.Duration{30 * time.Second, 2 * time.Minute, 4 * time.Minute, 6 * time.Minute} {
		for _, name := range []string{"a", "b", "c"} {
			reasonAt(machine.InventoryEvery+at, name)
		}
	}
	w.Expect(reasonAt(machine.InventoryEvery+7*time.Minute, "a")).To(Equal(infrav1.TooManyVMsMissingReason))
	a := w.VCDMachine("a")
	metav1.SetMetaDataAnnotation(&a.ObjectMeta, clusterv1.PausedAnnotation, "")
	w.Expect(w.Client.Update(w.Ctx, a)).To(Succeed())

	w.Expect(reasonAt(machine.InventoryEvery+13*time.Minute, "b")).To(Equal(infrav1.VMNotFoundReason))
	w.Expect(reasonAt(machine.InventoryEvery+13*time.Minute+30*time.Second, "c")).To(Equal(infrav1.TooManyVMsMissingReason))
	w.Expect(reasonAt(machine.InventoryEvery+14*time.Minute+5*time.Second, "c")).To(Equal(infrav1.VMNotFoundReason))
}

func TestVAppDeletedByHand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		delete func(*testing.T, *controllertest.Env)
		reason string
	}{
		{
			name: "is proved by VCD's task log",
			delete: func(t *testing.T, w *controllertest.Env) {
				t.Helper()
				w.DeleteVAppByHand(t, controllertest.ClusterName)
			},
			reason: infrav1.TooManyVMsMissingReason,
		},
		{
			name: "without a trace is unproved",
			delete: func(_ *testing.T, w *controllertest.Env) {
				w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp(controllertest.ClusterName)) })
			},
			reason: infrav1.VMUnverifiedReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("a", "b")...)
			w.Ready("a", "b")

			tt.delete(t, w)

			for _, at := range []time.Duration{machine.InventoryEvery, machine.InventoryEvery + 62*time.Second} {
				reconcileAt(w, at, "a")
				reconcileAt(w, at, "b")
			}
			expectReady(w, reconcileAt(w, machine.InventoryEvery+65*time.Second, "a"), metav1.ConditionUnknown, tt.reason)
		})
	}
}

// addCluster adds another cluster with one machine of the same name, and waits until the machine is ready.
func addCluster(w *controllertest.Env, n int) string {
	name := fmt.Sprintf("c%d", n)
	labels := map[string]string{clusterv1.ClusterNameLabel: name}
	cluster := controllertest.NewCAPICluster()
	cluster.ObjectMeta = controllertest.Meta(name)
	cluster.Labels = labels
	cluster.Spec.InfrastructureRef.Name = name
	vcdCluster := controllertest.NewVCDCluster(w.Sim)
	vcdCluster.ObjectMeta = controllertest.Meta(name)
	vcdCluster.UID = "uid-of-vcd-" + vcdCluster.UID
	vcdCluster.Labels = labels
	vcdCluster.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Cluster",
		Name:       name,
		UID:        cluster.UID,
	}}
	vcdCluster.Spec.ControlPlaneEndpoint.Host = fmt.Sprintf("192.168.100.%d", 200+n)
	objects := append(controllertest.NewMachine(name+"-cp"), cluster, vcdCluster)
	for _, o := range objects {
		o.SetLabels(labels)
		w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
	}
	w.Eventually(func(g Gomega) {
		w.ReconcileNamed(g, vcdCluster)
		g.Expect(conditions.IsTrue(vcdCluster, clusterv1.ReadyCondition)).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.EventuallyMachine(name+"-cp", clusterv1.ReadyCondition, infrav1.ReadyReason)
	return name + "-cp"
}

func TestMachinesMissingInThreeClustersHoldTheSite(t *testing.T) {
	w := controllertest.New(t)
	all := []string{addCluster(w, 2), addCluster(w, 3), addCluster(w, 4)}
	vanish(w, all...)
	passes := func(at time.Duration) {
		for _, name := range all {
			reconcileAt(w, at, name)
		}
	}

	passes(machine.InventoryEvery)
	passes(machine.InventoryEvery + 62*time.Second)
	passes(machine.InventoryEvery + 80*time.Second)
	expectNoneGone(t, w, all...)

	m := w.VCDMachine(all[0])
	expectReady(w, m, metav1.ConditionUnknown, infrav1.VMLossUnacknowledgedReason)
	w.Expect(conditions.GetMessage(m,
		clusterv1.ReadyCondition)).To(ContainSubstring("annotate VCDCluster c2 with " +
		infrav1.GoneAcknowledgedAnnotation + "=true"))
	c := &infrav1.VCDCluster{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "c2"}, c)).To(Succeed())
	w.Expect(c.Spec.RecordedState.GoneStoppedSince).NotTo(BeNil())
	w.ReconcileNamed(w, c)
	w.Expect(conditions.GetReason(c, infrav1.VMLossSuspectedCondition)).To(Equal(infrav1.VMLossUnacknowledgedReason))
	w.Expect(conditions.IsTrue(c, clusterv1.ReadyCondition)).To(BeTrue(), "the cluster itself is ready")
	acknowledge(w, c)
	w.Expect(c.Spec.RecordedState.GoneStoppedSince).To(BeNil())
	w.Expect(conditions.Has(c, infrav1.VMLossSuspectedCondition)).To(BeFalse())

	passes(23*time.Hour + time.Minute)
	passes(23*time.Hour + 2*time.Minute)
	expectReady(w, w.VCDMachine(all[0]), metav1.ConditionFalse, infrav1.VMNotFoundReason)
	expectReady(w, w.VCDMachine(all[1]), metav1.ConditionUnknown, infrav1.VMLossUnacknowledgedReason)
}

// acknowledge annotates a VCDCluster as a user does, and reconciles it.
func acknowledge(w *controllertest.Env, c *infrav1.VCDCluster) {
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.GoneAcknowledgedAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.ReconcileNamed(w, c)
	w.Expect(c.Annotations[infrav1.GoneAcknowledgedAnnotation]).NotTo(Equal("true"),
		"an acknowledgement covers the VMs that are missing at that time")
}

// TestAnAcknowledgementInTheFutureDoesNotCount manually sets a time that would cover all later outages.
func TestAnAcknowledgementInTheFutureDoesNotCount(t *testing.T) {
	w := controllertest.New(t)
	all := []string{addCluster(w, 2), addCluster(w, 3), addCluster(w, 4)}
	c := &infrav1.VCDCluster{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "c2"}, c)).To(Succeed())
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, infrav1.GoneAcknowledgedAnnotation, "2999-01-01T00:00:00Z")
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	vanish(w, all...)

	for _, at := range []time.Duration{0, 62 * time.Second, 80 * time.Second} {
		for _, name := range all {
			reconcileAt(w, machine.InventoryEvery+at, name)
		}
	}

	expectReady(w, w.VCDMachine(all[0]), metav1.ConditionUnknown, infrav1.VMLossUnacknowledgedReason)
}

// TestAnAcknowledgementDoesNotOutliveTheOutage acknowledges an outage after all VMs have reappeared. The next outage
// holds the site again.
func TestAnAcknowledgementDoesNotOutliveTheOutage(t *testing.T) {
	w := controllertest.New(t)
	all := []string{addCluster(w, 2), addCluster(w, 3), addCluster(w, 4)}
	var dump bytes.Buffer
	w.Expect(w.Sim.Dump(&dump)).To(Succeed())
	passes := func(at time.Duration) {
		for _, name := range all {
			reconcileAt(w, at, name)
		}
	}
	vanish(w, all...)
	passes(machine.InventoryEvery)
	passes(machine.InventoryEvery + 62*time.Second)
	passes(machine.InventoryEvery + 80*time.Second)
	c := &infrav1.VCDCluster{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "c2"}, c)).To(Succeed())
	w.Expect(c.Spec.RecordedState.GoneStoppedSince).NotTo(BeNil())
	w.Expect(w.Sim.Restore(&dump)).To(Succeed())
	passes(machine.InventoryEvery + 5*time.Minute)
	expectReady(w, w.VCDMachine(all[0]), metav1.ConditionTrue, infrav1.ReadyReason)

	acknowledge(w, c)
	w.Expect(c.Spec.RecordedState.GoneStoppedSince).To(BeNil())

	vanish(w, all...)
	passes(48 * time.Hour)
	passes(48*time.Hour + 62*time.Second)
	passes(48*time.Hour + 80*time.Second)
	expectReady(w, w.VCDMachine(all[0]), metav1.ConditionUnknown, infrav1.VMLossUnacknowledgedReason)
}
