// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// prefixes are the prefixes of names. They match those of cloud provider interface 1.6.1, which tools and users know.
var prefixes = map[loadbalancer.Kind]string{
	KindPool:        "ingress-pool-",
	KindService:     "ingress-vs-",
	KindRule:        "dnat-ingress-vs-",
	KindProfile:     "appPort_dnat-ingress-vs-",
	KindSet:         "nodes-",
	KindCertificate: "ingress-cert-",
	KindFirewall:    "ingress-fw-",
}

// maxName is the maximum length of a name; the limits of VCD are higher. maxGatewayName is the maximum length of a
// gateway's name in it.
const (
	maxName        = 120
	maxGatewayName = 32
)

// nameFor returns the name of an object. It contains the kind, the owner, which object it is (a listener's key, a
// family, a hash), and a hash of the complete owner. The name is unique on a gateway, and the same after a crash.
func nameFor(kind loadbalancer.Kind, o loadbalancer.Owner, which string) string {
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

// setName returns the name of the IP set of a cluster's nodes for a gateway. It contains the gateway, because names are
// unique in a VDC group, which may have several gateways.
func setName(cluster string, g Gateway, which string) string {
	name := sanitized(g.Name)
	return nameFor(KindSet, loadbalancer.Owner{Cluster: cluster}, name[:min(len(name), maxGatewayName)]+"-"+short(g.ID)+"-"+which)
}

// LoadBalancerName returns the name of an owner's load balancer in logs and events.
func LoadBalancerName(o loadbalancer.Owner) string {
	return strings.TrimSuffix(nameFor(KindService, o, ""), "-")
}

// sanitized replaces all characters except letters, digits, dots, dashes and underscores.
func sanitized(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, s)
}

// short returns a hash of words with ten hexadecimal digits.
func short(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// oldClusterPrefixes are the prefixes of cluster IDs that cloud provider interface 1.6.1 omitted in names.
var oldClusterPrefixes = []string{"urn:vcloud:entity:vmware:", "urn:vcloud:entity:cse:nativeCluster:"}

// oldCluster returns the ID of a cluster as cloud provider interface 1.6.1 wrote it in names.
func oldCluster(cluster string) string {
	for _, p := range oldClusterPrefixes {
		if rest, ok := strings.CutPrefix(cluster, p); ok {
			return rest
		}
	}
	return cluster
}
