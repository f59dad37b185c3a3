package lb

import "strings"

// What ids of clusters began with that cloud provider interface 1.6.1 left out of names.
var oldClusterPrefixes = []string{"urn:vcloud:entity:vmware:", "urn:vcloud:entity:cse:nativeCluster:"}

// oldCluster returns the id of a cluster as it stands in names of cloud provider interface 1.6.1.
func oldCluster(cluster string) string {
	for _, p := range oldClusterPrefixes {
		if rest, ok := strings.CutPrefix(cluster, p); ok {
			return rest
		}
	}
	return cluster
}

// An Origin is how it is known whose an object is.
type Origin int

// Origins.
const (
	// Foreign is what nothing says to be of a cluster.
	Foreign Origin = iota
	// Marked is what a marker in the description names.
	Marked
	// OldName is what has no marker and the name that cloud provider interface 1.6.1 gives: certainly the cluster's, likely the Service's.
	OldName
)

// OwnerOf says whose an object is, if it is of the given cluster at all. Drivers keep their objects by it: an [Observed] of an owner holds
// the objects whose owner [Owner.Is] it, and those of origin OldName that have the Service's name.
func OwnerOf(cluster string, kind Kind, name, description string) (Marker, Origin) {
	if m, ok := ParseMarker(description); ok {
		if m.Owner.Cluster != cluster {
			return Marker{}, Foreign
		}
		return m, Marked
	}
	if strings.Contains(description, markerWord) {
		return Marker{}, Foreign
	}
	if kind == KindAddress {
		return oldClaim(cluster, description)
	}
	service, port, ok := oldName(cluster, kind, name)
	if !ok {
		return Marker{}, Foreign
	}
	return Marker{Owner: Owner{Cluster: cluster, Name: service}, Listener: port}, OldName
}

// oldName takes a name of cloud provider interface 1.6.1 apart: the Service and the name of its port.
func oldName(cluster string, kind Kind, name string) (service, port string, ok bool) {
	switch kind {
	case KindPool, KindService, KindRule, KindProfile:
	default:
		return "", "", false
	}
	rest, ok := strings.CutPrefix(name, prefixes[kind])
	if !ok || cluster == "" {
		return "", "", false
	}
	return cutOnce(rest, "-"+oldCluster(cluster)+"-")
}

// oldClaim reads the words with which cloud provider interface 1.6 marked allocations.
func oldClaim(cluster, description string) (Marker, Origin) {
	rest, ok := strings.CutPrefix(description, "cluster-"+oldCluster(cluster)+"-namespace-")
	if !ok {
		return Marker{}, Foreign
	}
	namespace, service, ok := cutOnce(rest, "-service-")
	if !ok {
		return Marker{}, Foreign
	}
	return Marker{Owner: Owner{Cluster: cluster, Namespace: namespace, Name: service}}, OldName
}

// cutOnce cuts around a separator that stands in the text once.
func cutOnce(s, separator string) (before, after string, ok bool) {
	if strings.Count(s, separator) != 1 {
		return "", "", false
	}
	return strings.Cut(s, separator)
}
