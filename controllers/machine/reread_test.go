// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestAVMPoweredOnTooEarlyGetsItsDataOncePoweredOff follows the remedy in the condition.
func TestAVMPoweredOnTooEarlyGetsItsDataOncePoweredOff(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	const write = "POST /api/vApp/vm/action/reconfigureVm"
	w.Sim.Faults().Add(vcdsim.Fault{Operation: write, Status: 503})
	w.Eventually(func(g Gomega) {
		_, _ = w.ReconcileMachine("a") // The write is rejected.
		g.Expect(w.Sim.Counters()[write]).NotTo(BeZero())
	}, controllertest.Patience, "5ms").Should(Succeed())
	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOn(e.VM("a")) })
	w.Sim.Faults().Clear()
	w.EventuallyMachine("a", infrav1.BootstrapInjectedCondition, infrav1.PoweredOnTooEarlyReason)

	w.Sim.Edit(func(e *vcdsim.Editor) { e.PowerOff(e.VM("a")) })

	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
}

// TestAMovedMachineNoticesItsRestoredAddress has a problem before its VM was ever complete in this management
// cluster.
func TestAMovedMachineNoticesItsRestoredAddress(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("a")...)
	w.Ready("a")
	var address string
	move(w, "a")
	w.Sim.Edit(func(e *vcdsim.Editor) {
		nic := &e.VM("a").NICs[0]
		address = nic.Address
		nic.Address = "192.168.8.77"
	})
	w.Restart(t, events.NewFakeRecorder(100))
	w.EventuallyMachine("a", infrav1.AddressesReadyCondition, infrav1.AddressChangedReason)

	w.Sim.Edit(func(e *vcdsim.Editor) { e.VM("a").NICs[0].Address = address })

	w.EventuallyMachine("a", clusterv1.ReadyCondition, infrav1.ReadyReason)
}
