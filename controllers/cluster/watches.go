package cluster

import (
	"context"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// secretToClusters finds the VCDClusters whose identity has its credentials in a Secret, which are tried at once, or
// whose kube-vip Secret it is.
func (r *Reconciler) secretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	return append(r.kubeVIPSecretToClusters(ctx, secret), session.SecretToClusters(r.Client)(ctx, secret)...)
}

// kubeVIPSecretToClusters finds the VCDCluster whose kube-vip Secret was changed or deleted: it writes it again.
func (r *Reconciler) kubeVIPSecretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	name, ok := strings.CutSuffix(secret.GetName(), kubeVIPSuffix)
	if !ok || secret.GetLabels()[clusterv1.ClusterNameLabel] != name {
		return nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()), session.OfCluster(name)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return session.RequestsFor(list.Items)
}

// machineToCluster finds the VCDCluster of a VCDMachine: one that is deleted waits for its machines.
func (r *Reconciler) machineToCluster(ctx context.Context, machine client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace()),
		session.OfCluster(machine.GetLabels()[clusterv1.ClusterNameLabel])); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return session.RequestsFor(slices.DeleteFunc(list.Items,
		func(c infrav1.VCDCluster) bool { return c.DeletionTimestamp.IsZero() }))
}
