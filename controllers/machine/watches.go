package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// identityToMachines finds the VCDMachines that are deleted with the help of an identity.
func (r *Reconciler) identityToMachines(ctx context.Context, identity client.Object) []ctrl.Request {
	return r.deletedMachinesOf(ctx, session.ClustersOfIdentity(ctx, r.Client, identity))
}

// secretToMachines finds the VCDMachines that are deleted with the credentials in a Secret.
func (r *Reconciler) secretToMachines(ctx context.Context, secret client.Object) []ctrl.Request {
	return r.deletedMachinesOf(ctx, session.ClustersOfSecret(ctx, r.Client, secret))
}

// deletedMachinesOf finds the VCDMachines of VCDClusters that are deleted. Others learn by their VCDCluster that its identity was
// mended; one that waits for its machines to be deleted does not log in.
func (r *Reconciler) deletedMachinesOf(ctx context.Context, clusters []infrav1.VCDCluster) []ctrl.Request {
	var requests []ctrl.Request
	for i := range clusters {
		for _, m := range r.machinesOf(ctx, &clusters[i]) {
			if !m.DeletionTimestamp.IsZero() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			}
		}
	}
	return requests
}

// clusterToMachines finds the VCDMachines of a VCDCluster.
func (r *Reconciler) clusterToMachines(ctx context.Context, cluster client.Object) []ctrl.Request {
	machines := r.machinesOf(ctx, cluster)
	requests := make([]ctrl.Request, 0, len(machines))
	for i := range machines {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&machines[i])})
	}
	return requests
}

// machinesOf lists the VCDMachines of a VCDCluster.
func (r *Reconciler) machinesOf(ctx context.Context, cluster client.Object) []infrav1.VCDMachine {
	name := cluster.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	list := &infrav1.VCDMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()), session.OfCluster(name)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDMachines")
		return nil
	}
	return list.Items
}
