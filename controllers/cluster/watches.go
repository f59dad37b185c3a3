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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
)

// secretToClusters finds the VCDClusters whose identity has its credentials in a Secret, which are tried at once, whose
// kube-vip Secret it is, or that have the password of a BGP peer or of a proxy in it.
func (r *Reconciler) secretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	return slices.Concat(r.kubeVIPSecretToClusters(ctx, secret), r.passwordToClusters(ctx, secret),
		session.SecretToClusters(r.Client)(ctx, secret))
}

// passwordToClusters finds the VCDClusters that have the password of a BGP peer, or of a proxy, in a Secret.
func (r *Reconciler) passwordToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return session.RequestsFor(slices.DeleteFunc(list.Items,
		func(c infrav1.VCDCluster) bool { return !namesPassword(&c, secret.GetName()) }))
}

// kubeVIPSecretToClusters finds the VCDCluster whose kube-vip Secret was changed or deleted: it writes it again.
func (r *Reconciler) kubeVIPSecretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	name := strings.TrimSuffix(secret.GetName(), strings.TrimPrefix(daemonSetSuffix, kubeVIPSuffix))
	name, ok := strings.CutSuffix(name, kubeVIPSuffix)
	if !ok || secret.GetLabels()[clusterv1.ClusterNameLabel] != name {
		return nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()), session.OfCluster(name),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return session.RequestsFor(list.Items)
}

// machineToCluster finds the VCDCluster of a VCDMachine that is gone: one that is deleted waits for its machines, and
// an endpoint on an edge gateway loses a member that did not leave by itself.
func (r *Reconciler) machineToCluster(ctx context.Context, machine client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace()),
		session.OfCluster(machine.GetLabels()[clusterv1.ClusterNameLabel]), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return session.RequestsFor(slices.DeleteFunc(list.Items,
		func(c infrav1.VCDCluster) bool {
			_, on := edgeendpoint.Of(&c)
			return c.DeletionTimestamp.IsZero() && !on
		}))
}
