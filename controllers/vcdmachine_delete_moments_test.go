package controllers

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// allGone reconciles the machines that are left and the cluster, and says whether nothing is left.
func (w *world) allGone(names ...string) bool {
	left := false
	for _, name := range names {
		_, err := w.reconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
		left = left || w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: name}, &infrav1.VCDMachine{}) == nil
	}
	_, err := w.reconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	return !left && w.client.Get(w.ctx, client.ObjectKey{Namespace: testNamespace, Name: "vc1"}, &infrav1.VCDCluster{}) != nil
}

func TestClusterIsDeletedWhileItsMachinesAreCreated(t *testing.T) {
	t.Parallel()
	for _, passes := range []int{0, 1, 2, 3, 4, 6} {
		t.Run(fmt.Sprintf("after %d passes", passes), func(t *testing.T) {
			w := newWorld(t, machines("a", "b")...)
			w.ready()
			for range passes {
				for _, name := range []string{"a", "b"} {
					_, err := w.reconcileMachine(name)
					w.Expect(err).NotTo(HaveOccurred())
				}
			}

			w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
			w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
			w.Expect(w.client.Delete(w.ctx, w.vcdMachine("b"))).To(Succeed())
			ahead := time.Duration(0)
			w.Eventually(func() bool {
				ahead += 2 * time.Second
				w.later(ahead)
				return w.allGone("a", "b")
			}, patience, "5ms").Should(BeTrue())

			w.Expect(w.sim.State().VMs).To(BeEmpty())
			w.Expect(w.sim.State().VApps).To(BeEmpty())
		})
	}
}

func TestDeletionWaitsForAVCDThatIsAwayForAnHour(t *testing.T) {
	w := newWorld(t, machines("a")...)
	w.ready("a")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
	w.Expect(w.client.Delete(w.ctx, w.vcdCluster())).To(Succeed())
	w.sim.Faults().Add(vcdsim.Fault{DropBefore: true})
	w.sim.ResetCounters()

	passes := 0
	for at := time.Duration(0); at < time.Hour; passes++ {
		w.later(at)
		var results []ctrl.Result
		machine, err := w.reconcileMachine("a")
		w.Expect(err).NotTo(HaveOccurred(), "an outage is no error, which would be tried again at once")
		cluster, err := w.reconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		results = append(results, machine, cluster)
		for _, r := range results {
			w.Expect(r.RequeueAfter).To(BeNumerically(">", time.Second), "somebody looks again")
		}
		at += min(machine.RequeueAfter, max(cluster.RequeueAfter, unreachablePoll))
	}
	w.Expect(passes).To(BeNumerically("<=", 121))
	w.Expect(len(w.sim.Requests())).To(BeNumerically("<=", 4*passes+200))
	w.Expect(conditions.GetReason(w.vcdMachine("a"), clusterv1.ReadyCondition)).To(Equal(infrav1.SiteUnreachableReason))
	w.Expect(conditions.IsUnknown(w.vcdMachine("a"), infrav1.VMDeletedCondition)).To(BeTrue())
	w.Expect(w.sim.State().VMs).To(HaveLen(1))

	w.sim.Faults().Clear()
	ahead := time.Hour
	w.Eventually(func() bool {
		ahead += 2 * time.Second
		w.later(ahead)
		return w.allGone("a")
	}, patience, "5ms").Should(BeTrue())
	w.Expect(w.sim.State().VApps).To(BeEmpty())
}

func TestMachinesOfTwoVAppsThatGoTogetherAreBothWrittenDown(t *testing.T) {
	w := newWorld(t, machines("a", "b")...)
	w.ready("a", "b")
	seen := w.vcdCluster() // by both, before either wrote
	release := func(name, vApp string) outcome {
		m := w.vcdMachine(name)
		m.Status.VApp, m.Annotations = &infrav1.ResourceReference{ID: vApp}, map[string]string{infrav1.CreationRequestedAnnotation: "now"}
		out, err := releaseMachine(w.ctx, &machineScope{VCDMachineReconciler: w.machine, vcdMachine: m, vcdCluster: seen})
		w.Expect(err).NotTo(HaveOccurred())
		return out
	}

	w.Expect(release("a", "urn:a")).To(Equal(done))
	w.Expect(release("b", "urn:b").after).To(BeNumerically(">", 0), "what a wrote is read first")
	seen = w.vcdCluster()
	w.Expect(release("b", "urn:b")).To(Equal(done))

	w.Expect(knownVApps(w.vcdCluster())).To(ConsistOf("urn:a", "urn:b"))
}
