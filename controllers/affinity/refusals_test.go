// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// standAt stops the clock of the rules, and returns a function that moves it.
func standAt(w *controllertest.Env) (advance func(time.Duration)) {
	now := time.Now()
	w.Affinity.Now = func() time.Time { return now }
	return func(d time.Duration) {
		now = now.Add(d)
		w.Clock.Add(int64(d))
	}
}

func TestAFailingTaskIsRetriedWithBackoff(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "w-0", "w-1")...)
	w.Ready("cp-0", "cp-1", "w-0", "w-1")
	advance := standAt(w)
	w.Sim.Faults().Add(vcdsim.Fault{
		FailTask:  true,
		Operation: "vdcCreateVmAffinityRule",
		Entity:    ruleName(w, "control-plane"),
	})
	w.SetAntiAffinity(both)
	w.ReconcileAffinity(w)
	advance(time.Second)
	w.EventuallyAffinity(infrav1.TaskFailedReason)

	for range 10 { // Other changes of the VCDCluster trigger reconciles.
		w.ReconcileAffinity(w)
		advance(time.Second)
	}

	w.Expect(conditions.GetReason(w.VCDCluster(), infrav1.AffinityRulesReadyCondition)).To(
		Equal(infrav1.TaskFailedReason))
	w.Expect(ruleWrites(w)).To(Equal(2), "one rule per group")
	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "md-md-0"): {"w-0", "w-1"}}))

	advance(5 * time.Second)
	w.ReconcileAffinity(w)
	advance(time.Second)
	w.EventuallyAffinity(infrav1.TaskFailedReason)
	w.Expect(ruleWrites(w)).To(Equal(3))
	advance(20 * time.Second)
	w.ReconcileAffinity(w)
	w.Expect(ruleWrites(w)).To(Equal(3), "twice as long")
}

func TestAFailedChangeIsRetriedAtOnceWhenItDiffers(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1")...)
	w.Ready("cp-0", "cp-1")
	advance := standAt(w)
	w.Sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "vdcCreateVmAffinityRule", Count: 1})
	w.SetAntiAffinity(controllertest.AntiAffinity{ControlPlane: infrav1.AntiAffinityRequired})
	w.ReconcileAffinity(w)
	advance(time.Second)
	w.EventuallyAffinity(infrav1.TaskFailedReason)

	w.SetAntiAffinity(both)
	w.ReconcileAffinity(w)
	advance(time.Second)
	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(rules(w)).To(HaveLen(1))
}

func TestAForbiddenRuleChangeNamesTheRight(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "cp-2")...)
	w.SetAntiAffinity(both)
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	writes := ruleWrites(w)
	w.Sim.Faults().Add(vcdsim.Fault{Operation: "PUT /api/vmAffinityRule*", Status: 403})
	w.Ready("cp-2")
	advance := standAt(w)

	w.ReconcileAffinity(w)
	for range 59 {
		advance(time.Second)
		w.ReconcileAffinity(w)
	}

	c := conditions.Get(w.VCDCluster(), infrav1.AffinityRulesReadyCondition)
	w.Expect(c.Reason).To(Equal(infrav1.ForbiddenReason))
	w.Expect(c.Message).To(ContainSubstring("VM-VM Affinity Edit"))
	w.Expect(ruleWrites(w) - writes).To(And(BeNumerically(">=", 1), BeNumerically("<=", 2)))
}

func TestARuleDeletedBeforeItsUpdateIsRecreated(t *testing.T) {
	w := controllertest.New(t, machines("cp-0", "cp-1", "cp-2")...)
	w.SetAntiAffinity(both)
	w.LookupTTL = 10 * time.Minute
	w.Restart(t, events.NewFakeRecorder(100))
	w.Ready("cp-0", "cp-1")
	w.EventuallyAffinity(infrav1.ReadyReason)
	w.Sim.Edit(func(e *vcdsim.Editor) { e.DeleteAffinityRules() })
	w.Ready("cp-2")

	w.EventuallyAffinity(infrav1.ReadyReason)

	w.Expect(rules(w)).To(Equal(map[string][]string{ruleName(w, "control-plane"): {"cp-0", "cp-1", "cp-2"}}))
}
