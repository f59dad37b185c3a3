// SPDX-License-Identifier: Apache-2.0

// Package watches maps changes of identities and their Secrets, and ends of tasks in VCD, to requests for reconciles.
package watches

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
)

// WatchCredentials triggers reconciles when an identity of either kind, or the Secret of one, changes.
func WatchCredentials(b *ctrl.Builder, changed predicate.Predicate, identity, secret handler.MapFunc) *ctrl.Builder {
	return b.
		Watches(&infrav1.VCDIdentity{}, handler.EnqueueRequestsFromMapFunc(identity), builder.WithPredicates(changed)).
		Watches(&infrav1.VCDClusterIdentity{}, handler.EnqueueRequestsFromMapFunc(identity),
			builder.WithPredicates(changed)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(secret), builder.OnlyMetadata,
			builder.WithPredicates(changed))
}

// IdentityToClusters maps an identity to the VCDClusters that use it.
func IdentityToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, identity client.Object) []ctrl.Request {
		return RequestsFor(ClustersOfIdentity(ctx, c, identity))
	}
}

// SecretToClusters maps a Secret to the VCDClusters whose identity has its credentials there.
func SecretToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		return RequestsFor(ClustersOfSecret(ctx, c, secret))
	}
}

// ClustersOfIdentity lists the VCDClusters that use an identity.
func ClustersOfIdentity(ctx context.Context, c client.Reader, identity client.Object) []infrav1.VCDCluster {
	kind := infrav1.ClusterIdentity
	if identity.GetNamespace() != "" {
		kind = infrav1.NamespacedIdentity
	}
	return clustersOf(ctx, c, kind, identity.GetNamespace(), identity.GetName())
}

// ClustersOfSecret lists the VCDClusters whose identity owns a Secret.
func ClustersOfSecret(ctx context.Context, c client.Reader, secret client.Object) []infrav1.VCDCluster {
	var clusters []infrav1.VCDCluster
	for _, owner := range secret.GetOwnerReferences() {
		kind := infrav1.IdentityKind(owner.Kind)
		namespace := secret.GetNamespace()
		switch kind {
		case infrav1.ClusterIdentity:
			namespace = ""
		case infrav1.NamespacedIdentity:
		default:
			continue
		}
		clusters = append(clusters, clustersOf(ctx, c, kind, namespace, owner.Name)...)
	}
	return clusters
}

// ClustersOfCluster lists the VCDClusters with the label of the named Cluster.
func ClustersOfCluster(ctx context.Context, c client.Reader, namespace, name string) []infrav1.VCDCluster {
	return list(ctx, c, namespace, index.OfCluster(name))
}

// RequestsFor returns a request for each cluster, in the same order.
func RequestsFor(clusters []infrav1.VCDCluster) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(clusters))
	for i := range clusters {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&clusters[i])})
	}
	return requests
}

// clustersOf lists the VCDClusters that use an identity. An empty namespace means all namespaces.
func clustersOf(ctx context.Context, c client.Reader, kind infrav1.IdentityKind, namespace, name string) []infrav1.VCDCluster {
	return list(ctx, c, namespace, index.WithIdentity(kind, name))
}

func list(ctx context.Context, c client.Reader, namespace string, by client.MatchingFields) []infrav1.VCDCluster {
	clusters := &infrav1.VCDClusterList{}
	if err := c.List(ctx, clusters, client.InNamespace(namespace), by, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDClusters")
		return nil
	}
	return clusters.Items
}
