// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// cleanUp adds bootstrap data to the VM of a worker again, as if the guest had not removed it, and waits until the
// manager removes it.
func (l *testCluster) cleanUp() {
	l.t.Helper()
	const userdata = "guestinfo.userdata"
	worker, id := l.anyWorker()
	held := func() string {
		state := l.State()
		for i := range state.VMs {
			if state.VMs[i].ID == id {
				return state.VMs[i].ExtraConfig[userdata]
			}
		}
		return "no VM " + id
	}
	l.Edit(func(e *vcdsim.Editor) { e.VM(id).ExtraConfig[userdata] = "bGVmdA==" })
	m := &infrav1.VCDMachine{ObjectMeta: l.meta(worker.Spec.InfrastructureRef.Name)}
	l.patch(m, `{"spec":{"recordedState":{"bootstrapDataRemoved":null}}}`)
	l.g.Eventually(held, longTimeout, "250ms").Should(BeElementOf("", "---"))
	l.g.Eventually(func() (infrav1.GuestState, error) {
		err := l.get(m)
		return m.Spec.RecordedState.BootstrapDataRemoved.Guest, err
	}, longTimeout, "250ms").Should(Equal(infrav1.GuestRunning))
	l.up()
}

// renewLease sets a short lease of the vApp, as an administrator would, and waits until the manager removes its limit.
// A manager checks leases when it starts.
func (l *testCluster) renewLease() {
	l.t.Helper()
	vApp := l.State().VApps[0].ID
	l.g.Expect(l.replica.Kill()).To(Succeed())
	l.Edit(func(e *vcdsim.Editor) {
		lease := &e.VApp(vApp).Lease
		lease.Runtime = 48 * time.Hour
		lease.Deployed = time.Now().Add(-47 * time.Hour)
	})
	l.g.Expect(l.replica.Start(l.t.Context())).To(Succeed())
	l.g.Eventually(func() time.Duration { return l.State().VApps[0].Lease.Runtime }, longTimeout, "250ms").Should(BeZero())
	l.up()
}

// TestOnDeleteStrategyReplacesWorkersOnDeletion checks that, with the strategy OnDelete, a new template applies only to
// new machines, and existing machines are replaced only when they are deleted.
func TestOnDeleteStrategyReplacesWorkersOnDeletion(t *testing.T) {
	t.Parallel()
	l := newTestCluster(t, shared.replica, 2)
	l.provision()
	old := l.State().VMs
	l.copyTemplate(l.name+"-md-0", "larger", larger)

	l.patch(l.deployment(), `{"spec":{"rollout":{"strategy":{"type":"OnDelete","rollingUpdate":null}},
		"template":{"spec":{"infrastructureRef":{"name":"larger"}}}}}`)

	l.g.Eventually(func() (int32, error) {
		d := l.deployment()
		err := l.get(d)
		return ptr.Deref(d.Status.Replicas, 0) - ptr.Deref(d.Status.UpToDateReplicas, 0), err
	}, timeout, "100ms").Should(BeEquivalentTo(2), "workers that are not up to date")
	l.up()
	l.g.Expect(newVMs(old, l.State().VMs)).To(BeEmpty(), "no machine is replaced")

	worker, vm := l.anyWorker()
	l.g.Expect(shared.client.Delete(t.Context(), worker)).To(Succeed())
	l.g.Eventually(func() error { return l.get(&clusterv1.Machine{ObjectMeta: l.meta(worker.Name)}) }, longTimeout,
		"250ms").ShouldNot(Succeed())
	l.up()

	now := l.State().VMs
	l.g.Expect(contains(now, vm)).To(BeFalse())
	l.g.Expect(newVMs(old, now)).To(ConsistOf(HaveField("CPUs", BeEquivalentTo(4))),
		"only the new worker uses the new template")
	l.destroy()
}

// newVMs returns the VMs that did not exist before.
func newVMs(before, now []vcdsim.VM) []vcdsim.VM {
	return slices.DeleteFunc(slices.Clone(now), func(vm vcdsim.VM) bool { return contains(before, vm.ID) })
}
