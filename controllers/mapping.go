package controllers

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

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

// identityToClusters finds the VCDClusters that use an identity.
func (r *VCDClusterReconciler) identityToClusters(ctx context.Context, identity client.Object) []ctrl.Request {
	kind := infrav1.ClusterIdentity
	if identity.GetNamespace() != "" {
		kind = infrav1.NamespacedIdentity
	}
	return r.clustersOf(ctx, kind, identity.GetNamespace(), identity.GetName())
}

// secretToClusters finds the VCDClusters whose identity has its credentials in a Secret, which are tried at once, or
// whose kube-vip Secret it is.
func (r *VCDClusterReconciler) secretToClusters(ctx context.Context, secret client.Object) []ctrl.Request {
	requests := r.kubeVIPSecretToClusters(ctx, secret)
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
		requests = append(requests, r.clustersOf(ctx, kind, namespace, owner.Name)...)
	}
	return requests
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
	var requests []ctrl.Request
	for _, c := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
	}
	return requests
}

// clustersOf lists the VCDClusters that use an identity; an empty namespace is all.
func (r *VCDClusterReconciler) clustersOf(ctx context.Context, kind infrav1.IdentityKind, namespace, name string) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	var requests []ctrl.Request
	for _, c := range list.Items {
		if refersTo(&c, kind, name) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		}
	}
	return requests
}

// machineToCluster finds the VCDCluster of a VCDMachine: one that is deleted waits for its machines.
func (r *VCDClusterReconciler) machineToCluster(ctx context.Context, machine client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace()), ofCluster(machine.GetLabels()[clusterv1.ClusterNameLabel])); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	var requests []ctrl.Request
	for _, c := range list.Items {
		if !c.DeletionTimestamp.IsZero() {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&c)})
		}
	}
	return requests
}

// clusterToMachines finds the VCDMachines of a VCDCluster.
func (r *VCDMachineReconciler) clusterToMachines(ctx context.Context, cluster client.Object) []ctrl.Request {
	name := cluster.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	list := &infrav1.VCDMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()), ofCluster(name)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDMachines")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(list.Items))
	for _, m := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
	}
	return requests
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
