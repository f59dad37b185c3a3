// SPDX-License-Identifier: Apache-2.0

package capicluster

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// Initialized reports whether the control plane of a cluster was initialized, so that its API server has responded
// once. For control planes that are Machines without an owner, Cluster API sets only the condition.
func Initialized(cluster *clusterv1.Cluster) bool {
	return ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, false) ||
		conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition)
}
