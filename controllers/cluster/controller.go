// SPDX-License-Identifier: Apache-2.0

// Package cluster makes VCDClusters ready for machines, and removes their objects from VCD when they are deleted. The
// file controller.go runs the table in phases.go. Each phase is a function of the scope in its own file, and passes the
// values that its steps read as arguments. Code that several phases share takes named inputs, too.
package cluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/balancers"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones;vcdfailuredomains,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch;patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,verbs=list;watch;create

// Reconciler makes VCDClusters ready for machines.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // uncached
	Secrets          client.Reader // reads Secrets, again only if they have changed
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Drivers          *vapp.Drivers
	Endpoints        *edgeendpoint.Endpoints
	Now              func() time.Time // nil: time.Now
	Lookup           virtualip.Lookup // nil: DNS

	wakeUps watches.WakeUps
	homes   local.Store[home]
	// purges removes the load balancers of Services, and endpoints removes those of control-plane endpoints.
	purges    local.Store[balancers.Purge]
	endpoints local.Store[balancers.Purge]
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdcluster")
	scheme := mgr.GetScheme()
	owner := util.ClusterToInfrastructureMapFunc(ctx, infrav1.GroupVersion.WithKind("VCDCluster"), r.Client,
		&infrav1.VCDCluster{})
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(owner),
			builder.WithPredicates(watches.ClusterChanges(), predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Owns(&ipamv1.IPAddressClaim{}, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log)),
			builder.MatchEveryOwner).
		Watches(&infrav1.VCDCluster{}, r.homes.DropDeleted()).
		Watches(&infrav1.VCDCluster{}, r.purges.DropDeleted()).
		Watches(&infrav1.VCDCluster{}, r.endpoints.DropDeleted()).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zones.ToClusters(r.Client))).
		Watches(&infrav1.VCDFailureDomain{}, handler.EnqueueRequestsFromMapFunc(zones.ToClusters(r.Client))).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.machineToCluster),
			builder.WithPredicates(watches.Deletions())).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options)
	return watches.WatchCredentials(b, predicates.ResourceIsChanged(scheme, log), watches.IdentityToClusters(r.Client),
		r.secretToClusters).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile makes c ready for machines.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:       r.Client,
		Recorder:     r.Recorder,
		Writes:       r.Writes,
		Open:         r.open,
		Finalizer:    infrav1.ClusterFinalizer,
		Context:      session.As,
		BeforePhases: begin,
		Phases:       provisioning(),
		Deletion:     deletion(),
		Maintenance:  maintenance(),
		Ready:        true,
		BeforeStore:  finish,
	}.Reconcile(ctx, c)
}

// begin prepares a pass: it accepts an acknowledgement, and moves credentials of CAPVCD.
func begin(ctx context.Context, s *scope) (phases.Result, error) {
	c := s.vcdCluster
	recorder := s.reconciler.Recorder
	acknowledged, err := acceptAcknowledgement(ctx, s.reconciler.Live, s.store, s.now())
	if err != nil {
		return phases.Done, err
	}
	if acknowledged {
		vmLossAcknowledged(recorder, c)
	}
	out, err := s.handOverCredentials(ctx)
	switch {
	case apierrors.IsConflict(err):
		return phases.Wait(intervals.Busy, infrav1.EntityBusyReason, "Waiting because another client is writing to the VCDCluster"), nil
	case err != nil || out != phases.Done:
		return out, err
	}
	reportStop(recorder, c)
	return phases.Done, nil
}

// finish stores the results of a pass in the spec, and reports conditions that no phase owns. If the pass is complete,
// the cluster gets the ID that marks its objects in VCD, before the first of them is created. If the spec has changed
// since the pass read it, the pass is outdated.
func finish(ctx context.Context, s *scope, pass *phases.Pass) {
	c := s.vcdCluster
	exists := c.DeletionTimestamp.IsZero()
	if pass.Complete {
		pass.Within(s.requeueAfter)
	}
	reportPreflight(s, pass)
	if pass.Complete && exists {
		identify(c, s.home)
	}
	err := s.store.saveSpec(ctx)
	switch {
	case apierrors.IsConflict(err):
		pass.Outdated = true
		pass.After = intervals.Busy
		return
	case err != nil:
		recorded := c.Spec.RecordedState
		c.Spec = s.read.Spec
		c.Spec.RecordedState = recorded
		pass.Complete = false
		pass.Err = errors.Join(pass.Err, err)
	}
	s.failureDomains.report(s.reconciler.Recorder, c)
	if pass.Complete && exists && !ptr.Deref(c.Status.Initialization.Provisioned, false) {
		c.Status.Initialization.Provisioned = ptr.To(true)
		phases.ProvisionedAfter(c, s.now())
	}
}
