// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestHealthCheckReplacesNothingWithoutAccess checks that the documented health check replaces none of ten nodes
// because of wrong credentials. None is replaced while VCD rejects the credentials, for many times the timeout of the
// check. None is replaced afterwards, while the machines are observed again one by one.
func TestHealthCheckReplacesNothingWithoutAccess(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, shared.replica, 9)
	l.provision()
	check := &clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-md-0")}
	l.patch(check, `{"spec":{"checks":{"unhealthyMachineConditions":[`+
		`{"type":"InfrastructureReady","status":"False","timeoutSeconds":1}]},`+
		`"remediation":{"triggerIf":{"unhealthyLessThanOrEqualTo":"40%"}}}}`)
	before := l.machineUIDs()

	right := l.password()
	l.Edit(func(e *vcdsim.Editor) {
		e.SetPassword("acme", "capvcd", "another")
		e.ExpireSessions()
	})
	l.eventuallyAll("Unknown " + infrav1.CredentialsRejectedReason)
	l.g.Consistently(l.machineUIDs, "20s", "500ms").Should(Equal(before))

	l.Edit(func(e *vcdsim.Editor) { e.SetPassword("acme", "capvcd", right) })
	l.patch(&corev1.Secret{ObjectMeta: l.meta(l.name + "-credentials")}, `{"metadata":{"annotations":{"test.example.com/look":"again"}}}`)
	l.eventuallyAll("True " + infrav1.ReadyReason)
	l.g.Consistently(l.machineUIDs, "10s", "500ms").Should(Equal(before))
	l.up()
	l.destroy()
}

// TestNothingIsLostWhenAVAppIsNoLongerShared hides the vApp of one machine, but not those of the other machines, from
// the user of the manager, for longer than the proof of a loss takes. The documented health check replaces nothing, no
// Node is removed, and nothing is created or deleted in VCD. Once the vApp is shared again, all machines are healthy.
func TestNothingIsLostWhenAVAppIsNoLongerShared(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, shared.replica, 2)
	l.perMachine = true
	l.provision()
	l.patch(&clusterv1.MachineHealthCheck{ObjectMeta: l.meta(l.name + "-md-0")}, `{"spec":{"checks":{"unhealthyMachineConditions":[`+
		`{"type":"InfrastructureReady","status":"False","timeoutSeconds":1}]}}}`)
	workload := l.workloadClient()
	before := l.machineUIDs()
	vms := l.State().VMs
	worker, vm := l.anyWorker()
	owner := func(user string) {
		l.Edit(func(e *vcdsim.Editor) { e.SetOwner(e.VApp(e.VM(vm).VAppID), user) })
	}
	nodes := func() ([]string, error) {
		list := &corev1.NodeList{}
		err := workload.List(t.Context(), list)
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	}
	all, err := nodes()
	l.g.Expect(err).NotTo(HaveOccurred())

	owner("admin")
	machine := &infrav1.VCDMachine{ObjectMeta: l.meta(worker.Spec.InfrastructureRef.Name)}
	state := func() (string, error) {
		l.trigger(machine)
		return l.state(machine, clusterv1.ReadyCondition)
	}
	l.g.Eventually(state, longTimeout, "1s").Should(HavePrefix("Unknown " + infrav1.VMUnverifiedReason))
	l.g.Consistently(func(g Gomega) {
		g.Expect(state()).To(HavePrefix("Unknown "))
		g.Expect(l.machineUIDs()).To(Equal(before))
		g.Expect(nodes()).To(ConsistOf(all))
		g.Expect(l.State().VMs).To(HaveLen(len(vms)))
	}, "80s", "2s").Should(Succeed())

	owner("capvcd")
	l.eventuallyAll("True " + infrav1.ReadyReason)
	l.g.Expect(l.machineUIDs()).To(Equal(before))
	l.up()
	l.destroy()
}

// machineUIDs returns the UIDs of the Machines that are not being deleted, by name.
func (l *testCluster) machineUIDs() map[string]types.UID {
	uids := map[string]types.UID{}
	for _, m := range l.machines() {
		if m.DeletionTimestamp.IsZero() {
			uids[m.Name] = m.UID
		}
	}
	return uids
}

// eventuallyAll makes the manager reconcile all machines until the Ready condition of each begins with a status and a
// reason.
func (l *testCluster) eventuallyAll(prefix string) {
	l.t.Helper()
	for _, m := range l.machines() {
		machine := &infrav1.VCDMachine{ObjectMeta: l.meta(m.Spec.InfrastructureRef.Name)}
		l.g.Eventually(func() (string, error) {
			l.trigger(machine)
			return l.state(machine, clusterv1.ReadyCondition)
		}, longTimeout, "250ms").Should(HavePrefix(prefix), "in the steady state, the inventory is refreshed only every few minutes")
	}
}
