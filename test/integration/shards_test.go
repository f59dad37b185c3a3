// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestAClusterMovesToAnotherManager runs two managers with two sites. While machines are created at both sites, one
// cluster moves from the first manager to the second as docs/operate/install.md describes, the first manager is killed,
// and later the second is killed and started again.
func TestAClusterMovesToAnotherManager(t *testing.T) {
	t.Parallel()
	blue := newWideReplica(t, "shard-blue", quickPoll)
	green := newWideReplica(t, "shard-green", quickPoll)
	slow := func(c *vcdsim.Config) { c.Profile = brisk }
	moving := newSiteOf(t, blue, slow)
	staying := newSiteOf(t, green, slow)
	moving.ready(moving.cluster("moves"))
	staying.ready(staying.cluster("stays"))
	seen := moving.tracker()
	machines := moving.machines("moves", 4)
	others := staying.machines("stays", 4)
	for _, m := range machines {
		moving.started(m)
	}

	moving.moveTo("moves", green)
	moving.g.Expect(blue.Kill()).To(Succeed())
	machines = append(machines, moving.machines("moves", 6)[4:]...)
	staying.crashAfter(0)

	for _, m := range machines {
		moving.ready(m)
	}
	for _, m := range others {
		staying.ready(m)
	}
	moving.g.Expect(moving.State().VMs).To(HaveLen(len(machines)))
	moving.g.Expect(seen.duplicates()).To(BeEmpty())
	moving.g.Expect(blue.Start(t.Context())).To(Succeed())
	for i := range machines {
		moving.deleteMachine(machines[i].Name)
	}
	moving.deleteCluster("moves")
	moving.empty()
}

// machines creates the missing machines of a cluster, up to count, and returns all machines.
func (s *site) machines(cluster string, count int) []*infrav1.VCDMachine {
	s.t.Helper()
	var out []*infrav1.VCDMachine
	for i := range count {
		name := fmt.Sprintf("%s-%d", cluster, i)
		m := &infrav1.VCDMachine{ObjectMeta: s.meta(name)}
		if s.get(m) != nil {
			m = s.machine(cluster, name)
		}
		out = append(out, m)
	}
	return out
}

// started waits until the manager reconciles a machine, which requires that Cluster API has set the owner.
func (s *site) started(m *infrav1.VCDMachine) {
	s.t.Helper()
	s.g.Eventually(func() (string, error) { return s.state(m, clusterv1.PausedCondition) }, timeout, "50ms").
		Should(HavePrefix("False"))
}

// moveTo moves a cluster and its identity to another manager.
func (s *site) moveTo(cluster string, to replica) {
	s.t.Helper()
	owner := &clusterv1.Cluster{ObjectMeta: s.meta(cluster)}
	s.patch(owner, func() { owner.Spec.Paused = new(true) })
	objects := s.providerObjects()
	for _, obj := range objects {
		s.g.Eventually(func() (string, error) { return s.state(obj, clusterv1.PausedCondition) }, timeout, "50ms").
			Should(HavePrefix("True"), "%T %s is not paused", obj, obj.GetName())
	}

	identity := &infrav1.VCDIdentity{ObjectMeta: s.meta("vcd")}
	secret := &corev1.Secret{ObjectMeta: s.meta("vcd")}
	s.relabel(to.label, owner, identity, secret)
	for _, obj := range objects {
		s.relabel(to.label, obj)
	}
	s.replica = to
	s.patch(owner, func() { owner.Spec.Paused = new(false) })
}

// providerObjects returns the VCDClusters and VCDMachines in the namespace.
func (s *site) providerObjects() []conditioned {
	s.t.Helper()
	clusters := &infrav1.VCDClusterList{}
	machines := &infrav1.VCDMachineList{}
	for _, list := range []client.ObjectList{clusters, machines} {
		s.g.Expect(shared.client.List(s.t.Context(), list, client.InNamespace(s.namespace))).To(Succeed())
	}
	var out []conditioned
	for i := range clusters.Items {
		out = append(out, &clusters.Items[i])
	}
	for i := range machines.Items {
		out = append(out, &machines.Items[i])
	}
	return out
}

// relabel sets the watch label of objects, which selects their manager.
func (s *site) relabel(label string, objects ...client.Object) {
	s.t.Helper()
	for _, obj := range objects {
		s.patch(obj, func() {
			labels := obj.GetLabels()
			labels[clusterv1.WatchLabel] = label
			obj.SetLabels(labels)
		})
	}
}

// patch refreshes an object, changes it, and patches it.
func (s *site) patch(obj client.Object, change func()) {
	s.t.Helper()
	s.g.Expect(s.get(obj)).To(Succeed())
	before := obj.DeepCopyObject().(client.Object)
	change()
	s.g.Expect(shared.client.Patch(s.t.Context(), obj, client.MergeFrom(before))).To(Succeed())
}
