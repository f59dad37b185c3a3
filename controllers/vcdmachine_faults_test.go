package controllers

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// skipAhead makes every failure old enough to be tried again.
func (w *world) skipAhead() {
	w.machine.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
}

func TestMachineForgottenAfterEveryPassIsCreatedOnce(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Eventually(func(g Gomega) {
		w.restart(t, events.NewFakeRecorder(100))
		w.machine.Gather = -1
		_, err := w.reconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(w.sim.State().VMs)).To(BeNumerically("<=", 1))
		g.Expect(conditions.GetReason(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(Equal(infrav1.ReadyReason))
	}, patience, "5ms").Should(Succeed())

	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.restart(t, events.NewFakeRecorder(100))
		_, err := w.reconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		err = w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "cp-0"}, &infrav1.VCDMachine{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, patience, "5ms").Should(Succeed())
	w.Expect(w.sim.State().VMs).To(BeEmpty())
}

func TestMachineSurvivesFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		fault     vcdsim.Fault
		condition string
		reason    string
	}{
		{"the task that creates the vApp fails", vcdsim.Fault{FailTask: true, Operation: "vdc*Vapp", Message: "no hosts"}, infrav1.VAppReadyCondition, infrav1.TaskFailedReason},
		{"the task that writes bootstrap data fails", vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", Message: "disk full"}, infrav1.BootstrapInjectedCondition, infrav1.TaskFailedReason},
		{"the task that powers on fails", vcdsim.Fault{FailTask: true, Operation: "vappDeploy", Message: "no memory"}, infrav1.PoweredOnCondition, infrav1.TaskFailedReason},
		{
			"a quota refuses the vApp",
			vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", Status: http.StatusBadRequest, Code: "QUOTA_EXCEEDED", Message: "too many VMs"},
			infrav1.VAppReadyCondition, infrav1.QuotaExceededReason,
		},
		{
			"a right is missing",
			vcdsim.Fault{Operation: "POST /api/vApp/vm/action/reconfigureVm", Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "no"},
			infrav1.BootstrapInjectedCondition, infrav1.ForbiddenReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, testMachine("cp-0")...)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			tt.fault.Count = 1
			w.sim.Faults().Add(tt.fault)

			w.eventuallyMachine("cp-0", tt.condition, tt.reason)
			w.Expect(w.eventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))
			writes := w.writes()
			_, err := w.reconcileMachine("cp-0")
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.writes()).To(Equal(writes), "it is too early to try again")

			w.skipAhead()
			w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Expect(w.sim.State().VMs).To(HaveLen(1))
		})
	}
}

func TestMachineWhoseCreationWasAcceptedWithoutAnAnswer(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", DropAfter: true, Count: 1})

	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.IsTrue(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	}, patience, "5ms").Should(Succeed())

	w.Expect(w.sim.State().VMs).To(HaveLen(1))
}

func TestMachineLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").Description = "mine" })

	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())
	w.eventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.NotOursReason)

	w.Expect(w.sim.State().VMs).To(HaveLen(1))
	w.Expect(w.sim.State().VMs[0].PoweredOn).To(BeTrue())
}

func TestVAppOfAnotherIsANameConflict(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Edit(func(e *vcdsim.Editor) { e.VApp(testCluster).Description = "somebody else's" })

	w.eventuallyMachine("b", infrav1.VAppReadyCondition, infrav1.NameConflictReason)

	w.Expect(w.sim.State().VMs).To(HaveLen(1))
}

func TestMachineReportsItsVM(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("cp-0")) })
	w.restart(t, events.NewFakeRecorder(100)) // The inventory may be old otherwise.
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.VMPoweredOffReason)

	m := w.vcdMachine("cp-0")
	m.Spec.PowerState = infrav1.PowerStatePowerOn
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("cp-0")) })
	w.restart(t, events.NewFakeRecorder(100))
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.VMUnverifiedReason)
	w.Expect(conditions.IsUnknown(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(ptr.Deref(w.vcdMachine("cp-0").Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(w.sim.State().VMs).To(BeEmpty(), "nothing is made anew")

	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())
	w.eventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.VMUnverifiedReason)
	w.later(62 * time.Second)
	w.Expect(w.isGone("cp-0")).To(BeTrue())
}

func TestBootstrapDataThatTheGuestLeftIsRemoved(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").ExtraConfig["guestinfo.userdata"] = "left" })
	machine := &clusterv1.Machine{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "cp-0"}, machine)).To(Succeed())
	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "cp-0"}
	w.Expect(w.client.Update(w.ctx, machine)).To(Succeed())

	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.vcdMachine("cp-0").Annotations).To(HaveKey(infrav1.BootstrapDataRemovedAnnotation))
	}, patience, "5ms").Should(Succeed())

	w.Expect(w.sim.State().VMs[0].ExtraConfig["guestinfo.userdata"]).To(Equal("---"))
	w.Expect(conditions.IsTrue(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.expectSettled("cp-0")
}

func TestMachineDeletedBeforeItWasCreated(t *testing.T) {
	w := newWorld(t, testMachine("cp-0", func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" })...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)

	w.deleteMachine("cp-0")

	w.Expect(w.writes()).To(BeZero())
}

func TestMachineDeletedWhileItIsCreated(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for w.writes() == 0 {
		_, err := w.reconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.deleteMachine("cp-0")

	w.Expect(w.sim.State().VMs).To(BeEmpty())
}

func TestOneUnansweredCallDoesNotMakeAMachineUnknown(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	w.eventTexts()
	before := conditions.Get(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)
	w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})

	m := w.passAt(lookEvery, "cp-0")

	w.Expect(conditions.Get(m, clusterv1.ReadyCondition)).To(Equal(before))
	w.Expect(w.eventTexts()).To(BeEmpty())
	w.Expect(w.next).To(BeNumerically("<=", hiccupRetry*6/5))
	w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	m = w.passAt(lookEvery+hiccupRetry, "cp-0")
	w.expectReady(m, metav1.ConditionUnknown, infrav1.SiteUnreachableReason)
	w.expectReady(w.passAt(lookEvery+3*hiccupRetry, "cp-0"), metav1.ConditionTrue, infrav1.ReadyReason)
	w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	w.expectReady(w.passAt(2*lookEvery, "cp-0"), metav1.ConditionTrue, infrav1.ReadyReason)
}

func TestUnreachableVCDIsUnknown(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
	w.restart(t, events.NewFakeRecorder(100))

	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(conditions.IsUnknown(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.sim.Faults().Clear()
	w.restart(t, events.NewFakeRecorder(100))
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
}
