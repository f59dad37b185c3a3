// SPDX-License-Identifier: Apache-2.0

// Package cluster makes VCDClusters ready for machines, and removes what they have in VCD when they are deleted.
//
// Its files depend one way: controller.go runs the table of phases.go. Each phase is a function of the scope in a file of
// its own, and passes to its steps what these read. What several phases share takes named inputs, too.
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/virtualip"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
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
	Live             client.Reader // for Secrets, which no cache holds
	Identities       session.Identities
	Sessions         session.Opener
	Recorder         events.EventRecorder
	WatchFilterValue string
	Drivers          *vapp.Drivers
	Endpoints        *edgeendpoint.Endpoints
	Now              func() time.Time // nil: time.Now
	Lookup           virtualip.Lookup // nil: DNS

	wakeUps session.WakeUps
	homes   local.Store[home]
	// purges are the removals of the load balancers of Services, endpoints those of control-plane endpoints.
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
			builder.WithPredicates(predicates.ResourceIsChanged(scheme, log),
				predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Owns(&ipamv1.IPAddressClaim{}, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log)),
			builder.MatchEveryOwner).
		Watches(&infrav1.VCDCluster{}, r.homes.DropDeleted()).
		Watches(&infrav1.VCDCluster{}, r.purges.DropDeleted()).
		Watches(&infrav1.VCDCluster{}, r.endpoints.DropDeleted()).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zones.ToClusters(r.Client))).
		Watches(&infrav1.VCDFailureDomain{}, handler.EnqueueRequestsFromMapFunc(zones.ToClusters(r.Client))).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.machineToCluster),
			builder.WithPredicates(session.Deletions())).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options)
	return session.WatchCredentials(b, predicates.ResourceIsChanged(scheme, log), session.IdentityToClusters(r.Client),
		r.secretToClusters).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile makes c ready for machines.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	s, err := newScope(ctx, r, c)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	s.store.patcher, err = phases.Admit(ctx, r.Client, s.cluster, c, infrav1.ClusterFinalizer)
	if s.store.patcher == nil || err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, session.Caller(c))
	acknowledged, err := acceptAcknowledgement(ctx, r.Live, s.store, s.now())
	if err != nil {
		return ctrl.Result{}, err
	}
	if acknowledged {
		goneAcknowledged(r.Recorder, c)
	}
	isOver, err := s.handOverCredentials(ctx)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: session.BusyPoll}, nil
	case err != nil || isOver:
		return ctrl.Result{RequeueAfter: identityPoll}, err
	}
	reportStop(c)
	table := phasesOf(c)
	pass, err := phases.Run(ctx, c, s, table, r.Recorder)
	if pass.Complete {
		pass.RequeueAfter = s.requeueAfter
	}
	result := reportPreflight(s, pass.Result)
	isOutdated, storeErr := s.finish(ctx, table, pass.Complete)
	if isOutdated {
		result = ctrl.Result{RequeueAfter: session.BusyPoll}
	}
	return result, errors.Join(err, storeErr)
}

// finish stores what a pass found, and sums it up. If the pass is complete, the cluster gets the id that marks its objects
// in VCD, the first of which is made later. If the spec has changed since the pass read it, finish stores nothing and
// reports that the pass is outdated.
func (s *scope) finish(ctx context.Context, table []phases.Phase[*scope], complete bool) (isOutdated bool, err error) {
	c := s.vcdCluster
	exists := c.DeletionTimestamp.IsZero()
	if complete && exists {
		identify(c, s.home)
	}
	specErr := s.store.saveSpec(ctx)
	switch {
	case apierrors.IsConflict(specErr):
		return true, nil
	case specErr != nil:
		c.Spec = s.read.Spec
		complete = false
	}
	s.failureDomains.report(c)
	var provisionedErr error
	if complete && exists && !ptr.Deref(c.Status.Initialization.Provisioned, false) {
		// That the cluster was complete once is stored before Ready is true: readers of Ready rely on it.
		c.Status.Initialization.Provisioned = ptr.To(true)
		phases.ProvisionedAfter(c, s.now())
		provisionedErr = s.store.patcher.Save(ctx)
	}
	phases.SetReady(c, table)
	patchErr := s.store.patcher.Finish(ctx, phases.Owned(table)...)
	return false, errors.Join(specErr, provisionedErr, patchErr)
}
