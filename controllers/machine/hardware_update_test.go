// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// newUpdatableEnv makes an environment with a ready machine, md-0, of 6 CPUs and 12 GiB of memory, which Cluster API may
// update in place.
func newUpdatableEnv(t *testing.T, mods ...func(*infrav1.VCDMachine)) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t, controllertest.NewMachine("md-0", append([]func(*infrav1.VCDMachine){sized}, mods...)...)...)
	w.Machine.InPlaceUpdates = true
	w.Ready("md-0")
	w.EventuallyMachine("md-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
	return w
}

// updateInPlace changes the spec of md-0 as Cluster API does for an in-place update.
func updateInPlace(w *controllertest.Env, change func(*infrav1.VCDMachineSpec)) {
	m := w.VCDMachine("md-0")
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1.UpdateInProgressAnnotation, "")
	change(&m.Spec)
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
}

func eightCPUs(s *infrav1.VCDMachineSpec) { s.CPUs = 8 }

// hotAdds makes the VM accept CPUs and memory while it runs.
func hotAdds(_ *vcdsim.Editor, vm *vcdsim.VM) {
	vm.CPUHotAdd = true
	vm.MemoryHotAdd = true
}

// expectHardware expects that the VM runs with this hardware, and that nothing of the update is left.
func expectHardware(w *controllertest.Env, cpus, memoryMiB int64) {
	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.ReadyReason)
	w.EventuallyMachine("md-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", cpus), HaveField("MemoryMiB", memoryMiB),
		HaveField("PoweredOn", true))))
	m := w.VCDMachine("md-0")
	w.Expect(m.Spec.RecordedState.Restart).To(BeZero())
	w.Expect(m.Spec.RecordedState.VM.CPUs).To(Equal(cpus))
	w.Expect(m.Spec.RecordedState.VM.MemoryMiB).To(Equal(memoryMiB))
	w.Expect(conditions.IsTrue(m, infrav1.VMInSyncCondition)).To(BeTrue(),
		conditions.GetMessage(m, infrav1.VMInSyncCondition))
	w.ExpectSettled("md-0")
}

func TestNoUpdateStartsWhileTheNodeIsDrained(t *testing.T) {
	w := newUpdatableEnv(t)
	drain(w, "md-0")
	updateInPlace(w, eightCPUs)

	for range 10 {
		_, err := w.ReconcileMachine("md-0")
		w.Expect(err).NotTo(HaveOccurred())
	}

	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", int64(6)), HaveField("PoweredOn", true))))
	w.Expect(w.VCDMachine("md-0").Spec.RecordedState.Restart).To(BeZero())
}

func TestAnUpdateThatStartedIsFinishedWhileTheNodeIsDrained(t *testing.T) {
	w := newUpdatableEnv(t)
	updateInPlace(w, eightCPUs)
	w.Eventually(func() *metav1.Time {
		_, err := w.ReconcileMachine("md-0")
		w.Expect(err).NotTo(HaveOccurred())
		return w.VCDMachine("md-0").Spec.RecordedState.Restart.RequestedAt
	}, controllertest.Patience, "5ms").ShouldNot(BeNil())

	drain(w, "md-0")

	w.EventuallyMachine("md-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", int64(8)), HaveField("PoweredOn", true))))
}

func TestHardwareIsUpdatedInPlace(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		vm              func(*vcdsim.Editor, *vcdsim.VM)
		change          func(*infrav1.VCDMachineSpec)
		cpus, memoryMiB int64
		restarts        int
	}{
		{
			name: "CPUs and memory are added to a VM that allows it",
			vm:   hotAdds,
			change: func(s *infrav1.VCDMachineSpec) {
				s.CPUs = 8
				s.Memory = ptr.To(resource.MustParse("16Gi"))
			},
			cpus:      8,
			memoryMiB: 16 << 10,
		},
		{name: "a VM without hot add is restarted", vm: func(*vcdsim.Editor, *vcdsim.VM) {}, change: eightCPUs, cpus: 8, memoryMiB: 12 << 10, restarts: 1},
		{name: "a VM is restarted for fewer CPUs", vm: hotAdds, change: func(s *infrav1.VCDMachineSpec) { s.CPUs = 2 }, cpus: 2, memoryMiB: 12 << 10, restarts: 1},
		{
			name: "a VM is restarted for less memory",
			vm:   hotAdds,
			change: func(s *infrav1.VCDMachineSpec) {
				s.Memory = ptr.To(resource.MustParse("8Gi"))
			},
			cpus:      6,
			memoryMiB: 8 << 10,
			restarts:  1,
		},
		{
			name: "a VM is restarted if its sockets do not divide the CPUs",
			vm: func(e *vcdsim.Editor, vm *vcdsim.VM) {
				hotAdds(e, vm)
				vm.CoresPerSocket = 6
			},
			change:    eightCPUs,
			cpus:      8,
			memoryMiB: 12 << 10,
			restarts:  1,
		},
		{
			name: "a VM is restarted once for CPUs, although it allows memory",
			vm: func(_ *vcdsim.Editor, vm *vcdsim.VM) {
				vm.MemoryHotAdd = true
			},
			change: func(s *infrav1.VCDMachineSpec) {
				s.CPUs = 8
				s.Memory = ptr.To(resource.MustParse("16Gi"))
			},
			cpus:      8,
			memoryMiB: 16 << 10,
			restarts:  1,
		},
		{
			name:      "the same value in another notation is no change",
			vm:        hotAdds,
			change:    func(s *infrav1.VCDMachineSpec) { s.Memory = ptr.To(resource.MustParse("12288Mi")) },
			cpus:      6,
			memoryMiB: 12 << 10,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newUpdatableEnv(t)
			w.Edit("md-0", tt.vm)
			before := w.Sim.Counters()[powerOnCall]

			updateInPlace(w, tt.change)

			expectHardware(w, tt.cpus, tt.memoryMiB)
			w.Expect(w.Sim.Counters()[powerOnCall]-before).To(Equal(tt.restarts), "restarts")
			w.Expect(w.Sim.Counters()[shutdownCall]).To(Equal(tt.restarts), "the guest is shut down first")
		})
	}
}

func TestHardwareIsNotUpdated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*controllertest.Env)
	}{
		{
			"unless in-place updates are enabled",
			func(w *controllertest.Env) {
				w.Machine.InPlaceUpdates = false
				updateInPlace(w, eightCPUs)
			},
		},
		{
			"unless Cluster API updates the machine",
			func(w *controllertest.Env) {
				m := w.VCDMachine("md-0")
				eightCPUs(&m.Spec)
				w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			},
		},
		{
			"if Cluster API updates anything else",
			func(w *controllertest.Env) {
				updateInPlace(w, func(*infrav1.VCDMachineSpec) {})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newUpdatableEnv(t)
			w.ExpectSettled("md-0")
			writes := w.Writes()

			tt.change(w)
			for range 3 {
				_, err := w.ReconcileMachine("md-0")
				w.Expect(err).NotTo(HaveOccurred())
			}

			w.Expect(w.Writes()).To(Equal(writes))
		})
	}
}

func TestARefusedHotAddLeadsToARestart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault vcdsim.Fault
	}{
		{"at once", vcdsim.Fault{Operation: reconfigureCall, Status: http.StatusBadRequest, Message: "no", Count: 1}},
		{"by its task", vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", Message: "no", Count: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newUpdatableEnv(t)
			w.Edit("md-0", hotAdds)
			w.Sim.Faults().Add(tt.fault)

			updateInPlace(w, eightCPUs)

			expectHardware(w, 8, 12<<10)
			w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(shutdownCall, 1))
			w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("VMRestarting")))
		})
	}
}

// TestARestartIsFinishedByAnotherManager restarts the manager after each pass, so that it continues after each step.
func TestARestartIsFinishedByAnotherManager(t *testing.T) {
	w := newUpdatableEnv(t)
	updateInPlace(w, eightCPUs)

	w.Eventually(func(g Gomega) {
		w.Restart(t, events.NewFakeRecorder(100))
		w.Machine.InPlaceUpdates = true
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		m := w.VCDMachine("md-0")
		g.Expect(m.Spec.RecordedState.Restart).To(BeZero())
		g.Expect(m.Spec.RecordedState.VM.CPUs).To(Equal(int64(8)))
	}, controllertest.Patience, "5ms").Should(Succeed())

	expectHardware(w, 8, 12<<10)
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(shutdownCall, 1))
}

// stopped reconciles until the VM is powered off for its update.
func stopped(w *controllertest.Env) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VMs[0].PoweredOn).To(BeFalse())
	}, controllertest.Patience, "1ms").Should(Succeed())
}

func TestAStoppedVMRunsAgainThoughItsUpdateIsWithdrawn(t *testing.T) {
	w := newUpdatableEnv(t)
	updateInPlace(w, eightCPUs)
	stopped(w)

	m := w.VCDMachine("md-0")
	delete(m.Annotations, clusterv1.UpdateInProgressAnnotation)
	m.Spec.CPUs = 6
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Restart(t, events.NewFakeRecorder(100))

	w.EventuallyMachine("md-0", clusterv1.ReadyCondition, infrav1.ReadyReason)
	w.Eventually(func() infrav1.RecordedRestart {
		_, err := w.ReconcileMachine("md-0")
		w.Expect(err).NotTo(HaveOccurred())
		return w.VCDMachine("md-0").Spec.RecordedState.Restart
	}, controllertest.Patience, "5ms").Should(BeZero())
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(HaveField("PoweredOn", true)))
	_, err := w.ReconcileMachine("md-0")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(conditions.Get(w.VCDMachine("md-0"), infrav1.HardwareUpdatedCondition)).To(BeNil(), "no update is left")
}

func TestRejectedHardwareLeavesTheVMRunning(t *testing.T) {
	w := newUpdatableEnv(t)
	w.Sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", Message: "no capacity"})

	updateInPlace(w, eightCPUs)

	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.HardwareRejectedReason)
	m := w.VCDMachine("md-0")
	w.Expect(conditions.GetMessage(m, infrav1.HardwareUpdatedCondition)).To(And(ContainSubstring("no capacity"),
		ContainSubstring("remove spec.recordedState.restart")))
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("PoweredOn", true), HaveField("CPUs", int64(6)))))
	w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.HardwareRejectedReason)))

	w.Restart(t, events.NewFakeRecorder(100))
	w.Machine.InPlaceUpdates = true
	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.HardwareRejectedReason)
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(shutdownCall, 1), "a restart of the manager is no new attempt")

	w.Sim.Faults().Clear()
	w.Later(machine.HardwareRetry + time.Minute)
	expectHardware(w, 8, 12<<10)
}

func TestHardwareThatAPolicyDefinesIsNotUpdated(t *testing.T) {
	w := newUpdatableEnv(t)
	small := ""
	for _, policy := range w.Sim.State().Model.Policies {
		if policy.Name == "small" {
			small = policy.ID
		}
	}
	w.Expect(small).NotTo(BeEmpty())
	w.Edit("md-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.SizingPolicyID = small })
	writes := w.Writes()

	updateInPlace(w, eightCPUs)

	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.HardwareRejectedReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("md-0"), infrav1.HardwareUpdatedCondition)).To(
		ContainSubstring("sizing policy small of VM md-0 defines its CPUs or memory"))
	w.Expect(w.Writes()).To(Equal(writes), "the VM keeps running")
}

func TestAGuestThatWasShutDownStaysOffAfterItsUpdate(t *testing.T) {
	w := newUpdatableEnv(t)
	w.Edit("md-0", func(e *vcdsim.Editor, vm *vcdsim.VM) {
		e.PowerOff(vm)
		vm.Deployed = true // The guest was shut down from inside.
	})

	updateInPlace(w, eightCPUs)

	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("PoweredOn", false), HaveField("CPUs", int64(8)))))
	w.Expect(w.VCDMachine("md-0").Spec.RecordedState.Restart).To(BeZero())
}

func TestAGuestThatDoesNotShutDownIsPoweredOffForItsUpdate(t *testing.T) {
	w := controllertest.NewWith(t,
		vcdsim.Config{Profile: vcdsim.Profile{Name: "test", Scale: 0.01}, Clock: hangingShutdown{vcdsim.NewClock(1)}},
		controllertest.NewMachine("md-0", sized)...)
	w.Machine.InPlaceUpdates = true
	w.Ready("md-0")
	w.Eventually(func() bool { return w.Sim.State().VMs[0].Boot.Up }, controllertest.Patience, "5ms").Should(BeTrue())
	updateInPlace(w, eightCPUs)
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.VCDMachine("md-0").Spec.RecordedState.Restart.ShutdownRequestedAt).NotTo(BeNil())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Expect(w.VCDMachine("md-0").Spec.RecordedState.ShutdownRequestedAt).To(BeNil(), "that is of a deletion")

	w.Later(machine.DefaultShutdownTimeout + time.Second)

	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.Counters()).To(And(HaveKeyWithValue(shutdownCall, 1), HaveKeyWithValue(cancelCall, 1),
		HaveKeyWithValue(powerOffCall, 1)))
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(And(HaveField("CPUs", int64(8)), HaveField("PoweredOn", true))))
}

func TestInModeSoftAGuestIsNotPoweredOffForItsUpdate(t *testing.T) {
	w := newUpdatableEnv(t, inMode(infrav1.PowerOffSoft))
	w.Sim.Faults().Add(vcdsim.Fault{Operation: shutdownCall, Status: http.StatusBadRequest, Message: "no VMware Tools"})

	updateInPlace(w, eightCPUs)

	w.EventuallyMachine("md-0", infrav1.HardwareUpdatedCondition, infrav1.GuestNotShutDownReason)
	w.Expect(w.Sim.State().VMs).To(HaveExactElements(HaveField("PoweredOn", true)))
	w.Expect(w.Sim.Counters()).NotTo(HaveKey(powerOffCall))
}

func TestCPUsAndDiskAreUpdatedTogether(t *testing.T) {
	w := newUpdatableEnv(t)

	updateInPlace(w, func(s *infrav1.VCDMachineSpec) {
		s.CPUs = 8
		s.DiskSize = ptr.To(resource.MustParse("40Gi"))
	})

	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine("md-0")
		g.Expect(err).NotTo(HaveOccurred())
		baseline := w.VCDMachine("md-0").Spec.RecordedState.VM
		g.Expect([]int64{baseline.CPUs, baseline.DiskMiB}).To(Equal([]int64{8, 40 << 10}))
	}, controllertest.Patience, "5ms").Should(Succeed())
	expectHardware(w, 8, 12<<10)
	w.Expect(w.Sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40 << 10)))
}
