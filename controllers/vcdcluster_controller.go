package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddressclaims,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=ipam.cluster.x-k8s.io,resources=ipaddresses,verbs=list;watch

// VCDClusterReconciler makes VCDClusters ready for machines.
type VCDClusterReconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which no cache holds
	Identities       Identities
	Sessions         Sessions
	Recorder         events.EventRecorder
	WatchFilterValue string
	Drivers          *Drivers
	Now              func() time.Time // nil: time.Now

	wakeUps   wakeUps
	looks     looks
	teardowns teardowns
}

// SetupWithManager registers the reconciler.
func (r *VCDClusterReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdcluster")
	scheme := mgr.GetScheme()
	owner := util.ClusterToInfrastructureMapFunc(ctx, infrav1.GroupVersion.WithKind("VCDCluster"), r.Client, &infrav1.VCDCluster{})
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(owner),
			builder.WithPredicates(predicates.ResourceIsChanged(scheme, log), predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Owns(&ipamv1.IPAddressClaim{}, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log)), builder.MatchEveryOwner).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.machineToCluster), builder.WithPredicates(deletions())).
		WatchesRawSource(r.wakeUps.source()).
		WithOptions(options)
	return watchCredentials(b, predicates.ResourceIsChanged(scheme, log), identityToClusters(r.Client), r.secretToClusters).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// clusterScope holds what one reconcile of a VCDCluster reads and finds out.
type clusterScope struct {
	*VCDClusterReconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster // nil: not there any more
	patcher    *patch.Helper

	session *session    // set by reconcileIdentityReady
	vdc     vcd.VDC     // set by reconcileNetwork
	network vcd.Network // set by reconcileNetwork
	gone    bool        // the vApp is proved gone, or never was; set by deleteClusterVApp
	ended   bool        // our own task deleted the vApp; set by deleteClusterVApp
}

// Reconcile makes c ready for machines.
func (r *VCDClusterReconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (_ ctrl.Result, rerr error) {
	s, err := r.newScope(ctx, c)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	if s.patcher, err = admit(ctx, r.Client, s.cluster, c, infrav1.ClusterFinalizer); s.patcher == nil || err != nil {
		return ctrl.Result{}, err
	}
	if identified, err := r.identify(ctx, c); identified || err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, caller(c))
	tellStop(c)
	table := clusterPhases(c)
	defer func() {
		rerr = errors.Join(rerr, s.markProvisioned(ctx, table))
		setReady(c, table)
		rerr = errors.Join(rerr, ignoreGone(c, s.patcher.Patch(ctx, c, owned(table))))
	}()
	return runPhases(ctx, c, s, table, r.Recorder)
}

// markProvisioned stores that the cluster was complete once, before Ready says so: who sees Ready shall find the rest too.
func (s *clusterScope) markProvisioned(ctx context.Context, table []phase[*clusterScope]) error {
	c := s.vcdCluster
	if !c.DeletionTimestamp.IsZero() || ptr.Deref(c.Status.Initialization.Provisioned, false) || !complete(c, table) {
		return nil
	}
	c.Status.Initialization.Provisioned = ptr.To(true)
	provisionedAfter(c, s.now())
	return s.save(ctx)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *clusterScope) save(ctx context.Context) error {
	helper, err := store(ctx, s.Client, s.vcdCluster, s.patcher)
	if err == nil {
		s.patcher = helper
	}
	return err
}

func clusterPhases(c *infrav1.VCDCluster) []phase[*clusterScope] {
	if !c.DeletionTimestamp.IsZero() {
		table := []phase[*clusterScope]{
			{infrav1.LoadBalancersDeletedCondition, sparing(deleteClusterBalancers, nothingOwn)},
			{infrav1.VAppDeletedCondition, sparing(deleteClusterVApp, ownVApp)},
		}
		if c.Spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete {
			table = append(table, phase[*clusterScope]{infrav1.DisksDeletedCondition, sparing(deleteClusterDisks, nothingOwn)})
		}
		return append(table, phase[*clusterScope]{infrav1.ReleasedCondition, releaseCluster})
	}
	table := []phase[*clusterScope]{
		{infrav1.IdentityReadyCondition, reconcileIdentityReady},
		{infrav1.NetworkReadyCondition, reconcileNetwork},
		{infrav1.EndpointReadyCondition, reconcileEndpoint},
	}
	if perMachine(c) {
		table = append(table, phase[*clusterScope]{infrav1.VAppLayoutReadyCondition, reconcileVAppLayout})
	}
	return table
}

// newScope returns nil while c has no owner yet, which one that is deleted does not need, and if somebody else looks
// after c.
func (r *VCDClusterReconciler) newScope(ctx context.Context, c *infrav1.VCDCluster) (*clusterScope, error) {
	if externallyManaged(c) || !watched(c, r.WatchFilterValue) {
		return nil, nil //nolint:nilnil // Not ours.
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, c.ObjectMeta)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("getting the Cluster of VCDCluster %s: %w", klog.KObj(c), err)
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() {
		return nil, nil //nolint:nilnil // Not ours yet: the owner reference wakes us.
	}
	return &clusterScope{VCDClusterReconciler: r, vcdCluster: c, cluster: cluster}, nil
}

// identify gives c the id that marks its objects in VCD. It is stored before the first of them is created, and a
// pass that saw an old c cannot replace it.
func (r *VCDClusterReconciler) identify(ctx context.Context, c *infrav1.VCDCluster) (bool, error) {
	if c.Spec.InfraID != "" || !c.DeletionTimestamp.IsZero() {
		return false, nil
	}
	before := c.DeepCopy()
	c.Spec.InfraID = string(c.UID)
	err := r.Client.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err): // Somebody changed c just now, which wakes us.
	case err != nil:
		return false, fmt.Errorf("storing the id of VCDCluster %s: %w", klog.KObj(c), err)
	}
	return true, nil
}

// reconcileIdentityReady logs in.
func reconcileIdentityReady(ctx context.Context, s *clusterScope) (outcome, error) {
	if out, err := s.namesakeProblem(ctx); err != nil || out != done {
		return out, err
	}
	opened, out, err := s.Identities.open(ctx, s.Sessions, s.vcdCluster)
	if err != nil || out != done {
		return out, err
	}
	s.session = opened
	if c := s.vcdCluster; c.Annotations[infrav1.CredentialsAcceptedAnnotation] != opened.version {
		annotate(c, infrav1.CredentialsAcceptedAnnotation, opened.version)
	}
	return done, nil
}

// reconcileNetwork finds the VDC and the network.
func reconcileNetwork(ctx context.Context, s *clusterScope) (outcome, error) {
	c := s.vcdCluster
	if c.Spec.OVDC == "" || c.Spec.OVDCNetwork == "" {
		return stop(infrav1.NotSupportedReason, "Failure domains are not supported yet: set spec.ovdc and spec.ovdcNetwork"), nil
	}
	if seen, ok := s.looks.of(c, s.session, s.now()); ok {
		s.vdc, s.network = seen.vdc, seen.network
		s.rememberGateway()
		return done, nil
	}
	vdc, err := s.session.FindVDC(ctx, recorded(c, c.Status.OVDC, c.Spec.OVDC))
	if err != nil {
		return lookupProblem(err, infrav1.VDCNotFoundReason, "correct spec.ovdc of the VCDCluster, or give its user access to the VDC")
	}
	network, err := s.session.FindNetwork(ctx, vdc, recorded(c, c.Status.OVDCNetwork, c.Spec.OVDCNetwork))
	if err != nil {
		return lookupProblem(err, infrav1.NetworkNotFoundReason, "correct spec.ovdcNetwork of the VCDCluster, or connect the network to the VDC")
	}
	s.vdc, s.network = vdc, network
	s.rememberGateway()
	c.Status.OVDC = &infrav1.ResourceReference{Name: vdc.Name, ID: vdc.ID}
	c.Status.OVDCNetwork = &infrav1.ResourceReference{Name: network.Name, ID: network.ID}
	s.looks.keep(c, look{session: s.session.placements, vdc: vdc, network: network}, s.now())
	return done, nil
}

// recorded returns the id found for name, so that a rename in VCD does no harm. Before the cluster was complete once
// nothing depends on what was found, and the name is looked up afresh.
func recorded(c *infrav1.VCDCluster, found *infrav1.ResourceReference, name string) string {
	if found != nil && ptr.Deref(c.Status.Initialization.Provisioned, false) {
		return found.ID
	}
	return name
}

// lookupProblem says that something a person named cannot be used.
func lookupProblem(err error, reason, remedy string) (outcome, error) {
	if _, ok := errors.AsType[*vcd.LookupError](err); ok {
		return fail(remedyPoll, reason, "%v: %s", err, remedy), nil
	}
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		return fail(remedyPoll, reason, "%v: %s", err, remedy), nil
	}
	return askProblem(err)
}
