// SPDX-License-Identifier: Apache-2.0

// Package cluster makes VCDClusters ready for machines.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// deletionOf returns the phases of a VCDCluster that is deleted, in order.
func deletionOf(c *infrav1.VCDCluster) []phases.Phase[*scope] {
	table := []phases.Phase[*scope]{
		{Condition: infrav1.LoadBalancersDeletedCondition, Run: unlessDuplicated(deleteBalancers, nothingOwn)},
	}
	if c.Annotations[infrav1.AffinityRulesAnnotation] != "" {
		table = append(table, phases.Phase[*scope]{
			Condition: infrav1.AffinityRulesDeletedCondition,
			Run:       unlessDuplicated(deleteAffinityRules, nothingOwn),
		})
	}
	table = append(table, phases.Phase[*scope]{
		Condition: infrav1.VAppDeletedCondition,
		Run:       unlessDuplicated(deleteVApp, ownVApp),
	})
	if c.Spec.OrphanedDiskPolicy == infrav1.OrphanedDiskDelete {
		disks := phases.Phase[*scope]{
			Condition: infrav1.DisksDeletedCondition,
			Run:       unlessDuplicated(deleteDisks, nothingOwn),
		}
		table = append(table, disks)
	}
	if _, on := edgeendpoint.Of(c); on {
		table = append(table, phases.Phase[*scope]{
			Condition: infrav1.EndpointDeletedCondition,
			Run:       unlessDuplicated(deleteEndpoint, nothingOwn),
		})
	}
	return append(table, phases.Phase[*scope]{Condition: infrav1.ReleasedCondition, Run: releaseCluster})
}

// phasesOf returns the phases of a VCDCluster, in order: each is a condition, and what makes it true.
func phasesOf(c *infrav1.VCDCluster) []phases.Phase[*scope] {
	if !c.DeletionTimestamp.IsZero() {
		return deletionOf(c)
	}
	table := []phases.Phase[*scope]{{Condition: infrav1.IdentityReadyCondition, Run: reconcileIdentityReady}}
	// The rest of a cluster goes on when its zones are lost.
	zoned := phases.Phase[*scope]{Condition: infrav1.FailureDomainsReadyCondition, Run: reconcileFailureDomains}
	first := !established(c) || len(c.Status.FailureDomains) == 0
	if c.Spec.FailureDomainSelector != nil && first {
		table = append(table, zoned)
	}
	table = append(table,
		phases.Phase[*scope]{Condition: infrav1.NetworkReadyCondition, Run: reconcileNetwork},
		phases.Phase[*scope]{Condition: infrav1.EndpointReadyCondition, Run: reconcileEndpoint})
	if hasNodeProxy(c) {
		table = append(table, phases.Phase[*scope]{Condition: infrav1.NodeProxyReadyCondition, Run: reconcileNodeProxy})
	}
	if vapp.PerMachine(c) || vapp.Spread(c) {
		table = append(table,
			phases.Phase[*scope]{Condition: infrav1.VAppLayoutReadyCondition, Run: reconcileVAppLayout})
	}
	if c.Spec.FailureDomainSelector != nil && !first {
		table = append(table, zoned)
	}
	return table
}

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
	Lookup           Lookup           // nil: DNS

	wakeUps session.WakeUps
	homes   local.Store[home]
	purges  local.Store[purge]
	// endpoints are the removals of control-plane endpoints.
	endpoints local.Store[purge]
}

// A Lookup resolves a name, as [net.Resolver.LookupNetIP] does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

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

// scope holds the inputs of one reconcile of a VCDCluster, and the facts that its phases find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	read       *infrav1.VCDCluster // as the pass found it
	cluster    *clusterv1.Cluster  // nil: deleted
	patcher    *phases.Patcher

	session        *session.Session // set by open
	failureDomains failureDomains   // set by findZones
	home                            // set by reconcileNetwork
	unclaimed      phases.Outcome   // warns of a virtual IP that no pool keeps; set by virtualIPs

	requeueAfter time.Duration // although all is complete; zero: not needed
	gone         bool          // the vApp is proved gone; set by deleteVApp
}

// A home is the VDC and the network that a cluster is in, as they were found.
type home struct {
	vdc     vcd.VDC
	network vcd.Network

	by         *session.Machines // the session that found them: another may see others
	generation int64
	until      time.Time
}

// Reconcile makes c ready for machines.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (res ctrl.Result, rerr error) {
	s, err := r.newScope(ctx, c)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	if s.patcher, err = phases.Admit(ctx, r.Client, s.cluster, c, infrav1.ClusterFinalizer); s.patcher == nil ||
		err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, session.Caller(c))
	if err := s.acceptAcknowledgement(ctx); err != nil {
		return ctrl.Result{}, err
	}
	reportStop(c)
	table := phasesOf(c)
	var pass phases.Pass
	defer func() {
		switch err := s.storeSpec(ctx, pass.Complete); {
		case apierrors.IsConflict(err): // The pass is not of the spec as it is now.
			res = ctrl.Result{RequeueAfter: session.BusyPoll}
			return
		case err != nil:
			c.Spec = s.read.Spec
			pass.Complete = false
			rerr = errors.Join(rerr, err)
		}
		s.failureDomains.report(c)
		rerr = errors.Join(rerr, s.markProvisioned(ctx, pass.Complete))
		phases.SetReady(c, table)
		rerr = errors.Join(rerr, s.patcher.Finish(ctx, phases.Owned(table)...))
	}()
	if pass, err = phases.Run(ctx, c, s, table, r.Recorder); pass.Complete {
		pass.RequeueAfter = s.requeueAfter
	}
	return s.preflight(pass.Result), err
}

// Established reports whether the cluster was complete once. Machines and load balancers of such a cluster work on
// while VCD cannot be asked.
func (s *scope) Established() bool {
	return s.vcdCluster.DeletionTimestamp.IsZero() && established(s.vcdCluster)
}

// established reports whether a cluster was complete once, here or, by what a move keeps, elsewhere.
func established(c *infrav1.VCDCluster) bool { return ownership.Established(c) }

// storeSpec stores what a pass wrote into the spec, such as the endpoint. If the pass is complete, c gets the id that
// marks its objects in VCD, the first of which is made later. The API server lets nothing replace the id, nor what
// decides where the cluster is, so nothing is stored if the spec has changed since the pass read it.
func (s *scope) storeSpec(ctx context.Context, complete bool) error {
	c := s.vcdCluster
	if complete && c.DeletionTimestamp.IsZero() {
		s.identify()
	}
	if equality.Semantic.DeepEqual(s.read.Spec, c.Spec) {
		return nil
	}
	change := client.MergeFromWithOptions(s.read, client.MergeFromWithOptimisticLock{})
	if err := s.reconciler.Client.Patch(ctx, c.DeepCopy(), change); err != nil {
		return fmt.Errorf("storing the spec of VCDCluster %s: %w", klog.KObj(c), err)
	}
	return nil
}

// markProvisioned stores that the cluster was complete once, before Ready is true: readers of Ready rely on it.
func (s *scope) markProvisioned(ctx context.Context, complete bool) error {
	c := s.vcdCluster
	if !complete || !c.DeletionTimestamp.IsZero() || ptr.Deref(c.Status.Initialization.Provisioned, false) {
		return nil
	}
	c.Status.Initialization.Provisioned = ptr.To(true)
	phases.ProvisionedAfter(c, s.now())
	return s.save(ctx)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *scope) save(ctx context.Context) error {
	return s.patcher.Save(ctx)
}

// newScope returns nil while c has no owner yet, which one that is deleted does not need, and if c is managed
// externally.
func (r *Reconciler) newScope(ctx context.Context, c *infrav1.VCDCluster) (*scope, error) {
	if session.ExternallyManaged(c) || !session.Watched(c, r.WatchFilterValue) {
		return nil, nil // Not ours.
	}
	if !c.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(c, infrav1.ClusterFinalizer) {
		return nil, nil // Released: its runtime defined entity is deleted last.
	}
	cluster, err := session.OwnerCluster(ctx, r.Client, c)
	if err != nil {
		return nil, err
	}
	if cluster == nil && c.DeletionTimestamp.IsZero() {
		return nil, nil // Not ours yet: the owner reference triggers the next reconcile.
	}
	return &scope{reconciler: r, vcdCluster: c, read: c.DeepCopy(), cluster: cluster}, nil
}

// hidden marks the outcome of a look-up: what VCD does not show may be there, and hidden from the user.
func hidden(out phases.Outcome, err error) (phases.Outcome, error) { return out.NoAccess(), err }

// open logs in, once per pass.
func (s *scope) open(ctx context.Context) (phases.Outcome, error) {
	if s.session != nil {
		return phases.Done, nil
	}
	opened, out, err := s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, s.vcdCluster)
	s.session = opened
	return out, err
}

// reconcileIdentityReady logs in.
func reconcileIdentityReady(ctx context.Context, s *scope) (phases.Outcome, error) {
	if out, err := s.duplicateProblem(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if out, err := s.open(ctx); err != nil || out != phases.Done {
		return out, err
	}
	if c := s.vcdCluster; c.Annotations[infrav1.CredentialsAcceptedAnnotation] != s.session.Version {
		notes.Set(c, infrav1.CredentialsAcceptedAnnotation, s.session.Version)
	}
	return phases.Done, nil
}

// homeAge is how long the home of a cluster that is ready is cached, give or take a tenth. Its machines show
// sooner if something is wrong.
const homeAge = time.Hour

// reconcileNetwork finds the VDC and the network.
func reconcileNetwork(ctx context.Context, s *scope) (phases.Outcome, error) {
	c := s.vcdCluster
	if err := s.findZones(ctx); err != nil {
		return phases.Done, err
	}
	if cached := *s.reconciler.homes.Of(c.UID); s.current(cached) {
		s.home = cached
		s.recordGateway(s.network.EdgeGateway)
		return phases.Done, nil
	}
	vdc, network, out, err := findHome(ctx, s)
	if err != nil || out != phases.Done {
		return out, err
	}
	s.home = home{
		vdc:        vdc,
		network:    network,
		by:         s.session.Machines,
		generation: c.Generation,
		until:      s.now().Add(phases.Jitter(homeAge*9/10, string(c.UID))),
	}
	s.recordGateway(network.EdgeGateway)
	if recorded := placement.RecordedVDC(c); recorded == "" || recorded == vdc.ID || c.Status.OVDC == nil {
		c.Status.OVDC = &infrav1.ResourceReference{Name: vdc.Name, ID: vdc.ID}
		c.Status.OVDCNetwork = &infrav1.ResourceReference{Name: network.Name, ID: network.ID}
	}
	*s.reconciler.homes.Of(c.UID) = s.home
	if established(c) {
		recordHome(c, s.home)
	}
	return phases.Done, nil
}

// recordHome records where a cluster is whose spec cannot be changed any more. What is recorded stays: a cluster in
// zones may have been found in another one, or in another network, meanwhile.
func recordHome(c *infrav1.VCDCluster, h home) {
	if recorded := placement.RecordedVDC(c); recorded != "" && recorded != h.vdc.ID {
		return
	}
	notes.Set(c, infrav1.OVDCIDAnnotation, h.vdc.ID)
	if c.Annotations[infrav1.OVDCNetworkIDAnnotation] == "" {
		notes.Set(c, infrav1.OVDCNetworkIDAnnotation, h.network.ID)
	}
}

// current reports whether a cached home counts: the cluster was complete once, and nothing that it depends on
// changed.
func (s *scope) current(h home) bool {
	c := s.vcdCluster
	return c.Annotations[infrav1.OVDCIDAnnotation] == h.vdc.ID && c.Status.OVDC != nil &&
		c.Annotations[infrav1.OVDCNetworkIDAnnotation] == h.network.ID && c.Status.OVDCNetwork != nil &&
		h.generation == c.Generation && h.by == s.session.Machines && s.now().Before(h.until)
}

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}

// reconcileVAppLayout reports drivers in the workload cluster that do not support the layout. An unreachable workload
// cluster is not a problem of the VCDCluster; its machines wait.
func reconcileVAppLayout(ctx context.Context, s *scope) (phases.Outcome, error) {
	if found, _ := s.reconciler.Drivers.In(ctx, s.cluster, s.now()); len(found) > 0 {
		message := vapp.LegacyDriversInZones
		if vapp.PerMachine(s.vcdCluster) {
			message = vapp.LegacyDrivers
		}
		return phases.Fail(vapp.DriversRetry, infrav1.LegacyDriverInstalledReason, message, phases.Few(found)), nil
	}
	return phases.Done, nil
}
