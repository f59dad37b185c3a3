// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// DomainReconciler validates VCDFailureDomains with the identity of a zone that refers to them.
type DomainReconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
}

// SetupWithManager registers the reconciler.
func (r *DomainReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdfailuredomain")
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDFailureDomain{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilterValue))).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zoneToDomain)).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// zoneToDomain maps a zone to its VCDFailureDomain. The Ready condition of the zone shows when VCD responds again.
func zoneToDomain(_ context.Context, obj client.Object) []ctrl.Request {
	z, ok := obj.(*infrav1.VCDDeploymentZone)
	if !ok {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: z.Namespace, Name: z.Spec.FailureDomain}}}
}

// A domainScope holds the inputs of one reconcile of a VCDFailureDomain.
type domainScope struct {
	reconciler *DomainReconciler

	domain *infrav1.VCDFailureDomain
	zones  []infrav1.VCDDeploymentZone // zones that refer to it, sorted by name
}

// Reconcile validates d, or releases it in deletion once no zone refers to it.
func (r *DomainReconciler) Reconcile(ctx context.Context, d *infrav1.VCDFailureDomain) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDFailureDomain, domainScope]{
		Client:       r.Client,
		Recorder:     r.Recorder,
		Writes:       r.Writes,
		Open:         r.open,
		Finalizer:    infrav1.FailureDomainFinalizer,
		Context:      session.As,
		BeforePhases: findZones,
		Phases:       []phases.Phase[*domainScope]{{Condition: infrav1.VDCReadyCondition, Run: reconcileVDC}},
		Deletion:     []phases.Phase[*domainScope]{{Condition: infrav1.ReleasedCondition, Run: releaseDomain}},
		Ready:        true,
		BeforeStore:  finishDomain,
	}.Reconcile(ctx, d)
}

func (r *DomainReconciler) open(_ context.Context, d *infrav1.VCDFailureDomain, _ *phases.Patcher) (phases.Entry[domainScope], error) {
	if !capicluster.Watched(d, r.WatchFilterValue) {
		return phases.Entry[domainScope]{}, nil
	}
	return phases.Entry[domainScope]{Scope: &domainScope{reconciler: r, domain: d}}, nil
}

// findZones finds the zones that refer to the failure domain.
func findZones(ctx context.Context, s *domainScope) (phases.Result, error) {
	found, err := s.reconciler.zonesOf(ctx, s.domain)
	s.zones = found
	return phases.Done, err
}

// finishDomain schedules the next validation of a valid failure domain.
func finishDomain(_ context.Context, s *domainScope, pass *phases.Pass) {
	if pass.Complete && s.domain.DeletionTimestamp.IsZero() {
		pass.After = phases.Jitter(validEvery*9/10, string(s.domain.UID))
	}
}

// zonesOf lists the zones that refer to a failure domain, sorted by name.
func (r *DomainReconciler) zonesOf(ctx context.Context, d *infrav1.VCDFailureDomain) ([]infrav1.VCDDeploymentZone, error) {
	list := &infrav1.VCDDeploymentZoneList{}
	if err := r.Client.List(ctx, list, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	found := slices.DeleteFunc(list.Items, func(z infrav1.VCDDeploymentZone) bool {
		return z.Spec.FailureDomain != d.Name
	})
	slices.SortFunc(found, func(a, b infrav1.VCDDeploymentZone) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// reconcileVDC finds the VDC and the placement policy of the failure domain.
func reconcileVDC(ctx context.Context, s *domainScope) (phases.Result, error) {
	if len(s.zones) == 0 {
		return phases.Wait(0, infrav1.FailureDomainUnusedReason, "No VCDDeploymentZone refers to the failure domain, so it has no identity to log in with: create one"), nil
	}
	opened, out, err := s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, &s.zones[0])
	if err != nil || out != phases.Done {
		return out, err
	}
	found, out, err := findDomain(ctx, opened, s.domain)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.domain.Status.OVDC = reference(found.vdc.Ref)
	s.domain.Status.PlacementPolicy = reference(found.policy)
	return phases.Done, nil
}

// releaseDomain removes the finalizer from a failure domain once no zone refers to it.
func releaseDomain(_ context.Context, s *domainScope) (phases.Result, error) {
	if len(s.zones) == 0 {
		controllerutil.RemoveFinalizer(s.domain, infrav1.FailureDomainFinalizer)
		return phases.Done, nil
	}
	names := make([]string, 0, len(s.zones))
	for _, z := range s.zones {
		names = append(names, z.Name)
	}
	return phases.Wait(intervals.Task, infrav1.InUseReason, "Waiting for VCDDeploymentZones that refer to the failure domain to be deleted: %s", phases.Few(names)), nil
}
