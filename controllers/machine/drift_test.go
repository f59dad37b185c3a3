// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/guestinfo"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const readVMCall = "GET /api/vApp/vm"

// twoNICs adds a second NIC to a machine.
func twoNICs(m *infrav1.VCDMachine) {
	m.Spec.Networks = []infrav1.NetworkSpec{
		{AddressSource: infrav1.AddressStaticPool},
		{Name: "storage", AddressSource: infrav1.AddressStaticPool},
	}
}

// reconcileAt reconciles a machine d from now, by all clocks, and returns the result.
func reconcileAt(w *controllertest.Env, d time.Duration, name string) *infrav1.VCDMachine {
	w.Later(d)
	w.Clock.Store(int64(d))
	res, err := w.ReconcileMachine(name)
	w.Expect(err).NotTo(HaveOccurred())
	w.Next = res.RequeueAfter
	return w.VCDMachine(name)
}

func TestDriftOfARunningMachine(t *testing.T) {
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
			name:      "suspended",
			change:    func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.Suspended },
			undo:      func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Status = vcdsim.PoweredOn },
			condition: infrav1.PoweredOnCondition,
			reason:    infrav1.VMSuspendedReason,
			words:     "resume",
		},
		{
			name:      "powered off",
			change:    func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) },
			undo:      func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOn(vm) },
			condition: infrav1.PoweredOnCondition,
			reason:    infrav1.VMPoweredOffReason,
			words:     "spec.powerOffPolicy",
		},
		{
			name:      "primary address changed",
			change:    func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.100.66" },
			undo:      func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[0].Address = "192.168.100.10" },
			condition: infrav1.AddressesReadyCondition,
			reason:    infrav1.AddressChangedReason,
			words:     "192.168.100.66",
		},
		{
			name:      "renamed",
			change:    func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "mine" },
			undo:      func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Name = "cp-0" },
			condition: infrav1.VMInSyncCondition,
			reason:    infrav1.VMRenamedReason,
			ready:     true,
			words:     "mine",
		},
		{
			name:      "CPUs added",
			change:    func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 8 },
			undo:      func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 2 },
			condition: infrav1.VMInSyncCondition,
			reason:    infrav1.ComputeChangedReason,
			ready:     true,
			words:     "8 CPUs",
		},
		{
			name:      "disk grown",
			change:    func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Disks[0].SizeMiB = 30720 },
			undo:      func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.Disks[0].SizeMiB = 20480 },
			condition: infrav1.VMInSyncCondition,
			reason:    infrav1.DiskChangedReason,
			ready:     true,
			words:     "30720Mi",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
			w.Ready("cp-0")
			w.ExpectSettled("cp-0")
			writes := w.Writes()
			id := w.Sim.State().VMs[0].ID

			w.Edit("cp-0", tt.change)
			m := reconcileAt(w, machine.InventoryEvery, "cp-0")

			c := conditions.Get(m, tt.condition)
			w.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			w.Expect(c.Reason).To(Equal(tt.reason))
			w.Expect(c.Message).To(ContainSubstring(tt.words))
			w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(Equal(tt.ready))
			w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + tt.reason)))
			w.Restart(t, events.NewFakeRecorder(100))
			m = reconcileAt(w, machine.InventoryEvery, "cp-0")
			w.Expect(conditions.GetReason(m, tt.condition)).To(Equal(tt.reason), "a restart does not lose records")
			w.ExpectSettled("cp-0")

			w.Edit(id, tt.undo)
			m = reconcileAt(w, 3*machine.InventoryEvery, "cp-0")
			w.Expect(conditions.IsTrue(m, tt.condition)).To(BeTrue(), conditions.GetMessage(m, tt.condition))
			w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
			w.Expect(w.Writes()).To(Equal(writes), "changes made in VCD are not reverted")
		})
	}
}

func TestVMMovedToAnotherVAppIsFoundThere(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("a", "b")
	admin := w.Admin(t)
	vdc, err := admin.VDCs.FindVDC(w.Ctx, "acme-vdc")
	w.Expect(err).NotTo(HaveOccurred())
	_, task, err := admin.VApps.ComposeVApp(w.Ctx, vdc, vcd.VAppSpec{Name: "attic"})
	w.Expect(err).NotTo(HaveOccurred())
	w.Await(admin, task)

	w.Sim.Edit(func(e *vcdsim.Editor) {
		e.Share(e.VApp("attic"), "capvcd", "FullControl")
		e.MoveVM(e.VM("a"), e.VApp("attic"))
	})
	m := reconcileAt(w, machine.InventoryEvery, "a")

	w.Expect(conditions.GetReason(m, infrav1.VMInSyncCondition)).To(Equal(infrav1.VMMovedReason))
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
}

func TestASecondNICIsNoticedWithinTenMinutes(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", twoNICs)...)
	w.Ready("cp-0")
	w.ExpectSettled("cp-0")
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.NICs[1].Address = "10.20.0.66" })
	w.Sim.ResetCounters()

	var m *infrav1.VCDMachine
	for at := time.Duration(0); at < 10*time.Minute; at += w.Next {
		m = reconcileAt(w, at, "cp-0")
		w.Expect(w.Next).To(BeNumerically(">", 0))
	}

	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.AddressChangedReason))
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(ContainSubstring("10.20.0.66"))
	w.Expect(m.Status.NICs[1].Address).To(Equal("10.20.0.66"))
	w.Expect(w.Sim.Counters()[readVMCall]).To(Equal(1), "%v", w.Sim.Counters())
}

func TestAnIdleMachineCausesOneQuery(t *testing.T) {
	w := controllertest.New(t, append(controllertest.NewMachine("a"), controllertest.NewMachine("b")...)...)
	w.Ready("a", "b")
	w.ExpectSettled("a")
	w.ExpectSettled("b")
	w.Sim.ResetCounters()

	reconcileAt(w, machine.InventoryEvery, "a")
	reconcileAt(w, machine.InventoryEvery, "b")

	w.Expect(w.Sim.Counters()).To(Equal(map[string]int{"GET /api/query type=vm": 1}))
}

func TestMachineCreatedBeforeVMsWereRecorded(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	m := w.VCDMachine("cp-0")
	recorded := m.Spec.RecordedState.VM
	w.Expect(recorded.NICs).To(ConsistOf(HaveField("Address", "192.168.100.10")))
	m.Spec.RecordedState.VM = nil
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Restart(t, events.NewFakeRecorder(100))

	m = reconcileAt(w, 0, "cp-0")

	w.Expect(m.Spec.RecordedState.VM).To(Equal(recorded))
	w.ExpectSettled("cp-0")
}

func TestUserAcceptsAVMAsItIs(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.MemoryMiB = 8192 })
	m := reconcileAt(w, machine.InventoryEvery, "cp-0")
	w.Expect(conditions.GetReason(m, infrav1.VMInSyncCondition)).To(Equal(infrav1.ComputeChangedReason))
	w.Expect(conditions.GetMessage(m,
		infrav1.VMInSyncCondition)).To(ContainSubstring("spec.recordedState.vm"))

	m.Spec.RecordedState.VM = nil
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.Expect(conditions.IsTrue(reconcileAt(w, machine.InventoryEvery, "cp-0"), infrav1.VMInSyncCondition)).To(BeTrue())
}

func TestDriftAffectsReadyIfConfigured(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", func(m *infrav1.VCDMachine) {
		m.Annotations = map[string]string{infrav1.DriftInReadyAnnotation: "true"}
	})...)
	w.Ready("cp-0")
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.CPUs = 8 })

	m := reconcileAt(w, machine.InventoryEvery, "cp-0")

	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.ComputeChangedReason))
}

// makeIdle makes a machine ready and waits until its guest has removed its bootstrap data, which is a task as well,
// and until VCD has no more tasks for it.
func makeIdle(w *controllertest.Env, name string) {
	w.Ready(name)
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.Sim.State().VMs).To(ContainElement(And(HaveField("Name", name),
			HaveField("ExtraConfig", HaveKeyWithValue(guestinfo.KeyUserdata, "---")))))
		g.Expect(w.Sim.State().Tasks).NotTo(ContainElement(HaveField("Status", vcdsim.TaskRunning)))
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestDiskGrowsInPlace(t *testing.T) {
	w, clock := controllertest.NewStandingStill(t, controllertest.NewMachine("cp-0")...)
	clock.SetRate(controllertest.Hundredfold)
	makeIdle(w, "cp-0")
	clock.SetRate(0)
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) {
		vm.ExtraConfig["foreign"] = "kept"
		vm.Disks = append(vm.Disks,
			vcdsim.VMDisk{ID: "2001", SizeMiB: 512, Unit: 1, StorageProfileID: vm.StorageProfileID})
	})
	writes := w.Writes()
	m := w.VCDMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.TaskRunningReason)
	w.Expect(conditions.IsTrue(w.VCDMachine("cp-0"), clusterv1.ReadyCondition)).To(BeTrue(),
		"a Node works while its disk is expanded")
	clock.SetRate(controllertest.Hundredfold)
	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)

	vm := w.Sim.State().VMs[0]
	w.Expect(vm.Disks[0].SizeMiB).To(Equal(int64(40960)))
	w.Expect(vm.Disks[1].SizeMiB).To(Equal(int64(512)))
	w.Expect(vm.ExtraConfig).To(HaveKeyWithValue("foreign", "kept"))
	w.Expect(vm.PoweredOn).To(BeTrue())
	w.Expect(w.Writes()).To(Equal(writes+2), "a consolidation, and one change")
	w.Expect(w.EventTexts()).To(ContainElement(ContainSubstring("DiskExpanded")))
	w.ExpectSettled("cp-0")
}

func TestADiskThatVCDDoesNotExpand(t *testing.T) {
	w := controllertest.NewOn(t, vcdsim.Profile{Name: "test", Scale: 0.01}, controllertest.NewMachine("cp-0")...)
	makeIdle(w, "cp-0")
	w.Sim.Faults().Add(vcdsim.Fault{
		FailTask:  true,
		Operation: "vappUpdateVm",
		User:      "capvcd",
		Message:   "datastore full",
		Count:     1,
	})
	m := w.VCDMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())

	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.TaskFailedReason)

	m = w.VCDMachine("cp-0")
	w.Expect(conditions.GetMessage(m, infrav1.VMInSyncCondition)).To(ContainSubstring("datastore full"))
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	skipAhead(w)
	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40960)))
}

func TestADiskIsNotRecordedAsExpandedWhileItsVMIsBusy(t *testing.T) {
	w, clock := controllertest.NewStandingStill(t, controllertest.NewMachine("cp-0")...)
	clock.SetRate(controllertest.Hundredfold)
	makeIdle(w, "cp-0")
	clock.SetRate(0)
	m := w.VCDMachine("cp-0")
	m.Spec.DiskSize = ptr.To(resource.MustParse("40Gi"))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Edit("cp-0", func(_ *vcdsim.Editor, vm *vcdsim.VM) { vm.LinkedClone = false })
	_, err := w.Admin(t).VMs.ReconfigureVM(w.Ctx, "urn:vcloud:vm:"+w.Sim.State().VMs[0].ID,
		vcd.VMChange{DiskMiB: 30 << 10})
	w.Expect(err).NotTo(HaveOccurred())
	w.Restart(t, events.NewFakeRecorder(100)) // The last read of the VM is discarded, and a busy VM is not read.

	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.EntityBusyReason)

	clock.SetRate(controllertest.Hundredfold)
	w.EventuallyMachine("cp-0", infrav1.VMInSyncCondition, infrav1.ReadyReason)
	w.Expect(w.Sim.State().VMs[0].Disks[0].SizeMiB).To(Equal(int64(40960)))
}

func powersOn(m *infrav1.VCDMachine) { m.Spec.PowerOffPolicy = infrav1.PowerOffPowerOn }

func TestVMIsPoweredOnAgainALimitedNumberOfTimes(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", powersOn)...)
	w.Ready("cp-0")
	off := func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) }
	w.Sim.ResetCounters()

	// A guest that powers itself off whenever it is powered on, for an hour.
	for at := machine.InventoryEvery; at < machine.InventoryEvery+time.Hour; at += time.Minute {
		w.Edit("cp-0", off)
		// The clock of this test jumps forward. The reconciler polls tasks less often the older they seem.
		w.Eventually(func() string {
			return conditions.GetReason(reconcileAt(w, at, "cp-0"), infrav1.PoweredOnCondition)
		}, controllertest.Patience, "5ms").ShouldNot(Equal(infrav1.TaskRunningReason))
	}

	w.Expect(w.Sim.Counters()[powerOnCall]).To(Equal(machine.MaxRevivals))
	w.Edit("cp-0", off)
	m := reconcileAt(w, machine.InventoryEvery+time.Hour-time.Minute, "cp-0")
	w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.VMPoweredOffReason))
	w.Expect(conditions.GetMessage(m, clusterv1.ReadyCondition)).To(ContainSubstring("does not stay powered on"))
	w.Restart(t, events.NewFakeRecorder(100))
	reconcileAt(w, machine.InventoryEvery+time.Hour-time.Minute, "cp-0")
	w.Expect(w.Sim.Counters()[powerOnCall]).To(Equal(machine.MaxRevivals), "a restart does not lose records")
	w.Expect(strings.Join(w.EventTexts(), "\n")).To(ContainSubstring("VMPoweredOnAgain"))
}

const powerOnCall = "POST /api/vApp/vm/power/action/powerOn"

// drain deletes a Machine as Cluster API sees it while the node is being drained.
func drain(w *controllertest.Env, name string) {
	machine := &clusterv1.Machine{}
	key := client.ObjectKey{Namespace: controllertest.Namespace, Name: name}
	w.Expect(w.Client.Get(w.Ctx, key, machine)).To(Succeed())
	machine.Finalizers = []string{clusterv1.MachineFinalizer}
	w.Expect(w.Client.Update(w.Ctx, machine)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, machine)).To(Succeed())
}

func TestARejectedPowerOnDoesNotCount(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", powersOn)...)
	w.Ready("cp-0")
	w.Sim.ResetCounters()
	w.Sim.Faults().Add(vcdsim.Fault{Operation: powerOnCall, Status: http.StatusBadRequest, Code: "BUSY_ENTITY", Count: 2})
	w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })

	at := machine.InventoryEvery
	w.Eventually(func(g Gomega) {
		g.Expect(conditions.GetReason(reconcileAt(w, at, "cp-0"), infrav1.PoweredOnCondition)).To(Equal(infrav1.ReadyReason))
		g.Expect(w.Sim.Counters()[powerOnCall]).To(Equal(3))
	}, controllertest.Patience, "5ms").Should(Succeed())

	w.Expect(w.VCDMachine("cp-0").Spec.RecordedState.PoweredOnAgain.Count).To(BeEquivalentTo(1))
	w.Expect(strings.Count(strings.Join(w.EventTexts(), "\n"), "VMPoweredOnAgain")).To(Equal(1))
}

func TestVMOfADeletingMachineIsNotPoweredOn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(*controllertest.Env)
	}{
		{
			"the Machine is being drained",
			func(w *controllertest.Env) { drain(w, "cp-0") },
		},
		{
			"we requested the shutdown of its guest",
			func(w *controllertest.Env) {
				m := w.VCDMachine("cp-0")
				m.Spec.RecordedState.ShutdownRequestedAt = ptr.To(metav1.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
				w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", powersOn)...)
			w.Ready("cp-0")
			tt.end(w)
			w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
			writes := w.Writes()

			m := reconcileAt(w, machine.InventoryEvery, "cp-0")

			w.Expect(conditions.GetReason(m, clusterv1.ReadyCondition)).To(Equal(infrav1.VMPoweredOffReason))
			w.Expect(w.Writes()).To(Equal(writes))
		})
	}
}

func TestAVMThatIsShownOffAndMayNotBePoweredOnIsNotReady(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]string{
		"the right to power on is missing": powerOnCall,
		"its details are not readable":     readVMCall,
	} {
		t.Run(name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", powersOn)...)
			w.Ready("cp-0")
			w.Edit("cp-0", func(e *vcdsim.Editor, vm *vcdsim.VM) { e.PowerOff(vm) })
			w.Sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: http.StatusForbidden})

			for _, pass := range []string{"if it is rejected", "while it is delayed"} {
				m := reconcileAt(w, machine.InventoryEvery, "cp-0")

				w.Expect(conditions.IsFalse(m, clusterv1.ReadyCondition)).To(BeTrue(), pass)
				w.Expect(conditions.GetReason(m, infrav1.PoweredOnCondition)).To(Equal(infrav1.ForbiddenReason))
				w.Expect(conditions.GetMessage(m, infrav1.PoweredOnCondition)).
					To(HavePrefix("The VM is powered off: "))
			}
		})
	}
}
