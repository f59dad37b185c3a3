// Package machine makes VMs in VCD look like VCDMachines.
package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/lease"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch

// Reconciler makes VMs in VCD look like VCDMachines.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which no cache holds
	Identities       session.Identities
	Sessions         session.Opener
	Recorder         events.EventRecorder
	WatchFilterValue string
	Drivers          *vapp.Drivers
	Gather           time.Duration    // how long to wait for machines to create together; 0: a second
	Now              func() time.Time // nil: time.Now

	wakeUps  session.WakeUps
	states   local.Store[state]
	batches  batch.Queue
	renewals lease.Renewals
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "vcdmachine")
	scheme := mgr.GetScheme()
	byCluster, err := util.ClusterToTypedObjectsMapper(r.Client, &infrav1.VCDMachineList{}, scheme)
	if err != nil {
		return fmt.Errorf("mapping Clusters to VCDMachines: %w", err)
	}
	changed := builder.WithPredicates(predicates.ResourceIsChanged(scheme, log), predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDMachine{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("VCDMachine"))), changed).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(byCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(scheme, log), predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&infrav1.VCDCluster{}, handler.EnqueueRequestsFromMapFunc(r.clusterToMachines), changed).
		Watches(&infrav1.VCDMachine{}, r.states.DropDeleted()).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options)
	return session.WatchCredentials(b, predicates.ResourceIsChanged(scheme, log), r.identityToMachines, r.secretToMachines).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile makes the VM of m look like m.
func (r *Reconciler) Reconcile(ctx context.Context, m *infrav1.VCDMachine) (_ ctrl.Result, rerr error) {
	in, ok, err := r.find(ctx, m)
	if !ok || err != nil {
		return ctrl.Result{}, err
	}
	s := r.newScope(in)
	defer s.creation.leave()
	if s.patcher, err = phases.Admit(ctx, r.Client, s.cluster, m, infrav1.MachineFinalizer); s.patcher == nil || err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, session.Caller(m))
	table, extra := phasesOf(m), extraPhases(m)
	defer func() {
		s.creation.release()
		rerr = errors.Join(rerr, s.markProvisioned(ctx, table))
		phases.SetReady(m, table)
		rerr = errors.Join(rerr, phases.IgnoreGone(m, s.patcher.Patch(ctx, m, phases.Owned(slices.Concat(table, extra)))))
	}()
	res, err := phases.Run(ctx, m, s, table, r.Recorder)
	if err == nil && phases.Complete(m, table) {
		var more ctrl.Result
		more, err = phases.Run(ctx, m, s, extra, r.Recorder)
		res = earliest(res, more)
	}
	s.state.unanswered = s.unanswered
	s.state.freshness.settled = err == nil && phases.Complete(m, slices.Concat(table, extra))
	if err == nil {
		res = earliest(res, ctrl.Result{RequeueAfter: s.requeueAfter})
	}
	return res, err
}

func phasesOf(m *infrav1.VCDMachine) []phases.Phase[*scope] {
	if !m.DeletionTimestamp.IsZero() {
		return []phases.Phase[*scope]{
			{Condition: infrav1.VMDeletedCondition, Run: deleteVM},
			{Condition: infrav1.VAppDeletedCondition, Run: deleteMachineVApp},
			{Condition: infrav1.ReleasedCondition, Run: releaseMachine},
		}
	}
	table := []phases.Phase[*scope]{
		{Condition: infrav1.BootstrapReadyCondition, Run: reconcileBootstrapReady},
		{Condition: infrav1.PlacementReadyCondition, Run: reconcilePlacement},
		{Condition: infrav1.VAppReadyCondition, Run: reconcileVApp},
		{Condition: infrav1.VMCreatedCondition, Run: reconcileVM},
		{Condition: infrav1.BootstrapInjectedCondition, Run: reconcileBootstrapInjected},
		{Condition: infrav1.PoweredOnCondition, Run: reconcilePower},
		{Condition: infrav1.AddressesReadyCondition, Run: reconcileAddresses},
	}
	if driftInReady(m) {
		table = append(table, asSpecified)
	}
	return table
}
