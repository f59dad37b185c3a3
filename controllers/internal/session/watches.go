// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
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
		return RequestsFor(clustersOfIdentity(ctx, c, identity))
	}
}

// SecretToClusters maps a Secret to the VCDClusters whose identity has its credentials there.
func SecretToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		return RequestsFor(clustersOfSecret(ctx, c, secret))
	}
}

// clustersOfIdentity lists the VCDClusters that use an identity.
func clustersOfIdentity(ctx context.Context, c client.Reader, identity client.Object) []infrav1.VCDCluster {
	kind := infrav1.ClusterIdentity
	if identity.GetNamespace() != "" {
		kind = infrav1.NamespacedIdentity
	}
	return clustersOf(ctx, c, kind, identity.GetNamespace(), identity.GetName())
}

// clustersOfSecret lists the VCDClusters whose identity owns a Secret.
func clustersOfSecret(ctx context.Context, c client.Reader, secret client.Object) []infrav1.VCDCluster {
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

// RequestsFor returns a request for each cluster, in the same order.
func RequestsFor(clusters []infrav1.VCDCluster) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(clusters))
	for i := range clusters {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&clusters[i])})
	}
	return requests
}

// clustersOf lists the VCDClusters that use an identity. An empty namespace means all namespaces.
func clustersOf(ctx context.Context, c client.Reader, kind infrav1.IdentityKind, namespace,
	name string,
) []infrav1.VCDCluster {
	list := &infrav1.VCDClusterList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return slices.DeleteFunc(list.Items, func(c infrav1.VCDCluster) bool { return !RefersTo(&c, kind, name) })
}

// RefersTo reports whether c uses the identity with the given kind and name.
func RefersTo(c *infrav1.VCDCluster, kind infrav1.IdentityKind, name string) bool {
	refs := []infrav1.IdentityReference{c.Spec.IdentityRef}
	if other := c.Spec.CloudProvider.IdentityRef; other != nil {
		refs = append(refs, *other)
	}
	return slices.ContainsFunc(refs, func(ref infrav1.IdentityReference) bool { return SameIdentity(ref, kind, name) })
}

// SameIdentity reports whether ref refers to the identity with the given kind and name.
func SameIdentity(ref infrav1.IdentityReference, kind infrav1.IdentityKind, name string) bool {
	return cmp.Or(ref.Kind, infrav1.NamespacedIdentity) == cmp.Or(kind, infrav1.NamespacedIdentity) && ref.Name == name
}

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

// OwnerCluster returns the Cluster that owns c; nil if it does not exist yet, or no longer exists.
func OwnerCluster(ctx context.Context, reader client.Client, c *infrav1.VCDCluster) (*clusterv1.Cluster, error) {
	cluster, err := util.GetOwnerCluster(ctx, reader, c.ObjectMeta)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("getting the Cluster of VCDCluster %s: %w", client.ObjectKeyFromObject(c), err)
	}
	return cluster, nil
}

// ActiveCluster returns the Cluster that owns c; nil if c must not be reconciled, because another manager reconciles
// it, or because it has no owner or is paused. When that changes, a watch triggers the next reconcile.
func ActiveCluster(ctx context.Context, reader client.Client, c *infrav1.VCDCluster, watchFilter string) (*clusterv1.Cluster, error) {
	if ExternallyManaged(c) || !Watched(c, watchFilter) {
		return nil, nil
	}
	cluster, err := OwnerCluster(ctx, reader, c)
	if cluster == nil || err != nil || annotations.IsPaused(cluster, c) {
		return nil, err
	}
	return cluster, nil
}

// ClusterConcernsMachines passes the changes of a VCDCluster that matter to its machines. Records that its machines
// write to it do not matter.
func ClusterConcernsMachines() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*infrav1.VCDCluster)
		after, isCluster := e.ObjectNew.(*infrav1.VCDCluster)
		return !ok || !isCluster || !equality.Semantic.DeepEqual(concerning(before), concerning(after))
	}}
}

// forMachines are the annotations of a VCDCluster that matter to its machines.
var forMachines = []string{
	clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, infrav1.GoneAcknowledgedAnnotation,
}

// concerning returns the parts of a VCDCluster that matter to its machines. Its Ready condition shows when VCD responds
// again.
func concerning(c *infrav1.VCDCluster) infrav1.VCDCluster {
	found := infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		UID:               c.UID,
		DeletionTimestamp: c.DeletionTimestamp,
		Labels:            c.Labels,
		Annotations:       map[string]string{},
	}}
	for _, key := range forMachines {
		if value, ok := c.Annotations[key]; ok {
			found.Annotations[key] = value
		}
	}
	found.Spec = settings.Spec(c)
	found.Status.Initialization = c.Status.Initialization
	found.Status.OVDC = c.Status.OVDC
	found.Status.OVDCNetwork = c.Status.OVDCNetwork
	if ready := conditions.Get(c, clusterv1.ReadyCondition); ready != nil {
		found.Status.Conditions = []metav1.Condition{{Status: ready.Status, Reason: ready.Reason}}
	}
	return found
}

// IdentityToDeletedMachines maps an identity to the VCDMachines in deletion that use it.
func IdentityToDeletedMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, identity client.Object) []ctrl.Request {
		return deletedMachinesOf(ctx, c, clustersOfIdentity(ctx, c, identity))
	}
}

// SecretToDeletedMachines maps a Secret to the VCDMachines in deletion that use its credentials.
func SecretToDeletedMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		return deletedMachinesOf(ctx, c, clustersOfSecret(ctx, c, secret))
	}
}

// deletedMachinesOf returns the VCDMachines in deletion of some VCDClusters. Other machines notice a fixed identity by
// their VCDCluster, but a VCDCluster that waits for its machines to be deleted does not log in.
func deletedMachinesOf(ctx context.Context, c client.Reader, clusters []infrav1.VCDCluster) []ctrl.Request {
	var requests []ctrl.Request
	for i := range clusters {
		for _, m := range machinesOf(ctx, c, &clusters[i]) {
			if !m.DeletionTimestamp.IsZero() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			}
		}
	}
	return requests
}

// ClusterToMachines maps a VCDCluster to its VCDMachines.
func ClusterToMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []ctrl.Request {
		machines := machinesOf(ctx, c, cluster)
		requests := make([]ctrl.Request, 0, len(machines))
		for i := range machines {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&machines[i])})
		}
		return requests
	}
}

// machinesOf lists the VCDMachines of a VCDCluster.
func machinesOf(ctx context.Context, c client.Reader, cluster client.Object) []infrav1.VCDMachine {
	name := cluster.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	list := &infrav1.VCDMachineList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.GetNamespace()), OfCluster(name),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDMachines")
		return nil
	}
	return list.Items
}
