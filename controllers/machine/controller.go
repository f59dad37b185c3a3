// SPDX-License-Identifier: Apache-2.0

// Package machine makes VMs in VCD match VCDMachines.
//
// A reconcile runs the phases in the tables of phases.go. Each phase builds its step from the fields of the scope that
// the step needs, and stores results for later phases. Files without a phase hold the steps that several phases use. The
// package decides nothing about load balancers of Services, and does not know how requests are sent.
package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/identities"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/lease"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones;vcdfailuredomains,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch

// Reconciler makes VMs in VCD match VCDMachines.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which are not cached
	Identities       identities.Resolver
	Sessions         session.Opener
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Drivers          *vapp.Drivers
	Workload         workload.Opener   // nil: nodes are not excluded from load balancers
	Apart            *affinity.Settled // which VMs are in the rules that must keep them apart, or together
	Endpoints        *edgeendpoint.Endpoints
	InPlaceUpdates   bool             // whether Cluster API may change CPUs and memory of VMs
	Gather           time.Duration    // how long to wait for machines to create together; 0: one second
	Now              func() time.Time // nil: time.Now

	wakeUps  watches.WakeUps
	states   local.Store[state]
	batches  batch.Queues
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
	changed := builder.WithPredicates(predicates.ResourceIsChanged(scheme, log),
		predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDMachine{},
			builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue), exceptResyncOfReady())).
		Watches(&clusterv1.Machine{},
			handler.EnqueueRequestsFromMapFunc(
				util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("VCDMachine"))), changed).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(byCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(scheme, log),
				predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&infrav1.VCDCluster{}, handler.EnqueueRequestsFromMapFunc(clusterToMachines(r.Client)),
			builder.WithPredicates(clusterConcernsMachines(),
				predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zones.ToMachines(r.Client)), changed).
		Watches(&infrav1.VCDFailureDomain{}, handler.EnqueueRequestsFromMapFunc(zones.ToMachines(r.Client)), changed).
		Owns(&ipamv1.IPAddressClaim{}, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log)),
			builder.MatchEveryOwner).
		Watches(&infrav1.VCDMachine{}, r.states.DropDeleted()).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options)
	return watches.WatchCredentials(b, predicates.ResourceIsChanged(scheme, log),
		identityToDeletedMachines(r.Client),
		secretToDeletedMachines(r.Client)).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile makes the VM of m match m.
func (r *Reconciler) Reconcile(ctx context.Context, m *infrav1.VCDMachine) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDMachine, scope]{
		Client:      r.Client,
		Recorder:    r.Recorder,
		Writes:      r.Writes,
		Open:        r.open,
		Finalizer:   infrav1.MachineFinalizer,
		Context:     session.As,
		Phases:      provisioning(),
		Deletion:    deletionPhases(),
		AfterPhases: ended,
		Maintenance: maintenance(),
		Ready:       true,
		BeforeStore: finish,
		Close:       (*scope).closeBatch,
	}.Reconcile(ctx, m)
}

// open returns an empty entry, which ends the reconcile, if another manager is responsible for the machine, or if the
// machine has no owner yet.
func (r *Reconciler) open(ctx context.Context, m *infrav1.VCDMachine, patcher *phases.Patcher) (phases.Entry[scope], error) {
	if !capicluster.Watched(m, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil
	}
	in, ok, err := findInputs(ctx, r.Client, m)
	if !ok || err != nil {
		return phases.Entry[scope]{}, err
	}
	s := r.newScope(in)
	s.records.patcher = patcher
	return phases.Entry[scope]{Scope: s, Cluster: in.cluster}, nil
}

// ended stores the outcome of the phases for the maintenance phases and the next pass.
func ended(s *scope, pass phases.Pass) {
	if pass.Blocked.IsProblem() {
		s.vm.expireCache() // A user may fix the VM in VCD.
	}
	s.complete = pass.Complete
	s.state.unanswered = s.unanswered
	s.state.freshness.settled = false
}

// finish ends a pass. The first complete pass stores Provisioned together with Ready.
func finish(_ context.Context, s *scope, pass *phases.Pass) {
	s.state.freshness.settled = s.complete && pass.Err == nil && !slices.Contains(pass.IncompleteMaintenance, infrav1.VMInSyncCondition)
	s.creation.release()
	s.vm.endPass()
	pass.Within(s.schedule.after)
	m := s.inputs.vcdMachine
	if !pass.Complete || !m.DeletionTimestamp.IsZero() || s.inputs.provisioned() {
		return
	}
	m.Status.Initialization.Provisioned = ptr.To(true)
	phases.ProvisionedAfter(m, s.now())
}
