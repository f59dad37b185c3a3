// SPDX-License-Identifier: Apache-2.0

package machine_test

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// skipAhead advances the clock so that every failure is retried.
func skipAhead(w *controllertest.Env) {
	w.Machine.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
}

func TestMachineIsCreatedOnceDespiteARestartAfterEveryReconcile(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Eventually(func(g Gomega) {
		w.Restart(t, events.NewFakeRecorder(100))
		w.Machine.Gather = -1
		_, err := w.ReconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(w.Sim.State().VMs)).To(BeNumerically("<=", 1))
		g.Expect(conditions.GetReason(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(Equal(infrav1.ReadyReason))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())
	w.Eventually(func(g Gomega) {
		w.Restart(t, events.NewFakeRecorder(100))
		_, err := w.ReconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		err = w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "cp-0"},
			&infrav1.VCDMachine{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestMachineSurvivesFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		fault     vcdsim.Fault
		condition string
		reason    string
	}{
		{
			name:      "the task that creates the vApp fails",
			fault:     vcdsim.Fault{FailTask: true, Operation: "vdc*Vapp", Message: "no hosts"},
			condition: infrav1.VAppReadyCondition,
			reason:    infrav1.TaskFailedReason,
		},
		{
			name:      "the task that writes bootstrap data fails",
			fault:     vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", Message: "disk full"},
			condition: infrav1.BootstrapInjectedCondition,
			reason:    infrav1.TaskFailedReason,
		},
		{
			name:      "the task that powers on fails",
			fault:     vcdsim.Fault{FailTask: true, Operation: "vappDeploy", Message: "no memory"},
			condition: infrav1.PoweredOnCondition,
			reason:    infrav1.TaskFailedReason,
		},
		{
			name: "a quota rejects the vApp",
			fault: vcdsim.Fault{
				Operation: "POST /api/vdc/action/composeVApp",
				Status:    http.StatusBadRequest,
				Code:      "QUOTA_EXCEEDED",
				Message:   "too many VMs",
			},
			condition: infrav1.VAppReadyCondition,
			reason:    infrav1.QuotaExceededReason,
		},
		{
			name: "a right is missing",
			fault: vcdsim.Fault{
				Operation: "POST /api/vApp/vm/action/reconfigureVm",
				Status:    http.StatusForbidden,
				Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
				Message:   "no",
			},
			condition: infrav1.BootstrapInjectedCondition,
			reason:    infrav1.ForbiddenReason,
		},
	}
	for _, tt := range tests {
		for cluster, prepare := range map[string]func(*controllertest.Env){
			"an ordinary cluster":                     func(*controllertest.Env) {},
			"both families, a proxy, and a DaemonSet": combineSettings,
		} {
			t.Run(tt.name+"/"+cluster, func(t *testing.T) {
				w := controllertest.NewWith(t, vcdsim.Config{
					Profile: vcdsim.Profile{Name: "test", Scale: 0.01},
					Model:   vcdsim.CloudProvider(),
				}, controllertest.NewMachine("cp-0")...)
				prepare(w)
				w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
				tt.fault.Count = 1
				w.Sim.Faults().Add(tt.fault)

				w.EventuallyMachine("cp-0", tt.condition, tt.reason)
				w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))
				writes := w.Writes()
				_, err := w.ReconcileMachine("cp-0")
				w.Expect(err).NotTo(HaveOccurred())
				w.Expect(w.Writes()).To(Equal(writes), "it is too early for a retry")

				skipAhead(w)
				w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
				w.Expect(w.Sim.State().VMs).To(HaveLen(1))
			})
		}
	}
}

// combineSettings combines the cluster settings that change most of the node configuration.
func combineSettings(w *controllertest.Env) {
	owner := controllertest.NewCAPICluster()
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
	owner.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"100.96.0.0/11", "fd6a::/48"}
	w.Expect(w.Client.Update(w.Ctx, owner)).To(Succeed())
	c := w.VCDCluster()
	c.Spec.ControlPlaneLoadBalancer.KubeVIP.Mode = infrav1.KubeVIPDaemonSet
	c.Spec.Proxy = infrav1.ProxySpec{
		HTTPProxy:  "http://proxy.example.com:3128",
		HTTPSProxy: "http://proxy.example.com:3128",
		Site:       infrav1.SiteByProxy,
	}
	w.Expect(w.Client.Update(w.Ctx, c)).To(Succeed())
}

func TestMachineWithALostCreateResponse(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", DropAfter: true, Count: 1})

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conditions.IsTrue(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
}

func TestMachineDoesNotTouchForeignObjects(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").Description = "mine" })

	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.VMNotOwnedReason)

	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	w.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeTrue())
}

func TestAForeignVAppIsANameConflict(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VApp(controllertest.ClusterName).Description = "another owner's" })

	w.EventuallyMachine("b", infrav1.VAppReadyCondition, infrav1.NameConflictReason)

	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
}

func TestMachineReportsItsVM(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("cp-0")) })
	w.Restart(t, events.NewFakeRecorder(100)) // Otherwise the inventory may be old.
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.VMPoweredOffReason)

	m := w.VCDMachine("cp-0")
	m.Spec.PowerOffPolicy = infrav1.PowerOffPowerOn
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteVM(e.VM("cp-0")) })
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.VMUnverifiedReason)
	w.Expect(conditions.IsUnknown(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(ptr.Deref(w.VCDMachine("cp-0").Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(w.Sim.State().VMs).To(BeEmpty(), "nothing is recreated")

	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.VMUnverifiedReason)
	w.Later(62 * time.Second)
	w.Expect(isGone(w, "cp-0")).To(BeTrue())
}

func TestBootstrapDataLeftByTheGuestIsRemoved(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").ExtraConfig["guestinfo.userdata"] = "left" })
	machine := &clusterv1.Machine{}
	w.Expect(w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "cp-0"},
		machine)).To(Succeed())
	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "cp-0"}
	w.Expect(w.Client.Status().Update(w.Ctx, machine)).To(Succeed())

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("cp-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.VCDMachine("cp-0").Spec.RecordedState.BootstrapDataRemoved).NotTo(BeZero())
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Expect(w.Sim.State().VMs[0].ExtraConfig["guestinfo.userdata"]).To(Equal("---"))
	w.Expect(conditions.IsTrue(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.ExpectSettled("cp-0")
}

func TestMachineDeletedBeforeItWasCreated(t *testing.T) {
	w := controllertest.New(t,
		controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) { m.Spec.Template = "nope" })...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.TemplateNotFoundReason)

	w.DeleteMachine("cp-0")

	w.Expect(w.Writes()).To(BeZero())
}

func TestMachineDeletedWhileItIsCreated(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for w.Writes() == 0 {
		_, err := w.ReconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.DeleteMachine("cp-0")

	w.Expect(w.Sim.State().VMs).To(BeEmpty())
}

func TestOneFailedCallDoesNotMakeAMachineUnknown(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.EventTexts()
	before := conditions.Get(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})

	m := reconcileAt(w, machine.InventoryEvery, "cp-0")

	w.Expect(conditions.Get(m, clusterv1.ReadyCondition)).To(Equal(before))
	w.Expect(w.EventTexts()).To(BeEmpty())
	w.Expect(w.Next).To(BeNumerically("<=", phases.UnansweredRetry*6/5))
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	m = reconcileAt(w, machine.InventoryEvery+phases.UnansweredRetry, "cp-0")
	expectReady(w, m, metav1.ConditionUnknown, infrav1.SiteUnreachableReason)
	expectReady(w, reconcileAt(w, machine.InventoryEvery+3*phases.UnansweredRetry, "cp-0"), metav1.ConditionTrue,
		infrav1.ReadyReason)
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	expectReady(w, reconcileAt(w, 2*machine.InventoryEvery, "cp-0"), metav1.ConditionTrue, infrav1.ReadyReason)
}

func TestAnUnreachableVCDMakesTheMachineUnknown(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Faults().Add(vcdsim.Fault{Status: http.StatusServiceUnavailable})
	w.Restart(t, events.NewFakeRecorder(100))

	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.SiteUnreachableReason)

	w.Expect(conditions.IsUnknown(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue())
	w.Sim.Faults().Clear()
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
}
