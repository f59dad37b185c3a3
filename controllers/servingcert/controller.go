// SPDX-License-Identifier: Apache-2.0

// Package servingcert approves serving certificates of kubelets in workload clusters for the names and addresses that
// VCD shows for their machines. A Node cannot get a certificate for the address of another Node.
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// poll is the interval between lists of requests, and between checks whether the control plane is initialized. A
	// kubelet waits fifteen minutes for its certificate.
	poll = time.Minute
	// retry is the delay before the next request to a workload cluster that does not respond.
	retry = 30 * time.Second
)

// Reconciler approves requests in the workload clusters of VCDClusters whose spec enables it.
type Reconciler struct {
	Client           client.Client
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
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
			changed(),
		)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(addon.ClusterToVCDCluster),
			builder.WithPredicates(changed())).
		WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// changed passes changes of the spec, and of the labels and annotations that pause an object or assign it to a manager. A
// pass over a cluster that is reconciled schedules the next one.
func changed() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{},
		predicate.LabelChangedPredicate{},
	)
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
		Writes:   r.Writes,
		Open:     r.open,
		Phases: []phases.Phase[*scope]{{
			Condition: infrav1.ServingCertificatesApprovedCondition,
			Run:       approveAll,
			Applies:   isWanted,
			Optional:  true,
		}},
		BeforeStore: finish,
	}.Reconcile(ctx, c)
}

// isWanted reports whether requests in the workload cluster must be approved.
func isWanted(s *scope) bool {
	return s.vcdCluster.Spec.KubeletServingCertificates == infrav1.ServingCertificatesApprove
}

// open returns an empty entry, which ends the reconcile, if the cluster is being deleted or must not be reconciled now.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, _ *phases.Patcher) (phases.Entry[scope], error) {
	if !c.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, nil
	}
	cluster, err := capicluster.Active(ctx, r.Client, c, r.WatchFilterValue)
	if cluster == nil || err != nil || !cluster.DeletionTimestamp.IsZero() {
		return phases.Entry[scope]{}, err
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		cluster:    cluster,
	}}, nil
}

// finish schedules the next list of requests.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete && isWanted(s) {
		pass.Within(phases.Jitter(poll, string(s.vcdCluster.UID)))
	}
}
