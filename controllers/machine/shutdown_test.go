// SPDX-License-Identifier: Apache-2.0

package machine_test

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

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	shutdownCall = "POST /api/vApp/vm/power/action/shutdown"
	cancelCall   = "POST /api/task/action/cancel"
	powerOffCall = "POST /api/vApp/vm/action/undeploy"
)

// hangingShutdown is a clock on which shutdowns never finish.
type hangingShutdown struct{ vcdsim.Clock }

func (c hangingShutdown) AfterFunc(d time.Duration, f func()) func() {
	if d > 135*time.Millisecond && d < 300*time.Millisecond { // 20 s, more or less, by the scale of the profile
		return func() {}
	}
	return c.Clock.AfterFunc(d, f)
}

// newHangingEnv returns an environment with a ready machine whose guest never shuts down, and deletes the machine.
func newHangingEnv(t *testing.T, mods ...func(*infrav1.VCDMachine)) *controllertest.Env {
	t.Helper()
	w := controllertest.NewWith(t,
		vcdsim.Config{Profile: vcdsim.Profile{Name: "test", Scale: 0.01}, Clock: hangingShutdown{vcdsim.NewClock(1)}},
		controllertest.NewMachine("cp-0", mods...)...)
	w.Ready("cp-0")
	w.Eventually(func() bool { return w.Sim.State().VMs[0].Boot.Up }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())
	return w
}

// eventuallyShutsDown reconciles until a guest shutdown is requested.
func eventuallyShutsDown(w *controllertest.Env, name string) {
	w.Eventually(func(g Gomega) {
		_, err := w.ReconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.VCDMachine(name).Spec.RecordedState.ShutdownRequestedAt).NotTo(BeZero())
	}, controllertest.Patience, "5ms").Should(Succeed())
}

func TestAHangingShutdownTimesOut(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		between func(*testing.T, *controllertest.Env)
		fault   vcdsim.Fault
	}{
		{name: "by the manager that requested it", between: func(*testing.T, *controllertest.Env) {}, fault: vcdsim.Fault{Operation: "none"}},
		{
			name: "by a manager that was started since",
			between: func(t *testing.T, w *controllertest.Env) {
				t.Helper()
				w.Restart(t, events.NewFakeRecorder(100))
			},
			fault: vcdsim.Fault{Operation: "none"},
		},
		{
			name:    "by a manager whose response was lost",
			between: func(*testing.T, *controllertest.Env) {},
			fault:   vcdsim.Fault{Operation: shutdownCall, DropAfter: true, Count: 1},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newHangingEnv(t)
			w.Sim.Faults().Add(tt.fault)
			eventuallyShutsDown(w, "cp-0")
			tt.between(t, w)
			w.Later(machine.DefaultShutdownTimeout / 2)
			isGone(w, "cp-0")
			w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("PoweredOn", true)))
			w.Expect(w.Sim.Counters()).NotTo(HaveKey(cancelCall))

			w.Later(machine.DefaultShutdownTimeout + time.Second)
			w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())

			w.Expect(w.Sim.State().VMs).To(BeEmpty())
			w.Expect(w.Sim.Counters()).To(And(HaveKeyWithValue(shutdownCall, 1), HaveKeyWithValue(cancelCall, 1)))
			for _, r := range w.Sim.Requests() {
				w.Expect(r.Status).NotTo(Equal(http.StatusBadRequest), "no request to a busy entity: %s", r.Path)
			}
		})
	}
}

func TestAShutdownThatCannotBeCanceledIsReported(t *testing.T) {
	w := newHangingEnv(t)
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: cancelCall,
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
		Message:   "no right",
		Count:     1,
	})
	eventuallyShutsDown(w, "cp-0")
	w.Later(machine.DefaultShutdownTimeout + time.Second)
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"),
		infrav1.VMDeletedCondition)).To(ContainSubstring("cancel it in VCD"))
	isGone(w, "cp-0")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(cancelCall, 1), "it is not requested repeatedly")
	w.Expect(w.Sim.State().VMs).To(ConsistOf(HaveField("PoweredOn", true)))

	w.Later(machine.DefaultShutdownTimeout + 2*machine.CancelRetry)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(conditions.IsTrue(w.VCDCluster(), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestShutdownTimesOutDespiteAClockChange(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0")...)
	w.Ready("cp-0")
	m := w.VCDMachine("cp-0")
	m.Spec.RecordedState.ShutdownRequestedAt = ptr.To(metav1.NewTime(time.Now().Add(time.Hour)))
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, m)).To(Succeed())
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)

	w.Later(machine.DefaultShutdownTimeout + 2*time.Second)

	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
}

func inMode(mode infrav1.PowerOffMode) func(*infrav1.VCDMachine) {
	return func(m *infrav1.VCDMachine) { m.Spec.PowerOffMode = mode }
}

// setMode changes the mode of a deleting machine.
func setMode(w *controllertest.Env, mode infrav1.PowerOffMode) {
	m := w.VCDMachine("cp-0")
	m.Spec.PowerOffMode = mode
	w.Expect(w.Client.Update(w.Ctx, m)).To(Succeed())
}

// expectNoPowerOff expects that the VM runs, and that the machine reports how to end the wait.
func expectNoPowerOff(w *controllertest.Env, says string) {
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.GuestNotShutDownReason)
	w.Expect(conditions.GetMessage(w.VCDMachine("cp-0"), infrav1.VMDeletedCondition)).To(And(ContainSubstring(says),
		ContainSubstring("set spec.powerOffMode of the VCDMachine to TrySoft")))
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
	w.Expect(w.Sim.Counters()).NotTo(Or(HaveKey(cancelCall), HaveKey(powerOffCall)))
}

func TestSoftModeWaitsForTheGuest(t *testing.T) {
	w := newHangingEnv(t, inMode(infrav1.PowerOffSoft))
	eventuallyShutsDown(w, "cp-0")
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.TaskRunningReason)

	w.Later(machine.DefaultShutdownTimeout + time.Second)
	expectNoPowerOff(w, "has not shut down in 1m0s")
	w.Later(24 * time.Hour)
	expectNoPowerOff(w, "has not shut down in 1m0s")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(shutdownCall, 1), "the shutdown is in progress")

	setMode(w, infrav1.PowerOffTrySoft)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.Counters()).To(And(HaveKeyWithValue(cancelCall, 1), HaveKeyWithValue(powerOffCall, 1)))
}

func TestInModeSoftASecondRequestHasItsOwnTimeout(t *testing.T) {
	w := newHangingEnv(t, inMode(infrav1.PowerOffSoft))
	eventuallyShutsDown(w, "cp-0")
	w.Later(machine.DefaultShutdownTimeout + time.Second)
	expectNoPowerOff(w, "has not shut down in 1m0s")

	w.Driver().Post("/api/task/"+runningShutdown(w).ID+"/action/cancel", "")
	again := 24 * time.Hour
	w.Eventually(func() int {
		again += time.Minute // A task that was seen to fail delays the next request.
		w.Later(again)
		isGone(w, "cp-0")
		return w.Sim.Counters()[shutdownCall]
	}, controllertest.Patience, "5ms").Should(Equal(2))

	w.Later(again + machine.DefaultShutdownTimeout/2)
	isGone(w, "cp-0")
	w.Expect(conditions.GetReason(w.VCDMachine("cp-0"), infrav1.VMDeletedCondition)).To(
		Equal(infrav1.TaskRunningReason), "the guest has half of the timeout left")
	w.Later(again + machine.DefaultShutdownTimeout + time.Minute)
	w.EventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.GuestNotShutDownReason)
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(shutdownCall, 2))
}

// runningShutdown returns the task that shuts down a guest.
func runningShutdown(w *controllertest.Env) vcdsim.Task {
	for _, task := range w.Sim.State().Tasks {
		if task.OperationName == "vappShutdownGuest" && task.Status == vcdsim.TaskRunning {
			return task
		}
	}
	w.Expect("a task that shuts down a guest").To(BeEmpty())
	return vcdsim.Task{}
}

func TestSoftModeKeepsTheVMOfAGuestThatCannotShutDown(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault vcdsim.Fault
	}{
		{
			"VCD rejects",
			vcdsim.Fault{Operation: shutdownCall, Status: http.StatusBadRequest, Message: "no VMware Tools"},
		},
		{"the task fails", vcdsim.Fault{FailTask: true, Operation: "vappShutdownGuest", Message: "no VMware Tools"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", inMode(infrav1.PowerOffSoft))...)
			w.Ready("cp-0")
			w.Sim.Faults().Add(tt.fault)
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

			w.Eventually(func(g Gomega) {
				isGone(w, "cp-0")
				g.Expect(conditions.GetReason(w.VCDMachine("cp-0"), infrav1.VMDeletedCondition)).To(
					Equal(infrav1.GuestNotShutDownReason))
			}, controllertest.Patience, "5ms").Should(Succeed())
			expectNoPowerOff(w, "no VMware Tools")

			setMode(w, infrav1.PowerOffHard)
			w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
		})
	}
}

func TestSoftModeDoesNotPowerOffASuspendedVM(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("cp-0", inMode(infrav1.PowerOffSoft))...)
	w.Ready("cp-0")
	w.Driver().Post("/api/vApp/vm-"+w.Sim.State().VMs[0].ID+"/power/action/suspend", "")
	skipAhead(w)
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("cp-0"))).To(Succeed())

	expectNoPowerOff(w, "is suspended")

	setMode(w, infrav1.PowerOffTrySoft)
	w.Eventually(func() bool { return isGone(w, "cp-0") }, controllertest.Patience, "5ms").Should(BeTrue())
}

func TestAMachineIsDeletedInEachPowerOffMode(t *testing.T) {
	for mode, want := range map[infrav1.PowerOffMode]int{infrav1.PowerOffSoft: 1, infrav1.PowerOffHard: 0} {
		t.Run(string(mode), func(t *testing.T) {
			w := controllertest.New(t, controllertest.NewMachine("cp-0", inMode(mode))...)
			w.Ready("cp-0")

			w.DeleteMachine("cp-0")

			w.Expect(w.Sim.Counters()[shutdownCall]).To(Equal(want))
			w.Expect(w.Sim.State().VMs).To(BeEmpty())
		})
	}
}
