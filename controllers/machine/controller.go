// SPDX-License-Identifier: Apache-2.0

// Package machine makes VMs in VCD match VCDMachines.
package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/affinity"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/drift"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/lease"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/local"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/nics"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/ownership"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/vapp"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/zones"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcddeploymentzones;vcdfailuredomains,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch

// Reconciler makes VMs in VCD match VCDMachines.
type Reconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which no cache holds
	Identities       session.Identities
	Sessions         session.Opener
	Recorder         events.EventRecorder
	WatchFilterValue string
	Drivers          *vapp.Drivers
	Apart            *affinity.Settled // which VMs are in the rules that must keep them apart
	Endpoints        *edgeendpoint.Endpoints
	Gather           time.Duration    // how long to wait for machines to create together; 0: a second
	Now              func() time.Time // nil: time.Now

	wakeUps  session.WakeUps
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
	if err := mgr.GetFieldIndexer().IndexField(ctx, &infrav1.VCDMachine{}, ownership.InstanceIDField,
		ownership.InstanceIDs); err != nil {
		return fmt.Errorf("indexing VCDMachines by instance ID: %w", err)
	}
	changed := builder.WithPredicates(predicates.ResourceIsChanged(scheme, log),
		predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))
	b := ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDMachine{},
			builder.WithPredicates(predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&clusterv1.Machine{},
			handler.EnqueueRequestsFromMapFunc(
				util.MachineToInfrastructureMapFunc(infrav1.GroupVersion.WithKind("VCDMachine"))), changed).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(byCluster),
			builder.WithPredicates(predicates.ClusterPausedTransitionsOrInfrastructureProvisioned(scheme, log),
				predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&infrav1.VCDCluster{}, handler.EnqueueRequestsFromMapFunc(session.ClusterToMachines(r.Client)),
			builder.WithPredicates(session.ClusterConcernsMachines(),
				predicates.ResourceHasFilterLabel(scheme, log, r.WatchFilterValue))).
		Watches(&infrav1.VCDDeploymentZone{}, handler.EnqueueRequestsFromMapFunc(zones.ToMachines(r.Client)), changed).
		Watches(&infrav1.VCDFailureDomain{}, handler.EnqueueRequestsFromMapFunc(zones.ToMachines(r.Client)), changed).
		Owns(&ipamv1.IPAddressClaim{}, builder.WithPredicates(predicates.ResourceIsChanged(scheme, log)),
			builder.MatchEveryOwner).
		Watches(&infrav1.VCDMachine{}, r.states.DropDeleted()).
		WatchesRawSource(r.wakeUps.Source()).
		WithOptions(options)
	return session.WatchCredentials(b, predicates.ResourceIsChanged(scheme, log),
		session.IdentityToDeletedMachines(r.Client),
		session.SecretToDeletedMachines(r.Client)).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile makes the VM of m match m.
func (r *Reconciler) Reconcile(ctx context.Context, m *infrav1.VCDMachine) (_ ctrl.Result, rerr error) {
	in, ok, err := r.find(ctx, m)
	if !ok || err != nil {
		return ctrl.Result{}, err
	}
	s := r.newScope(in)
	defer s.creation.leave()
	if s.patcher, err = phases.Admit(ctx, r.Client, s.inputs.cluster, m, infrav1.MachineFinalizer); s.patcher == nil ||
		err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, session.Caller(m))
	table := in.withEndpoint(phasesOf(m))
	extra := extraPhases(m)
	var pass phases.Pass
	defer func() {
		s.creation.release()
		rerr = errors.Join(rerr, s.markProvisioned(ctx, pass.Complete))
		phases.SetReady(m, table)
		rerr = errors.Join(rerr,
			phases.IgnoreGone(m, s.patcher.Patch(ctx, m, phases.Owned(slices.Concat(table, extra)))))
	}()
	pass, err = phases.Run(ctx, m, s, table, r.Recorder)
	if pass.Problem {
		s.vm.expire() // The remedy may be applied to the VM, in VCD.
	}
	s.complete = pass.Complete
	s.state.unanswered = s.unanswered
	s.state.freshness.settled = false
	if err != nil {
		return pass.Result, err
	}
	more, err := s.runExtra(ctx, extra)
	if err != nil {
		return ctrl.Result{}, err
	}
	return earliest(earliest(pass.Result, more), ctrl.Result{RequeueAfter: s.requeueAfter}), nil
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
	}
	if nics.HasStatic(m) {
		table = append(table,
			phases.Phase[*scope]{Condition: infrav1.AddressesClaimedCondition, Run: reconcileAddressesClaimed})
	}
	table = append(table, []phases.Phase[*scope]{
		{Condition: infrav1.VAppReadyCondition, Run: reconcileVApp},
		{Condition: infrav1.VMCreatedCondition, Run: reconcileVM},
		{Condition: infrav1.BootstrapInjectedCondition, Run: reconcileBootstrapInjected},
		{Condition: infrav1.PoweredOnCondition, Run: reconcilePower},
		{Condition: infrav1.AddressesReadyCondition, Run: reconcileAddresses},
	}...)
	if driftInReady(m) {
		table = append(table, asSpecified)
	}
	return table
}

// Inputs are the objects of a reconcile. Each but the VCDMachine is nil if it does not exist any more.
type inputs struct {
	vcdMachine *infrav1.VCDMachine
	machine    *clusterv1.Machine
	cluster    *clusterv1.Cluster
	vcdCluster *infrav1.VCDCluster
	bootstrap  *bootstrapData // until the VM has it
}

// Missing is since when VCD does not show the VM. Zero times: it does, or another process knows.
type missing struct {
	since     time.Time
	announced time.Time // when machines of other clusters were woken to observe their VMs
	// held is when it was last held back although it could be declared gone, in Unix nanoseconds. The passes of the
	// cluster's other machines read it.
	held atomic.Int64
}

// A state is what the process knows of a machine between passes.
type state struct {
	vm           vmState
	freshness    freshness
	backoff      backoff
	missing      missing
	gatherSince  time.Time // when the machine first required its VM to be created
	cancellation cancellation
	unanswered   bool // VCD gave no answer in the last pass
	// bootstrapChecked is the name of the Secret whose bootstrap data can be used. It is read again when it is written.
	bootstrapChecked string
	versionsCompared bool // of Kubernetes, in the image and in the Machine
}

// A scope is one reconcile of a VCDMachine: inputs, facts, and the steps that act on them.
type scope struct {
	reconciler *Reconciler
	inputs     inputs
	facts

	state   *state
	patcher *patch.Helper

	placer     placer
	observer   observer
	creation   *creation
	injection  injection
	disks      disks
	power      power
	shutdown   shutdown
	addresses  addresses
	comparison comparison
	deletion   deletion
	release    release

	complete     bool          // all phases of Ready are
	requeueAfter time.Duration // although all is complete; zero: not needed
	unanswered   bool          // VCD gave no answer in this pass
}

// newScope returns a scope that has observed nothing yet.
func (r *Reconciler) newScope(in inputs) *scope {
	st := r.states.Of(in.vcdMachine.UID)
	s := &scope{reconciler: r, inputs: in, state: st, facts: facts{vm: &st.vm}}
	s.vm.begin()
	s.placer = placer{s}
	s.observer = observer{s}
	s.creation = newCreation(s)
	s.injection = injection{s}
	s.power = power{s}
	s.shutdown = shutdown{s, &st.cancellation}
	s.addresses = addresses{s}
	s.comparison = comparison{s}
	s.disks = disks{s}
	s.deletion = deletion{s}
	s.release = release{s}
	return s
}

// find returns the inputs, false if m is not to be reconciled yet. One that is deleted needs no owner.
func (r *Reconciler) find(ctx context.Context, m *infrav1.VCDMachine) (in inputs, ok bool, err error) {
	if !session.Watched(m, r.WatchFilterValue) {
		return in, false, nil // Another manager's.
	}
	in.vcdMachine = m
	if in.machine, err = util.GetOwnerMachine(ctx, r.Client, m.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return in, false, fmt.Errorf("getting the Machine of VCDMachine %s: %w", klog.KObj(m), err)
	}
	in.cluster, err = util.GetClusterFromMetadata(ctx, r.Client, m.ObjectMeta)
	if client.IgnoreNotFound(err) != nil && !errors.Is(err, util.ErrNoCluster) {
		return in, false, fmt.Errorf("getting the Cluster of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if m.DeletionTimestamp.IsZero() && (in.machine == nil || in.cluster == nil) {
		return in, false, nil // The owner reference triggers the next reconcile.
	}
	in.vcdCluster, err = r.vcdClusterOf(ctx, m, in.cluster)
	return in, err == nil, err
}

// Tolerate reports whether VCD may leave this pass unanswered: it answered in the one before.
func (s *scope) Tolerate() bool {
	s.unanswered = true
	return !s.state.unanswered
}

// Established reports whether the VM ran once. Its node works on while VCD cannot be asked.
func (s *scope) Established() bool {
	return s.inputs.vcdMachine.DeletionTimestamp.IsZero() && s.inputs.cameUp()
}

// vcdClusterOf returns the VCDCluster of m, nil if there is none.
func (r *Reconciler) vcdClusterOf(ctx context.Context, m *infrav1.VCDMachine,
	cluster *clusterv1.Cluster,
) (*infrav1.VCDCluster, error) {
	if cluster != nil && cluster.Spec.InfrastructureRef.IsDefined() {
		c := &infrav1.VCDCluster{}
		key := client.ObjectKey{Namespace: m.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
		err := r.Client.Get(ctx, key, c)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting VCDCluster %s: %w", key, err)
		}
		if err == nil {
			return c, nil
		}
	}
	name := m.Labels[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil, nil
	}
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(m.Namespace), session.OfCluster(name)); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if len(list.Items) != 1 {
		return nil, nil // None, or ambiguous.
	}
	return &list.Items[0], nil
}

// requeueWithin makes the next pass come within d.
func (s *scope) requeueWithin(d time.Duration) {
	if s.requeueAfter == 0 || d < s.requeueAfter {
		s.requeueAfter = d
	}
}

// markProvisioned stores that the machine was complete once, before Ready says so: who sees Ready shall find the rest
// too.
func (s *scope) markProvisioned(ctx context.Context, complete bool) error {
	if !complete || !s.inputs.vcdMachine.DeletionTimestamp.IsZero() || s.inputs.provisioned() {
		return nil
	}
	s.inputs.vcdMachine.Status.Initialization.Provisioned = ptr.To(true)
	phases.ProvisionedAfter(s.inputs.vcdMachine, s.now())
	return s.save(ctx)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *scope) save(ctx context.Context) error {
	helper, err := phases.Store(ctx, s.reconciler.Client, s.inputs.vcdMachine, s.patcher)
	if err == nil {
		s.patcher = helper
	}
	return err
}

func (s *scope) now() time.Time {
	if s.reconciler.Now != nil {
		return s.reconciler.Now()
	}
	return time.Now()
}

// key names the machine in the session and in lines.
func (i *inputs) key() string { return string(i.vcdMachine.UID) }

// marker is what our objects in VCD carry. It survives a move to another management cluster.
func (i *inputs) marker() vcd.Marker {
	return vcd.Marker{
		Cluster: i.vcdCluster.Spec.InfraID,
		Machine: i.vcdMachine.Annotations[infrav1.InstanceIDAnnotation],
	}
}

// marks reports whether a description has the marker of the machine. One without an instance ID has none: the marker
// of its cluster is that of what machines share.
func (i *inputs) marks(description string) bool {
	marker := i.marker()
	return marker.Machine != "" && marker.IsOf(description)
}

// vmID returns the URN of the recorded VM, empty if none is.
func (i *inputs) vmID() string {
	id, err := providerid.Parse(i.vcdMachine.Spec.ProviderID)
	if err != nil {
		return ""
	}
	return id
}

func (i *inputs) provisioned() bool {
	return ptr.Deref(i.vcdMachine.Status.Initialization.Provisioned, false)
}

// cameUp reports whether the VM ran once: it is not created again. Unlike the status it survives a move to another
// management cluster.
func (i *inputs) cameUp() bool {
	return i.provisioned() || i.vcdMachine.Annotations[infrav1.PoweredOnAnnotation] != ""
}

// creationRequested returns when VCD was asked last to create the VM; zero if that is not known.
func (i *inputs) creationRequested() time.Time {
	at, err := time.Parse(time.RFC3339, i.vcdMachine.Annotations[infrav1.CreationRequestedAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// vAppName returns the name of the vApp that the machine's VM is created in.
func (i *inputs) vAppName() string {
	if vapp.PerMachine(i.vcdCluster) {
		return i.vcdMachine.Annotations[infrav1.VMNameAnnotation]
	}
	return vapp.Numbered(vapp.NameIn(i.vcdCluster, i.clusterName(), i.zoneName()), i.vAppNumber())
}

func (i *inputs) clusterName() string { return session.ClusterName(i.vcdCluster, i.cluster) }

// vAppNumber counts the vApps of the cluster up to the machine's.
func (i *inputs) vAppNumber() int {
	return vapp.Number(i.vcdMachine.Annotations[infrav1.VAppNumberAnnotation])
}

// made returns what the VM was created like, if that is known.
func (i *inputs) made() (drift.Made, bool) {
	return drift.Parse(i.vcdMachine.Annotations[infrav1.VMRecordedAnnotation])
}

// madeIn is the URN of the vApp that the machine's VM was created in; empty if that is not known.
func (i *inputs) madeIn() string {
	if made, ok := i.made(); ok && made.VApp != "" {
		return made.VApp
	}
	if vApp := i.vcdMachine.Status.VApp; vApp != nil {
		return vApp.ID
	}
	return ""
}

// queueName names the queue of the machine's vApp. Clusters never share one: their identities differ. vApps of one name
// may be in several VDCs.
func (i *inputs) queueName() string {
	if i.vcdCluster == nil {
		return ""
	}
	return strings.Join([]string{
		string(i.vcdCluster.UID),
		i.vcdCluster.Spec.InfraID,
		i.vcdMachine.Annotations[infrav1.OVDCIDAnnotation],
		i.vAppName(),
	}, "/")
}
