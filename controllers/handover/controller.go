// SPDX-License-Identifier: Apache-2.0

// Package handover makes the endpoint of a cluster independent of a node before Cluster API removes the node.
//
// Cluster API first removes the etcd member of the node, and with it the API server of the node fails. A hook on the
// Machines of control planes delays that.
//
// With a virtual IP, kube-vip uses the API server of its node. It could neither renew nor release its lease, and the
// endpoint would not respond until the lease expires and another node gets it: about 20 s. The hook stays until another
// node holds the lease and the old one has given up the address.
//
// With an endpoint on an edge gateway, the load balancer would send requests to the failing API server until it is
// removed from the pool. The hook stays until the reconciler of the VCDMachine has removed it.
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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/edgeendpoint"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/workload"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=list;watch;patch

const (
	// limit is how long the deletion of a Machine is delayed at most.
	limit = time.Minute
	// poll is the interval between two reads of the lease, or of the VCDMachine.
	poll = 2 * time.Second
	// pausedPoll is the interval at which a Machine that is being deleted is read again while its cluster is paused.
	pausedPoll = time.Minute
)

// Reconciler adds the hook to Machines of control planes. When such a Machine is deleted, it moves the virtual IP away
// from its node, or waits until the node has left the endpoint on an edge gateway, and removes the hook.
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

// Reconcile adds the hook to a Machine. If the Machine is being deleted, it removes the hook as soon as the endpoint does
// not need the node anymore.
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

// handOver makes the endpoint independent of the node of a Machine that is being deleted. It returns when to continue; 0
// means that the endpoint does not need the node anymore, or that waiting longer does not help.
func (r *Reconciler) handOver(ctx context.Context, cluster *clusterv1.Cluster, vcdCluster *infrav1.VCDCluster,
	machine *clusterv1.Machine,
) (again time.Duration) {
	node := machine.Status.NodeRef.Name
	log := ctrl.LoggerFrom(ctx)
	switch {
	case !cluster.DeletionTimestamp.IsZero(), !capicluster.Initialized(cluster), node == "":
		return 0
	case r.now().Sub(machine.DeletionTimestamp.Time) > limit:
		log.Info("The endpoint may still need the node, but the deletion of the Machine continues", "node", node)
		return 0
	}
	var err error
	if _, on := edgeendpoint.Of(vcdCluster); on {
		again, err = r.untilLeft(ctx, cluster, vcdCluster, machine)
	} else {
		again, err = r.moveFrom(ctx, node, cluster, vcdCluster, machine)
	}
	if err != nil {
		log.V(4).Info("The endpoint still needs the node", "node", node, "reason", err.Error())
		return poll
	}
	return again
}

// untilLeft returns when to look again whether the VM of a Machine has left the endpoint on an edge gateway. It returns
// 0 if the VM is not a member, or if it stays one until it is deleted: as the only member, or because a user keeps load
// balancers.
func (r *Reconciler) untilLeft(ctx context.Context, cluster *clusterv1.Cluster, vcdCluster *infrav1.VCDCluster,
	machine *clusterv1.Machine,
) (again time.Duration, err error) {
	if vcdCluster.Annotations[infrav1.KeepLoadBalancersAnnotation] == "true" {
		return 0, nil
	}
	vcdMachine := &infrav1.VCDMachine{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.InfrastructureRef.Name}
	if err := r.Client.Get(ctx, key, vcdMachine); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	others, err := edgeendpoint.HasOtherMembers(ctx, r.Client, vcdCluster, cluster, vcdMachine)
	if err != nil || !others || vcdMachine.Spec.RecordedState.EndpointMember == "" {
		return 0, err
	}
	return poll, nil
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

// addHook adds the hook to a Machine if the endpoint of its cluster uses its node.
func (r *Reconciler) addHook(ctx context.Context, machine *clusterv1.Machine, vcdCluster *infrav1.VCDCluster) error {
	endpoint := vcdCluster.Spec.ControlPlaneLoadBalancer.Type
	if !machine.DeletionTimestamp.IsZero() || hasHook(machine) || !wantsHook(machine) ||
		endpoint != infrav1.EndpointKubeVIP && endpoint != infrav1.EndpointEdgeGateway {
		return nil
	}
	changed := machine.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[infrav1.EndpointHookAnnotation] = ""
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(machine)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adding the hook to Machine %s: %w", klog.KObj(machine), err)
	}
	return nil
}

// removeHook lets the deletion of a Machine continue.
func (r *Reconciler) removeHook(ctx context.Context, machine *clusterv1.Machine) error {
	changed := machine.DeepCopy()
	delete(changed.Annotations, infrav1.EndpointHookAnnotation)
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
	_, found := machine.Annotations[infrav1.EndpointHookAnnotation]
	return found
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
