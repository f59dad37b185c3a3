// SPDX-License-Identifier: Apache-2.0

// Package remediation resets the VMs of unhealthy Machines, and requests the replacement of Machines that resets do not
// heal. It records the request for a reset in the VCDMachine. The reconciler of VCDMachines, which verifies that the VM
// belongs to the machine, sends the reset to VCD.
package remediation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdremediations,verbs=list;watch;patch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vcdremediations/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch

// pausedPoll is the interval at which a paused Machine is read again.
const pausedPoll = time.Minute

// Reconciler resets the VMs of Machines with a VCDRemediation.
type Reconciler struct {
	Client           client.Client
	Recorder         events.EventRecorder
	Writes           *phases.Writes // nil: passes also run on outdated objects
	WatchFilterValue string
	Now              func() time.Time // nil: time.Now
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&infrav1.VCDRemediation{}).
		Watches(&infrav1.VCDMachine{}, handler.EnqueueRequestsFromMapFunc(vcdMachineToRemediation)).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// vcdMachineToRemediation maps a machine to its VCDRemediation, which has the name of the Machine.
func vcdMachineToRemediation(_ context.Context, m client.Object) []ctrl.Request {
	for _, owner := range m.GetOwnerReferences() {
		if owner.Kind == "Machine" {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: m.GetNamespace(), Name: owner.Name}}}
		}
	}
	return nil
}

// A scope holds the objects of one reconcile of a VCDRemediation.
type scope struct {
	reconciler *Reconciler

	remediation *infrav1.VCDRemediation
	machine     *clusterv1.Machine  // nil: it does not exist
	vcdMachine  *infrav1.VCDMachine // nil: it does not exist
}

// Reconcile resets the VM of a VCDRemediation's Machine, or requests the replacement of the Machine.
func (r *Reconciler) Reconcile(ctx context.Context, remediation *infrav1.VCDRemediation) (ctrl.Result, error) {
	return phases.Reconciler[*infrav1.VCDRemediation, scope]{
		Client:    r.Client,
		Recorder:  r.Recorder,
		Writes:    r.Writes,
		Open:      r.open,
		Finalizer: infrav1.RemediationFinalizer,
		Phases: []phases.Phase[*scope]{
			{Condition: infrav1.MachineFoundCondition, Run: reconcileMachineFound},
			{Condition: infrav1.ResetsCompletedCondition, Run: reconcileResets},
			{Condition: infrav1.ReplacementRequestedCondition, Run: reconcileReplacement},
		},
		Deletion: []phases.Phase[*scope]{{Condition: infrav1.ReleasedCondition, Run: release}},
		Ready:    true,
	}.Reconcile(ctx, remediation)
}

// open finds the objects of a VCDRemediation. It returns an empty entry if another manager reconciles the VCDMachine.
func (r *Reconciler) open(ctx context.Context, remediation *infrav1.VCDRemediation, _ *phases.Patcher) (phases.Entry[scope], error) {
	s := &scope{reconciler: r, remediation: remediation}
	cluster, err := s.find(ctx)
	if err != nil {
		return phases.Entry[scope]{}, err
	}
	if s.vcdMachine != nil && !capicluster.Watched(s.vcdMachine, r.WatchFilterValue) {
		return phases.Entry[scope]{}, nil
	}
	return phases.Entry[scope]{Scope: s, Cluster: cluster}, nil
}

// find finds the Machine that owns the VCDRemediation, its VCDMachine and its Cluster, which it returns. Objects that
// do not exist are nil.
func (s *scope) find(ctx context.Context) (*clusterv1.Cluster, error) {
	c := s.reconciler.Client
	machine, err := util.GetOwnerMachine(ctx, c, s.remediation.ObjectMeta)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the Machine of VCDRemediation %s: %w", klog.KObj(s.remediation), err)
	}
	if machine == nil {
		return nil, nil
	}
	s.machine = machine
	vcdMachine := &infrav1.VCDMachine{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}
	switch err := c.Get(ctx, key, vcdMachine); {
	case err == nil:
		s.vcdMachine = vcdMachine
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("getting VCDMachine %s: %w", key, err)
	}
	cluster := &clusterv1.Cluster{}
	key.Name = machine.Spec.ClusterName
	if err := c.Get(ctx, key, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return cluster, nil
}

// reconcileMachineFound waits until the Machine of a VCDRemediation can be remediated.
func reconcileMachineFound(_ context.Context, s *scope) (phases.Result, error) {
	switch {
	case s.machine == nil:
		return phases.Wait(0, infrav1.MachineNotFoundReason,
			"No Machine owns the VCDRemediation: use a MachineHealthCheck to create it, or set an owner reference"), nil
	case s.vcdMachine == nil:
		return phases.Wait(0, infrav1.MachineNotFoundReason, "Machine %s has no VCDMachine", s.machine.Name), nil
	case !s.machine.DeletionTimestamp.IsZero():
		return phases.Wait(0, infrav1.MachineNotFoundReason, "Machine %s is being deleted", s.machine.Name), nil
	case annotations.HasPaused(s.machine), annotations.HasPaused(s.vcdMachine):
		return phases.Wait(pausedPoll, infrav1.MachinePausedReason, "Machine %s or its VCDMachine is paused", s.machine.Name), nil
	}
	return phases.Done, nil
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
