// SPDX-License-Identifier: Apache-2.0

// Package rde keeps the runtime defined entities of clusters up to date: a view of them in VCD, which nothing depends
// on. It has a queue of its own and few workers, so that clusters do not wait for VCD's service for entities.
package rde

import (
	"context"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=list
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get

// Reconciler keeps the runtime defined entities of VCDClusters of mode Project.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // for what no cache holds
	Identities       session.Identities
	Sessions         session.Opener
	Recorder         events.EventRecorder
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
			builder.WithPredicates(changed)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf), builder.WithPredicates(changed)).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOf),
			builder.WithPredicates(changed)).
		Watches(&infrav1.VCDCluster{}, r.states.DropDeleted()).
		WithOptions(options)
	return session.WatchCredentials(b, changed, session.IdentityToClusters(r.Client),
		session.SecretToClusters(r.Client)).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// clusterOf finds the VCDCluster of a machine, if it has an entity.
func (r *Reconciler) clusterOf(ctx context.Context, machine client.Object) []ctrl.Request {
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(machine.GetNamespace()), client.UnsafeDisableDeepCopy,
		session.OfCluster(machine.GetLabels()[clusterv1.ClusterNameLabel])); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing VCDClusters")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if projected(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func projected(c *infrav1.VCDCluster) bool { return c.Spec.RDE.Mode == infrav1.RDEProject }

// A scope holds the inputs of one reconcile, and what its steps find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster // nil: deleted
	patcher    *phases.Patcher
	state      *state

	session *session.Session // set by open
	id      string           // of the entity; set by find
	own     []string         // ids of all that were made for the cluster; set by findOwn
	made    bool             // the entity, in this pass; set by create
	facts   facts            // set by observe
	again   time.Duration    // when to reconcile again although all is done; zero: when something changes
}

// Reconcile makes the entity of c show c.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Open:     r.open,
		Context:  session.As,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.RDEReadyCondition, Run: project, Applies: isKept},
			{Condition: infrav1.RDEDeletedCondition, Run: remove, Applies: isRemoved},
			{Condition: infrav1.RDEReadyCondition, Run: leave, Applies: isLeft},
			{Condition: infrav1.RDEDeletedCondition, Run: leave, Applies: isLeft},
		},
		Finish: finish,
	}.Reconcile(ctx, c)
}

// isKept reports whether the entity is to show the cluster.
func isKept(s *scope) bool { return projected(s.vcdCluster) && !released(s.vcdCluster) }

// isRemoved reports whether the entity goes with the cluster.
func isRemoved(s *scope) bool { return projected(s.vcdCluster) && released(s.vcdCluster) }

// isLeft reports whether the entity is not kept up to date any more.
func isLeft(s *scope) bool { return !projected(s.vcdCluster) }

// released reports whether all else of a cluster is gone.
func released(c *infrav1.VCDCluster) bool {
	return !c.DeletionTimestamp.IsZero() && !phases.Holds(c, infrav1.ClusterFinalizer)
}

// open skips a cluster for which there is nothing to do, now or ever. It adds the finalizer of entities.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if session.ExternallyManaged(c) || !session.Watched(c, r.WatchFilterValue) || !hasEntity(c) {
		return phases.Entry[scope]{}, nil // Not ours.
	}
	cluster, err := session.OwnerCluster(ctx, r.Client, c)
	if err != nil {
		return phases.Entry[scope]{}, err
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() || isPaused(cluster, c) {
		return phases.Entry[scope]{}, nil // Not ours yet, or not now: a watch triggers the next reconcile.
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

// finish has an entity that shows the cluster written again when it is due.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete {
		pass.After = s.again
	}
}

// hasEntity reports whether a cluster has an entity to keep, or may have one.
func hasEntity(c *infrav1.VCDCluster) bool {
	return controllerutil.ContainsFinalizer(c, infrav1.RDEFinalizer) || projected(c) && c.DeletionTimestamp.IsZero()
}

func isPaused(cluster *clusterv1.Cluster, c *infrav1.VCDCluster) bool {
	if cluster == nil {
		return annotations.HasPaused(c)
	}
	return annotations.IsPaused(cluster, c)
}

// leave lets go of a cluster whose entity is not kept up to date any more.
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
