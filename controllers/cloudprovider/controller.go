// Package cloudprovider installs the cloud controller manager in workload clusters.
package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=list;watch;patch
// +kubebuilder:rbac:groups=addons.cluster.x-k8s.io,resources=clusterresourcesets,verbs=list;watch;create;delete

// How long to wait before a workload cluster is looked at again.
const (
	// applyPoll is while Cluster API applies what is new.
	applyPoll = 5 * time.Second
	// startPoll is while the pods start.
	startPoll = 15 * time.Second
	// applyTime is how long Cluster API is given to apply something before it is told to do so again.
	applyTime = time.Minute
)

// A WorkloadClient returns a client of the workload cluster of a Cluster, which nothing is cached for.
type WorkloadClient func(ctx context.Context, cluster client.ObjectKey) (client.Client, error)

// Reconciler puts the bundled cloud controller manager into the workload clusters of VCDClusters that wish for it, by
// ClusterResourceSets of Cluster API, and looks now and then whether it is there.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which no cache holds
	Identities       session.Identities
	Sessions         session.Opener
	Recorder         events.EventRecorder
	WatchFilterValue string
	Workload         WorkloadClient
	Connected        source.Source // starts a reconcile when a workload cluster can be reached; may be nil
	Image            string        // the whole reference of the cloud controller manager's image
	LookEvery        time.Duration // at workload clusters where all is as it should be
	Now              func() time.Time

	visits visits
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "cloudprovider")
	scheme := mgr.GetScheme()
	changed := predicates.ResourceIsChanged(scheme, log)
	b := ctrl.NewControllerManagedBy(mgr).Named("cloudprovider").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue), predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(ClusterToVCDCluster), builder.WithPredicates(changed)).
		Owns(&addonsv1.ClusterResourceSet{}, builder.WithPredicates(session.Deletions())).
		Watches(&infrav1.VCDIdentity{}, handler.EnqueueRequestsFromMapFunc(session.IdentityToClusters(r.Client)), builder.WithPredicates(changed)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(session.SecretToClusters(r.Client)), builder.OnlyMetadata, builder.WithPredicates(changed)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestForOwner(scheme, mgr.GetRESTMapper(), &infrav1.VCDCluster{}, handler.OnlyControllerOwner()),
			builder.OnlyMetadata, builder.WithPredicates(session.Deletions()))
	if r.Connected != nil {
		b = b.WatchesRawSource(r.Connected)
	}
	return b.WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// ClusterToVCDCluster finds the VCDCluster of a Cluster.
func ClusterToVCDCluster(_ context.Context, obj client.Object) []ctrl.Request {
	cluster, ok := obj.(*clusterv1.Cluster)
	if !ok || cluster.Spec.InfrastructureRef.Kind != "VCDCluster" || cluster.Spec.InfrastructureRef.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name}}}
}

// scope holds what one reconcile reads and finds out.
type scope struct {
	*Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster

	patcher *patch.Helper

	shared   session.Shared    // set by credentials
	gateways map[string]string // URNs of the further edge gateways, by name. Set by findGateways
	set      *corev1.Secret    // with the manifests; nil: not written yet. Set by readSet
}

// Reconcile brings the cloud controller manager of c into its workload cluster.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (_ ctrl.Result, rerr error) {
	s, err := r.newScope(ctx, c)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, session.Caller(c))
	if s.patcher, err = patch.NewHelper(c, r.Client); err != nil {
		return ctrl.Result{}, fmt.Errorf("preparing to patch VCDCluster %s: %w", klog.KObj(c), err)
	}
	defer func() {
		owned := patch.WithOwnedConditions{Conditions: []string{infrav1.CloudProviderReadyCondition}}
		rerr = errors.Join(rerr, phases.IgnoreGone(c, s.patcher.Patch(ctx, c, owned)))
	}()
	run, complete := s.bring, s.LookEvery
	if c.Spec.CloudProvider.Mode != infrav1.CloudProviderManaged {
		run, complete = s.retire, 0
	}
	out, err := run(ctx)
	switch {
	case err != nil:
		return phases.Failed(c, infrav1.CloudProviderReadyCondition, err)
	case out != phases.Done:
		return phases.Settle(c, infrav1.CloudProviderReadyCondition, out, r.Recorder), nil
	case complete == 0:
		conditions.Delete(c, infrav1.CloudProviderReadyCondition)
		return ctrl.Result{}, nil
	}
	phases.Set(c, infrav1.CloudProviderReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
	return ctrl.Result{RequeueAfter: phases.Jitter(r.visits.left(c.UID, complete, r.now()), string(c.UID))}, nil
}

// newScope returns nil if there is nothing to do for c, now or ever.
func (r *Reconciler) newScope(ctx context.Context, c *infrav1.VCDCluster) (*scope, error) {
	if !c.DeletionTimestamp.IsZero() {
		r.visits.forget(c.UID)
		return nil, nil // What was made here is garbage collected with its owner.
	}
	if session.ExternallyManaged(c) || !session.Watched(c, r.WatchFilterValue) {
		return nil, nil // Not ours.
	}
	cluster, err := util.GetOwnerCluster(ctx, r.Client, c.ObjectMeta)
	if err := client.IgnoreNotFound(err); err != nil {
		return nil, fmt.Errorf("getting the Cluster of VCDCluster %s: %w", klog.KObj(c), err)
	}
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() || annotations.IsPaused(cluster, c) {
		return nil, nil // Not ours yet, or not now: a watch triggers the next reconcile.
	}
	return &scope{Reconciler: r, vcdCluster: c, cluster: cluster}, nil
}

// bring takes the next step to a workload cluster with our cloud controller manager in it.
func (s *scope) bring(ctx context.Context) (phases.Outcome, error) {
	for _, step := range []func(context.Context) (phases.Outcome, error){
		s.prerequisites, s.readSet, s.credentials, s.findGateways, s.choose, s.ready, s.first, s.write, s.look,
	} {
		if out, err := step(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	return phases.Done, nil
}

// prerequisites waits for what the configuration is made of.
func (s *scope) prerequisites(context.Context) (phases.Outcome, error) {
	c := s.vcdCluster
	if c.Spec.InfraID == "" || c.Status.OVDC == nil || c.Status.OVDCNetwork == nil {
		return phases.Wait(0, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+infrav1.NetworkReadyCondition), nil
	}
	if _, err := s.config(); err != nil {
		return phases.Stop(infrav1.LoadBalancerInvalidReason, "%v", err), nil
	}
	return phases.Done, nil
}

// credentials finds what the cloud controller manager logs in with.
func (s *scope) credentials(ctx context.Context) (phases.Outcome, error) {
	var out phases.Outcome
	var err error
	if s.shared, out, err = s.Identities.Share(ctx, s.vcdCluster); err != nil || out != phases.Done {
		return out, err
	}
	return s.proveCredentials(ctx)
}

// ready waits for the control plane.
func (s *scope) ready(context.Context) (phases.Outcome, error) {
	if !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return phases.Wait(0, infrav1.WaitingForControlPlaneReason, "Waiting for the control plane to be initialized"), nil
	}
	return phases.Done, nil
}

// first looks, before anything is put into a workload cluster, whether somebody else's cloud controller manager is there.
func (s *scope) first(ctx context.Context) (phases.Outcome, error) {
	if s.set != nil {
		return phases.Done, nil
	}
	workload, out := s.workload(ctx)
	if out != phases.Done {
		return out, nil
	}
	return s.foreign(ctx, workload)
}

// workload opens a client of the workload cluster.
func (s *scope) workload(ctx context.Context) (client.Client, phases.Outcome) {
	workload, err := s.Workload(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		ctrl.LoggerFrom(ctx).V(4).Info("Cannot reach the workload cluster", "reason", err.Error())
		return nil, phases.Unsure(session.UnreachablePoll, infrav1.WorkloadClusterUnreachableReason, "The API server of the workload cluster cannot be asked: see the Cluster")
	}
	return workload, phases.Done
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// visits remembers when workload clusters were last looked at, and what was seen. The zero value is usable.
type visits struct {
	mu    sync.Mutex
	byUID map[types.UID]visit
}

// A visit is a look at a workload cluster.
type visit struct {
	at   time.Time
	hash string // of what should be there
	out  phases.Outcome
}

// last returns what was seen, if it was not longer ago than it counts, and the same was wished for.
func (v *visits) last(c types.UID, hash string, lookEvery time.Duration, now time.Time) (phases.Outcome, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen, ok := v.byUID[c]
	counts := lookEvery
	if seen.out != phases.Done {
		counts = min(counts, seen.out.After)
	}
	left := seen.at.Add(counts).Sub(now)
	if !ok || seen.hash != hash || left <= 0 {
		return phases.Done, false
	}
	if seen.out != phases.Done {
		seen.out.After = left
	}
	return seen.out, true
}

// left is how long what was seen still counts.
func (v *visits) left(c types.UID, lookEvery time.Duration, now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(v.byUID[c].at.Add(lookEvery).Sub(now), time.Second)
}

func (v *visits) keep(c types.UID, seen visit) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byUID == nil {
		v.byUID = map[types.UID]visit{}
	}
	v.byUID[c] = seen
}

func (v *visits) forget(c types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byUID, c)
}
