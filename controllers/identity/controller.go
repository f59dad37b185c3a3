// SPDX-License-Identifier: Apache-2.0

// Package identity protects the Secrets of VCDIdentities and VCDClusterIdentities while they are in use.
package identity

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdidentities;vcdclusteridentities,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones,verbs=list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdidentities/status;vcdclusteridentities/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdidentities/finalizers;vcdclusteridentities/finalizers,verbs=update
// To own a Secret requires the right to delete it, if the API server enforces permissions for owner references.
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles the Secrets of VCDIdentities.
type Reconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Logout           session.Logout // nil: idle sessions expire
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string

	metadata client.Reader // of Secrets; set by SetupWithManager; nil: Client
}

// ClusterReconciler reconciles the Secrets of VCDClusterIdentities.
type ClusterReconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Logout           session.Logout // nil: idle sessions expire
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	r.metadata = mgr.GetCache()
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdidentity")
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDIdentity{},
			builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilterValue))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.secretToIdentities), builder.OnlyMetadata).
		Watches(&infrav1.VCDCluster{},
			handler.EnqueueRequestsFromMapFunc(clusterToIdentity(infrav1.NamespacedIdentity))).
		Watches(&infrav1.VCDDeploymentZone{},
			handler.EnqueueRequestsFromMapFunc(zoneToIdentity(infrav1.NamespacedIdentity))).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// SetupWithManager registers the reconciler.
func (r *ClusterReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdclusteridentity")
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDClusterIdentity{},
			builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilterValue))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.secretToIdentities), builder.OnlyMetadata).
		Watches(&infrav1.VCDCluster{}, handler.EnqueueRequestsFromMapFunc(clusterToIdentity(infrav1.ClusterIdentity))).
		Watches(&infrav1.VCDDeploymentZone{},
			handler.EnqueueRequestsFromMapFunc(zoneToIdentity(infrav1.ClusterIdentity))).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile checks the Secret of i, and protects it while i is in use.
func (r *Reconciler) Reconcile(ctx context.Context, i *infrav1.VCDIdentity) (ctrl.Result, error) {
	return reconcilerOf(r.Client, r.Recorder, r.Writes, r.open).Reconcile(ctx, i)
}

func (r *Reconciler) open(_ context.Context, i *infrav1.VCDIdentity, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !capicluster.Watched(i, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil
	}
	return phases.Entry[scope]{Scope: &scope{
		obj:        i,
		spec:       i.Spec,
		namespace:  i.Namespace,
		kind:       infrav1.NamespacedIdentity,
		client:     r.Client,
		secrets:    cmp.Or(r.metadata, client.Reader(r.Client)),
		owned:      []client.ListOption{client.InNamespace(i.Namespace), index.OwnedBy(i.UID)},
		identities: r.Identities,
		sessions:   r.Sessions,
		logout:     r.Logout,
	}}, nil
}

// Reconcile checks the Secret of i, and protects it while i is in use.
func (r *ClusterReconciler) Reconcile(ctx context.Context, i *infrav1.VCDClusterIdentity) (ctrl.Result, error) {
	return reconcilerOf(r.Client, r.Recorder, r.Writes, r.open).Reconcile(ctx, i)
}

func (r *ClusterReconciler) open(_ context.Context, i *infrav1.VCDClusterIdentity, _ *phases.Patcher) (
	phases.Entry[scope], error,
) {
	if !capicluster.Watched(i, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil
	}
	return phases.Entry[scope]{Scope: &scope{
		obj:        i,
		spec:       i.Spec.VCDIdentitySpec,
		namespace:  r.Identities.Namespace,
		kind:       infrav1.ClusterIdentity,
		client:     r.Client,
		secrets:    r.Identities.Live,
		owned:      []client.ListOption{client.InNamespace(r.Identities.Namespace)},
		identities: r.Identities,
		sessions:   r.Sessions,
		logout:     r.Logout,
	}}, nil
}

// scope holds the inputs of one reconcile of an identity of either kind, and the facts that its phases find.
type scope struct {
	obj        phases.Object
	spec       infrav1.VCDIdentitySpec
	namespace  string // of the Secret
	kind       infrav1.IdentityKind
	client     client.Client
	secrets    client.Reader       // of metadata; the cache may lack the namespace of cluster-scoped identities' Secrets
	owned      []client.ListOption // select the identity's own Secrets, as far as the reader can
	identities identities.Resolver
	sessions   session.Opener
	logout     session.Logout

	users []infrav1.VCDCluster        // users of the identity, one for each organization; set by findUsers
	zones []infrav1.VCDDeploymentZone // the same for zones
}

// reconcilerOf returns the reconciler for identities of a kind.
func reconcilerOf[T phases.Object](
	c client.Client, recorder events.EventRecorder, writes *phases.Writes,
	open func(context.Context, T, *phases.Patcher) (phases.Entry[scope], error),
) phases.Reconciler[T, scope] {
	return phases.Reconciler[T, scope]{
		Client:       c,
		Recorder:     recorder,
		Writes:       writes,
		Open:         open,
		Finalizer:    infrav1.IdentityFinalizer,
		BeforePhases: findUsers,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.SecretReadyCondition, Run: reconcileSecret},
			{Condition: infrav1.LoggedInCondition, Run: reconcileLogin, Applies: (*scope).isUsed, Optional: true},
		},
		Deletion:    []phases.Phase[*scope]{{Condition: infrav1.SecretReadyCondition, Run: releaseSecret}},
		Ready:       true,
		BeforeStore: finish,
	}
}

// findUsers finds the clusters and zones that use an identity, unless it is being deleted.
func findUsers(ctx context.Context, s *scope) (_ phases.Result, err error) {
	if !s.obj.GetDeletionTimestamp().IsZero() {
		return phases.Done, nil
	}
	if s.users, err = s.usersByOrg(ctx); err != nil {
		return phases.Done, err
	}
	s.zones, err = s.zonesByOrg(ctx)
	return phases.Done, err
}

// isUsed reports whether a cluster or a zone uses the identity.
func (s *scope) isUsed() bool { return len(s.users)+len(s.zones) > 0 }

// finish schedules the next check of the logins of an identity in use.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete && s.isUsed() {
		pass.After = phases.Jitter(loginAge, string(s.obj.GetUID()))
	}
}

// reconcileSecret ensures that the Secret is complete, and protects it from deletion.
func reconcileSecret(ctx context.Context, s *scope) (phases.Result, error) {
	if err := s.releaseOldSecrets(ctx); err != nil {
		return phases.Done, err
	}
	key := client.ObjectKey{Namespace: s.namespace, Name: s.spec.SecretRef.Name}
	secret, out, err := s.identities.Secret(ctx, key, "the identity")
	if err == nil && out.Reason == infrav1.SecretNotFoundReason && s.isNew() {
		return phases.Wait(intervals.Busy, out.Reason, "%s", out.Message), nil
	}
	if err != nil || out != phases.Done {
		return out, err
	}
	if out := identities.MissingKeys(s.spec, secret); out != phases.Done {
		return out, nil
	}
	before := secret.DeepCopy()
	controllerutil.AddFinalizer(secret, infrav1.SecretFinalizer)
	if err := controllerutil.SetOwnerReference(s.obj, secret, s.client.Scheme()); err != nil {
		return phases.Done, fmt.Errorf("owning Secret %s: %w", key, err)
	}
	if err := s.patchSecret(ctx, secret, before); err != nil {
		return phases.Done, err
	}
	return phases.Done, s.blockMoves(ctx, secret)
}

// usedByZones returns a result that names a VCDDeploymentZone that uses the identity; Done if none does.
func (s *scope) usedByZones(ctx context.Context, reader client.Reader, in []client.ListOption) (phases.Result, error) {
	zones := &infrav1.VCDDeploymentZoneList{}
	if err := reader.List(ctx, zones, in...); err != nil {
		return phases.Done, fmt.Errorf("listing VCDDeploymentZones: %w", err)
	}
	for _, z := range zones.Items {
		if identities.Same(z.Spec.IdentityRef, s.kind, s.obj.GetName()) {
			return phases.Wait(intervals.Task, infrav1.InUseReason, "VCDDeploymentZone %s still uses the identity",
				client.ObjectKeyFromObject(&z)), nil
		}
	}
	return phases.Done, nil
}

// releaseSecret removes the finalizers from the identity and its Secret once no VCDCluster and no zone refers to the
// identity. Objects in VCD could not be deleted without it.
func releaseSecret(ctx context.Context, s *scope) (phases.Result, error) {
	clusters := &infrav1.VCDClusterList{}
	// The cache may only hold one namespace, but a VCDClusterIdentity can be used in many.
	reader := s.identities.Live
	in := []client.ListOption(nil)
	if s.kind == infrav1.NamespacedIdentity {
		reader = s.client
		in = []client.ListOption{client.InNamespace(s.obj.GetNamespace())}
	}
	if err := reader.List(ctx, clusters, in...); err != nil {
		return phases.Done, fmt.Errorf("listing VCDClusters: %w", err)
	}
	for _, c := range clusters.Items {
		if identities.RefersTo(&c, s.kind, s.obj.GetName()) {
			return phases.Wait(intervals.Task, infrav1.InUseReason, "VCDCluster %s still uses the identity",
				client.ObjectKeyFromObject(&c)), nil
		}
	}
	if out, err := s.usedByZones(ctx, reader, in); err != nil || out != phases.Done {
		return out, err
	}
	if err := s.releaseOldSecrets(ctx); err != nil {
		return phases.Done, err
	}
	if err := s.releaseCurrentSecret(ctx); err != nil {
		return phases.Done, fmt.Errorf("releasing Secret %s: %w", s.spec.SecretRef.Name, err)
	}
	controllerutil.RemoveFinalizer(s.obj, infrav1.IdentityFinalizer)
	return phases.Done, nil
}
