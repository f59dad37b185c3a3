// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// stopAt stops the clock of the reconcilers, so that a busy test machine does not affect decisions that depend on
// seconds.
func stopAt(w *controllertest.Env, t time.Time) {
	now := func() time.Time { return t }
	w.Machine.Now = now
	w.Cluster.Now = now
}

// isGone reconciles a machine a few times and reports whether it is gone.
func isGone(w *controllertest.Env, name string) bool {
	for range 3 {
		_, err := w.ReconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
	}
	return w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name},
		&infrav1.VCDMachine{}) != nil
}

func TestVMInvisibleToANewUserIsNotGone(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.Hide(controllertest.ClusterName, true)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

	for _, d := range []time.Duration{0, time.Minute, time.Hour} {
		w.Later(d)
		w.Expect(isGone(w, "cp-0")).To(BeFalse())
	}

	m := w.VCDMachine("cp-0")
	w.Expect(conditions.GetReason(m, infrav1.VMDeletedCondition)).To(Equal(infrav1.VMUnverifiedReason))
	w.Expect(conditions.IsUnknown(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetMessage(m,
		infrav1.VMDeletedCondition)).To(ContainSubstring(infrav1.VMGoneAnnotation + "=true"))
	w.Hide(controllertest.ClusterName, false)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestVMIsGoneOnceAUserConfirmsIt(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.Hide(controllertest.ClusterName, true)
	m := w.VCDMachine("cp-0")
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, infrav1.VMGoneAnnotation, "true")
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())

	w.Expect(isGone(w, "cp-0")).To(BeTrue())
}

func TestManuallyDeletedVMIsGoneAfterTheSecondCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*controllertest.Env, *vcdsim.Editor)
	}{
		{"the vApp is visible", func(*controllertest.Env, *vcdsim.Editor) {}},
		{
			"a VM of the cluster is visible elsewhere",
			func(_ *controllertest.Env, e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Name = "renamed" },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
			w.Ready("a", "b")
			w.Sim.Edit(func(e *vcdsim.Editor) {
				e.DeleteVM(e.VM("a"))
				tt.edit(w, e)
			})
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
			first := time.Now()

			stopAt(w, first)
			w.Expect(isGone(w, "a")).To(BeFalse())
			w.Expect(w.VCDMachine("a").Spec.RecordedState.MissingSince).NotTo(BeZero())
			stopAt(w, first.Add(gone.ProofInterval-time.Second))
			w.Expect(isGone(w, "a")).To(BeFalse())
			stopAt(w, first.Add(gone.ProofInterval))
			w.Expect(isGone(w, "a")).To(BeTrue())
			w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("VMDeleted")))
		})
	}
}

// TestVMIsNotGoneWhenItsVAppBecomesInvisible revokes the access to the vApp of one machine. The vApp of another one
// stays visible.
func TestVMIsNotGoneWhenItsVAppBecomesInvisible(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"of a running machine": false, "of one that is deleted": true} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("a", "b")...)
			w.SetLayout(infrav1.VAppPerMachine)
			w.Ready("a", "b")
			w.Hide("a", true)
			if deleted {
				w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
			}

			for _, d := range []time.Duration{
				time.Hour,
				time.Hour + time.Minute,
				48 * time.Hour,
				48*time.Hour + 62*time.Second,
			} {
				w.Later(d)
				w.Clock.Store(int64(d))
				w.Expect(isGone(w, "a")).To(BeFalse())
				w.Expect(w.VCDMachine("a").Spec.RecordedState).To(And(HaveField("MissingSince", BeNil()), HaveField("VMNotFoundSince", BeNil())))
			}
			expectReady(w, w.VCDMachine("a"), metav1.ConditionUnknown, infrav1.VMUnverifiedReason)
			w.Expect(w.Sim.State().VMs).To(HaveLen(2))
		})
	}
}

func TestVMThatReappearsIsNotMissing(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	m := w.VCDMachine("cp-0")
	m.Spec.RecordedState.MissingSince = ptr.To(metav1.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())

	_, err := w.ReconcileMachine("cp-0")

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.VCDMachine("cp-0").Spec.RecordedState.MissingSince).To(BeZero())
}

func TestMachineWithAPendingCreationIsSearchedTwice(t *testing.T) {
	t.Parallel()
	for _, layout := range []infrav1.VAppLayout{infrav1.VAppPerCluster, infrav1.VAppPerMachine} {
		t.Run(string(layout), func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
				m.Finalizers = []string{infrav1.MachineFinalizer}
				m.Spec.RecordedState = infrav1.VCDMachineRecordedState{
					InstanceID:          "id",
					VMName:              "cp-0",
					CreationRequestedAt: ptr.To(metav1.Now()),
				}
			})...)
			c := w.VCDCluster()
			c.Spec.VApp.Layout = layout
			w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
			w.Ready()
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

			w.Expect(isGone(w, "cp-0")).To(BeFalse())
			w.Later(62 * time.Second)
			w.Expect(isGone(w, "cp-0")).To(BeFalse(), "the request may still be in flight")
			w.Later(gone.LateRequest + time.Second)
			w.Expect(isGone(w, "cp-0")).To(BeFalse(), "the first observation that counts")
			w.Later(gone.LateRequest + gone.ProofInterval + 2*time.Second)
			w.Expect(isGone(w, "cp-0")).To(BeTrue())
		})
	}
}

func TestDeletedVMIsRecognizedAfterARestartDuringItsDeletion(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("a", "b")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("a")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VMs).To(HaveLen(1))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Restart(t, events.NewFakeRecorder(100))

	w.Expect(isGone(w, "a")).To(BeTrue())
}

func TestDeletedVAppIsRecognizedAfterARestartDuringItsDeletion(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0")...)
	c := w.VCDCluster()
	c.Spec.VApp.Layout = infrav1.VAppPerMachine
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
	w.Ready("md-0")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("md-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VApps).To(BeEmpty())
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Restart(t, events.NewFakeRecorder(100))

	w.Expect(isGone(w, "md-0")).To(BeFalse())
	w.Expect(w.VCDMachine("md-0").Spec.RecordedState.VMGoneAt).NotTo(BeNil())
	w.Later(62 * time.Second)
	w.Expect(isGone(w, "md-0")).To(BeTrue())
}

func TestAnUndeployedVAppThatVanishesIsNotADeletedOne(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("md-0")...)
	w.SetLayout(infrav1.VAppPerMachine)
	w.Ready("md-0")
	vApp := w.Sim.State().VApps[0].Name
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("md-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.Counters()).To(HaveKey("POST /api/vApp/vapp/action/undeploy"))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Hide(vApp, true)

	w.EventuallyMachine("md-0", infrav1.VAppDeletedCondition, infrav1.VAppUnverifiedReason)
	w.Hide(vApp, false)
	w.Eventually(func() bool { return isGone(w, "md-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}
