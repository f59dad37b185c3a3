// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/watches"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
)

// clusterConcernsMachines passes the changes of a VCDCluster that matter to its machines. Records that its machines
// write to it do not matter.
func clusterConcernsMachines() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*infrav1.VCDCluster)
		after, isCluster := e.ObjectNew.(*infrav1.VCDCluster)
		return !ok || !isCluster || !equality.Semantic.DeepEqual(concerning(before), concerning(after))
	}}
}

// forMachines are the annotations of a VCDCluster that matter to its machines.
var forMachines = []string{
	clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, infrav1.GoneAcknowledgedAnnotation,
}

// concerning returns the parts of a VCDCluster that matter to its machines. Its Ready condition shows when VCD responds
// again.
func concerning(c *infrav1.VCDCluster) infrav1.VCDCluster {
	found := infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		UID:               c.UID,
		DeletionTimestamp: c.DeletionTimestamp,
		Labels:            c.Labels,
		Annotations:       map[string]string{},
	}}
	for _, key := range forMachines {
		if value, ok := c.Annotations[key]; ok {
			found.Annotations[key] = value
		}
	}
	found.Spec = settings.Spec(c)
	found.Status.Initialization = c.Status.Initialization
	found.Status.OVDC = c.Status.OVDC
	found.Status.OVDCNetwork = c.Status.OVDCNetwork
	if ready := conditions.Get(c, clusterv1.ReadyCondition); ready != nil {
		found.Status.Conditions = []metav1.Condition{{Status: ready.Status, Reason: ready.Reason}}
	}
	return found
}

// exceptResyncOfReady drops the periodic resync of a machine that is ready, because each pass over such a machine
// schedules the next one. With thousands of machines, the resync would double the costs at rest.
func exceptResyncOfReady() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		m, ok := e.ObjectNew.(*infrav1.VCDMachine)
		resync := e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
		return !ok || !resync || !m.DeletionTimestamp.IsZero() || !conditions.IsTrue(m, clusterv1.ReadyCondition)
	}}
}

// identityToDeletedMachines maps an identity to the VCDMachines in deletion that use it.
func identityToDeletedMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, identity client.Object) []ctrl.Request {
		return deletedMachinesOf(ctx, c, watches.ClustersOfIdentity(ctx, c, identity))
	}
}

// secretToDeletedMachines maps a Secret to the VCDMachines in deletion that use its credentials.
func secretToDeletedMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, secret client.Object) []ctrl.Request {
		return deletedMachinesOf(ctx, c, watches.ClustersOfSecret(ctx, c, secret))
	}
}

// deletedMachinesOf returns the VCDMachines in deletion of some VCDClusters. Other machines notice a fixed identity by
// their VCDCluster, but a VCDCluster that waits for its machines to be deleted does not log in.
func deletedMachinesOf(ctx context.Context, c client.Reader, clusters []infrav1.VCDCluster) []ctrl.Request {
	var requests []ctrl.Request
	for i := range clusters {
		for _, m := range machinesOf(ctx, c, &clusters[i]) {
			if !m.DeletionTimestamp.IsZero() {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&m)})
			}
		}
	}
	return requests
}

// clusterToMachines maps a VCDCluster to its VCDMachines.
func clusterToMachines(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, cluster client.Object) []ctrl.Request {
		machines := machinesOf(ctx, c, cluster)
		requests := make([]ctrl.Request, 0, len(machines))
		for i := range machines {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&machines[i])})
		}
		return requests
	}
}

// machinesOf lists the VCDMachines of a VCDCluster.
func machinesOf(ctx context.Context, c client.Reader, cluster client.Object) []infrav1.VCDMachine {
	name := cluster.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	list := &infrav1.VCDMachineList{}
	if err := c.List(ctx, list, client.InNamespace(cluster.GetNamespace()), index.OfCluster(name),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list VCDMachines")
		return nil
	}
	return list.Items
}
