// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An Origin is how the owner of an object is known.
type Origin int

// Origins.
const (
	// Foreign is an object of another cluster, or of none.
	Foreign Origin = iota
	// Marked is an object with a marker in its description.
	Marked
	// OldName is an object without a marker that has a name as cloud provider interface 1.6.1 gives: the cluster's if
	// [NamesProve], and likely the Service's. Or CAPVCD 1.3 named it, for the endpoint of the cluster.
	OldName
)

// OwnerOf returns the marker of an object, if it is of the given cluster. An [Observed] of an owner holds the
// objects whose owner [loadbalancer.Owner.Is] it, and those of origin OldName that have the Service's name.
func OwnerOf(cluster string, kind loadbalancer.Kind, name, description string) (Marker, Origin) {
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
	if service, port, ok := oldName(cluster, kind, name); ok {
		return Marker{Owner: loadbalancer.Owner{Cluster: cluster, Name: service}, Listener: port}, OldName
	}
	if isOldEndpoint(cluster, kind, name) {
		return Marker{Owner: loadbalancer.EndpointOf(cluster), Listener: endpointListener}, OldName
	}
	return Marker{}, Foreign
}

// endpointListener is the name of the listener for the API server, the only one that CAPVCD made.
const endpointListener = "api"

// isOldEndpoint reports whether CAPVCD 1.3 gave an object its name, for the endpoint of a cluster: it consists of the
// name of the VCDCluster and the id of the cluster, which no other cluster has.
func isOldEndpoint(cluster string, kind loadbalancer.Kind, name string) bool {
	prefix, ok := map[loadbalancer.Kind]string{
		KindPool:    "",
		KindService: "",
		KindRule:    "dnat-",
		KindProfile: "appPort_dnat-",
	}[kind]
	if !ok || !capvcd.IsClusterID(cluster) {
		return false
	}
	rest, ok := strings.CutPrefix(name, prefix)
	ofCluster, isEndpoint := strings.CutSuffix(rest, "-"+cluster+"-tcp")
	return ok && isEndpoint && ofCluster != ""
}

// Likely reports whether the owner that the name of an object without a marker tells may be o.
func Likely(o, named loadbalancer.Owner) bool {
	return named.Name == o.Name && named.IsEndpoint() == o.IsEndpoint()
}

// uniqueID matches what is the id of one cluster only, and in no other name by chance.
var uniqueID = regexp.MustCompile(`^(urn:.+|(NO_RDE_)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$`)

// NamesProve reports whether names of cloud provider interface 1.6.1 prove that an object is the cluster's: its id is a
// URN or a UUID. With any other id they do not: those of the Service api-prod in cluster dev are read as those of the
// Service api in cluster prod.
func NamesProve(cluster string) bool { return uniqueID.MatchString(cluster) }

// oldName takes a name of cloud provider interface 1.6.1 apart: the Service and the name of its port.
func oldName(cluster string, kind loadbalancer.Kind, name string) (service, port string, ok bool) {
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
		return oldEndpointClaim(cluster, description)
	}
	namespace, service, ok := cutOnce(rest, "-service-")
	if !ok {
		return Marker{}, Foreign
	}
	return Marker{Owner: loadbalancer.Owner{Cluster: cluster, Namespace: namespace, Name: service}}, OldName
}

// oldEndpointClaim reads the words with which CAPVCD 1.3 marked the allocation of an endpoint's address.
func oldEndpointClaim(cluster, description string) (Marker, Origin) {
	name, ok := strings.CutPrefix(description, "cluster-")
	if !ok || !capvcd.IsClusterID(cluster) || !strings.HasSuffix(name, "-id-"+cluster) {
		return Marker{}, Foreign
	}
	return Marker{Owner: loadbalancer.EndpointOf(cluster)}, OldName
}

// cutOnce cuts around a separator that is in the text exactly once.
func cutOnce(s, separator string) (before, after string, ok bool) {
	if strings.Count(s, separator) != 1 {
		return "", "", false
	}
	return strings.Cut(s, separator)
}

// A Stray is an object of the owner under another id of its cluster.
type Stray struct{ Cluster, Name string }

// StrayOf returns what an object is of an owner under another id of its cluster, if it is that. UIDs of Services
// are in no cluster twice; endpoints all have the same.
func StrayOf(o loadbalancer.Owner, name, description string) (Stray, bool) {
	m, ok := ParseMarker(description)
	return Stray{m.Owner.Cluster, name}, ok && o.UID != "" && !o.IsEndpoint() && m.Owner.UID == o.UID &&
		m.Owner.Cluster != o.Cluster
}
