package controllers

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestMachineWhoseWriteWasAcceptedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, operation string }{
		{"the power-on", "POST /api/vApp/vm/power/action/powerOn"},
		{"the bootstrap data", "POST /api/vApp/vm/action/reconfigureVm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorldOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, testMachine("cp-0")...)
			w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
			w.sim.Faults().Add(vcdsim.Fault{Operation: tt.operation, DropAfter: true, Count: 1})

			w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)

			w.Expect(w.sim.Faults().List()).To(BeEmpty())
			w.Expect(w.sim.Counters()[tt.operation]).To(Equal(1), "what VCD did is not asked for again")
		})
	}
}

func TestRunningMachineOutlivesAMove(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.vcdMachine("cp-0").Annotations).To(HaveKey(infrav1.PoweredOnAnnotation))
	writes := w.writes()

	w.move("cp-0")
	w.sim.Edit(func(e *vcdsim.Editor) {
		e.PowerOff(e.VM("cp-0"))
		e.DeleteTemplate("ubuntu-2404-kube-v1.36.3")
	})
	w.restart(t, events.NewFakeRecorder(100))
	w.eventuallyMachine("cp-0", infrav1.PoweredOnCondition, infrav1.VMPoweredOffReason)
	w.Expect(w.writes()).To(Equal(writes), "a VM that is off is reported, not powered on")

	w.sim.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM("cp-0")) })
	w.restart(t, events.NewFakeRecorder(100))
	w.eventuallyMachine("cp-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	m := w.vcdMachine("cp-0")
	w.Expect(ptr.Deref(m.Status.Initialization.Provisioned, false)).To(BeTrue())
	w.Expect(m.Status.Addresses).NotTo(BeEmpty())
	w.Expect(w.writes()).To(Equal(writes))
	w.expectSettled("cp-0")
}

// move loses what a move to another management cluster does, and the bootstrap data, which is gone by then.
func (w *world) move(name string) {
	m := w.vcdMachine(name)
	m.Status = infrav1.VCDMachineStatus{}
	w.Expect(w.client.Status().Update(w.ctx, m)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: meta(name + "-bootstrap")}
	w.Expect(w.client.Delete(w.ctx, secret)).To(Succeed())
	cluster := &clusterv1.Cluster{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: testCluster}, cluster)).To(Succeed())
	cluster.Status = clusterv1.ClusterStatus{}
	w.Expect(w.client.Update(w.ctx, cluster)).To(Succeed())
}

func TestRecordedVMOfAnotherIsLeftAlone(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.sim.Edit(func(e *vcdsim.Editor) {
		vm := e.VM("a")
		e.PowerOff(vm)
		delete(vm.ExtraConfig, "guestinfo.metadata")
	})
	writes := w.writes()

	b := w.vcdMachine("b")
	b.Spec.ProviderID = w.vcdMachine("a").Spec.ProviderID
	w.Expect(w.client.Update(w.ctx, b)).To(Succeed())
	w.eventuallyMachine("b", infrav1.BootstrapInjectedCondition, infrav1.NotOursReason)

	w.Expect(w.writes()).To(Equal(writes))
}

func TestMachineInAFailureDomainIsNotSupported(t *testing.T) {
	objects := testMachine("cp-0")
	machine, ok := objects[0].(*clusterv1.Machine)
	w := newWorld(t, objects[1:]...)
	w.Expect(ok).To(BeTrue())
	machine.Spec.FailureDomain = "zone-a"
	w.Expect(w.client.Create(w.ctx, machine)).To(Succeed())
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)

	w.eventuallyMachine("cp-0", infrav1.PlacementReadyCondition, infrav1.NotSupportedReason)

	w.Expect(conditions.GetMessage(w.vcdMachine("cp-0"), infrav1.PlacementReadyCondition)).To(ContainSubstring("spec.failureDomain"))
	w.Expect(w.writes()).To(BeZero())
}

func TestNothingIsRememberedOfAMachineThatIsGone(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("a", "b")
	w.Expect(w.machine.memories.byUID).To(HaveLen(2))

	w.machine.memories.forgetting().Delete(w.ctx, event.DeleteEvent{Object: w.vcdMachine("a")}, nil)

	w.Expect(w.machine.memories.byUID).To(HaveLen(1))
	w.Expect(w.machine.memories.byUID).To(HaveKey(w.vcdMachine("b").UID))
}

func TestTwoVMsOfOneNameAreLookedAtAgain(t *testing.T) {
	w := newWorld(t)
	s := &machineScope{VCDMachineReconciler: w.machine, vcdMachine: &infrav1.VCDMachine{}, vcdCluster: w.vcdCluster(), memory: &memory{}}
	s.found = []vcd.Ref{{ID: "1", Name: "x"}, {ID: "2", Name: "x"}}

	out, err := reconcileVM(w.ctx, s)

	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(out.reason).To(Equal(infrav1.DuplicateMarkerReason))
	w.Expect(out.after).To(Equal(remedyPoll), "the remedy in VCD wakes nobody")
}
