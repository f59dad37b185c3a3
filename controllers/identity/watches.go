// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
)

// secretToIdentities maps a Secret to the VCDIdentities that refer to it, or that own it and may now refer to another
// one.
func (r *Reconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &infrav1.VCDIdentityList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace()), index.WithSecret(secret.GetName()),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDIdentities")
		return nil
	}
	requests := owners(secret, infrav1.NamespacedIdentity, secret.GetNamespace())
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// secretToIdentities maps a Secret to the VCDClusterIdentities that refer to it, or own it and may now refer to another
// one.
func (r *ClusterReconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	if secret.GetNamespace() != r.Identities.Namespace {
		return nil
	}
	list := &infrav1.VCDClusterIdentityList{}
	if err := r.Client.List(ctx, list, index.WithSecret(secret.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDClusterIdentities")
		return nil
	}
	requests := owners(secret, infrav1.ClusterIdentity, "")
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// owners returns requests for the identities of a kind that own a Secret. namespace is that of the identities.
func owners(secret client.Object, kind infrav1.IdentityKind, namespace string) []ctrl.Request {
	var requests []ctrl.Request
	for _, owner := range secret.GetOwnerReferences() {
		if infrav1.IdentityKind(owner.Kind) == kind {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: owner.Name}})
		}
	}
	return requests
}

// clusterToIdentity maps a VCDCluster to its identity of the given kind. An identity in deletion waits for its users.
func clusterToIdentity(kind infrav1.IdentityKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []ctrl.Request {
		c, ok := obj.(*infrav1.VCDCluster)
		if !ok || !identities.RefersTo(c, kind, c.Spec.IdentityRef.Name) {
			return nil
		}
		key := client.ObjectKey{Name: c.Spec.IdentityRef.Name}
		if kind == infrav1.NamespacedIdentity {
			key.Namespace = c.Namespace
		}
		return []ctrl.Request{{NamespacedName: key}}
	}
}

// zoneToIdentity maps a VCDDeploymentZone to its identity of the given kind.
func zoneToIdentity(kind infrav1.IdentityKind) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []ctrl.Request {
		z, ok := obj.(*infrav1.VCDDeploymentZone)
		if !ok || !identities.Same(z.Spec.IdentityRef, kind, z.Spec.IdentityRef.Name) {
			return nil
		}
		key := client.ObjectKey{Name: z.Spec.IdentityRef.Name}
		if kind == infrav1.NamespacedIdentity {
			key.Namespace = z.Namespace
		}
		return []ctrl.Request{{NamespacedName: key}}
	}
}
