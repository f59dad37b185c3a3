// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// ReconcileNamed reconciles a VCDCluster, and reads it again.
func (w *Env) ReconcileNamed(g Gomega, c *infrav1.VCDCluster) {
	key := client.ObjectKeyFromObject(c)
	_, err := reconcile.AsReconciler(w.Client, w.Cluster).Reconcile(w.Ctx, ctrl.Request{NamespacedName: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Client.Get(w.Ctx, key, c)).To(Succeed())
}
