// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"strings"
)

// An Owner is what a load balancer belongs to: a Service of a cluster, or its control-plane endpoint.
type Owner struct {
	// Cluster is the id of the cluster that all its objects in the cloud carry (for VCD the infraID of a VCDCluster,
	// CLUSTER_ID of the cloud controller manager).
	Cluster string
	// Namespace and Name are those of the Service. Both are empty for what belongs to the cluster as a whole, such as
	// sets of node addresses. Only Namespace is empty where a predecessor of this program wrote down neither namespace
	// nor UID.
	Namespace, Name string
	// UID is that of the Service; with Cluster it is the identity. A Service that is created again under its name
	// is another owner.
	UID string
}

// endpointID is both name and UID of the control-plane endpoint as an owner. No Service has such a UID.
const endpointID = "control-plane"

// EndpointOf returns the owner of what serves the control-plane endpoint of a cluster.
func EndpointOf(cluster string) Owner {
	return Owner{Cluster: cluster, Name: endpointID, UID: endpointID}
}

// IsEndpoint reports whether the owner is the control-plane endpoint of a cluster, not a Service.
func (o Owner) IsEndpoint() bool { return o.Cluster != "" && o.UID == endpointID }

// WholeCluster reports whether the owner is the cluster itself, not one of its Services.
func (o Owner) WholeCluster() bool { return o.Cluster != "" && o.Name == "" && o.UID == "" }

// Inherited reports whether the owner is a Service known only from names that a predecessor of this program gave.
func (o Owner) Inherited() bool { return o.Cluster != "" && o.UID == "" && o.Name != "" }

// Is reports whether two owners are the same: of one cluster and one UID. The names are not compared, as a long
// marker omits them.
func (o Owner) Is(other Owner) bool {
	if o.Cluster == "" || o.Cluster != other.Cluster || o.UID != other.UID {
		return false
	}
	return o.UID != "" || o.Namespace == other.Namespace && o.Name == other.Name
}

// Compare orders owners by cluster and name.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(strings.Compare(o.Cluster, other.Cluster), strings.Compare(o.Namespace, other.Namespace),
		strings.Compare(o.Name, other.Name), strings.Compare(o.UID, other.UID))
}

// String returns the owner as users know it.
func (o Owner) String() string {
	if o.Name == "" {
		return "cluster " + o.Cluster
	}
	if o.IsEndpoint() {
		return "control-plane endpoint"
	}
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}
