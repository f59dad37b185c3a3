// SPDX-License-Identifier: Apache-2.0

package remediation_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/remediation"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestMain runs the tests in parallel: they mostly wait for tasks.
func TestMain(m *testing.M) { controllertest.Main(m) }

// A bench has a cluster with a machine whose Node is unhealthy.
type bench struct {
	*controllertest.Env

	reconciler *remediation.Reconciler
	events     chan string
	later      time.Duration // offset of the reconciler's clock
}

var key = client.ObjectKey{Namespace: controllertest.Namespace, Name: "md-0"}

// newBench makes the machine ready, and marks its Machine as unhealthy, as a MachineHealthCheck does.
func newBench(t *testing.T, mods ...func(*infrav1.VCDMachine)) *bench {
	t.Helper()
	w := controllertest.New(t, controllertest.NewMachine(key.Name, mods...)...)
	w.Ready(key.Name)
	recorder := events.NewFakeRecorder(100)
	b := &bench{Env: w, events: recorder.Events}
	b.reconciler = &remediation.Reconciler{
		Client:   w.Client,
		Recorder: recorder,
		Now:      func() time.Time { return time.Now().Add(b.later) },
	}
	b.editMachine(func(m *clusterv1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(),
			Kind:       "MachineSet",
			Name:       "md",
			UID:        "uid-of-md",
			Controller: ptr.To(true),
		}}
		m.Spec.ClusterName = controllertest.ClusterName
		m.Spec.InfrastructureRef.Name = key.Name
	})
	b.editStatus(func(m *clusterv1.Machine) {
		m.Status.NodeRef.Name = key.Name
		conditions.Set(m, metav1.Condition{
			Type:   clusterv1.MachineHealthCheckSucceededCondition,
			Status: metav1.ConditionFalse,
			Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason,
		})
	})
	return b
}

func (b *bench) machine() *clusterv1.Machine {
	m := &clusterv1.Machine{}
	b.Expect(b.Client.Get(b.Ctx, key, m)).To(Succeed())
	return m
}

func (b *bench) editMachine(change func(*clusterv1.Machine)) {
	m := b.machine()
	change(m)
	b.Expect(b.Client.Update(b.Ctx, m)).To(Succeed())
}

func (b *bench) editStatus(change func(*clusterv1.Machine)) {
	m := b.machine()
	change(m)
	b.Expect(b.Client.Status().Update(b.Ctx, m)).To(Succeed())
}

// remediate creates the VCDRemediation, as a MachineHealthCheck does.
func (b *bench) remediate(strategy infrav1.VCDRemediationStrategy) {
	r := &infrav1.VCDRemediation{ObjectMeta: controllertest.Meta(key.Name)}
	r.UID = "uid-of-remediation"
	r.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Machine",
		Name:       key.Name,
		UID:        b.machine().UID,
	}}
	r.Spec.Strategy = strategy
	b.Expect(b.Client.Create(b.Ctx, r)).To(Succeed())
}

func (b *bench) remediation() *infrav1.VCDRemediation {
	r := &infrav1.VCDRemediation{}
	b.Expect(b.Client.Get(b.Ctx, key, r)).To(Succeed())
	return r
}

// reconcile reconciles the VCDRemediation: the first two passes may only add the finalizer and the condition Paused.
func (b *bench) reconcile() ctrl.Result {
	var result ctrl.Result
	for range 3 {
		var err error
		result, err = reconcile.AsReconciler(b.Client, b.reconciler).Reconcile(b.Ctx, ctrl.Request{NamespacedName: key})
		b.Expect(err).NotTo(HaveOccurred())
	}
	return result
}

// expect expects a condition of the VCDRemediation to have a reason.
func (b *bench) expect(condition, reason string) {
	got := conditions.Get(b.remediation(), condition)
	b.Expect(got).NotTo(BeNil(), condition)
	b.Expect(got.Reason).To(Equal(reason), got.Message)
}

// resets counts the requested resets in VCD.
func (b *bench) resets() int { return b.Sim.Counters()["POST /api/vApp/vm/power/action/reset"] }

// replaced reports whether the owner of the Machine was requested to replace it.
func (b *bench) replaced() bool {
	return conditions.IsFalse(b.machine(), clusterv1.MachineOwnerRemediatedCondition)
}

func TestAMachineIsReplacedAfterUnsuccessfulResets(t *testing.T) {
	b := newBench(t)
	b.remediate(infrav1.VCDRemediationStrategy{RetryLimit: 2, TimeoutSeconds: 60})

	b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.ResettingReason)
	b.Expect(b.resets()).To(Equal(0))
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)
	b.Expect(b.resets()).To(Equal(1))

	result := b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.WaitingForHealthyMachineReason)
	b.Expect(result.RequeueAfter).To(BeNumerically("~", time.Minute, 5*time.Second))
	b.Expect(b.replaced()).To(BeFalse())

	b.later = 2 * time.Minute
	b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.ResettingReason)
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)
	b.Expect(b.resets()).To(Equal(2))
	b.Expect(b.replaced()).To(BeFalse())

	b.later = 4 * time.Minute
	b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.ResetsExhaustedReason)
	b.Expect(conditions.IsTrue(b.remediation(), clusterv1.ReadyCondition)).To(BeTrue())
	b.Expect(b.remediation().Status.Resets).To(HaveValue(BeEquivalentTo(2)))
	b.Expect(b.replaced()).To(BeTrue())
	b.Expect(conditions.IsFalse(b.machine(), clusterv1.MachineHealthCheckSucceededCondition)).To(BeTrue(), "kept")
	b.Expect(b.resets()).To(Equal(2))
}

func TestARejectedResetIsRepeated(t *testing.T) {
	b := newBench(t)
	b.remediate(infrav1.VCDRemediationStrategy{RetryLimit: 1, TimeoutSeconds: 60})
	b.reconcile()
	b.Sim.Faults().Add(vcdsim.Fault{
		Operation: "POST /api/vApp/vm/power/action/reset",
		Status:    http.StatusBadRequest,
		Code:      "BUSY_ENTITY",
		Count:     1,
	})

	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)

	b.Expect(b.resets()).To(Equal(2), "the rejected one, and its repetition")
}

func TestAHealthyMachineIsNotReset(t *testing.T) {
	b := newBench(t)
	b.remediate(infrav1.VCDRemediationStrategy{})
	b.reconcile()
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)
	b.editStatus(func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{
			Type:   clusterv1.MachineHealthCheckSucceededCondition,
			Status: metav1.ConditionTrue,
			Reason: clusterv1.MachineHealthCheckSucceededReason,
		})
	})

	b.later = time.Hour
	b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.MachineHealthyReason)
	b.Expect(b.replaced()).To(BeFalse())

	b.Expect(b.Client.Delete(b.Ctx, b.remediation())).To(Succeed())
	b.reconcile()
	b.Expect(client.IgnoreNotFound(b.Client.Get(b.Ctx, key, &infrav1.VCDRemediation{}))).To(Succeed())
	b.Expect(b.Client.Get(b.Ctx, key, &infrav1.VCDRemediation{})).NotTo(Succeed(), "its finalizer is removed")
	b.Expect(b.VCDMachine(key.Name).Spec.RecordedState.Reset).To(BeZero())
	_, err := b.ReconcileMachine(key.Name)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(conditions.Get(b.VCDMachine(key.Name), infrav1.VMResetCondition)).To(BeNil())
	b.Expect(b.resets()).To(Equal(1))
}

func TestFutileResetsAreSkipped(t *testing.T) {
	tests := []struct {
		name string
		harm func(*bench)
	}{
		{
			"the guest never became a Node",
			func(b *bench) { b.editStatus(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }) },
		},
		{
			"the VM was deleted",
			func(b *bench) {
				m := b.VCDMachine(key.Name)
				m.Annotations = map[string]string{infrav1.VMGoneAnnotation: "true"}
				b.Expect(b.Client.Update(b.Ctx, m)).To(Succeed())
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			tt.harm(b)
			b.remediate(infrav1.VCDRemediationStrategy{})

			b.reconcile()

			b.expect(infrav1.ResetsCompletedCondition, infrav1.ResetNotApplicableReason)
			b.Expect(b.replaced()).To(BeTrue())
			b.Expect(b.VCDMachine(key.Name).Spec.RecordedState.Reset).To(BeZero())
		})
	}
}

func TestAPausedMachineIsNotReset(t *testing.T) {
	b := newBench(t)
	b.editMachine(func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	b.remediate(infrav1.VCDRemediationStrategy{})

	b.reconcile()

	b.expect(infrav1.MachineFoundCondition, infrav1.MachinePausedReason)
	b.Expect(b.VCDMachine(key.Name).Spec.RecordedState.Reset).To(BeZero())
}

func TestAPoweredOffVMIsPoweredOn(t *testing.T) {
	b := newBench(t)
	b.Edit(key.Name, (*vcdsim.Editor).PowerOff)
	b.remediate(infrav1.VCDRemediationStrategy{})

	b.reconcile()
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)

	b.Expect(b.resets()).To(Equal(0))
	b.EventuallyMachine(key.Name, clusterv1.ReadyCondition, infrav1.ReadyReason)
}

func TestAForeignVMIsNotReset(t *testing.T) {
	b := newBench(t)
	b.Edit(key.Name, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Description = "taken over by hand" })
	b.remediate(infrav1.VCDRemediationStrategy{})

	b.reconcile()
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.VMNotOwnedReason)
	b.reconcile()
	b.expect(infrav1.ResetsCompletedCondition, infrav1.ResettingReason)
	b.later = time.Hour
	b.reconcile()

	b.expect(infrav1.ResetsCompletedCondition, infrav1.ResetRejectedReason)
	b.Expect(b.replaced()).To(BeTrue())
	b.Expect(b.resets()).To(Equal(0))
	b.Expect(b.remediation().Status.Resets).To(HaveValue(BeEquivalentTo(0)))
}

// A restart of the manager forgets the task that it follows, but not that it requested a reset.
func TestARestartDoesNotResetTheVMAgain(t *testing.T) {
	b := newBench(t)
	b.remediate(infrav1.VCDRemediationStrategy{})
	b.reconcile()
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)

	b.Restart(t, events.NewFakeRecorder(100))
	b.EventuallyMachine(key.Name, infrav1.VMResetCondition, infrav1.ReadyReason)
	b.EventuallyMachine(key.Name, clusterv1.ReadyCondition, infrav1.ReadyReason)

	b.Expect(b.resets()).To(Equal(1))
}

func TestAMachineWithoutAnOwnerIsReportedRatherThanReplaced(t *testing.T) {
	b := newBench(t)
	b.editMachine(func(m *clusterv1.Machine) { m.OwnerReferences = nil })
	b.editStatus(func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" })
	b.remediate(infrav1.VCDRemediationStrategy{})

	b.reconcile()

	b.expect(infrav1.ReplacementRequestedCondition, infrav1.NoOwnerReason)
	b.Expect(b.replaced()).To(BeFalse())
}
