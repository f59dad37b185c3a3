// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	day       = 24 * time.Hour
	leaseCall = "PUT /api/vApp/vapp/leaseSettingsSection"
)

// newLimitedEnv returns an environment with ready machines in an organization that limits leases.
func newLimitedEnv(t *testing.T, lease time.Duration, names ...string) *controllertest.Env {
	t.Helper()
	w := controllertest.New(t)
	for _, name := range names {
		for _, o := range controllertest.NewMachine(name) {
			w.Expect(w.Client.Create(w.Ctx, o)).To(Succeed())
		}
	}
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].RuntimeLease = vcdsim.Duration(lease)
		}
	})
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for _, name := range names {
		w.EventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
	return w
}

// after advances the clock of the machine controller, but not that of VCD, and reconciles for a while.
func after(w *controllertest.Env, d time.Duration, names ...string) {
	w.Machine.Now = func() time.Time { return time.Now().Add(d) }
	for range 40 { // A fixed number of reconciles, regardless of the load on the test machine.
		for _, name := range names {
			_, err := w.ReconcileMachine(name)
			w.Expect(err).NotTo(HaveOccurred())
		}
		<-time.After(5 * time.Millisecond) // Tasks of the simulator finish.
	}
}

func TestLimitedLeaseIsReportedAndRenewed(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a", "b")

	res, err := w.ReconcileMachine("a")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(res.RequeueAfter).To(BeNumerically("<", 2*machine.InventoryEvery),
		"every inventory shows when it expires")
	m := w.VCDMachine("a")
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetReason(m, infrav1.LeaseLimitedCondition)).To(Equal(infrav1.LeaseLimitedReason))
	w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.LeaseLimitedReason)))
	w.Sim.ResetCounters()
	w.ExpectSettled("a")
	w.Expect(w.Sim.Counters()).To(BeEmpty(), "a long lease causes no request")

	after(w, 28*day, "a", "b")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 1), "machines of one vApp renew its lease once")
	after(w, 29*day+12*time.Hour, "a", "b")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
	w.Expect(conditions.IsTrue(w.VCDMachine("a"), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestStorageLeaseOfAStoppedVAppIsReportedAndRenewed(t *testing.T) {
	w := newLimitedEnv(t, 0, "a")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].StorageLease = vcdsim.Duration(30 * day)
		}
		e.VApp(controllertest.ClusterName).Lease.Storage = 30 * day
		e.Assumptions().VAppStaysDeployed = false // the expiry of the runtime lease also undeploys it
		e.PowerOff(e.VM("a"))
	})
	recorder := events.NewFakeRecorder(100)
	w.Events = recorder.Events
	w.Restart(t, recorder) // with its own inventory
	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.VMPoweredOffReason)

	w.Expect(conditions.GetMessage(w.VCDMachine("a"),
		infrav1.LeaseLimitedCondition)).To(ContainSubstring("VCD deletes vApp " + controllertest.ClusterName))
	w.Expect(w.EventTexts()).To(ContainElement(HavePrefix("Warning " + infrav1.LeaseLimitedReason)))
	w.Expect(w.Sim.Counters()).NotTo(HaveKey(leaseCall))

	after(w, 28*day, "a")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 1))
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))
}

func TestAnUnlimitedLeaseIsForgotten(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a")
	_, err := w.ReconcileMachine("a")
	w.Expect(err).NotTo(HaveOccurred())
	w.Sim.Edit(func(e *vcdsim.Editor) {
		for i := range e.Model.Orgs {
			e.Model.Orgs[i].RuntimeLease = 0
		}
	})

	after(w, 28*day, "a")

	w.Expect(conditions.Has(w.VCDMachine("a"), infrav1.LeaseLimitedCondition)).To(BeFalse())
	w.ExpectSettled("a")
}

func TestALeaseThatMustBeLimitedIsRenewedUnchanged(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a")
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: leaseCall,
		Status:    http.StatusBadRequest,
		Code:      "BAD_REQUEST",
		Message:   "too long",
		Count:     1,
	})

	after(w, 28*day, "a")

	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
	w.Expect(conditions.IsTrue(w.VCDMachine("a"), clusterv1.ReadyCondition)).To(BeTrue())
}

func TestLeaseThatCannotBeRenewedIsReported(t *testing.T) {
	w := newLimitedEnv(t, 30*day, "a")
	w.Sim.Faults().Add(vcdsim.Fault{
		Operation: leaseCall,
		Status:    http.StatusForbidden,
		Code:      "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
		Message:   "no right",
	})

	after(w, 28*day, "a")

	m := w.VCDMachine("a")
	w.Expect(conditions.IsTrue(m, clusterv1.ReadyCondition)).To(BeTrue())
	w.Expect(conditions.GetMessage(m, infrav1.LeaseLimitedCondition)).To(ContainSubstring("no right"))
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 1), "it is not retried at once")
	after(w, 28*day+2*time.Hour, "a")
	w.Expect(w.Sim.Counters()).To(HaveKeyWithValue(leaseCall, 2))
}
