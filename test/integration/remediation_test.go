// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestAHealthCheckReplacesWhatWeReport: a MachineHealthCheck acts on conditions of a VM, without any of the node.
func TestAHealthCheckReplacesWhatWeReport(t *testing.T) {
	t.Parallel()
	l := newLife(t, shared.replica, 1)
	l.born()
	check := &clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-md-0")}
	l.patch(check, `{"spec":{"checks":{"unhealthyMachineConditions":[{"type":"InfrastructureReady","status":"False","timeoutSeconds":15}]}}}`)
	broken, vm := l.aWorker()

	l.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM(vm)) })

	m := &infrav1.VCDMachine{ObjectMeta: l.meta(broken.Spec.InfrastructureRef.Name)}
	l.g.Eventually(func() (string, error) {
		l.trigger(m)
		return l.state(m, clusterv1.ReadyCondition)
	}, patience, "250ms").Should(HavePrefix("False " + infrav1.VMPoweredOffReason)) // It is so for 15 s: then it is replaced.
	l.g.Eventually(func() (bool, error) { return !broken.DeletionTimestamp.IsZero(), l.get(broken) }, patience,
		"100ms").Should(BeTrue())
	// Who takes its place is not ready at once.
	l.patch(check, `{"spec":{"checks":{"unhealthyMachineConditions":null}}}`)
	l.g.Eventually(func() error { return l.get(broken) }, ages, "250ms").ShouldNot(Succeed())
	l.up()
	l.die()
}
