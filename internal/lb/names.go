// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// A Kind is a kind of object on or beside an edge gateway.
type Kind string

// Kinds of objects. The names are those the runtime defined entity uses, where it knows the kind.
const (
	// KindAddress is a floating IP allocated from an IP Space.
	KindAddress Kind = "ip-allocation"
	// KindCertificate is an item of the organization's certificate library.
	KindCertificate Kind = "certificate"
	// KindSet is an IP set: the addresses of the cluster's nodes, of one family.
	KindSet Kind = "ip-set"
	// KindPool is a load balancer pool.
	KindPool Kind = "lb-pool"
	// KindService is a virtual service.
	KindService Kind = "virtual-service"
	// KindProfile is an application port profile, which a NAT rule refers to.
	KindProfile Kind = "app-port-profile"
	// KindRule is a DNAT rule.
	KindRule Kind = "dnat-rule"
	// KindFirewall is a rule of the edge gateway's firewall.
	KindFirewall Kind = "firewall-rule"
	// KindHost is a VM or a gateway inside the organization, in a [Use] only.
	KindHost Kind = "host"
)

// OnGateway reports whether objects of a kind are on one gateway. The others are the organization's: they are seen
// from every gateway, also where they are not used.
func (k Kind) OnGateway() bool {
	return k != KindAddress && k != KindCertificate && k != KindProfile
}

// prefixes begin names. Those of cloud provider interface 1.6.1 are kept: tools and users know them.
var prefixes = map[Kind]string{
	KindPool:        "ingress-pool-",
	KindService:     "ingress-vs-",
	KindRule:        "dnat-ingress-vs-",
	KindProfile:     "appPort_dnat-ingress-vs-",
	KindSet:         "nodes-",
	KindCertificate: "ingress-cert-",
	KindFirewall:    "ingress-fw-",
}

// maxName is how long a name may be; VCD's own limits are wider. maxGatewayName is how much of it the name of a gateway
// takes.
const (
	maxName        = 120
	maxGatewayName = 32
)

// nameFor returns the name of an object: what it is, whose, and which (a listener's key, a family, a hash), with a
// hash of the whole owner: names are unique on a gateway and repeat themselves after a crash.
func nameFor(kind Kind, o Owner, which string) string {
	readable := "nodes-of-cluster"
	switch {
	case o.IsEndpoint():
		readable = o.Name
	case o.Name != "":
		readable = o.Namespace + "-" + o.Name
	}
	prefix := prefixes[kind]
	end := "-" + short(o.Cluster, o.Namespace, o.Name, o.UID) + "-" + which
	if kind == KindSet {
		readable = sanitized(oldCluster(o.Cluster))
	}
	if room := maxName - len(prefix) - len(end); len(readable) > room {
		readable = readable[:room]
	}
	return prefix + readable + end
}

// setName returns the name of the IP set of a cluster's nodes for a gateway: names are unique in a VDC group, which
// may have several gateways.
func setName(cluster string, g Gateway, which string) string {
	name := sanitized(g.Name)
	return nameFor(KindSet, Owner{Cluster: cluster}, name[:min(len(name), maxGatewayName)]+"-"+short(g.ID)+"-"+which)
}

// LoadBalancerName returns the name by which the whole load balancer of an owner is known in logs and events.
func LoadBalancerName(o Owner) string {
	return strings.TrimSuffix(nameFor(KindService, o, ""), "-")
}

// sanitized leaves only letters, digits, dots, dashes and underscores.
func sanitized(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, s)
}

// short hashes words to ten letters and digits.
func short(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// What ids of clusters began with that cloud provider interface 1.6.1 left out of names.
var oldClusterPrefixes = []string{"urn:vcloud:entity:vmware:", "urn:vcloud:entity:cse:nativeCluster:"}

// oldCluster returns the id of a cluster as it is in names of cloud provider interface 1.6.1.
func oldCluster(cluster string) string {
	for _, p := range oldClusterPrefixes {
		if rest, ok := strings.CutPrefix(cluster, p); ok {
			return rest
		}
	}
	return cluster
}

// An Origin is how the owner of an object is known.
type Origin int

// Origins.
const (
	// Foreign is an object of another cluster, or of none.
	Foreign Origin = iota
	// Marked is an object with a marker in its description.
	Marked
	// OldName is an object without a marker that has a name as cloud provider interface 1.6.1 gives: the cluster's if
	// [NamesProve], and likely the Service's.
	OldName
)

// OwnerOf returns the marker of an object, if it is of the given cluster. An [Observed] of an owner holds the
// objects whose owner [Owner.Is] it, and those of origin OldName that have the Service's name.
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

// uniqueID matches what is the id of one cluster only, and in no other name by chance.
var uniqueID = regexp.MustCompile(`^(urn:.+|(NO_RDE_)?[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$`)

// NamesProve reports whether names of cloud provider interface 1.6.1 prove that an object is the cluster's: its id is a
// URN or a UUID. With any other id they do not: those of the Service api-prod in cluster dev are read as those of the
// Service api in cluster prod.
func NamesProve(cluster string) bool { return uniqueID.MatchString(cluster) }

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

// cutOnce cuts around a separator that is in the text exactly once.
func cutOnce(s, separator string) (before, after string, ok bool) {
	if strings.Count(s, separator) != 1 {
		return "", "", false
	}
	return strings.Cut(s, separator)
}
