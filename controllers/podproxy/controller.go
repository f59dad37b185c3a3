// SPDX-License-Identifier: Apache-2.0

// Package podproxy sets the environment of the cluster's HTTP proxy in new pods of workload clusters. It uses admission
// policies that the API server of the workload cluster evaluates.
package podproxy

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nodesecret"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/resourceset"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// suffix is appended to the name of the Cluster in the names of the Secret with the manifests and of its
// ClusterResourceSet.
const suffix = "-pod-proxy-policy"

// Reconciler installs the policies in the workload clusters of VCDClusters with a proxy, and inspects them
// periodically.
type Reconciler struct {
	Client           client.Client
	Secrets          client.Reader // reads Secrets, again only if they have changed
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Workload         workload.Opener
	SyncPeriod       time.Duration // interval between inspections of healthy workload clusters
	Now              func() time.Time

	known local.Store[workloadState]
}

// A workloadState caches the last observation of a workload cluster.
type workloadState struct {
	addon.Inspection

	version string // version of the API with the policies; empty: unknown
	readAt  time.Time
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "podproxy")
	scheme := mgr.GetScheme()
	return ctrl.NewControllerManagedBy(mgr).Named("podproxy").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(addon.ClusterToVCDCluster),
			builder.WithPredicates(watches.ClusterChanges())).
		Watches(&corev1.Secret{},
			handler.EnqueueRequestForOwner(scheme, mgr.GetRESTMapper(), &infrav1.VCDCluster{},
				handler.OnlyControllerOwner()),
			builder.OnlyMetadata, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log), nodesecret.OfProxy())).
		Owns(&addonsv1.ClusterResourceSet{}, builder.WithPredicates(watches.Deletions())).
		Watches(&infrav1.VCDCluster{}, r.known.DropDeleted()).
		WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// scope holds the inputs of one reconcile, and the facts that its steps find.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	set        *addon.Set

	httpProxy  string   // URL with credentials; set by settings
	httpsProxy string   // URL with credentials; set by settings
	direct     []string // destinations that are reached without the proxy; set by settings
	version    string   // version of the API with the policies; set by findVersion
}

// wanted reports whether pods of c get the environment of the proxy.
func wanted(c *infrav1.VCDCluster) bool {
	proxy := c.Spec.Proxy
	return (proxy.HTTPProxy != "" || proxy.HTTPSProxy != "") && proxy.Pods != infrav1.PodProxyNone
}

// Reconcile installs the policies of c in its workload cluster, or removes them.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Writes:   r.Writes,
		Open:     r.open,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.PodProxyReadyCondition, Run: install, Applies: isWanted},
			{Condition: infrav1.PodProxyReadyCondition, Run: retire, Applies: isUnwanted},
		},
		BeforeStore: finish,
	}.Reconcile(ctx, c)
}

func isWanted(s *scope) bool { return wanted(s.vcdCluster) }

func isUnwanted(s *scope) bool { return !wanted(s.vcdCluster) }

// open returns an empty entry, which ends the reconcile, if the cluster is being deleted or must not be reconciled now.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !c.DeletionTimestamp.IsZero() {
		r.known.Drop(c.UID)
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
			Label:       infrav1.PodProxyLabel,
			WatchFilter: r.WatchFilterValue,
		},
		Secrets:        r.Secrets,
		Workload:       r.Workload,
		VCDCluster:     c,
		Suffix:         suffix,
		ApplyingReason: infrav1.PodProxyApplyingReason,
		Now:            r.now,
		Created:        func() { installing(r.Recorder, c) },
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		set:        set,
	}}, nil
}

// finish schedules the next inspection of installed policies.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if !pass.Complete || !wanted(s.vcdCluster) {
		return
	}
	r := s.reconciler
	left := max(r.known.Of(s.vcdCluster.UID).At.Add(r.SyncPeriod).Sub(r.now()), time.Second)
	pass.After = phases.Jitter(left, string(s.vcdCluster.UID))
}

// ready waits for the control plane.
func (s *scope) ready(context.Context) (phases.Result, error) {
	if s.vcdCluster.Spec.InfraID == "" {
		return phases.Wait(0, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+infrav1.NodeProxyReadyCondition), nil
	}
	return s.set.Ready(), nil
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
