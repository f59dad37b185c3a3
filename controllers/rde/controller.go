// SPDX-License-Identifier: Apache-2.0

// Package rde maintains the runtime defined entities of clusters, which summarize them in VCD. Nothing depends on an
// entity. The package has its own queue with few workers, so that clusters do not wait for VCD's entity service.
package rde

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/finalizers"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=list
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get

// Reconciler maintains the runtime defined entities of VCDClusters with mode Project.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // uncached, for kinds without a cache
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Version          string           // of the manager
	Now              func() time.Time // nil: time.Now

	states local.Store[state]
	recent recentEntities
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "rde")
	scheme := mgr.GetScheme()
	changed := predicates.ResourceIsChanged(scheme, log)
	b := ctrl.NewControllerManagedBy(mgr).Named("rde").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(addon.ClusterToVCDCluster),
			builder.WithPredicates(watches.ClusterChanges())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.withEntity), builder.WithPredicates(changed)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf), builder.WithPredicates(changed)).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf),
			builder.WithPredicates(changed)).
		Watches(&infrav1.VCDCluster{}, r.states.DropDeleted()).
		WithOptions(options)
	return watches.WatchCredentials(b, changed, watches.IdentityToClusters(r.Client),
		watches.SecretToClusters(r.Client)).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// withEntity maps a Cluster to its VCDCluster, if that has an entity. The entity shows the status of the Cluster.
func (r *Reconciler) withEntity(ctx context.Context, cluster client.Object) []ctrl.Request {
	return r.projectedOf(ctx, cluster.GetNamespace(), cluster.GetName())
}

// clusterOf maps a machine to its VCDCluster, if that has an entity.
func (r *Reconciler) clusterOf(ctx context.Context, machine client.Object) []ctrl.Request {
	return r.projectedOf(ctx, machine.GetNamespace(), machine.GetLabels()[clusterv1.ClusterNameLabel])
}

// projectedOf returns requests for the VCDClusters of the named Cluster that have an entity.
func (r *Reconciler) projectedOf(ctx context.Context, namespace, cluster string) []ctrl.Request {
	clusters := watches.ClustersOfCluster(ctx, r.Client, namespace, cluster)
	return watches.RequestsFor(slices.DeleteFunc(clusters, func(c infrav1.VCDCluster) bool { return !projected(&c) }))
}

func projected(c *infrav1.VCDCluster) bool { return c.Spec.RDE.Mode == infrav1.RDEProject }

// A scope holds the inputs of one reconcile, and the facts that its steps find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster // nil: deleted
	patcher    *phases.Patcher
	state      *state

	session *session.Session // set by open
	id      string           // of the entity; set by find
	own     []string         // IDs of all entities that were created for the cluster; set by findOwn
	created bool             // whether this pass created the entity; set by create
	facts   facts            // set by observe
	again   time.Duration    // delay until the next reconcile of an up-to-date entity; zero: a watch triggers it
}

// Reconcile updates the entity of c, or deletes it.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Writes:   r.Writes,
		Open:     r.open,
		Context:  session.As,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.RDEReadyCondition, Run: project, Applies: isKept},
			{Condition: infrav1.RDEDeletedCondition, Run: remove, Applies: isRemoved},
			{Condition: infrav1.RDEReadyCondition, Run: leave, Applies: isLeft},
			{Condition: infrav1.RDEDeletedCondition, Run: leave, Applies: isLeft},
		},
		BeforeStore: finish,
	}.Reconcile(ctx, c)
}

// isKept reports whether the entity must be kept up to date.
func isKept(s *scope) bool { return projected(s.vcdCluster) && !released(s.vcdCluster) }

// isRemoved reports whether the entity must be deleted with the cluster.
func isRemoved(s *scope) bool { return projected(s.vcdCluster) && released(s.vcdCluster) }

// isLeft reports whether the entity is no longer maintained, and stays in VCD.
func isLeft(s *scope) bool { return !projected(s.vcdCluster) }

// released reports whether all other resources of a cluster are gone.
func released(c *infrav1.VCDCluster) bool {
	return !c.DeletionTimestamp.IsZero() && !phases.Holds(c, infrav1.ClusterFinalizer)
}

// open returns an empty entry, which ends the reconcile, if the cluster has no entity, is paused, or has no owner yet.
// It adds the finalizer for entities.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if capicluster.ExternallyManaged(c) || !capicluster.Watched(c, r.WatchFilterValue) || !hasEntity(c) {
		return phases.Entry[scope]{}, nil // Nothing to maintain, or managed by another controller.
	}
	cluster, err := capicluster.Owner(ctx, r.Client, c)
	if err != nil {
		return phases.Entry[scope]{}, err
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() || isPaused(cluster, c) {
		return phases.Entry[scope]{}, nil // A watch triggers the next reconcile.
	}
	if projected(c) {
		if added, err := finalizers.EnsureFinalizer(ctx, r.Client, c, infrav1.RDEFinalizer); added || err != nil {
			return phases.Entry[scope]{}, err
		}
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		cluster:    cluster,
		patcher:    patcher,
		state:      r.states.Of(c.UID),
	}}, nil
}

// finish schedules the next update of an entity.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete {
		pass.After = s.again
	}
}

// hasEntity reports whether a cluster has, or may get, an entity that must be maintained.
func hasEntity(c *infrav1.VCDCluster) bool {
	return controllerutil.ContainsFinalizer(c, infrav1.RDEFinalizer) || projected(c) && c.DeletionTimestamp.IsZero()
}

func isPaused(cluster *clusterv1.Cluster, c *infrav1.VCDCluster) bool {
	if cluster == nil {
		return annotations.HasPaused(c)
	}
	return annotations.IsPaused(cluster, c)
}

// leave removes the finalizer from a cluster whose entity is no longer maintained. The entity itself stays in VCD.
func leave(_ context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	if controllerutil.RemoveFinalizer(c, infrav1.RDEFinalizer) && s.known() {
		entityRetained(s.reconciler.Recorder, c, notes.EntityID(c), "spec.rde.mode is None")
	}
	s.reconciler.states.Drop(c.UID)
	return phases.Obsolete, nil
}

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}
