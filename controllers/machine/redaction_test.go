// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func keyOf(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: controllertest.Namespace, Name: name}
}

// back restores bootstrap data in the extra configuration of the VM, as the end of its process does if only the guest
// changed it.
func back(e *vcdsim.Editor) { e.VM("cp-0").ExtraConfig[guestinfo.KeyUserdata] = "back" }

func TestUnremovableBootstrapDataIsReported(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		prevent vcdsim.Fault
		status  metav1.ConditionStatus
		reason  string
	}{
		{
			name:    "the right is missing",
			prevent: vcdsim.Fault{Operation: "POST /api/vApp/vm/action/reconfigureVm", Status: http.StatusForbidden},
			status:  metav1.ConditionUnknown,
			reason:  infrav1.ForbiddenReason,
		},
		{
			name:    "VCD rejects it while the VM runs",
			prevent: vcdsim.Fault{Operation: "POST /api/vApp/vm/action/reconfigureVm", Status: http.StatusBadRequest},
			status:  metav1.ConditionFalse,
			reason:  infrav1.RequestRejectedReason,
		},
		{
			name:    "the task fails",
			prevent: vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", User: "capvcd", Message: "no"},
			status:  metav1.ConditionFalse,
			reason:  infrav1.TaskFailedReason,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
			makeIdle(w, "cp-0")
			w.Sim.Edit(back)
			w.Sim.Faults().Add(tt.prevent)
			nodeOf(w, "cp-0")
			w.EventTexts()

			w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, tt.reason)

			m := w.VCDMachine("cp-0")
			w.Expect(conditions.Get(m, infrav1.BootstrapDataRemovedCondition).Status).To(Equal(tt.status))
			w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))
			w.Sim.Faults().Clear()
			skipAhead(w)
			w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)
			w.Expect(w.Sim.State().VMs[0].ExtraConfig).To(HaveKeyWithValue(guestinfo.KeyUserdata, "---"))
		})
	}
}

func TestHiddenExtraConfigIsNotReportedAsClean(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	shown := w.Sim.State().VMs[0].ExtraConfig
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").ExtraConfig = map[string]string{} })
	nodeOf(w, "cp-0")
	w.EventTexts()

	w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ExtraConfigHiddenReason)

	m := w.VCDMachine("cp-0")
	w.Expect(conditions.IsUnknown(m, infrav1.BootstrapDataRemovedCondition)).To(BeTrue())
	w.Expect(m.Spec.RecordedState.BootstrapDataRemoved).To(BeZero())
	w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.ExtraConfigHiddenReason)))
	w.Sim.ResetCounters()
	for range 3 {
		_, err := w.ReconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.Sim.Counters()[readVMCall]).To(BeZero(), "it is not read in every reconcile")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("cp-0").ExtraConfig = shown })
	skipAhead(w)
	w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)
}

// booted sets the boot ID of a machine's Node, which Cluster API copies to the Machine.
func booted(w *controllertest.Env, name, id string) {
	m := &clusterv1.Machine{}
	w.Expect(w.Client.Get(w.Ctx, keyOf(name), m)).To(Succeed())
	m.Status.NodeInfo = &corev1.NodeSystemInfo{BootID: id}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
}

func TestAnAddressAndANodeInOnePassCostOneReadOfTheVM(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	w.ExpectSettled("cp-0")
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.8.77" })
	nodeOf(w, "cp-0")
	w.Sim.ResetCounters()

	m := reconcileAt(w, machine.InventoryEvery, "cp-0")

	w.Expect(m.Status.NICs[0].Address).To(Equal("192.168.8.77"))
	w.Expect(conditions.IsTrue(m, infrav1.BootstrapDataRemovedCondition)).To(BeTrue())
	w.Expect(w.Sim.Counters()[readVMCall]).To(Equal(1))
}

func TestAReadBeforeAWriteIsNotUsedAfterIt(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	w.Sim.Edit(back)
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.8.77" })
	nodeOf(w, "cp-0")

	m := reconcileAt(w, machine.InventoryEvery, "cp-0")
	w.Expect(m.Status.NICs[0].Address).To(Equal("192.168.8.77"))
	w.Expect(m.Spec.RecordedState.BootstrapDataRemoved).To(BeZero(), "its removal has only begun")

	w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs[0].ExtraConfig).To(HaveKeyWithValue(guestinfo.KeyUserdata, "---"))
}

func TestABootCausesOneReadOfTheVM(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	nodeOf(w, "cp-0")
	w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)
	w.Sim.ResetCounters()

	booted(w, "cp-0", "first")
	for range 3 {
		_, err := w.ReconcileMachine("cp-0")
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(w.Sim.Counters()[readVMCall]).To(Equal(1))
	w.ExpectSettled("cp-0")
}

func TestBootstrapDataRemovalIsNotFinalWhileTheVMRuns(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("cp-0")) })
	off := reconcileAt(w, machine.InventoryEvery, "cp-0")
	w.Expect(conditions.GetReason(off, infrav1.PoweredOnCondition)).To(Equal(infrav1.VMPoweredOffReason))
	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM("cp-0")) })

	nodeOf(w, "cp-0")
	m := reconcileAt(w, machine.InventoryEvery, "cp-0") // with an inventory in which the VM is still powered off

	w.Expect(conditions.GetReason(m, infrav1.PoweredOnCondition)).To(Equal(infrav1.VMPoweredOffReason))
	w.Expect(m.Spec.RecordedState.BootstrapDataRemoved.Guest).To(Equal(infrav1.GuestRunning))
}

func TestReappearingBootstrapDataIsRemovedAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		again func(*controllertest.Env)
	}{
		{
			"while the VM is powered off",
			func(w *controllertest.Env) {
				w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
				w.Sim.Edit(back)
			},
		},
		{
			"after we powered it on again",
			func(w *controllertest.Env) {
				m := w.VCDMachine("cp-0")
				powersOn(m)
				w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
				w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
				w.Sim.Edit(back)
			},
		},
		{
			"after another user powered it off and on",
			func(w *controllertest.Env) {
				w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs++ })
				w.Sim.Edit(back)
			},
		},
		{
			"after a power cycle that the inventory missed",
			func(w *controllertest.Env) {
				w.Sim.Edit(back)
				booted(w, "cp-0", "second")
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
			makeIdle(w, "cp-0")
			nodeOf(w, "cp-0")
			booted(w, "cp-0", "first")
			w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)

			tt.again(w)

			w.Eventually(func() map[string]string {
				reconcileAt(w, machine.InventoryEvery, "cp-0")
				return w.Sim.State().VMs[0].ExtraConfig
			}, controllertest.Patience, "5ms").Should(HaveKeyWithValue(guestinfo.KeyUserdata, "---"))
			w.EventuallyMachine("cp-0", infrav1.BootstrapDataRemovedCondition, infrav1.ReadyReason)
		})
	}
}
