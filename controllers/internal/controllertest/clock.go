// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Later sets the clocks of the machine and cluster reconcilers ahead by d.
func (w *Env) Later(d time.Duration) {
	now := func() time.Time { return time.Now().Add(d) }
	w.Machine.Now = now
	w.Cluster.Now = now
}

// IsClusterGone reconciles the cluster a few times and reports whether it is gone.
func (w *Env) IsClusterGone() bool {
	w.Eventually(func(g Gomega) { // Load balancers are removed concurrently with reconciles.
		_, err := w.ReconcileCluster()
		g.Expect(err).NotTo(HaveOccurred())
		c := &infrav1.VCDCluster{}
		if w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: "vc1"}, c) == nil {
			g.Expect(conditions.GetReason(c,
				infrav1.LoadBalancersDeletedCondition)).NotTo(Equal(infrav1.TaskRunningReason))
		}
	}, Patience, "5ms").Should(Succeed())
	for range 3 {
		_, err := w.ReconcileCluster()
		w.Expect(err).NotTo(HaveOccurred())
	}
	return w.Client.Get(w.Ctx, client.ObjectKey{Namespace: Namespace, Name: "vc1"}, &infrav1.VCDCluster{}) != nil
}

// Ready reconciles the cluster, then the named machines, until each is ready.
func (w *Env) Ready(names ...string) {
	w.EventuallyCluster(clusterv1.ReadyCondition, infrav1.ReadyReason)
	for _, name := range names {
		w.EventuallyMachine(name, clusterv1.ReadyCondition, infrav1.ReadyReason)
	}
}
