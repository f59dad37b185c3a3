package lb

import (
	"cmp"
	"strings"
)

// An Owner is what a load balancer belongs to: a Service of a cluster.
type Owner struct {
	// Cluster is the id of the cluster that all its objects in VCD carry (the infraID of a VCDCluster, CLUSTER_ID of the cloud controller
	// manager).
	Cluster string
	// Namespace and Name are those of the Service. Both are empty for what belongs to the cluster as a whole: the sets of node addresses.
	// Only Namespace is empty for what cloud provider interface 1.6.1 made, which wrote down neither namespace nor UID.
	Namespace, Name string
	// UID is that of the Service; with Cluster it is the identity. A Service that is created again under its name is another owner.
	UID string
}

// String returns the owner as people know it.
func (o Owner) String() string {
	if o.Name == "" {
		return "cluster " + o.Cluster
	}
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}

// Is says whether two owners are the same: of one cluster and one UID. The names are not compared, as a long marker leaves them out.
func (o Owner) Is(other Owner) bool {
	if o.Cluster == "" || o.Cluster != other.Cluster || o.UID != other.UID {
		return false
	}
	return o.UID != "" || o.Namespace == other.Namespace && o.Name == other.Name
}

// WholeCluster says whether the owner is the cluster itself, not one of its Services.
func (o Owner) WholeCluster() bool { return o.Cluster != "" && o.Name == "" && o.UID == "" }

// Old says whether the owner is a Service known only from the names that cloud provider interface 1.6.1 gave.
func (o Owner) Old() bool { return o.Cluster != "" && o.UID == "" && o.Name != "" }

// Compare orders owners for people.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(strings.Compare(o.Cluster, other.Cluster), strings.Compare(o.Namespace, other.Namespace),
		strings.Compare(o.Name, other.Name), strings.Compare(o.UID, other.UID))
}
