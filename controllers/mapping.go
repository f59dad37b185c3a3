package controllers

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// secretToIdentities finds the VCDIdentities of a Secret, and those that own it and may refer to another now.
func (r *VCDIdentityReconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &infrav1.VCDIdentityList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDIdentities")
		return nil
	}
	var requests []ctrl.Request
	for _, i := range list.Items {
		if i.Spec.SecretRef.Name == secret.GetName() || isOwner(&i, secret) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&i)})
		}
	}
	return requests
}

// secretToIdentities finds the VCDClusterIdentities of a Secret, and those that own it and may refer to another now.
func (r *VCDClusterIdentityReconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	if secret.GetNamespace() != r.Identities.Namespace {
		return nil
	}
	list := &infrav1.VCDClusterIdentityList{}
	if err := r.Client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusterIdentities")
		return nil
	}
	var requests []ctrl.Request
	for _, i := range list.Items {
		if i.Spec.SecretRef.Name == secret.GetName() || isOwner(&i, secret) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&i)})
		}
	}
	return requests
}

// clusterToIdentity finds the identity of a VCDCluster, if it is of kind: one that is deleted waits for its users.
func clusterToIdentity(kind infrav1.IdentityKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []ctrl.Request {
		c, ok := obj.(*infrav1.VCDCluster)
		if !ok || !refersTo(c, kind, c.Spec.IdentityRef.Name) {
			return nil
		}
		key := client.ObjectKey{Name: c.Spec.IdentityRef.Name}
		if kind == infrav1.NamespacedIdentity {
			key.Namespace = c.Namespace
		}
		return []ctrl.Request{{NamespacedName: key}}
	}
}

// watchCredentials starts reconciles when an identity of either kind, or the Secret of one, is changed.
func watchCredentials(b *ctrl.Builder, changed predicate.Predicate, identity, secret handler.MapFunc) *ctrl.Builder {
	return b.
		Watches(&infrav1.VCDIdentity{}, handler.EnqueueRequestsFromMapFunc(identity), builder.WithPredicates(changed)).
		Watches(&infrav1.VCDClusterIdentity{}, handler.EnqueueRequestsFromMapFunc(identity), builder.WithPredicates(changed)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(secret), builder.OnlyMetadata, builder.WithPredicates(changed))
}

// identityToClusters finds the VCDClusters that use an identity.
func identityToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, identity client.Object) []ctrl.Request {
		return requestsFor(clustersOfIdentity(ctx, c, identity))
	}
}

// secretToClusters finds the VCDClusters whose identity has its credentials in a Secret.
func secretToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		return requestsFor(clustersOfSecret(ctx, c, secret))
	}
}

// secretToClusters finds the VCDClusters whose identity has its credentials in a Secret, which are tried at once, or
// whose kube-vip Secret it is.
func (r *VCDClusterReconciler) secretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	return append(r.kubeVIPSecretToClusters(ctx, secret), secretToClusters(r.Client)(ctx, secret)...)
}

// identityToMachines finds the VCDMachines that are deleted with the help of an identity.
func (r *VCDMachineReconciler) identityToMachines(ctx context.Context, identity client.Object) []ctrl.Request {
	return r.deletedMachinesOf(ctx, clustersOfIdentity(ctx, r.Client, identity))
}

// secretToMachines finds the VCDMachines that are deleted with the credentials in a Secret.
func (r *VCDMachineReconciler) secretToMachines(ctx context.Context, secret client.Object) []ctrl.Request {
	return r.deletedMachinesOf(ctx, clustersOfSecret(ctx, r.Client, secret))
}

// deletedMachinesOf finds the VCDMachines of VCDClusters that are deleted. Others learn by their VCDCluster that its identity was
// mended; one that waits for its machines to be deleted does not log in.
func (r *VCDMachineReconciler) deletedMachinesOf(ctx context.Context, clusters []infrav1.VCDCluster) []ctrl.Request {
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

// kubeVIPSecretToClusters finds the VCDCluster whose kube-vip Secret was changed or deleted: it writes it again.
func (r *VCDClusterReconciler) kubeVIPSecretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	name, ok := strings.CutSuffix(secret.GetName(), kubeVIPSuffix)
	if !ok || secret.GetLabels()[clusterv1.ClusterNameLabel] != name {
		return nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()), ofCluster(name)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return requestsFor(list.Items)
}

func requestsFor(clusters []infrav1.VCDCluster) []ctrl.Request {
	requests := make([]ctrl.Request, 0, len(clusters))
	for i := range clusters {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&clusters[i])})
	}
	return requests
}

// clustersOf lists the VCDClusters that use an identity; an empty namespace is all.
func clustersOf(ctx context.Context, c client.Reader, kind infrav1.IdentityKind, namespace, name string) []infrav1.VCDCluster {
	list := &infrav1.VCDClusterList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return slices.DeleteFunc(list.Items, func(c infrav1.VCDCluster) bool { return !refersTo(&c, kind, name) })
}

// machineToCluster finds the VCDCluster of a VCDMachine: one that is deleted waits for its machines.
func (r *VCDClusterReconciler) machineToCluster(ctx context.Context, machine client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace()), ofCluster(machine.GetLabels()[clusterv1.ClusterNameLabel])); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	return requestsFor(slices.DeleteFunc(list.Items, func(c infrav1.VCDCluster) bool { return c.DeletionTimestamp.IsZero() }))
}

// clusterToMachines finds the VCDMachines of a VCDCluster.
func (r *VCDMachineReconciler) clusterToMachines(ctx context.Context, cluster client.Object) []ctrl.Request {
	machines := r.machinesOf(ctx, cluster)
	requests := make([]ctrl.Request, 0, len(machines))
	for i := range machines {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&machines[i])})
	}
	return requests
}

// machinesOf lists the VCDMachines of a VCDCluster.
func (r *VCDMachineReconciler) machinesOf(ctx context.Context, cluster client.Object) []infrav1.VCDMachine {
	name := cluster.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	list := &infrav1.VCDMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()), ofCluster(name)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDMachines")
		return nil
	}
	return list.Items
}

func ofCluster(name string) client.MatchingLabels {
	return client.MatchingLabels{clusterv1.ClusterNameLabel: name}
}

// refersTo says whether c uses the identity of that kind and name.
func refersTo(c *infrav1.VCDCluster, kind infrav1.IdentityKind, name string) bool {
	refs := []infrav1.IdentityReference{c.Spec.IdentityRef}
	if other := c.Spec.CloudProvider.IdentityRef; other != nil {
		refs = append(refs, *other)
	}
	for _, ref := range refs {
		if ref.Kind == "" {
			ref.Kind = infrav1.NamespacedIdentity
		}
		if ref.Kind == kind && ref.Name == name {
			return true
		}
	}
	return false
}

// watched says whether obj has the label of what this manager looks after. Not all that brings obj up is filtered by it: a
// Secret, or an identity, may be used by the objects of several managers.
func watched(obj client.Object, filter string) bool {
	return filter == "" || labels.HasWatchLabel(obj, filter)
}

// externallyManaged says whether somebody else looks after c. The contract's pages disagree on whether that is an
// annotation or a label.
func externallyManaged(c *infrav1.VCDCluster) bool {
	_, labelled := c.Labels[clusterv1.ManagedByAnnotation]
	return labelled || annotations.IsExternallyManaged(c)
}

// ignoreGone drops the errors of writing to an object that is gone because its last finalizer was removed, by this pass
// or by one that a cache which lags behind has not seen.
func ignoreGone(obj client.Object, err error) error {
	if obj.GetDeletionTimestamp().IsZero() {
		return err
	}
	if all, ok := errors.AsType[kerrors.Aggregate](err); ok { // The patch helper wraps what FilterOut looks into.
		err = all
	}
	return kerrors.FilterOut(err, apierrors.IsNotFound)
}

func sameOwnersAndFinalizers(a, b client.Object) bool {
	return equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetFinalizers(), b.GetFinalizers())
}
