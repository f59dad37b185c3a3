package machine

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// clusterConcernsMachines passes those changes of a VCDCluster that concern its machines. Notes on it, which each of the
// machines may leave there, concern none.
func clusterConcernsMachines() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*infrav1.VCDCluster)
		after, isCluster := e.ObjectNew.(*infrav1.VCDCluster)
		return !ok || !isCluster || !equality.Semantic.DeepEqual(concerning(before), concerning(after))
	}}
}

// forMachines are the annotations of a VCDCluster that concern its machines.
var forMachines = []string{
	clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, infrav1.GoneAcknowledgedAnnotation,
}

// concerning returns what concerns machines in a VCDCluster. Its Ready shows when VCD can be asked again.
func concerning(c *infrav1.VCDCluster) infrav1.VCDCluster {
	found := infrav1.VCDCluster{ObjectMeta: metav1.ObjectMeta{
		UID: c.UID, Generation: c.Generation, DeletionTimestamp: c.DeletionTimestamp, Labels: c.Labels,
		Annotations: map[string]string{},
	}}
	for _, key := range forMachines {
		if value, ok := c.Annotations[key]; ok {
			found.Annotations[key] = value
		}
	}
	found.Status.Initialization = c.Status.Initialization
	found.Status.OVDC, found.Status.OVDCNetwork = c.Status.OVDC, c.Status.OVDCNetwork
	if ready := conditions.Get(c, clusterv1.ReadyCondition); ready != nil {
		found.Status.Conditions = []metav1.Condition{{Status: ready.Status, Reason: ready.Reason}}
	}
	return found
}
