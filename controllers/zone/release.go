// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// releaseZone removes the finalizer from a zone once it contains no machines, and no cluster has objects there that can
// only be deleted with the zone's identity.
func releaseZone(ctx context.Context, s *scope) (phases.Result, error) {
	machines := &infrav1.VCDMachineList{}
	if err := s.reconciler.Client.List(ctx, machines, client.InNamespace(s.zone.Namespace)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDMachines: %w", err)
	}
	var users []string
	for _, m := range machines.Items {
		if m.Spec.RecordedState.DeploymentZone == s.zone.Name {
			users = append(users, m.Name)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return phases.Wait(intervals.Task, infrav1.InUseReason,
			"Waiting for VCDMachines in the zone to be deleted: %s", phases.Few(users)), nil
	}
	clusters := &infrav1.VCDClusterList{}
	if err := s.reconciler.Client.List(ctx, clusters, client.InNamespace(s.zone.Namespace)); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for _, c := range clusters.Items {
		own := s.zone.Spec.IdentityRef
		if _, recorded := c.Spec.RecordedState.Zones[s.zone.Name]; recorded &&
			!identities.Same(c.Spec.IdentityRef, own.Kind, own.Name) {
			users = append(users, c.Name)
		}
	}
	if len(users) > 0 {
		slices.Sort(users)
		return phases.Wait(intervals.Task, infrav1.InUseReason, "Waiting for VCDClusters whose vApps in the zone depend on its identity: %s", phases.Few(users)), nil
	}
	controllerutil.RemoveFinalizer(s.zone, infrav1.DeploymentZoneFinalizer)
	return phases.Done, nil
}

// machineToZone maps a VCDMachine to its zone. A zone in deletion waits for its machines.
func machineToZone(_ context.Context, obj client.Object) []ctrl.Request {
	m, ok := obj.(*infrav1.VCDMachine)
	if !ok || m.Spec.RecordedState.DeploymentZone == "" {
		return nil
	}
	zone := m.Spec.RecordedState.DeploymentZone
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: m.GetNamespace(), Name: zone}}}
}

// clusterToZones maps a VCDCluster to the zones in deletion, which may wait for it.
func (r *Reconciler) clusterToZones(ctx context.Context, c client.Object) []ctrl.Request {
	return r.zonesFor(ctx, c.GetNamespace(), func(z *infrav1.VCDDeploymentZone) bool {
		return !z.DeletionTimestamp.IsZero()
	})
}

// domainToZones maps a VCDFailureDomain to the zones that refer to it.
func (r *Reconciler) domainToZones(ctx context.Context, d client.Object) []ctrl.Request {
	return r.zonesFor(ctx, d.GetNamespace(), func(z *infrav1.VCDDeploymentZone) bool {
		return z.Spec.FailureDomain == d.GetName()
	})
}

func (r *Reconciler) zonesFor(ctx context.Context, namespace string, matches func(*infrav1.VCDDeploymentZone) bool) []ctrl.Request {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDDeploymentZones")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if matches(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
