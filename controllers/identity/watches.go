// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
)

// secretToIdentities maps a Secret to the VCDIdentities that refer to it, or that own it and may now refer to another
// one.
func (r *Reconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	list := &infrav1.VCDIdentityList{}
	if err := r.Client.List(ctx, list, client.InNamespace(secret.GetNamespace())); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDIdentities")
		return nil
	}
	return using(list.Items, secret, func(i *infrav1.VCDIdentity) string { return i.Spec.SecretRef.Name })
}

// secretToIdentities maps a Secret to the VCDClusterIdentities that refer to it, or own it and may now refer to another
// one.
func (r *ClusterReconciler) secretToIdentities(ctx context.Context, secret client.Object) []ctrl.Request {
	if secret.GetNamespace() != r.Identities.Namespace {
		return nil
	}
	list := &infrav1.VCDClusterIdentityList{}
	if err := r.Client.List(ctx, list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusterIdentities")
		return nil
	}
	return using(list.Items, secret, func(i *infrav1.VCDClusterIdentity) string { return i.Spec.SecretRef.Name })
}

// using returns requests for the identities that refer to a Secret, or own it.
func using[T any, P interface {
	*T
	client.Object
}](identities []T, secret client.Object, secretName func(P) string) []ctrl.Request {
	var requests []ctrl.Request
	for i := range identities {
		identity := P(&identities[i])
		if secretName(identity) == secret.GetName() || isOwner(identity, secret) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(identity)})
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
