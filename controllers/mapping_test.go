package controllers

import (
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/patch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestWritingToWhatIsGoneIsNoErrorWhileDeleting(t *testing.T) {
	for _, tt := range []struct {
		name    string
		deleted bool
		want    gomegatypes.GomegaMatcher
	}{
		{"an object that was deleted may be gone already", true, Succeed()},
		{"an object that was not deleted must be there", false, Not(Succeed())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
			m := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "default", Finalizers: []string{infrav1.MachineFinalizer}}}
			if tt.deleted {
				now := metav1.Now()
				m.DeletionTimestamp = &now
			}
			helper, err := patch.NewHelper(m, fake.NewClientBuilder().WithScheme(scheme).Build())
			g.Expect(err).NotTo(HaveOccurred())
			m.Finalizers = nil
			set(m, clusterv1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")

			err = ignoreGone(m, helper.Patch(t.Context(), m))

			g.Expect(err).To(tt.want)
		})
	}
}

func TestWhatAnotherManagerLooksAfterIsLeftAlone(t *testing.T) {
	w := newWorld(t, testMachine("m1")...)
	w.cluster.WatchFilterValue, w.machine.WatchFilterValue, w.identity.WatchFilterValue = "mine", "mine", "mine"
	identity := client.ObjectKey{Namespace: testNamespace, Name: "tenant"}
	var errs [3]error
	all := func() error {
		_, errs[0] = reconcile.AsReconciler(w.client, w.identity).Reconcile(w.ctx, ctrl.Request{NamespacedName: identity})
		_, errs[1] = w.reconcileCluster()
		_, errs[2] = w.reconcileMachine("m1")
		return errors.Join(errs[:]...)
	}
	finalizers := func() []string {
		i := &infrav1.VCDIdentity{}
		w.Expect(w.client.Get(w.ctx, identity, i)).To(Succeed())
		return slices.Concat(i.Finalizers, w.vcdCluster().Finalizers, w.vcdMachine("m1").Finalizers)
	}

	w.Expect(all()).To(Succeed())
	w.Expect(finalizers()).To(BeEmpty())

	for _, obj := range []client.Object{w.vcdCluster(), w.vcdMachine("m1"), testIdentity(w.sim.URL())} {
		w.Expect(w.client.Patch(w.ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"cluster.x-k8s.io/watch-filter":"mine"}}}`)))).To(Succeed())
	}
	w.Expect(all()).To(Succeed())
	w.Expect(finalizers()).To(HaveLen(3))
}

func TestMachineThatIsDeletedIsWokenByItsCredentials(t *testing.T) {
	w := newWorld(t, append(testMachine("a"), testMachine("b")...)...)
	w.identify("tenant")
	w.ready("a", "b")
	w.Expect(w.client.Delete(w.ctx, w.vcdMachine("a"))).To(Succeed())
	a := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: testNamespace, Name: "a"}}

	// What waits for its turn to be deleted changes nothing that would wake a: neither the Machine nor the VCDCluster.
	w.Expect(w.machine.secretToMachines(w.ctx, w.secret("tenant-credentials"))).To(ConsistOf(a))
	w.Expect(w.machine.identityToMachines(w.ctx, testIdentity(w.sim.URL()))).To(ConsistOf(a))
	w.Expect(w.machine.secretToMachines(w.ctx, w.secret("a-bootstrap"))).To(BeEmpty())
	w.Expect(w.machine.identityToMachines(w.ctx, &infrav1.VCDClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})).To(BeEmpty())
}
