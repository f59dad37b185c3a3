package controllers

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	shutdownCall = "POST /api/vApp/vm/power/action/shutdown"
	cancelCall   = "POST /api/task/action/cancel"
)

// hangingShutdown is a clock on which shutdowns never end.
type hangingShutdown struct{ vcdsim.Clock }

func (c hangingShutdown) AfterFunc(d time.Duration, f func()) func() {
	if d > 135*time.Millisecond && d < 300*time.Millisecond { // 20 s, more or less, by the scale of the profile
		return func() {}
	}
	return c.Clock.AfterFunc(d, f)
}

// newHangingWorld makes a world with a ready machine whose guest never shuts down, and deletes the machine.
func newHangingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldWith(t, vcdsim.Config{Profile: vcdsim.Profile{Name: "test", Scale: 0.01}, Clock: hangingShutdown{vcdsim.NewClock(1)}}, testMachine("cp-0")...)
	w.ready("cp-0")
	w.Eventually(func() bool { return w.sim.State().VMs[0].Boot.Up }, patience, "5ms").Should(BeTrue())
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("cp-0"))).To(Succeed())
	return w
}

// eventuallyShutsDown reconciles until the guest is asked to shut down.
func (w *world) eventuallyShutsDown(name string) {
	w.Eventually(func(g Gomega) {
		_, err := w.reconcileMachine(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(w.vcdMachine(name).Annotations).To(HaveKey(infrav1.ShutdownRequestedAnnotation))
	}, patience, "5ms").Should(Succeed())
}

func TestShutdownThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		between func(*testing.T, *world)
		fault   vcdsim.Fault
	}{
		{"by the manager that asked for it", func(*testing.T, *world) {}, vcdsim.Fault{Operation: "none"}},
		{"by one that was started since", func(t *testing.T, w *world) {
			t.Helper()
			w.restart(t, events.NewFakeRecorder(100))
		}, vcdsim.Fault{Operation: "none"}},
		{"by one whose request was answered in vain", func(*testing.T, *world) {}, vcdsim.Fault{Operation: shutdownCall, DropAfter: true, Count: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newHangingWorld(t)
			w.sim.Faults().Add(tt.fault)
			w.eventuallyShutsDown("cp-0")
			tt.between(t, w)
			w.later(defaultShutdownTimeout / 2)
			w.isGone("cp-0")
			w.Expect(w.sim.State().VMs).To(ConsistOf(HaveField("PoweredOn", true)))
			w.Expect(w.sim.Counters()).NotTo(HaveKey(cancelCall))

			w.later(defaultShutdownTimeout + time.Second)
			w.Eventually(func() bool { return w.isGone("cp-0") }, patience, "5ms").Should(BeTrue())

			w.Expect(w.sim.State().VMs).To(BeEmpty())
			w.Expect(w.sim.Counters()).To(And(HaveKeyWithValue(shutdownCall, 1), HaveKeyWithValue(cancelCall, 1)))
			for _, r := range w.sim.Requests() {
				w.Expect(r.Status).NotTo(Equal(http.StatusBadRequest), "no request to a busy entity: %s", r.Path)
			}
		})
	}
}

func TestShutdownThatNobodyMayCancelIsReported(t *testing.T) {
	w := newHangingWorld(t)
	w.sim.Faults().Add(vcdsim.Fault{Operation: cancelCall, Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "no right", Count: 1})
	w.eventuallyShutsDown("cp-0")
	w.later(defaultShutdownTimeout + time.Second)
	w.eventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)
	w.Expect(conditions.GetMessage(w.vcdMachine("cp-0"), infrav1.VMDeletedCondition)).To(ContainSubstring("cancel it in VCD"))
	w.isGone("cp-0")
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(cancelCall, 1), "it is not asked all the time")
	w.Expect(w.sim.State().VMs).To(ConsistOf(HaveField("PoweredOn", true)))

	w.later(defaultShutdownTimeout + 2*cancelRetry)
	w.Eventually(func() bool { return w.isGone("cp-0") }, patience, "5ms").Should(BeTrue())
	w.Expect(conditions.IsTrue(w.vcdCluster(), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestShutdownTimesOutThoughTheClockWasPutBack(t *testing.T) {
	w := newWorld(t, testMachine("cp-0")...)
	w.ready("cp-0")
	m := w.vcdMachine("cp-0")
	m.Annotations[infrav1.ShutdownRequestedAnnotation] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.Expect(w.client.Update(w.ctx, m)).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, m)).To(Succeed())
	w.eventuallyMachine("cp-0", infrav1.VMDeletedCondition, infrav1.ShuttingDownReason)

	w.later(defaultShutdownTimeout + 2*time.Second)

	w.Eventually(func() bool { return w.isGone("cp-0") }, patience, "5ms").Should(BeTrue())
}
