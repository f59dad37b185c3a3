// SPDX-License-Identifier: Apache-2.0

// Package zone validates VCDDeploymentZones and VCDFailureDomains against VCD, and protects them while they are in use.
package zone

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// provisioning are the phases of a VCDDeploymentZone, in order.
func provisioning() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{
		{Condition: infrav1.IdentityReadyCondition, Run: reconcileIdentity},
		{Condition: infrav1.FailureDomainReadyCondition, Run: reconcileFailureDomain},
		{Condition: infrav1.ConstraintReadyCondition, Run: reconcileConstraint},
	}
}

// deletion are the phases of a VCDDeploymentZone in deletion.
func deletion() []phases.Phase[*scope] {
	return []phases.Phase[*scope]{{Condition: infrav1.ReleasedCondition, Run: releaseZone}}
}

// validEvery is the interval between validations of a zone, plus or minus a tenth, because VCD does not announce
// losses.
const validEvery = 5 * time.Minute

// maxAge is the maximum age of the VDC and the catalog in a validation, which are the objects that zones lose. It is
// shorter than the interval between validations. It is long enough for many simultaneous triggers, such as machines
// that are deleted together, to share the responses.
const maxAge = intervals.Remedy / 2

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones;vcdfailuredomains,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones/status;vcdfailuredomains/status,verbs=patch

// Reconciler validates VCDDeploymentZones.
type Reconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcddeploymentzone")
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDDeploymentZone{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilterValue))).
		Watches(&infrav1.VCDFailureDomain{}, handler.EnqueueRequestsFromMapFunc(r.domainToZones)).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(machineToZone),
			builder.WithPredicates(watches.Deletions())).
		Watches(&infrav1.VCDCluster{}, handler.EnqueueRequestsFromMapFunc(r.clusterToZones),
			builder.WithPredicates(watches.Deletions())).
		WithOptions(options)
	return watches.WatchCredentials(b, predicates.ResourceIsChanged(mgr.GetScheme(), log),
		zones.IdentityToZones(r.Client), zones.SecretToZones(r.Client)).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// A scope holds the inputs of one reconcile of a VCDDeploymentZone, and the facts that its phases find.
type scope struct {
	reconciler *Reconciler

	zone    *infrav1.VCDDeploymentZone
	session *session.Session // set by reconcileIdentity
	vdc     vcd.VDC          // set by reconcileFailureDomain
}

// Reconcile validates z, or releases it in deletion once nothing uses it.
func (r *Reconciler) Reconcile(ctx context.Context, z *infrav1.VCDDeploymentZone) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDDeploymentZone, scope]{
		Client:      r.Client,
		Recorder:    r.Recorder,
		Writes:      r.Writes,
		Open:        r.open,
		Finalizer:   infrav1.DeploymentZoneFinalizer,
		Context:     session.As,
		Phases:      provisioning(),
		Deletion:    deletion(),
		Ready:       true,
		BeforeStore: finish,
	}.Reconcile(ctx, z)
}

func (r *Reconciler) open(_ context.Context, z *infrav1.VCDDeploymentZone, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !capicluster.Watched(z, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil
	}
	return phases.Entry[scope]{Scope: &scope{reconciler: r, zone: z}}, nil
}

// finish records whether machines can be created in the zone. While that is unknown, the last value is kept.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	switch {
	case !s.zone.DeletionTimestamp.IsZero():
	case pass.Complete:
		s.zone.Status.Usable = ptr.To(true)
		pass.After = phases.Jitter(validEvery*9/10, string(s.zone.UID))
	case pass.Blocked.IsProblem() && !pass.Blocked.IsUnknown():
		s.zone.Status.Usable = ptr.To(false)
	}
}

// reconcileIdentity logs in.
func reconcileIdentity(ctx context.Context, s *scope) (phases.Result, error) {
	var out phases.Result
	var err error
	s.session, out, err = s.reconciler.Identities.OpenZone(ctx, s.reconciler.Sessions, s.zone)
	if err != nil || out != phases.Done {
		return out, err
	}
	if s.zone.Annotations[infrav1.CredentialsAcceptedAnnotation] != s.session.Version {
		notes.Set(s.zone, infrav1.CredentialsAcceptedAnnotation, s.session.Version)
	}
	return phases.Done, nil
}

// reconcileFailureDomain finds the VDC and the placement policy of the zone.
func reconcileFailureDomain(ctx context.Context, s *scope) (phases.Result, error) {
	domain, out, err := zones.DomainOf(ctx, s.reconciler.Client, s.zone)
	if err != nil || out != phases.Done {
		return out, err
	}
	found, out, err := findDomain(vcd.WithMaxAge(ctx, maxAge), s.session, domain)
	s.vdc = found.vdc
	if err != nil || out != phases.Done {
		return out, err
	}
	s.zone.Status.OVDC = reference(found.vdc.Ref)
	s.zone.Status.PlacementPolicy = reference(found.policy)
	return phases.Done, nil
}

// A place is the VDC and the placement policy of a failure domain.
type place struct {
	vdc    vcd.VDC
	policy vcd.Ref // zero: none
}

// findDomain finds the VDC of a failure domain, which must be enabled, and its placement policy.
func findDomain(ctx context.Context, s *session.Session, d *infrav1.VCDFailureDomain) (place, phases.Result, error) {
	of := " of VCDFailureDomain " + d.Name
	vdc, out, err := zones.VDC(ctx, s, placement.Choice{Name: d.Spec.OVDC, Field: "spec.ovdc" + of})
	if err != nil || out != phases.Done || d.Spec.PlacementPolicy == "" {
		return place{vdc: vdc}, out, err
	}
	policy, err := s.FindPlacementPolicy(ctx, vdc, d.Spec.PlacementPolicy)
	if err != nil {
		out, err = problems.OfField(err, checks.PlacementPolicy, "spec.placementPolicy"+of)
	}
	return place{vdc: vdc, policy: policy.Ref}, out, err
}

// reconcileConstraint finds the objects that machines in the zone use by default.
func reconcileConstraint(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx, s.findNetworks, s.findStorage, s.findSizing, s.findCatalog)
}

func (s *scope) findNetworks(ctx context.Context) (phases.Result, error) {
	var found []infrav1.ResourceReference
	for _, name := range s.zone.Spec.PlacementConstraint.Networks {
		network, err := s.session.FindNetwork(ctx, s.vdc, name)
		if err != nil {
			return problems.OfField(err, checks.Network, "spec.placementConstraint.networks")
		}
		found = append(found, *reference(network.Ref))
	}
	s.zone.Status.Networks = found
	return phases.Done, nil
}

func (s *scope) findStorage(ctx context.Context) (phases.Result, error) {
	name := s.zone.Spec.PlacementConstraint.StorageProfile
	status := &s.zone.Status
	if status.StorageProfile = nil; name == "" {
		return phases.Done, nil
	}
	found, err := s.session.FindStorageProfile(ctx, s.vdc, name)
	if err != nil {
		return problems.OfField(err, checks.StorageProfile, "spec.placementConstraint.storageProfile")
	}
	status.StorageProfile = reference(found.Ref)
	return phases.Done, nil
}

func (s *scope) findSizing(ctx context.Context) (phases.Result, error) {
	name := s.zone.Spec.PlacementConstraint.SizingPolicy
	status := &s.zone.Status
	if status.SizingPolicy = nil; name == "" {
		return phases.Done, nil
	}
	found, err := s.session.FindSizingPolicy(ctx, s.vdc, name)
	if err != nil {
		return problems.OfField(err, checks.SizingPolicy, "spec.placementConstraint.sizingPolicy")
	}
	status.SizingPolicy = reference(found.Ref)
	return phases.Done, nil
}

func (s *scope) findCatalog(ctx context.Context) (phases.Result, error) {
	name := s.zone.Spec.PlacementConstraint.Catalog
	status := &s.zone.Status
	if status.Catalog = nil; name == "" {
		return phases.Done, nil
	}
	found, err := s.session.FindCatalog(vcd.WithMaxAge(ctx, maxAge), name)
	if err != nil {
		return problems.OfField(err, checks.Catalog, "spec.placementConstraint.catalog")
	}
	status.Catalog = reference(found)
	return phases.Done, nil
}

// reference returns the reference in a status to an object in VCD; nil for a zero Ref.
func reference(ref vcd.Ref) *infrav1.ResourceReference {
	if ref.ID == "" {
		return nil
	}
	return &infrav1.ResourceReference{Name: ref.Name, ID: ref.ID}
}
