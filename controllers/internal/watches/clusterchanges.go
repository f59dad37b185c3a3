// SPDX-License-Identifier: Apache-2.0

package watches

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
)

// ClusterChanges passes events of Clusters, but only those updates that change what reconcilers of VCDClusters read.
// Cluster API also updates the status of a Cluster with each change of one of its machines.
func ClusterChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isCluster := e.ObjectOld.(*clusterv1.Cluster)
			after, staysCluster := e.ObjectNew.(*clusterv1.Cluster)
			return !isCluster || !staysCluster || !equality.Semantic.DeepEqual(readOf(before), readOf(after))
		},
	}
}

// clusterRead is the part of a Cluster that reconcilers of VCDClusters read. Its fields are exported for the comparison.
type clusterRead struct {
	Generation     int64 // of the spec
	Deleted        *metav1.Time
	Labels         map[string]string
	Annotations    map[string]string
	Initialization clusterv1.ClusterInitializationStatus
	Initialized    bool
	ControlPlanes  int32 // desired
}

func readOf(c *clusterv1.Cluster) clusterRead {
	read := clusterRead{
		Generation:     c.Generation,
		Deleted:        c.DeletionTimestamp,
		Labels:         c.Labels,
		Annotations:    c.Annotations,
		Initialization: c.Status.Initialization,
		Initialized:    capicluster.Initialized(c),
	}
	if status := c.Status.ControlPlane; status != nil {
		read.ControlPlanes = ptr.Deref(status.DesiredReplicas, 0)
	}
	return read
}
