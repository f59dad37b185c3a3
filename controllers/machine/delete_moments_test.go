// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/machine"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// allGone reconciles the remaining machines and the cluster, and reports whether none is left.
func allGone(w *controllertest.Env, names ...string) bool {
	left := false
	for _, name := range names {
		_, err := w.ReconcileMachine(name)
		w.Expect(err).NotTo(HaveOccurred())
		left = left || w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: name},
			&infrav1.VCDMachine{}) == nil
	}
	_, err := w.ReconcileCluster()
	w.Expect(err).NotTo(HaveOccurred())
	return !left && w.Client.Get(w.Ctx, client.ObjectKey{Namespace: controllertest.Namespace, Name: "vc1"},
		&infrav1.VCDCluster{}) != nil
}

func TestClusterIsDeletedWhileItsMachinesAreCreated(t *testing.T) {
	t.Parallel()
	for _, passes := range []int{0, 1, 2, 3, 4, 6} {
		t.Run(fmt.Sprintf("after %d passes", passes), func(t *testing.T) {
			w := controllertest.New(t, controllertest.Machines("a", "b")...)
			w.Ready()
			for range passes {
				for _, name := range []string{"a", "b"} {
					_, err := w.ReconcileMachine(name)
					w.Expect(err).NotTo(HaveOccurred())
				}
			}

			w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
			w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("b"))).To(Succeed())
			ahead := time.Duration(0)
			w.Eventually(func() bool {
				ahead += 2 * time.Second
				w.Later(ahead)
				return allGone(w, "a", "b")
			}, controllertest.Patience, "5ms").Should(BeTrue())

			w.Expect(w.Sim.State().VMs).To(BeEmpty())
			w.Expect(w.Sim.State().VApps).To(BeEmpty())
		})
	}
}

func TestDeletionWaitsThroughAnOutageOfAnHour(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a")...)
	w.Ready("a")
	w.Expect(w.Client.Delete(w.Ctx, w.VCDMachine("a"))).To(Succeed())
	w.Expect(w.Client.Delete(w.Ctx, w.VCDCluster())).To(Succeed())
	w.Sim.Faults().Add(vcdsim.Fault{DropBefore: true})
	w.Sim.ResetCounters()

	passes := 0
	for at := time.Duration(0); at < time.Hour; passes++ {
		w.Later(at)
		var results []ctrl.Result
		machine, err := w.ReconcileMachine("a")
		w.Expect(err).NotTo(HaveOccurred(), "an outage is not an error, which would be retried at once")
		cluster, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
		results = append(results, machine, cluster)
		for _, r := range results {
			w.Expect(r.RequeueAfter).To(BeNumerically(">", time.Second), "a later reconcile is scheduled")
		}
		at += min(machine.RequeueAfter, max(cluster.RequeueAfter, intervals.Unreachable))
	}
	w.Expect(passes).To(BeNumerically("<=", 121))
	w.Expect(len(w.Sim.Requests())).To(BeNumerically("<=", 4*passes+200))
	w.Expect(conditions.GetReason(w.VCDMachine("a"), clusterv1.ReadyCondition)).To(Equal(infrav1.SiteUnreachableReason))
	w.Expect(conditions.IsUnknown(w.VCDMachine("a"), infrav1.VMDeletedCondition)).To(BeTrue())
	w.Expect(w.Sim.State().VMs).To(HaveLen(1))

	w.Sim.Faults().Clear()
	ahead := time.Hour
	w.Eventually(func() bool {
		ahead += 2 * time.Second
		w.Later(ahead)
		return allGone(w, "a")
	}, controllertest.Patience, "5ms").Should(BeTrue())
	w.Expect(w.Sim.State().VApps).To(BeEmpty())
}

func TestConcurrentDeletionsInTwoVAppsAreBothRecorded(t *testing.T) {
	w := controllertest.New(t, controllertest.Machines("a", "b")...)
	w.Ready("a", "b")
	seen := w.VCDCluster() // by both, before either one wrote
	release := func(name, vApp string) phases.Result {
		m := w.VCDMachine(name)
		m.Status.VApp = &infrav1.ResourceReference{ID: vApp}
		m.Spec.RecordedState = infrav1.VCDMachineRecordedState{CreationRequestedAt: ptr.To(metav1.Now())}
		out, err := machine.ReleaseMachine(w.Ctx, w.Machine.NewScope(m, seen))
		w.Expect(err).NotTo(HaveOccurred())
		return out
	}

	w.Expect(release("a", "urn:a")).To(Equal(phases.Done))
	w.Expect(release("b", "urn:b").After).To(BeNumerically(">", 0), "the record of machine a is read first")
	seen = w.VCDCluster()
	w.Expect(release("b", "urn:b")).To(Equal(phases.Done))

	w.Expect(w.VCDCluster().Spec.RecordedState.VAppIDs).To(ConsistOf("urn:a", "urn:b"))
}
