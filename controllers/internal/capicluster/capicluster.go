// SPDX-License-Identifier: Apache-2.0

// Package capicluster finds the Cluster of a VCDCluster, and decides whether this manager reconciles it.
package capicluster

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// Watched reports whether obj has the watch label of this manager. Not all triggers of a reconcile are filtered by it,
// because the objects of several managers may use the same Secret or identity.
func Watched(obj client.Object, filter string) bool {
	return filter == "" || labels.HasWatchLabel(obj, filter)
}

// ExternallyManaged reports whether another controller manages c. The pages of the Cluster API contract disagree on
// whether that is an annotation or a label.
func ExternallyManaged(c *infrav1.VCDCluster) bool {
	_, labelled := c.Labels[clusterv1.ManagedByAnnotation]
	return labelled || annotations.IsExternallyManaged(c)
}

// Owner returns the Cluster that owns c; nil if it does not exist yet, or no longer exists.
func Owner(ctx context.Context, reader client.Client, c *infrav1.VCDCluster) (*clusterv1.Cluster, error) {
	cluster, err := util.GetOwnerCluster(ctx, reader, c.ObjectMeta)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("getting the Cluster of VCDCluster %s: %w", client.ObjectKeyFromObject(c), err)
	}
	return cluster, nil
}

// Active returns the Cluster that owns c; nil if c must not be reconciled, because another manager reconciles
// it, or because it has no owner or is paused. When that changes, a watch triggers the next reconcile.
func Active(ctx context.Context, reader client.Client, c *infrav1.VCDCluster, watchFilter string) (*clusterv1.Cluster, error) {
	if ExternallyManaged(c) || !Watched(c, watchFilter) {
		return nil, nil
	}
	cluster, err := Owner(ctx, reader, c)
	if cluster == nil || err != nil || annotations.IsPaused(cluster, c) {
		return nil, err
	}
	return cluster, nil
}

// Paused reports whether c or its Cluster is paused.
func Paused(ctx context.Context, reader client.Client, c *infrav1.VCDCluster) (bool, error) {
	if annotations.HasPaused(c) {
		return true, nil
	}
	cluster, err := Owner(ctx, reader, c)
	if err != nil {
		return false, err
	}
	return cluster != nil && annotations.IsPaused(cluster, c), nil
}

// Labels returns the labels that select the objects of the named Cluster.
func Labels(name string) client.MatchingLabels {
	return client.MatchingLabels{clusterv1.ClusterNameLabel: name}
}

// NameFor returns the name of a VCDCluster for messages on obj. It hides the names of other namespaces.
func NameFor(obj client.Object, c *infrav1.VCDCluster) string {
	if c.Namespace == obj.GetNamespace() {
		return "VCDCluster " + c.Name
	}
	return "another VCDCluster"
}

// Name returns the name of the Cluster of c, even after the Cluster is gone.
func Name(c *infrav1.VCDCluster, cluster *clusterv1.Cluster) string {
	if cluster != nil {
		return cluster.Name
	}
	if name := c.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, owner := range c.OwnerReferences {
		if owner.Kind == "Cluster" {
			return owner.Name
		}
	}
	return ""
}
