// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/controllertest"
)

func TestExternallyManagedObjectsAreNotReconciled(t *testing.T) {
	w := controllertest.New(t, controllertest.NewMachine("m1")...)
	w.Cluster.WatchFilterValue = "mine"
	w.Machine.WatchFilterValue = "mine"
	w.Identity.WatchFilterValue = "mine"
	identity := client.ObjectKey{Namespace: controllertest.Namespace, Name: "tenant"}
	var errs [3]error
	all := func() error {
		_, errs[0] = reconcile.AsReconciler(w.Client, w.Identity).Reconcile(w.Ctx,
			ctrl.Request{NamespacedName: identity})
		_, errs[1] = w.ReconcileCluster()
		_, errs[2] = w.ReconcileMachine("m1")
		return errors.Join(errs[:]...)
	}
	finalizers := func() []string {
		i := &infrav1.VCDIdentity{}
		w.Expect(w.Client.Get(w.Ctx, identity, i)).To(Succeed())
		return slices.Concat(i.Finalizers, w.VCDCluster().Finalizers, w.VCDMachine("m1").Finalizers)
	}

	w.Expect(all()).To(Succeed())
	w.Expect(finalizers()).To(BeEmpty())

	for _, obj := range []client.Object{w.VCDCluster(), w.VCDMachine("m1"), controllertest.NewIdentity(w.Sim.URL())} {
		w.Expect(w.Client.Patch(w.Ctx, obj,
			client.RawPatch(types.MergePatchType,
				[]byte(`{"metadata":{"labels":{"cluster.x-k8s.io/watch-filter":"mine"}}}`)))).To(Succeed())
	}
	w.Expect(all()).To(Succeed())
	w.Expect(finalizers()).To(HaveLen(3))
}
