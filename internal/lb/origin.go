// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/capvcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An Origin is the way in which the owner of an object is known.
type Origin int

// Origins.
const (
	// Foreign is an object of another cluster, or of no cluster.
	Foreign Origin = iota
	// Marked is an object with a marker in its description.
	Marked
	// OldName is an object without a marker whose name has the form of cloud provider interface 1.6.1. It belongs to
	// the cluster if [NamesProve], and probably to the Service. It may also be an object for the endpoint of the
	// cluster that CAPVCD 1.3 named.
	OldName
)

// OwnerOf returns the marker of an object, if the object belongs to the given cluster. An [Observed] of an owner
// contains the objects with this owner ([loadbalancer.Owner.Is]), and those of origin OldName with the Service's name.
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

// endpointListener is the name of the listener for the API server, the only one that CAPVCD created.
const endpointListener = "api"

// isOldEndpoint reports whether CAPVCD 1.3 named an object for the endpoint of a cluster. Such a name consists of the
// name of the VCDCluster and the unique ID of the cluster.
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

// Likely reports whether the name of an unmarked object may refer to the owner o.
func Likely(o, named loadbalancer.Owner) bool {
	return named.Name == o.Name && named.IsEndpoint() == o.IsEndpoint()
}

// uniqueID matches IDs that belong to only one cluster and do not occur in other names by chance.
var uniqueID = regexp.MustCompile(`^(urn:.+|(NO_RDE_)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$`)

// NamesProve reports whether names of cloud provider interface 1.6.1 prove that an object belongs to the cluster. This
// requires that its ID is a URN or a UUID. Otherwise, names are ambiguous: those of the Service api-prod in cluster dev
// are parsed as those of the Service api in cluster prod.
func NamesProve(cluster string) bool { return uniqueID.MatchString(cluster) }

// oldName parses a name of cloud provider interface 1.6.1. It returns the Service and the name of its port.
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

// oldClaim parses the description that cloud provider interface 1.6 wrote on allocations.
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

// oldEndpointClaim parses the description that CAPVCD 1.3 wrote on the allocation of an endpoint's address.
func oldEndpointClaim(cluster, description string) (Marker, Origin) {
	name, ok := strings.CutPrefix(description, "cluster-")
	if !ok || !capvcd.IsClusterID(cluster) || !strings.HasSuffix(name, "-id-"+cluster) {
		return Marker{}, Foreign
	}
	return Marker{Owner: loadbalancer.EndpointOf(cluster)}, OldName
}

// cutOnce splits a text at a separator, if the text contains it exactly once.
func cutOnce(s, separator string) (before, after string, ok bool) {
	if strings.Count(s, separator) != 1 {
		return "", "", false
	}
	return strings.Cut(s, separator)
}

// A Stray is an object of the owner under another ID of its cluster.
type Stray struct{ Cluster, Name string }

// StrayOf reports whether an object belongs to an owner under another ID of its cluster, and returns it. UIDs of
// Services are unique across clusters, but all endpoints have the same UID.
func StrayOf(o loadbalancer.Owner, name, description string) (Stray, bool) {
	m, ok := ParseMarker(description)
	return Stray{m.Owner.Cluster, name}, ok && o.UID != "" && !o.IsEndpoint() && m.Owner.UID == o.UID &&
		m.Owner.Cluster != o.Cluster
}
