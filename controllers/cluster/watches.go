// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
)

// secretToClusters maps a Secret to the VCDClusters whose credentials it contains, so that they are tried at once. It
// also maps kube-vip Secrets, and Secrets with the password of a BGP peer or of a proxy.
func (r *Reconciler) secretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	return slices.Concat(r.kubeVIPSecretToClusters(ctx, secret), r.passwordToClusters(ctx, secret),
		watches.SecretToClusters(r.Client)(ctx, secret))
}

// passwordToClusters maps a Secret to the VCDClusters whose BGP peer or proxy has its password there.
func (r *Reconciler) passwordToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()), index.WithPassword(secret.GetName()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDClusters")
		return nil
	}
	return watches.RequestsFor(list.Items)
}

// kubeVIPSecretToClusters maps a changed or deleted kube-vip Secret to its VCDCluster, which writes it again.
func (r *Reconciler) kubeVIPSecretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	name := strings.TrimSuffix(secret.GetName(), strings.TrimPrefix(daemonSetSuffix, kubeVIPSuffix))
	name, ok := strings.CutSuffix(name, kubeVIPSuffix)
	if !ok || secret.GetLabels()[clusterv1.ClusterNameLabel] != name {
		return nil
	}
	return watches.RequestsFor(watches.ClustersOfCluster(ctx, r.Client, secret.GetNamespace(), name))
}

// machineToCluster maps a deleted VCDMachine to its VCDCluster. A VCDCluster in deletion waits for its machines, and an
// endpoint on an edge gateway must drop a member that did not leave by itself.
func (r *Reconciler) machineToCluster(ctx context.Context, machine client.Object) []ctrl.Request {
	clusters := watches.ClustersOfCluster(ctx, r.Client, machine.GetNamespace(),
		machine.GetLabels()[clusterv1.ClusterNameLabel])
	return watches.RequestsFor(slices.DeleteFunc(clusters,
		func(c infrav1.VCDCluster) bool {
			_, on := edgeendpoint.Of(&c)
			return c.DeletionTimestamp.IsZero() && !on
		}))
}
