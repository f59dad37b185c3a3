// SPDX-License-Identifier: Apache-2.0

// Package cloudprovider installs the cloud controller manager in workload clusters.
package cloudprovider

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch;patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,verbs=list;watch;create;delete

const (
	// cloudProviderSuffix is appended to the name of the Cluster in the names of the Secret with the manifests and of
	// its ClusterResourceSet.
	cloudProviderSuffix = "-cloud-provider"
	// seedSuffix is appended in the names of the Secret and ClusterResourceSet that are applied once.
	seedSuffix = cloudProviderSuffix + "-seed"
)

// Reconciler installs the bundled cloud controller manager in the workload clusters of VCDClusters with mode Managed.
// It uses ClusterResourceSets of Cluster API, and inspects the workload clusters periodically.
type Reconciler struct {
	Client           client.Client
	Secrets          client.Reader // reads Secrets, again only if they have changed
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Workload         workload.Opener
	Image            string        // full reference of the cloud controller manager's image
	SyncPeriod       time.Duration // interval between inspections of healthy workload clusters
	Now              func() time.Time

	inspections local.Store[addon.Inspection]
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "cloudprovider")
	scheme := mgr.GetScheme()
	changed := predicates.ResourceIsChanged(scheme, log)
	return ctrl.NewControllerManagedBy(mgr).Named("cloudprovider").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(addon.ClusterToVCDCluster),
			builder.WithPredicates(watches.ClusterChanges())).
		Owns(&addonsv1.ClusterResourceSet{}, builder.WithPredicates(watches.Deletions())).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zones.ToClusters(r.Client)),
			builder.WithPredicates(changed)).
		Watches(&infrav1.VCDIdentity{}, handler.EnqueueRequestsFromMapFunc(watches.IdentityToClusters(r.Client)),
			builder.WithPredicates(changed)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(watches.SecretToClusters(r.Client)),
			builder.OnlyMetadata, builder.WithPredicates(changed)).
		Watches(&corev1.Secret{},
			handler.EnqueueRequestForOwner(scheme, mgr.GetRESTMapper(), &infrav1.VCDCluster{},
				handler.OnlyControllerOwner()),
			builder.OnlyMetadata, builder.WithPredicates(predicate.Or(watches.Deletions(), predicate.And(changed, nodesecret.OfProxy())))).
		Watches(&infrav1.VCDCluster{}, r.inspections.DropDeleted()).
		WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// scope holds the inputs of one reconcile, and the facts that its steps find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster
	set        *addon.Set
	patcher    *phases.Patcher

	where    nodeLocations     // set by findZones
	shared   identities.Shared // set by credentials
	gateways map[string]string // URNs of the additional edge gateways, by name; set by findGateways

	nodeNetworks []netip.Prefix // only if VCD is reached through a proxy; set by findNodeProxy
	httpsProxy   string         // URL with credentials; only if VCD is reached through a proxy; set by findNodeProxy
}

// install takes the next step towards the provider's cloud controller manager in the workload cluster.
func install(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx,
		findZones(s), s.prerequisites, s.set.Read, s.credentials, s.findGateways, s.checkServiceAddresses, s.allowBalancers,
		s.selectCluster, s.ready, s.findNodeProxy, s.takeOver, s.write, s.inspect)
}

func managed(c *infrav1.VCDCluster) bool {
	return c.Spec.CloudProvider.Mode == infrav1.CloudProviderManaged
}

// Reconcile installs the cloud controller manager of c in its workload cluster, or removes it.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Writes:   r.Writes,
		Open:     r.open,
		Context:  session.As,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.CloudProviderReadyCondition, Run: install, Applies: isManaged},
			{Condition: infrav1.CloudProviderReadyCondition, Run: retire, Applies: isUnmanaged},
		},
		BeforeStore: finish,
	}.Reconcile(ctx, c)
}

func isManaged(s *scope) bool { return managed(s.vcdCluster) }

func isUnmanaged(s *scope) bool { return !managed(s.vcdCluster) }

// open returns an empty entry, which ends the reconcile, if the cluster is being deleted or must not be reconciled now.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if !c.DeletionTimestamp.IsZero() {
		r.inspections.Drop(c.UID)
		return phases.Entry[scope]{}, nil // Objects created here are garbage collected with their owner.
	}
	cluster, err := capicluster.Active(ctx, r.Client, c, r.WatchFilterValue)
	if cluster == nil || err != nil || !cluster.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, err
	}
	set := &addon.Set{
		Set: resourceset.Set{
			Client:      r.Client,
			Owner:       c,
			Cluster:     cluster,
			Label:       infrav1.CloudProviderLabel,
			WatchFilter: r.WatchFilterValue,
		},
		Secrets:        r.Secrets,
		Workload:       r.Workload,
		VCDCluster:     c,
		Suffix:         cloudProviderSuffix,
		ApplyingReason: infrav1.CloudProviderApplyingReason,
		Now:            r.now,
		Created:        func() { installing(r.Recorder, c, imageOf(c.Spec.CloudProvider.Image, r.Image)) },
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		cluster:    cluster,
		set:        set,
		patcher:    patcher,
	}}, nil
}

// finish schedules the next inspection of an installed cloud controller manager.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if !pass.Complete || !managed(s.vcdCluster) {
		return
	}
	r := s.reconciler
	left := max(r.inspections.Of(s.vcdCluster.UID).At.Add(r.SyncPeriod).Sub(r.now()), time.Second)
	pass.After = phases.Jitter(left, string(s.vcdCluster.UID))
}

// prerequisites waits for the inputs of the configuration.
func (s *scope) prerequisites(context.Context) (phases.Result, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || c.Status.OVDC == nil || c.Status.OVDCNetwork == nil {
		return phases.Wait(0, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+infrav1.NetworkReadyCondition), nil
	}
	if _, err := s.config(); err != nil {
		return phases.Stop(infrav1.LoadBalancerInvalidReason, "%v", err), nil
	}
	return phases.Done, nil
}

// credentials finds and verifies the credentials for the cloud controller manager.
func (s *scope) credentials(ctx context.Context) (phases.Result, error) {
	var out phases.Result
	var err error
	if s.shared, out, err = s.reconciler.Identities.Share(ctx, s.vcdCluster); err != nil || out != phases.Done {
		return out, err
	}
	return s.verifyCredentials(ctx)
}

// selectCluster labels the Cluster for its ClusterResourceSets, which do not exist yet the first time.
func (s *scope) selectCluster(ctx context.Context) (phases.Result, error) {
	return phases.Done, s.set.Select(ctx, true)
}

// ready waits for the control plane.
func (s *scope) ready(context.Context) (phases.Result, error) {
	return s.set.Ready(), nil
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
