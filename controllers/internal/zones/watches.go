// SPDX-License-Identifier: Apache-2.0

package zones

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
)

// IdentityToZones maps an identity to the zones that use it.
func IdentityToZones(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, identity client.Object) []ctrl.Request {
		kind := infrav1.ClusterIdentity
		if identity.GetNamespace() != "" {
			kind = infrav1.NamespacedIdentity
		}
		return zonesOf(ctx, c, kind, identity.GetNamespace(), identity.GetName())
	}
}

// SecretToZones maps a Secret to the zones whose identity owns it.
func SecretToZones(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		var requests []ctrl.Request
		for _, owner := range secret.GetOwnerReferences() {
			switch kind := infrav1.IdentityKind(owner.Kind); kind {
			case infrav1.ClusterIdentity:
				requests = append(requests, zonesOf(ctx, c, kind, "", owner.Name)...)
			case infrav1.NamespacedIdentity:
				requests = append(requests, zonesOf(ctx, c, kind, secret.GetNamespace(), owner.Name)...)
			}
		}
		return requests
	}
}

func zonesOf(ctx context.Context, c client.Reader, kind infrav1.IdentityKind, namespace, name string) []ctrl.Request {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDDeploymentZones")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if z := &list.Items[i]; identities.Same(z.Spec.IdentityRef, kind, name) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(z)})
		}
	}
	return requests
}

// ToMachines maps a zone or failure domain to the VCDMachines in its namespace that may wait for it, or need it for
// their deletion.
func ToMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		list := &infrav1.VCDMachineList{}
		if err := c.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDMachines")
			return nil
		}
		var requests []ctrl.Request
		for i := range list.Items {
			m := &list.Items[i]
			if m.Spec.RecordedState.PoweredOnAt == nil || !m.DeletionTimestamp.IsZero() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			}
		}
		return requests
	}
}

// ToClusters maps a zone or failure domain to the VCDClusters in its namespace that select zones.
func ToClusters(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		list := &infrav1.VCDClusterList{}
		if err := c.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDClusters")
			return nil
		}
		var selecting []infrav1.VCDCluster
		for _, c := range list.Items {
			if c.Spec.FailureDomainSelector != nil {
				selecting = append(selecting, c)
			}
		}
		return watches.RequestsFor(selecting)
	}
}
