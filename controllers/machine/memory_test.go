// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineWithALostWriteResponse(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, operation string }{
		{"the power-on", "POST /api/vApp/vm/power/action/powerOn"},
		{"the bootstrap data", "POST /api/vApp/vm/action/reconfigureVm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.01},
				controllertest.NewMachine("cp-0")...)
			w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.Sim.Faults().Add(vcdsim.Fault{Operation: tt.operation, DropAfter: true, Count: 1})

			w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.Expect(w.Sim.Faults().List()).To(BeEmpty())
			w.Expect(w.Sim.Counters()[tt.operation]).To(Equal(1), "completed requests are not repeated")
		})
	}
}

func TestRunningMachineSurvivesAMove(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.VCDMachine("cp-0").Spec.RecordedState.PoweredOnAt).NotTo(BeZero())
	writes := w.Writes()

	move(w, "cp-0")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.PowerOff(e.VM("cp-0"))
		e.DeleteTemplate("ubuntu-2404-kube-v1.36.3")
	})
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyMachine("cp-0", infrav1.PoweredOnCondition, infrav1.VMPoweredOffReason)
	w.Expect(w.Writes()).To(Equal(writes), "a powered-off VM is reported, not powered on")

	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM("cp-0")) })
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.VCDMachine("cp-0")
	w.Expect(ptr.Deref(m.Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(m.Status.Addresses).NotTo(BeEmpty())
	w.Expect(w.Writes()).To(Equal(writes))
	w.ExpectSettled("cp-0")
}

// move drops the state that a move to another management cluster drops, and the bootstrap data, which is deleted by
// then.
func move(w *controllertest.Env, name string) {
	m := w.VCDMachine(name)
	m.Status = infrav1.VCDMachineStatus{}
	w.Expect(w.Client.Status().Update(w.Ctx, m)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: controllertest.Meta(name + "-bootstrap")}
	w.Expect(w.Client.Delete(w.Ctx, secret)).To(Succeed())
	cluster := &clusterv1.Cluster{}
	w.Expect(w.Client.Get(w.Ctx,
		client.ObjectKey{Namespace: controllertest.Namespace, Name: controllertest.ClusterName}, cluster)).To(Succeed())
	cluster.Status = clusterv1.ClusterStatus{}
	w.Expect(w.Client.Update(w.Ctx, cluster)).To(Succeed())
}

func TestARecordedForeignVMIsNotTouched(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) {
		vm := e.VM("a")
		e.PowerOff(vm)
		delete(vm.ExtraConfig, "guestinfo.metadata")
	})
	writes := w.Writes()

	b := w.VCDMachine("b")
	b.Spec.ProviderID = w.VCDMachine("a").Spec.ProviderID
	w.Expect(w.Client.Update(w.Ctx, b)).To(Succeed())
	w.EventuallyMachine("b", infrav1.BootstrapInjectedCondition, infrav1.VMNotOwnedReason)

	w.Expect(w.Writes()).To(Equal(writes))
}

func TestMachineInAnUnknownFailureDomainIsNotCreated(t *testing.T) {
	objects := controllertest.NewMachine("cp-0")
	machine, ok := objects[0].(*clusterv1.Machine)
	w := controllertest.New(t, objects[1:]...)
	w.Expect(ok).To(BeTrue())
	machine.Spec.FailureDomain = "zone-a"
	w.Expect(w.Client.Create(w.Ctx, machine)).To(Succeed())
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.EventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.FailureDomainNotFoundReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"),
		infrav1.PlacementReadyCondition)).To(ContainSubstring("spec.failureDomain"))
	w.Expect(w.Writes()).To(BeZero())
}

func TestStateOfADeletedMachineIsDropped(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("a", "b")
	w.Expect(w.Machine.States().Len()).To(Equal(2))

	w.Machine.States().DropDeleted().Delete(w.Ctx, event.DeleteEvent{Object: w.VCDMachine("a")}, nil)

	w.Expect(w.Machine.States().Len()).To(Equal(1))
}

func TestTwoVMsWithOneNameAreCheckedAgain(t *testing.T) {
	w := controllertest.New(t)
	s := w.Machine.NewScope(&infrav1.VCDMachine{}, w.VCDCluster(),
		[]vcd.Ref{{ID: "1", Name: "x"}, {ID: "2", Name: "x"}}...)

	out, err := machine.ReconcileVM(w.Ctx, s)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out.Reason).To(Equal(infrav1.DuplicateMarkerReason))
	w.Expect(out.After).To(Equal(intervals.Remedy), "no watch notices the remedy in VCD")
}
