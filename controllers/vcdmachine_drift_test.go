package controllers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const readVMCall = "GET /api/vApp/vm"

// twoNICs gives a machine a second NIC.
func twoNICs(m *infrav1.VCDMachine) {
	m.Spec.Networks = []infrav1.NetworkSpec{{AddressSource: infrav1.AddressPool}, {Name: "storage", AddressSource: infrav1.AddressPool}}
}

// edit changes the VM of a machine in VCD.
func (w *world) edit(name string, change func(*vcdsim.Editor, *vcdsim.VM)) {
	w.sim.Edit(func(e *vcdsim.Editor) { change(e, e.VM(name)) })
}

// passAt reconciles a machine d from now, by all clocks, and returns it as it is then.
func (w *world) passAt(d time.Duration, name string) *infrav1.VCDMachine {
	w.later(d)
	w.clock.Store(int64(d))
	res, err := w.reconcileMachine(name)
	w.Expect(err).NotTo(HaveOccurred())
	w.next = res.RequeueAfter
	return w.vcdMachine(name)
}

func TestDriftOfALiveMachine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		change    func(*vcdsim.Editor, *vcdsim.VM)
		undo      func(*vcdsim.Editor, *vcdsim.VM)
		condition string
		reason    string
		ready     bool
		words     string
	}{
		{
			"suspended", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.Suspended }, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.PoweredOn },
			infrav1.PoweredOnCondition, infrav1.VMSuspendedReason, false, "resume",
		},
		{
			"powered off", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) }, func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOn(vm) },
			infrav1.PoweredOnCondition, infrav1.VMPoweredOffReason, false, "spec.powerState",
		},
		{
			"primary address changed", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.100.66" }, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.100.10" },
			infrav1.AddressesReadyCondition, infrav1.AddressChangedReason, false, "192.168.100.66",
		},
		{
			"renamed", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "mine" }, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "cp-0" },
			infrav1.VMAsSpecifiedCondition, infrav1.VMRenamedReason, true, "mine",
		},
		{
			"CPUs added", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 8 }, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 2 },
			infrav1.VMAsSpecifiedCondition, infrav1.ComputeChangedReason, true, "8 CPUs",
		},
		{
			"disk grown", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Disks[0].SizeMiB = 30720 }, func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Disks[0].SizeMiB = 20480 },
			infrav1.VMAsSpecifiedCondition, infrav1.DiskChangedReason, true, "30720Mi",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, testMachine("cp-0")...)
			w.ready("cp-0")
			w.expectSettled("cp-0")
			writes := w.writes()
			id := w.sim.State().VMs[0].ID

			w.edit("cp-0", tt.change)
			m := w.passAt(lookEvery, "cp-0")

			c := conditions.Get(m, tt.condition)
			w.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			w.Expect(c.Reason).To(Equal(tt.reason))
			w.Expect(c.Message).To(ContainSubstring(tt.words))
			w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(Equal(tt.ready))
			w.Expect(w.eventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))
			w.restart(t, events.NewFakeRecorder(100))
			m = w.passAt(lookEvery, "cp-0")
			w.Expect(conditions.GetReason(m, tt.condition)).To(Equal(tt.reason), "a restart forgets nothing")
			w.expectSettled("cp-0")

			w.edit(id, tt.undo)
			m = w.passAt(3*lookEvery, "cp-0")
			w.Expect(conditions.IsTrue(m, tt.condition)).To(BeTrue(), conditions.GetMessage(m, tt.condition))
			w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(w.writes()).To(Equal(writes), "what somebody changed in VCD is not changed back")
		})
	}
}

func TestVMMovedToAnotherVAppIsFoundThere(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("a", "b")
	admin := w.admin(t)
	vdc, err := admin.VDCs.FindVDC(w.ctx, "acme-vdc")
	w.Expect(err).NotTo(HaveOccurred())
	_, task, err := admin.VApps.ComposeVApp(w.ctx, vdc, vcd.VAppSpec{Name: "attic"})
	w.Expect(err).NotTo(HaveOccurred())
	w.await(admin, task)

	w.sim.Edit(func(e *vcdsim.Editor) { e.MoveVM(e.VM("a"), e.VApp("attic")) })
	m := w.passAt(lookEvery, "a")

	w.Expect(conditions.GetReason(m, infrav1.VMAsSpecifiedCondition)).To(Equal(infrav1.VMMovedReason))
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
}

func TestSecondNICIsSeenWithinTenMinutes(t *testing.T) {
	w := newWorld(t, testMachine("cp-0", twoNICs)...)
	w.ready("cp-0")
	w.expectSettled("cp-0")
	w.edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[1].Address = "10.20.0.66" })
	w.sim.ResetCounters()

	var m *infrav1.VCDMachine
	for at := time.Duration(0); at < 10*time.Minute; at += w.next {
		m = w.passAt(at, "cp-0")
		w.Expect(w.next).To(BeNumerically(">", 0))
	}

	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.AddressChangedReason))
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(ContainSubstring("10.20.0.66"))
	w.Expect(m.Status.NICs[1].Address).To(Equal("10.20.0.66"))
	w.Expect(w.sim.Counters()[readVMCall]).To(Equal(1), "%v", w.sim.Counters())
}

func TestMachineAtRestCostsOneQuery(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.ready("a", "b")
	w.expectSettled("a")
	w.expectSettled("b")
	w.sim.ResetCounters()

	w.passAt(lookEvery, "a")
	w.passAt(lookEvery, "b")

	w.Expect(w.sim.Counters()).To(Equal(map[string]int{"GET /api/query type=vm": 1}))
}

func TestMachineMadeBeforeVMsWereRecorded(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	m := w.vcdMachine("cp-0")
	recorded := m.Annotations[infrav1.VMRecordedAnnotation]
	w.Expect(recorded).To(ContainSubstring("192.168.100.10"))
	delete(m.Annotations, infrav1.VMRecordedAnnotation)
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.restart(t, events.NewFakeRecorder(100))

	m = w.passAt(0, "cp-0")

	w.Expect(m.Annotations[infrav1.VMRecordedAnnotation]).To(Equal(recorded))
	w.expectSettled("cp-0")
}

func TestPersonTakesAVMAsItIs(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	w.edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.MemoryMiB = 8192 })
	m := w.passAt(lookEvery, "cp-0")
	w.Expect(conditions.GetReason(m, infrav1.VMAsSpecifiedCondition)).To(Equal(infrav1.ComputeChangedReason))
	w.Expect(conditions.GetMessage(m, infrav1.VMAsSpecifiedCondition)).To(ContainSubstring(infrav1.VMRecordedAnnotation))

	delete(m.Annotations, infrav1.VMRecordedAnnotation)
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.Expect(conditions.IsTrue(w.passAt(lookEvery, "cp-0"), infrav1.VMAsSpecifiedCondition)).To(BeTrue())
}

func TestDriftIsInReadyWhereThatIsWished(t *testing.T) {
	w := newWorld(t, testMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Annotations = map[string]string{infrav1.DriftInReadyAnnotation: "true"}
	})...)
	w.ready("cp-0")
	w.edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 8 })

	m := w.passAt(lookEvery, "cp-0")

	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.ComputeChangedReason))
}

// leftInPeace makes a machine ready and waits until its guest has removed its bootstrap data, which is a task as well, and VCD has
// nothing more to do for it.
func (w *world) leftInPeace(name string) {
	w.ready(name)
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.sim.State().VMs).To(ContainElement(And(HaveField("Name", name), HaveField("ExtraConfig", HaveKeyWithValue(guestinfo.KeyUserdata, "---")))))
		g.Expect(w.sim.State().Tasks).NotTo(ContainElement(HaveField("Status", vcdsim.TaskRunning)))
	}, patience, "5ms").Should(Succeed())
}

func TestDiskGrowsInPlace(t *testing.T) {
	w, clock := newWorldThatStandsStill(t, testMachine("cp-0")...)
	clock.SetRate(hundredfold)
	w.leftInPeace("cp-0")
	clock.SetRate(0)
	w.edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) {
		vm.ExtraConfig["foreign"] = "kept"
		vm.Disks = append(vm.Disks, vcdsim.VMDisk{ID: "2001", SizeMiB: 512, Unit: 1, StorageProfileID: vm.StorageProfileID})
	})
	writes := w.writes()
	m := w.vcdMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.TaskRunningReason)
	w.Expect(conditions.IsTrue(w.vcdMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue(), "a Node works while its disk grows")
	clock.SetRate(hundredfold)
	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.ReadyReason)

	vm := w.sim.State().VMs[0]
	w.Expect(vm.Disks[0].SizeMiB).To(Equal(int64(40960)))
	w.Expect(vm.Disks[1].SizeMiB).To(Equal(int64(512)))
	w.Expect(vm.ExtraConfig).To(HaveKeyWithValue("foreign", "kept"))
	w.Expect(vm.PoweredOn).To(BeTrue())
	w.Expect(w.writes()).To(Equal(writes+1), "one task")
	w.Expect(w.eventTexts()).To(ContainElement(ContainSubstring("DiskGrown")))
	w.expectSettled("cp-0")
}

func TestDiskThatVCDDoesNotGrow(t *testing.T) {
	w := newWorldOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, testMachine("cp-0")...)
	w.leftInPeace("cp-0")
	w.sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "vappUpdateVm", User: "capvcd", Message: "datastore full", Count: 1})
	m := w.vcdMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())

	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.TaskFailedReason)

	m = w.vcdMachine("cp-0")
	w.Expect(conditions.GetMessage(m, infrav1.VMAsSpecifiedCondition)).To(ContainSubstring("datastore full"))
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.skipAhead()
	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.ReadyReason)
	w.Expect(w.sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40960)))
}

func TestDiskThatIsToGrowIsNotTakenForGrownWhileItsVMIsBusy(t *testing.T) {
	w, clock := newWorldThatStandsStill(t, testMachine("cp-0")...)
	clock.SetRate(hundredfold)
	w.leftInPeace("cp-0")
	clock.SetRate(0)
	m := w.vcdMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	_, err := w.admin(t).VMs.ReconfigureVM(w.ctx, "urn:vcloud:vm:"+w.sim.State().VMs[0].ID, vcd.VMChange{DiskMiB: 30 << 10})
	w.Expect(err).NotTo(HaveOccurred())
	w.restart(t, events.NewFakeRecorder(100)) // What it read of the VM is forgotten, and a VM that is busy is not read.

	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.EntityBusyReason)

	clock.SetRate(hundredfold)
	w.eventuallyMachine("cp-0", infrav1.VMAsSpecifiedCondition, infrav1.ReadyReason)
	w.Expect(w.sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40960)))
}

func powersOn(m *infrav1.VCDMachine) { m.Spec.PowerState = infrav1.PowerStatePowerOn }

func TestVMIsPoweredOnAgainWithinBounds(t *testing.T) {
	w := newWorld(t, testMachine("cp-0", powersOn)...)
	w.ready("cp-0")
	off := func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) }
	w.sim.ResetCounters()

	// A guest that powers itself off whenever it is on, for an hour.
	for at := lookEvery; at < lookEvery+time.Hour; at += time.Minute {
		w.edit("cp-0", off)
		// The clock of this test leaps. It waits for tasks, which are asked after less often the older they look.
		w.Eventually(func() string {
			return conditions.GetReason(w.passAt(at, "cp-0"), infrav1.PoweredOnCondition)
		}, patience, "5ms").ShouldNot(Equal(infrav1.TaskRunningReason))
	}

	w.Expect(w.sim.Counters()[powerOnCall]).To(Equal(maxRevivals))
	w.edit("cp-0", off)
	m := w.passAt(lookEvery+time.Hour-time.Minute, "cp-0")
	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.VMPoweredOffReason))
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(ContainSubstring("does not stay on"))
	w.restart(t, events.NewFakeRecorder(100))
	w.passAt(lookEvery+time.Hour-time.Minute, "cp-0")
	w.Expect(w.sim.Counters()[powerOnCall]).To(Equal(maxRevivals), "a restart forgets nothing")
	w.Expect(strings.Join(w.eventTexts(), "\n")).To(ContainSubstring("PoweringOnAgain"))
}

const powerOnCall = "POST /api/vApp/vm/power/action/powerOn"

func TestVMOfAMachineThatEndsIsLeftOff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(*world)
	}{
		{"the Machine is being drained", func(w *world) {
			machine := &clusterv1.Machine{}
			w.Expect(w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "cp-0"}, machine)).To(Succeed())
			machine.Finalizers = []string{clusterv1.MachineFinalizer}
			w.Expect(w.client.Update(w.ctx, machine)).To(Succeed())
			w.Expect(w.client.Delete(w.ctx, machine)).To(Succeed())
		}},
		{"we asked its guest to shut down", func(w *world) {
			m := w.vcdMachine("cp-0")
			m.Annotations[infrav1.ShutdownRequestedAnnotation] = "2026-08-01T12:00:00Z"
			w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, testMachine("cp-0", powersOn)...)
			w.ready("cp-0")
			tt.end(w)
			w.edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
			writes := w.writes()

			m := w.passAt(lookEvery, "cp-0")

			w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.VMPoweredOffReason))
			w.Expect(w.writes()).To(Equal(writes))
		})
	}
}
