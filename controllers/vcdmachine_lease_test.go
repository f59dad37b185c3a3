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
	day       = 24 * time.Hour
	leaseCall = "PUT /api/vApp/vapp/leaseSettingsSection"
)

// newLimitedWorld makes a world with ready machines in an organisation that caps leases.
func newLimitedWorld(t *testing.T, lease time.Duration, names ...string) *world {
	t.Helper()
	w := newWorld(t)
	for _, name := range names {
		for _, o := range testMachine(name) {
			w.Expect(w.client.Create(w.ctx, o)).To(Succeed())
		}
	}
	w.sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].RuntimeLease = lease
		}
	})
	w.eventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for _, name := range names {
		w.eventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
	return w
}

// after lets time pass for the machines' controller, but not for VCD, and reconciles for a while.
func (w *world) after(d time.Duration, names ...string) {
	w.machine.Now = func() time.Time { return time.Now().Add(d) }
	for range 40 { // So many passes, however busy the machine is that runs the test.
		for _, name := range names {
			_, err := w.reconcileMachine(name)
			w.Expect(err).NotTo(HaveOccurred())
		}
		<-time.After(5 * time.Millisecond) // Tasks of the simulator end.
	}
}

func TestLimitedLeaseIsReportedAndRenewed(t *testing.T) {
	w := newLimitedWorld(t, 30*day, "a", "b")

	res, err := w.reconcileMachine("a")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(res.RequeueAfter).To(BeNumerically("<", 2*lookEvery), "every look at the inventory shows when it is due")
	m := w.vcdMachine("a")
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetReason(m, infrav1.LeaseUnlimitedCondition)).To(Equal(infrav1.LeaseLimitedReason))
	w.Expect(w.eventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.LeaseLimitedReason)))
	w.sim.ResetCounters()
	w.expectSettled("a")
	w.Expect(w.sim.Counters()).To(BeEmpty(), "a lease that is long enough costs no call")

	w.after(28*day, "a", "b")
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 1), "machines of one vApp renew its lease once")
	w.after(29*day+12*time.Hour, "a", "b")
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
	w.Expect(conditions.IsTrue(w.vcdMachine("a"), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestStorageLeaseOfAStoppedVAppIsReportedAndRenewed(t *testing.T) {
	w := newLimitedWorld(t, 0, "a")
	w.sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].StorageLease = 30 * day
		}
		e.VApp(testCluster).Lease.Storage = 30 * day
		e.Assumptions().VAppStaysDeployed = false // the end of the runtime lease undeploys it, too
		e.PowerOff(e.VM("a"))
	})
	recorder := events.NewFakeRecorder(100)
	w.events = recorder.Events
	w.restart(t, recorder) // with an inventory of its own
	w.eventuallyMachine("a", clusterv1.ReadyCondition, infrav1.VMPoweredOffReason)

	w.Expect(conditions.GetMessage(w.vcdMachine("a"), infrav1.LeaseUnlimitedCondition)).To(ContainSubstring("VCD deletes vApp " + testCluster))
	w.Expect(w.eventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.LeaseLimitedReason)))
	w.Expect(w.sim.Counters()).NotTo(HaveKey(leaseCall))

	w.after(28*day, "a")
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 1))
	w.Expect(w.sim.State().VMs).To(HaveLen(1))
}

func TestLeaseThatIsNotLimitedAnyMoreIsForgotten(t *testing.T) {
	w := newLimitedWorld(t, 30*day, "a")
	_, err := w.reconcileMachine("a")
	w.Expect(err).NotTo(HaveOccurred())
	w.sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].RuntimeLease = 0
		}
	})

	w.after(28*day, "a")

	w.Expect(conditions.Has(w.vcdMachine("a"), infrav1.LeaseUnlimitedCondition)).To(BeFalse())
	w.expectSettled("a")
}

func TestLeaseThatMayNotBeUnlimitedIsRenewedAsItIs(t *testing.T) {
	w := newLimitedWorld(t, 30*day, "a")
	w.sim.Faults().Add(vcdsim.Fault{Operation: leaseCall, Status: http.StatusBadRequest, Code: "BAD_REQUEST", Message: "too long", Count: 1})

	w.after(28*day, "a")

	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
	w.Expect(conditions.IsTrue(w.vcdMachine("a"), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestLeaseThatCannotBeRenewedIsReported(t *testing.T) {
	w := newLimitedWorld(t, 30*day, "a")
	w.sim.Faults().Add(vcdsim.Fault{Operation: leaseCall, Status: http.StatusForbidden, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN", Message: "no right"})

	w.after(28*day, "a")

	m := w.vcdMachine("a")
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetMessage(m, infrav1.LeaseUnlimitedCondition)).To(ContainSubstring("no right"))
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 1), "it is not tried again at once")
	w.after(28*day+2*time.Hour, "a")
	w.Expect(w.sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
}
