// SPDX-License-Identifier: Apache-2.0

// Package servingcert approves serving certificates of kubelets in workload clusters, for the names and addresses that
// the provider knows of their machines. A Node cannot get a certificate for the address of another.
package servingcert

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// poll is how often requests are listed, and how often the control plane is checked until it is initialized. A kubelet
	// waits fifteen minutes for its certificate.
	poll = time.Minute
	// retry is when a workload cluster that does not answer is asked again.
	retry = 30 * time.Second
)

// Reconciler approves requests in the workload clusters of VCDClusters that ask for it.
type Reconciler struct {
	Client           client.Client
	Recorder         events.EventRecorder
	WatchFilterValue string
	Workload         workload.Opener
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "servingcert")
	scheme := mgr.GetScheme()
	return ctrl.NewControllerManagedBy(mgr).Named("servingcert").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
			predicate.GenerationChangedPredicate{},
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(addon.ClusterToVCDCluster),
			builder.WithPredicates(predicates.ResourceIsChanged(scheme, log), predicate.GenerationChangedPredicate{})).
		WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// scope holds the inputs of one reconcile.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster
}

// Reconcile approves the open requests in the workload cluster of c.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:   r.Client,
		Recorder: r.Recorder,
		Open:     r.open,
		Phases: []phases.Phase[*scope]{{
			Condition: infrav1.ServingCertificatesApprovedCondition,
			Run:       approveAll,
			Applies:   isWanted,
			Optional:  true,
		}},
		Finish: finish,
	}.Reconcile(ctx, c)
}

// isWanted reports whether requests in the workload cluster are to be approved.
func isWanted(s *scope) bool {
	return s.vcdCluster.Spec.KubeletServingCertificates == infrav1.ServingCertificatesApprove
}

// open skips a cluster that is paused, or is going away.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !c.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, nil
	}
	cluster, err := session.ActiveCluster(ctx, r.Client, c, r.WatchFilterValue)
	if cluster == nil || err != nil || !cluster.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, err
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		cluster:    cluster,
	}}, nil
}

// finish has the requests listed again.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete && isWanted(s) {
		pass.Within(phases.Jitter(poll, string(s.vcdCluster.UID)))
	}
}
