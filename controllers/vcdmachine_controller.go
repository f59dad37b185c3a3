package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/status,verbs=patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdmachines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch

// VCDMachineReconciler makes VMs in VCD look like VCDMachines.
type VCDMachineReconciler struct {
	Client           client.Client
	Live             client.Reader // for Secrets, which no cache holds
	Identities       Identities
	Sessions         Sessions
	Recorder         events.EventRecorder
	WatchFilterValue string
	Drivers          *Drivers
	Gather           time.Duration    // how long to wait for machines to create together; 0: a second
	Now              func() time.Time // nil: time.Now

	wakeUps   wakeUps
	memories  memories
	creations creations
	renewals  renewals
}

// SetupWithManager registers the reconciler.
func (r *VCDMachineReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
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
		Watches(&infrav1.VCDMachine{}, r.memories.forgetting()).
		WatchesRawSource(r.wakeUps.source()).
		WithOptions(options)
	return watchCredentials(b, predicates.ResourceIsChanged(scheme, log), r.identityToMachines, r.secretToMachines).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// machineScope holds what one reconcile of a VCDMachine reads and finds out.
type machineScope struct {
	*VCDMachineReconciler

	vcdMachine *infrav1.VCDMachine
	machine    *clusterv1.Machine  // nil: not there any more
	cluster    *clusterv1.Cluster  // nil: not there any more
	vcdCluster *infrav1.VCDCluster // nil: not there any more
	memory     *memory
	patcher    *patch.Helper

	bootstrap *bootstrapData // set by reconcileBootstrapReady until the VM has it
	session   *session       // set by reconcilePlacement and deleteVM
	placement placement      // set by reconcilePlacement
	found     []vcd.Ref      // VMs of our name, while none is recorded; set by reconcileVApp
	record    *vcd.VMRecord  // the recorded VM in the inventory; set by reconcileVApp
	adding    outcome        // why the VM is not there yet; set by reconcileVApp
	vApp      *vcd.VApp      // set by reconcileVApp if VMs are missing in it
	inLine    bool           // whether others may create the VM; set by prepareVApp
	turn      turn           // the right to create VMs in vApp; set by reconcileVApp
	vm        *vcd.VM        // in full; set by reconcileVM while the machine is being created
	again     time.Duration  // when to look again though all is well; zero if need not be

	unanswered bool // VCD gave no answer in this pass; set by hiccup
}

// hiccup implements tolerant.
func (s *machineScope) hiccup() bool {
	s.unanswered = true
	return !s.memory.unanswered
}

// Reconcile makes the VM of m look like m.
func (r *VCDMachineReconciler) Reconcile(ctx context.Context, m *infrav1.VCDMachine) (_ ctrl.Result, rerr error) {
	s, err := r.newScope(ctx, m)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	defer s.leaveLine()
	if s.patcher, err = admit(ctx, r.Client, s.cluster, m, infrav1.MachineFinalizer); s.patcher == nil || err != nil {
		return ctrl.Result{}, err
	}
	ctx = vcd.As(ctx, caller(m))
	table, extra := machinePhases(m), extraPhases(m)
	defer func() {
		s.endTurn()
		rerr = errors.Join(rerr, s.markProvisioned(ctx, table))
		setReady(m, table)
		rerr = errors.Join(rerr, ignoreGone(m, s.patcher.Patch(ctx, m, owned(slices.Concat(table, extra)))))
	}()
	res, err := runPhases(ctx, m, s, table, r.Recorder)
	if err == nil && complete(m, table) {
		var more ctrl.Result
		more, err = runPhases(ctx, m, s, extra, r.Recorder)
		res = soonest(res, more)
	}
	s.memory.unanswered = s.unanswered
	s.memory.well = err == nil && complete(m, slices.Concat(table, extra))
	if err == nil {
		res = soonest(res, ctrl.Result{RequeueAfter: s.again})
	}
	return res, err
}

// lookWithin makes the next pass come within d.
func (s *machineScope) lookWithin(d time.Duration) {
	if s.again == 0 || d < s.again {
		s.again = d
	}
}

// markProvisioned stores that the machine was complete once, before Ready says so: who sees Ready shall find the rest too.
func (s *machineScope) markProvisioned(ctx context.Context, table []phase[*machineScope]) error {
	if !s.vcdMachine.DeletionTimestamp.IsZero() || s.provisioned() || !complete(s.vcdMachine, table) {
		return nil
	}
	s.vcdMachine.Status.Initialization.Provisioned = ptr.To(true)
	provisionedAfter(s.vcdMachine, s.now())
	return s.save(ctx)
}

func machinePhases(m *infrav1.VCDMachine) []phase[*machineScope] {
	if !m.DeletionTimestamp.IsZero() {
		return []phase[*machineScope]{
			{infrav1.VMDeletedCondition, deleteVM},
			{infrav1.VAppDeletedCondition, deleteMachineVApp},
			{infrav1.ReleasedCondition, releaseMachine},
		}
	}
	table := []phase[*machineScope]{
		{infrav1.BootstrapReadyCondition, reconcileBootstrapReady},
		{infrav1.PlacementReadyCondition, reconcilePlacement},
		{infrav1.VAppReadyCondition, reconcileVApp},
		{infrav1.VMCreatedCondition, reconcileVM},
		{infrav1.BootstrapInjectedCondition, reconcileBootstrapInjected},
		{infrav1.PoweredOnCondition, reconcilePower},
		{infrav1.AddressesReadyCondition, reconcileAddresses},
	}
	if driftInReady(m) {
		table = append(table, asSpecified)
	}
	return table
}

// newScope returns nil while m has no owner yet. One that is deleted does not need it: it takes what is still there.
func (r *VCDMachineReconciler) newScope(ctx context.Context, m *infrav1.VCDMachine) (*machineScope, error) {
	if !watched(m, r.WatchFilterValue) {
		return nil, nil //nolint:nilnil // Another manager's.
	}
	s := &machineScope{VCDMachineReconciler: r, vcdMachine: m, memory: r.memories.of(m.UID)}
	var err error
	if s.machine, err = util.GetOwnerMachine(ctx, r.Client, m.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the Machine of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if s.cluster, err = util.GetClusterFromMetadata(ctx, r.Client, m.ObjectMeta); client.IgnoreNotFound(err) != nil && !errors.Is(err, util.ErrNoCluster) {
		return nil, fmt.Errorf("getting the Cluster of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if m.DeletionTimestamp.IsZero() && (s.machine == nil || s.cluster == nil) {
		return nil, nil //nolint:nilnil // Not ours yet: the owner reference wakes us.
	}
	if s.vcdCluster, err = r.vcdClusterOf(ctx, m, s.cluster); err != nil {
		return nil, err
	}
	return s, nil
}

// vcdClusterOf returns the VCDCluster of m, nil if there is none.
func (r *VCDMachineReconciler) vcdClusterOf(ctx context.Context, m *infrav1.VCDMachine, cluster *clusterv1.Cluster) (*infrav1.VCDCluster, error) {
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
		return nil, nil //nolint:nilnil // There is none, which is no error.
	}
	list := &infrav1.VCDClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(m.Namespace), ofCluster(name)); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if len(list.Items) != 1 {
		return nil, nil //nolint:nilnil // None, or we cannot tell which.
	}
	return &list.Items[0], nil
}

// key names the machine in the session and in lines.
func (s *machineScope) key() string { return string(s.vcdMachine.UID) }

// marker is what our objects in VCD carry. It survives a move to another management cluster.
func (s *machineScope) marker() vcd.Marker {
	return vcd.Marker{Cluster: s.vcdCluster.Spec.InfraID, Machine: s.vcdMachine.Annotations[infrav1.InstanceIDAnnotation]}
}

// vmID returns the URN of the recorded VM, empty if none is.
func (s *machineScope) vmID() string {
	id, err := providerid.Parse(s.vcdMachine.Spec.ProviderID)
	if err != nil {
		return ""
	}
	return id
}

func (s *machineScope) provisioned() bool {
	return ptr.Deref(s.vcdMachine.Status.Initialization.Provisioned, false)
}

// cameUp says whether the VM ran once: it is made no more, only looked after. Unlike the status it survives a move to
// another management cluster.
func (s *machineScope) cameUp() bool {
	return s.provisioned() || s.vcdMachine.Annotations[infrav1.PoweredOnAnnotation] != ""
}

// remember keeps the VM as it was read for the passes to come.
func (s *machineScope) remember(vm vcd.VM) {
	s.vm, s.memory.vm, s.memory.vmSeenBy = &vm, &vm, s.session.vms
	s.keepRead(vm)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *machineScope) save(ctx context.Context) error {
	helper, err := store(ctx, s.Client, s.vcdMachine, s.patcher)
	if err == nil {
		s.patcher = helper
	}
	return err
}

func (s *machineScope) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// start follows the task of a step and returns the outcome of having started it.
func (s *machineScope) start(what step, t vcd.Task, doing string) outcome {
	s.follow(what, t)
	return running(doing)
}

func (s *machineScope) follow(what step, t vcd.Task) {
	s.session.Follow(s.key()+"/"+string(what), t, s.wakeUps.forObject(s.vcdMachine))
}

func running(doing string) outcome {
	return wait(taskPoll, infrav1.TaskRunningReason, "%s: waiting for VCD", doing)
}

// settle looks at the task of a step that was started earlier. The outcome is done when there is none to wait for;
// ended says that one succeeded since the last look.
func (s *machineScope) settle(what step, doing string) (out outcome, ended bool) {
	key := s.key() + "/" + string(what)
	t, ok := s.session.Task(key)
	if !ok {
		return s.memory.failing(what, s.now(), s.vcdMachine.Generation), false
	}
	switch t.State {
	case vcd.TaskRunning:
		return running(doing), false
	case vcd.TaskFailed:
		s.session.Forget(key)
		s.lookAnew(what)
		return s.memory.failed(what, taskFailure(t, doing), s.now(), s.vcdMachine.Generation), false
	case vcd.TaskSucceeded, vcd.TaskUnknown:
	}
	s.session.Forget(key)
	s.session.Invalidate(s.placement.vdc)
	if t.State == vcd.TaskUnknown {
		s.memory.forgetVM() // Nobody knows what came of it: look.
		return done, false
	}
	s.memory.succeeded(what)
	return done, true
}

// refuse turns the failure of a request into an outcome, and waits longer each time if VCD would only refuse again. VCD
// may have done what was asked all the same, and only its answer was lost; or it refuses because things are not as we
// remember them: look.
func (s *machineScope) refuse(what step, err error, doing string) (outcome, error) {
	if errors.Is(err, vcd.ErrLater) {
		return done, err // Nothing was asked.
	}
	s.lookAnew(what)
	out, err := refusal(err, doing)
	if err == nil && out.problem && !out.unknown {
		out = s.memory.failed(what, out, s.now(), s.vcdMachine.Generation)
	}
	return out, err
}

// lookAnew forgets what is known of the VM, after a step that failed. If it was to be created, what it is made of may have been replaced
// in VCD by something of the same name since it was looked up.
func (s *machineScope) lookAnew(what step) {
	s.memory.forgetVM()
	s.session.Invalidate(s.placement.vdc)
	if what == stepCompose || what == stepAdd {
		s.session.Refresh()
	}
}
