// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// core adds a fake of Cluster API's core: it sets InfrastructureProvisioned, and assigns a Node to a Machine after the
// boot time of its guest.
func core(mgr ctrl.Manager, c client.Client, o controller.Options) error {
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).For(&infrav1.VCDCluster{}).Named("core-cluster").WithOptions(o).Complete(
			reconcile.AsReconciler(c, &coreClusters{c})),
		ctrl.NewControllerManagedBy(mgr).For(&infrav1.VCDMachine{}).Named("core-machine").WithOptions(o).Complete(
			reconcile.AsReconciler(c, &coreMachines{Client: c})),
	)
}

type coreClusters struct{ client.Client }

// Reconcile implements reconcile.ObjectReconciler.
func (r *coreClusters) Reconcile(ctx context.Context, infra *infrav1.VCDCluster) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(infra), cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ptr.Deref(infra.Status.Initialization.Provisioned, false) ||
		ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return ctrl.Result{}, nil
	}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return ctrl.Result{}, r.Status().Update(ctx, cluster)
}

type coreMachines struct {
	client.Client

	provisioned map[string]time.Time
}

// Reconcile implements reconcile.ObjectReconciler. It is not safe for concurrent use.
func (r *coreMachines) Reconcile(ctx context.Context, infra *infrav1.VCDMachine) (ctrl.Result, error) {
	m := &clusterv1.Machine{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(infra), m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ptr.Deref(infra.Status.Initialization.Provisioned, false) || m.Status.NodeRef.IsDefined() {
		return ctrl.Result{}, nil
	}
	if r.provisioned == nil {
		r.provisioned = map[string]time.Time{}
	}
	if r.provisioned[m.Name].IsZero() {
		r.provisioned[m.Name] = time.Now()
	}
	if left := guestBoots - time.Since(r.provisioned[m.Name]); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	m.Status.NodeRef.Name = m.Name
	return ctrl.Result{}, r.Status().Update(ctx, m)
}
