// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"cmp"
	"strings"
)

// An Owner is the owner of a load balancer: a Service of a cluster, or its control plane endpoint.
type Owner struct {
	// Cluster is the ID of the cluster, which all its objects in the cloud carry. For VCD, it is the infraID of a
	// VCDCluster, CLUSTER_ID of the cloud controller manager.
	Cluster string
	// Namespace and Name are those of the Service. Both are empty for objects of the whole cluster, such as sets of
	// node addresses. Only Namespace is empty for objects of a predecessor of this program that recorded neither
	// namespace nor UID.
	Namespace, Name string
	// UID is the UID of the Service. Together with Cluster it is the identity: a Service that is recreated with the
	// same name is another owner.
	UID string
}

// endpointID is both name and UID of the control plane endpoint as an owner. No Service has such a UID.
const endpointID = "control-plane"

// EndpointOf returns the owner of the objects that serve the control plane endpoint of a cluster.
func EndpointOf(cluster string) Owner {
	return Owner{Cluster: cluster, Name: endpointID, UID: endpointID}
}

// IsEndpoint reports whether the owner is the control plane endpoint of a cluster, not a Service.
func (o Owner) IsEndpoint() bool { return o.Cluster != "" && o.UID == endpointID }

// WholeCluster reports whether the owner is the cluster itself, not one of its Services.
func (o Owner) WholeCluster() bool { return o.Cluster != "" && o.Name == "" && o.UID == "" }

// Inherited reports whether the owner is a Service that is only known from names that a predecessor of this program
// generated.
func (o Owner) Inherited() bool { return o.Cluster != "" && o.UID == "" && o.Name != "" }

// Is reports whether two owners have the same cluster and UID. Names are not compared, because long markers omit them.
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

// String returns the owner in the form that users know.
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
