// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// resetCall is the operation under which the simulator counts resets of VMs.
const resetCall = "POST /api/vApp/vm/power/action/reset"

// brokenCondition is a condition of Machines that only this test sets.
const brokenCondition = "Broken"

// TestHealthCheckActsOnReportedConditions checks that a MachineHealthCheck acts on conditions of the infrastructure,
// without conditions of the node. It replaces the machine, or first triggers a reset of its VM.
func TestHealthCheckActsOnReportedConditions(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, shared.replica, 1)
	l.provision()

	l.replacedByHealthCheck()

	l.useRemediation(30 * time.Second)
	l.recoveredByReset()
	l.replacedAfterReset()
	l.destroy()
}

// replacedByHealthCheck powers off the VM of a worker, and waits until the worker is replaced.
func (l *testCluster) replacedByHealthCheck() {
	l.t.Helper()
	check := &clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-md-0")}
	l.patch(check, `{"spec":{"checks":{"unhealthyMachineConditions":[{"type":"InfrastructureReady","status":"False","timeoutSeconds":15}]}}}`)
	broken, vm := l.anyWorker()

	l.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(vm)) })

	m := &infrav1.VCDMachine{ObjectMeta: l.meta(broken.Spec.InfrastructureRef.Name)}
	l.g.Eventually(func() (string, error) {
		l.trigger(m)
		return l.state(m, clusterv1.ReadyCondition)
	}, timeout, "250ms").Should(HavePrefix("False " + infrav1.VMPoweredOffReason)) // until the timeout of the check, 15 s
	l.g.Eventually(func() (bool, error) { return !broken.DeletionTimestamp.IsZero(), l.get(broken) }, timeout,
		"100ms").Should(BeTrue())
	// The replacement is not ready at first, and must not be replaced too.
	l.patch(check, `{"spec":{"checks":{"unhealthyMachineConditions":null}}}`)
	l.g.Eventually(func() error { return l.get(broken) }, longTimeout, "250ms").ShouldNot(Succeed())
	l.up()
}

// useRemediation configures the health check: Machines with brokenCondition are unhealthy, and their VMs are reset once
// before the machines are replaced.
func (l *testCluster) useRemediation(timeout time.Duration) {
	l.t.Helper()
	template := &infrav1.VCDRemediationTemplate{ObjectMeta: l.meta("reset-once")}
	template.Spec.Template.Spec.Strategy = infrav1.VCDRemediationStrategy{
		RetryLimit:     1,
		TimeoutSeconds: int32(timeout.Seconds()),
	}
	l.create(template)
	check := &clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-md-0")}
	l.patch(check, `{"spec":{
		"checks":{"unhealthyMachineConditions":[
			{"type":"`+brokenCondition+`","status":"False","timeoutSeconds":1}
		]},
		"remediation":{"templateRef":{
			"apiVersion":"`+infrav1.GroupVersion.String()+`",
			"kind":"VCDRemediationTemplate",
			"name":"reset-once"
		}}
	}}`)
}

// recoveredByReset breaks a worker until its VM is reset, and checks that the machine is not replaced.
func (l *testCluster) recoveredByReset() {
	l.t.Helper()
	worker, _ := l.anyWorker()
	remediation := &infrav1.VCDRemediation{ObjectMeta: l.meta(worker.Name)}

	l.breakUntilReset(worker)
	l.editStatus(worker, func(m *clusterv1.Machine) { conditions.Delete(m, brokenCondition) })

	l.g.Eventually(func() error { return l.get(remediation) }, longTimeout, "250ms").ShouldNot(Succeed())
	l.up()
	l.g.Expect(l.get(worker)).To(Succeed())
	l.g.Expect(worker.DeletionTimestamp.IsZero()).To(BeTrue())
}

// replacedAfterReset breaks a worker permanently, and checks that its VM is reset before the machine is replaced.
func (l *testCluster) replacedAfterReset() {
	l.t.Helper()
	worker, _ := l.anyWorker()
	before := l.Counters()[resetCall]

	l.breakUntilReset(worker)

	l.g.Expect(l.get(worker)).To(Succeed())
	l.g.Expect(worker.DeletionTimestamp.IsZero()).To(BeTrue(), "the Machine is replaced only after the reset")
	l.g.Eventually(func() error { return l.get(worker) }, longTimeout, "250ms").ShouldNot(Succeed())
	l.up()
	l.g.Expect(l.Counters()[resetCall] - before).To(Equal(1))
}

// breakUntilReset makes a Machine unhealthy, and waits until its VM is reset.
func (l *testCluster) breakUntilReset(m *clusterv1.Machine) {
	l.t.Helper()
	before := l.Counters()[resetCall]
	l.editStatus(m, func(m *clusterv1.Machine) {
		conditions.Set(m, metav1.Condition{Type: brokenCondition, Status: metav1.ConditionFalse, Reason: "Test"})
	})
	l.g.Eventually(func() int { return l.Counters()[resetCall] - before }, longTimeout, "250ms").Should(Equal(1))
}

// editStatus changes the status of a Machine, which Cluster API also changes.
func (l *testCluster) editStatus(m *clusterv1.Machine, change func(*clusterv1.Machine)) {
	l.t.Helper()
	l.g.Eventually(func() error {
		if err := l.get(m); err != nil {
			return err
		}
		change(m)
		return shared.client.Status().Update(l.t.Context(), m)
	}, timeout, "250ms").Should(Succeed())
}
