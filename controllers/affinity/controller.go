// SPDX-License-Identifier: Apache-2.0

// Package affinity reconciles the affinity and anti-affinity rules of clusters in VCD, as the specs of VCDMachines
// request them. Anti-affinity rules keep VMs on different hosts: one rule for the control plane, and one for each
// MachineDeployment. Affinity rules keep the VMs of groups, which VCDMachines name, on one host.
package affinity

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

const (
	// listEvery is the interval at which the rules of an unchanged cluster are compared with those in VCD. All clusters
	// of a VDC share one list.
	listEvery = 5 * time.Minute
	// defaultGather is how long a change of the members waits for further changes, so that one write covers all.
	defaultGather = 3 * time.Second
)

// Reconciler reconciles the affinity and anti-affinity rules of VCDClusters.
type Reconciler struct {
	Client           client.Client
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Settled          *affinity.Settled
	Gather           time.Duration    // how long a change waits for further changes; 0: three seconds
	Now              func() time.Time // nil: time.Now

	wakeUps watches.WakeUps
	states  local.Store[state]
}

// state caches the progress of the rules of a cluster between passes. It is lost on restart.
type state struct {
	changedSince time.Time // when a difference was first observed; zero: no difference
	// running contains the tasks that this process started, by their key in the session.
	running map[string]running
	failed  map[string]failure // the last failures, by the same keys
}

// running is a task that changes a rule.
type running struct {
	step    affinity.Step
	session *session.Session
}

// SetupWithManager registers the reconciler with the manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	log := ctrl.LoggerFrom(ctx).WithValues("controller", "affinity")
	scheme := mgr.GetScheme()
	return ctrl.NewControllerManagedBy(mgr).Named("affinity").
		For(&infrav1.VCDCluster{}, builder.WithPredicates(
			predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue),
			predicates.ResourceIsNotExternallyManaged(scheme, log),
		)).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(r.machineToCluster),
			builder.WithPredicates(membership())).
		Watches(&infrav1.VCDCluster{}, r.states.DropDeleted()).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options).Complete(reconcile.AsReconciler(r.Client, r))
}

// membership passes updates of machines that change the members of groups: the machine gets a VM, changes its group, or
// is deleted.
func membership() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*infrav1.VCDMachine)
			after, isMachine := e.ObjectNew.(*infrav1.VCDMachine)
			return ok && isMachine && (before.Spec.ProviderID != after.Spec.ProviderID ||
				affinity.GroupOf(before) != affinity.GroupOf(after) ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
		},
	}
}

// machineToCluster returns a request for the VCDCluster of a machine.
func (r *Reconciler) machineToCluster(ctx context.Context, m client.Object) []ctrl.Request {
	name := m.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return watches.RequestsFor(watches.ClustersOfCluster(ctx, r.Client, m.GetNamespace(), name))
}

// scope holds the inputs of one pass, and the results of its steps.
type scope struct {
	reconciler *Reconciler

	vcdCluster *infrav1.VCDCluster
	cluster    *clusterv1.Cluster
	patcher    *phases.Patcher
	state      *state

	machines  []infrav1.VCDMachine // machines of the cluster
	requested bool                 // any of them requests a rule

	members []member      // set by findMembers
	plans   []vdcPlan     // set by plan
	problem phases.Result // problem of a VDC, which does not affect the others; set by plan
	held    phases.Result // failure of a step that backs off; set by hold and apply
}

// Reconcile reconciles the rules of c in VCD with the specs of its VCDMachines.
func (r *Reconciler) Reconcile(ctx context.Context, c *infrav1.VCDCluster) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDCluster, scope]{
		Client:      r.Client,
		Recorder:    r.Recorder,
		Writes:      r.Writes,
		Open:        r.open,
		Context:     session.As,
		Phases:      []phases.Phase[*scope]{{Condition: infrav1.AffinityRulesReadyCondition, Run: reconcileRules}},
		BeforeStore: finish,
	}.Reconcile(ctx, c)
}

// open returns an empty entry, which ends the pass, if the cluster is being deleted, is not active, or neither needs
// nor has rules. A change of that triggers the next reconcile. It also skips a cluster that was never provisioned in
// this management cluster, because its ID may be that of another cluster, which owns the rules.
func (r *Reconciler) open(ctx context.Context, c *infrav1.VCDCluster, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if !c.DeletionTimestamp.IsZero() {
		r.Settled.Drop(c.UID)
		return phases.Entry[scope]{}, nil // The deletion of the cluster also deletes its rules.
	}
	if !established(c) {
		return phases.Entry[scope]{}, nil
	}
	cluster, err := capicluster.Active(ctx, r.Client, c, r.WatchFilterValue)
	if cluster == nil || err != nil {
		return phases.Entry[scope]{}, err
	}
	machines, err := r.machines(ctx, c, cluster)
	if err != nil {
		return phases.Entry[scope]{}, err
	}
	requested := affinity.Requested(machines)
	if !requested && len(c.Spec.RecordedState.AffinityRuleOVDCIDs) == 0 {
		return phases.Entry[scope]{}, nil
	}
	state := r.states.Of(c.UID)
	if state.running == nil {
		state.running = map[string]running{}
		state.failed = map[string]failure{}
	}
	return phases.Entry[scope]{Scope: &scope{
		reconciler: r,
		vcdCluster: c,
		cluster:    cluster,
		patcher:    patcher,
		state:      state,
		machines:   machines,
		requested:  requested,
	}}, nil
}

// finish schedules the next comparison of requested rules with those in VCD.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	if pass.Complete && s.requested {
		pass.After = phases.Jitter(listEvery, string(s.vcdCluster.UID))
	}
}

// established reports whether c was provisioned in this management cluster.
func established(c *infrav1.VCDCluster) bool {
	return c.Spec.InfraID != "" && ptr.Deref(c.Status.Initialization.Provisioned, false)
}

// machines lists the machines of a cluster.
func (r *Reconciler) machines(ctx context.Context, c *infrav1.VCDCluster, cluster *clusterv1.Cluster) (
	[]infrav1.VCDMachine, error,
) {
	list := &infrav1.VCDMachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace),
		index.OfCluster(capicluster.Name(c, cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	return list.Items, nil
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
