package lb

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A Kind is a kind of object on or beside an edge gateway.
type Kind string

// Kinds of objects. The names are those the runtime defined entity uses, where it knows the kind.
const (
	// KindAddress is a floating IP allocated from an IP Space.
	KindAddress Kind = "ip-allocation"
	// KindCertificate is an item of the organisation's certificate library.
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
)

// OnGateway says whether things of a kind are on one gateway. The others are the organisation's: they are seen from every gateway, also
// where they are not used.
func (k Kind) OnGateway() bool {
	return k != KindAddress && k != KindCertificate && k != KindProfile
}

// How names begin. Those that cloud provider interface 1.6.1 used are kept: tools and people know them.
var prefixes = map[Kind]string{
	KindPool: "ingress-pool-", KindService: "ingress-vs-", KindRule: "dnat-ingress-vs-", KindProfile: "appPort_dnat-ingress-vs-",
	KindSet: "nodes-", KindCertificate: "ingress-cert-", KindFirewall: "ingress-fw-",
}

// maxName is how long a name may be; VCD's own limits are wider.
const maxName = 120

// nameFor returns the name of an object: what it is, whose, and which (a listener's key, a family, a hash), with a hash of the whole owner:
// names are unique on a gateway and repeat themselves after a crash.
func nameFor(kind Kind, o Owner, which string) string {
	readable := "nodes-of-cluster"
	if o.Name != "" {
		readable = o.Namespace + "-" + o.Name
	}
	prefix, end := prefixes[kind], "-"+short(o.Cluster, o.Namespace, o.Name, o.UID)+"-"+which
	if kind == KindSet {
		readable = tame(oldCluster(o.Cluster))
	}
	if room := maxName - len(prefix) - len(end); len(readable) > room {
		readable = readable[:room]
	}
	return prefix + readable + end
}

// LoadBalancerName returns the name by which the whole load balancer of an owner is known in logs and events.
func LoadBalancerName(o Owner) string {
	return strings.TrimSuffix(nameFor(KindService, o, ""), "-")
}

// tame leaves only letters, digits, dots, dashes and underscores.
func tame(s string) string {
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
