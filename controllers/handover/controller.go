// SPDX-License-Identifier: Apache-2.0

// Package handover moves the virtual IP of a control plane to another node before Cluster API removes the node that
// holds it.
//
// Cluster API first removes the etcd member of the node, and with it the API server of the node fails. kube-vip uses
// that API server, so it can neither renew nor release its lease, and the endpoint would not respond until the lease
// expires and another node gets it: about 20 s. A hook on the Machines of control planes therefore delays the removal
// until another node holds the lease and the old one has given up the address.
package handover

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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch;patch

// pausedPoll is the interval at which a Machine that is being deleted is read again while its cluster is paused.
const pausedPoll = time.Minute

// Reconciler adds the hook to Machines of control planes whose endpoint kube-vip announces. When such a Machine is
// deleted, it moves the virtual IP away from its node and removes the hook.
type Reconciler struct {
	Client           client.Client
	Recorder         events.EventRecorder
	WatchFilterValue string
	Workload         workload.Opener
	Now              func() time.Time // nil: time.Now
}

// SetupWithManager registers the reconciler.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	concerned := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		machine, ok := obj.(*clusterv1.Machine)
		return ok && (wantsHook(machine) || hasHook(machine))
	})
	return ctrl.NewControllerManagedBy(mgr).Named("handover").
		For(&clusterv1.Machine{}, builder.WithPredicates(concerned)).
		WithOptions(options).
		Complete(reconcile.AsReconciler(r.Client, r))
}

// Reconcile adds the hook to a Machine, or moves the virtual IP away from the node of a Machine that is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, machine *clusterv1.Machine) (ctrl.Result, error) {
	cluster, vcdCluster, err := r.clusterOf(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	deleting := !machine.DeletionTimestamp.IsZero() && hasHook(machine)
	if cluster == nil || vcdCluster == nil {
		if deleting {
			return ctrl.Result{}, r.removeHook(ctx, machine)
		}
		return ctrl.Result{}, nil
	}
	active := !capicluster.ExternallyManaged(vcdCluster) && capicluster.Watched(vcdCluster, r.WatchFilterValue) &&
		!annotations.IsPaused(cluster, vcdCluster) && !annotations.HasPaused(machine)
	switch {
	case !active && deleting:
		return ctrl.Result{RequeueAfter: pausedPoll}, nil
	case !active:
		return ctrl.Result{}, nil
	case !deleting:
		return ctrl.Result{}, r.addHook(ctx, machine, vcdCluster)
	}
	if again := r.handOver(ctx, cluster, vcdCluster, machine); again > 0 {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, r.removeHook(ctx, machine)
}

// clusterOf returns the Cluster of a Machine and its VCDCluster; nil if they do not exist.
func (r *Reconciler) clusterOf(ctx context.Context, machine *clusterv1.Machine) (*clusterv1.Cluster, *infrav1.VCDCluster, error) {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
	if err := r.Client.Get(ctx, key, cluster); err != nil {
		return nil, nil, client.IgnoreNotFound(err)
	}
	vcdCluster := &infrav1.VCDCluster{}
	key.Name = cluster.Spec.InfrastructureRef.Name
	if err := r.Client.Get(ctx, key, vcdCluster); err != nil {
		return cluster, nil, client.IgnoreNotFound(err)
	}
	return cluster, vcdCluster, nil
}

// addHook adds the hook to a Machine if kube-vip announces the endpoint of its cluster.
func (r *Reconciler) addHook(ctx context.Context, machine *clusterv1.Machine, vcdCluster *infrav1.VCDCluster) error {
	if !machine.DeletionTimestamp.IsZero() || hasHook(machine) || !wantsHook(machine) ||
		vcdCluster.Spec.ControlPlaneLoadBalancer.Type != infrav1.EndpointKubeVIP {
		return nil
	}
	changed := machine.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[infrav1.VirtualIPHookAnnotation] = ""
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(machine)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adding the hook to Machine %s: %w", klog.KObj(machine), err)
	}
	return nil
}

// removeHook lets the deletion of a Machine continue.
func (r *Reconciler) removeHook(ctx context.Context, machine *clusterv1.Machine) error {
	changed := machine.DeepCopy()
	delete(changed.Annotations, infrav1.VirtualIPHookAnnotation)
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(machine)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the hook from Machine %s: %w", klog.KObj(machine), err)
	}
	return nil
}

// wantsHook reports whether a Machine belongs to a control plane and has a VCDMachine.
func wantsHook(machine *clusterv1.Machine) bool {
	return util.IsControlPlaneMachine(machine) &&
		machine.Spec.InfrastructureRef.Kind == "VCDMachine" &&
		machine.Spec.InfrastructureRef.APIGroup == infrav1.GroupVersion.Group
}

func hasHook(machine *clusterv1.Machine) bool {
	_, found := machine.Annotations[infrav1.VirtualIPHookAnnotation]
	return found
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
