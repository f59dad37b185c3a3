package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/patch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/batch"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/providerid"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// scope holds what one reconcile of a VCDMachine reads and finds out.
type scope struct {
	*Reconciler

	vcdMachine *infrav1.VCDMachine
	machine    *clusterv1.Machine  // nil: not there any more
	cluster    *clusterv1.Cluster  // nil: not there any more
	vcdCluster *infrav1.VCDCluster // nil: not there any more
	memory     *memory
	patcher    *patch.Helper

	bootstrap *bootstrapData   // set by reconcileBootstrapReady until the VM has it
	session   *session.Session // set by reconcilePlacement and deleteVM
	placement placement        // set by reconcilePlacement
	found     []vcd.Ref        // VMs of our name, while none is recorded; set by reconcileVApp
	record    *vcd.VMRecord    // the recorded VM in the inventory; set by reconcileVApp
	adding    phases.Outcome   // why the VM is not there yet; set by reconcileVApp
	vApp      *vcd.VApp        // set by reconcileVApp if VMs are missing in it
	inLine    bool             // whether others may create the VM; set by prepareVApp
	turn      batch.Turn       // the right to create VMs in vApp; set by reconcileVApp
	vm        *vcd.VM          // in full; set by reconcileVM while the machine is being created
	again     time.Duration    // when to look again though all is well; zero if need not be

	unanswered bool // VCD gave no answer in this pass; set by hiccup
}

// Tolerate implements tolerant.
func (s *scope) Tolerate() bool {
	s.unanswered = true
	return !s.memory.unanswered
}

// lookWithin makes the next pass come within d.
func (s *scope) lookWithin(d time.Duration) {
	if s.again == 0 || d < s.again {
		s.again = d
	}
}

// markProvisioned stores that the machine was complete once, before Ready says so: who sees Ready shall find the rest too.
func (s *scope) markProvisioned(ctx context.Context, table []phases.Phase[*scope]) error {
	if !s.vcdMachine.DeletionTimestamp.IsZero() || s.provisioned() || !phases.Complete(s.vcdMachine, table) {
		return nil
	}
	s.vcdMachine.Status.Initialization.Provisioned = ptr.To(true)
	phases.ProvisionedAfter(s.vcdMachine, s.now())
	return s.save(ctx)
}

// newScope returns nil while m has no owner yet. One that is deleted does not need it: it takes what is still there.
func (r *Reconciler) newScope(ctx context.Context, m *infrav1.VCDMachine) (*scope, error) {
	if !session.Watched(m, r.WatchFilterValue) {
		return nil, nil // Another manager's.
	}
	s := &scope{Reconciler: r, vcdMachine: m, memory: r.memories.of(m.UID)}
	var err error
	if s.machine, err = util.GetOwnerMachine(ctx, r.Client, m.ObjectMeta); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the Machine of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if s.cluster, err = util.GetClusterFromMetadata(ctx, r.Client, m.ObjectMeta); client.IgnoreNotFound(err) != nil && !errors.Is(err, util.ErrNoCluster) {
		return nil, fmt.Errorf("getting the Cluster of VCDMachine %s: %w", klog.KObj(m), err)
	}
	if m.DeletionTimestamp.IsZero() && (s.machine == nil || s.cluster == nil) {
		return nil, nil // Not ours yet: the owner reference triggers the next reconcile.
	}
	if s.vcdCluster, err = r.vcdClusterOf(ctx, m, s.cluster); err != nil {
		return nil, err
	}
	return s, nil
}

// vcdClusterOf returns the VCDCluster of m, nil if there is none.
func (r *Reconciler) vcdClusterOf(ctx context.Context, m *infrav1.VCDMachine, cluster *clusterv1.Cluster) (*infrav1.VCDCluster, error) {
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

// key names the machine in the session and in lines.
func (s *scope) key() string { return string(s.vcdMachine.UID) }

// marker is what our objects in VCD carry. It survives a move to another management cluster.
func (s *scope) marker() vcd.Marker {
	return vcd.Marker{Cluster: s.vcdCluster.Spec.InfraID, Machine: s.vcdMachine.Annotations[infrav1.InstanceIDAnnotation]}
}

// vmID returns the URN of the recorded VM, empty if none is.
func (s *scope) vmID() string {
	id, err := providerid.Parse(s.vcdMachine.Spec.ProviderID)
	if err != nil {
		return ""
	}
	return id
}

func (s *scope) provisioned() bool {
	return ptr.Deref(s.vcdMachine.Status.Initialization.Provisioned, false)
}

// cameUp says whether the VM ran once: it is made no more, only looked after. Unlike the status it survives a move to
// another management cluster.
func (s *scope) cameUp() bool {
	return s.provisioned() || s.vcdMachine.Annotations[infrav1.PoweredOnAnnotation] != ""
}

// remember keeps the VM as it was read for the passes to come.
func (s *scope) remember(vm vcd.VM) {
	s.vm, s.memory.vm, s.memory.vmSeenBy = &vm, &vm, s.session.VMClient
	s.keepRead(vm)
}

// save stores what phases changed in the object, now rather than at the end.
func (s *scope) save(ctx context.Context) error {
	helper, err := phases.Store(ctx, s.Client, s.vcdMachine, s.patcher)
	if err == nil {
		s.patcher = helper
	}
	return err
}

func (s *scope) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// start follows the task of a step and returns the outcome of having started it.
func (s *scope) start(what step, t vcd.Task, doing string) phases.Outcome {
	s.follow(what, t)
	return running(doing)
}

func (s *scope) follow(what step, t vcd.Task) {
	s.session.Follow(s.key()+"/"+string(what), t, s.wakeUps.ForObject(s.vcdMachine))
}

func running(doing string) phases.Outcome {
	return phases.Wait(session.TaskPoll, infrav1.TaskRunningReason, "%s: waiting for VCD", doing)
}

// settle looks at the task of a step that was started earlier. The outcome is done when there is none to wait for;
// ended says that one succeeded since the last look.
func (s *scope) settle(what step, doing string) (out phases.Outcome, ended bool) {
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
		return s.memory.failed(what, session.TaskFailure(t, doing), s.now(), s.vcdMachine.Generation), false
	case vcd.TaskSucceeded, vcd.TaskUnknown:
	}
	s.session.Forget(key)
	s.session.Invalidate(s.placement.vdc)
	if t.State == vcd.TaskUnknown {
		s.memory.forgetVM() // Nobody knows what came of it: look.
		return phases.Done, false
	}
	s.memory.succeeded(what)
	return phases.Done, true
}

// refuse turns the failure of a request into an outcome, and waits longer each time if VCD would only refuse again. VCD
// may have done what was asked all the same, and only its answer was lost; or it refuses because things are not as we
// remember them: look.
func (s *scope) refuse(what step, err error, doing string) (phases.Outcome, error) {
	if errors.Is(err, vcd.ErrLater) {
		return phases.Done, err // Nothing was asked.
	}
	s.lookAnew(what)
	out, err := session.Refusal(err, doing)
	if err == nil && out.Problem && !out.Unknown {
		out = s.memory.failed(what, out, s.now(), s.vcdMachine.Generation)
	}
	return out, err
}

// lookAnew forgets what is known of the VM, after a step that failed. If it was to be created, what it is made of may have been replaced
// in VCD by something of the same name since it was looked up.
func (s *scope) lookAnew(what step) {
	s.memory.forgetVM()
	s.session.Invalidate(s.placement.vdc)
	if what == stepCompose || what == stepAdd {
		s.session.Refresh()
	}
}
