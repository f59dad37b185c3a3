// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An Application is the protocol that a virtual service understands.
type Application string

// Applications, in VCD's words.
const (
	L4    Application = "L4"
	L4TLS Application = "L4_TLS"
	HTTP  Application = "HTTP"
	HTTPS Application = "HTTPS"
)

// TLS reports whether the application ends TLS at the load balancer, which takes a certificate.
func (a Application) TLS() bool { return a == L4TLS || a == HTTPS }

// A Listener is one port of a load balancer.
type Listener struct {
	// Name is that of the Service's port; it may be empty and may change.
	Name        string
	Protocol    loadbalancer.Protocol
	Application Application
	// Port that clients use, and the one of the nodes.
	Port, NodePort int
	// Certificate for applications that end TLS; the zero value for others.
	Certificate Certificate
	// Monitor of the members; the zero value leaves the choice to the plan: TCP for TCP, UDP for UDP.
	Monitor Monitor
}

// key identifies the listener among those of its owner: by what clients see, so that a change of the port's name
// changes nothing.
func (l Listener) key() string { return key(l.Protocol, l.Port) }

// key is that of a listener with a protocol and a port.
func key(p loadbalancer.Protocol, port int) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(string(p)), port)
}

// compare orders listeners by what identifies them.
func (l Listener) compare(other Listener) int {
	return cmp.Or(cmp.Compare(l.Port, other.Port), cmp.Compare(l.Protocol, other.Protocol))
}

// A Monitor is a kind of health check of pool members, in VCD's words.
type Monitor string

// Monitors.
const (
	MonitorNone  Monitor = "NONE"
	MonitorTCP   Monitor = "TCP"
	MonitorUDP   Monitor = "UDP"
	MonitorPing  Monitor = "PING"
	MonitorHTTP  Monitor = "HTTP"
	MonitorHTTPS Monitor = "HTTPS"
)

// usualMonitor is the monitor of a pool for which nothing else is asked.
func usualMonitor(p loadbalancer.Protocol) Monitor {
	if p == loadbalancer.UDP {
		return MonitorUDP
	}
	return MonitorTCP
}

// monitors are those of a pool: what is asked for, else what shows that the node port answers. For TCP that also shows
// whether a node has endpoints of the Service: kube-proxy drops what comes to nodes without.
func (l Listener) monitors() []Monitor {
	switch l.Monitor {
	case MonitorNone:
		return nil
	case "":
		return []Monitor{usualMonitor(l.Protocol)}
	default:
		return []Monitor{l.Monitor}
	}
}

// A Certificate is one of the organization's library by its alias, or one to be put there.
type Certificate struct {
	// Alias in the library. Empty for one to be imported.
	Alias string
	// Chain and Key are PEM, for a certificate to be imported. The key is never part of a text or a hash that
	// leaves the plan.
	Chain, Key string
	// Source names for users where the certificate is from.
	Source string
}

// aliasFor returns the alias of a certificate in the library, also if it is yet to be imported for an owner.
func (c Certificate) aliasFor(o loadbalancer.Owner) string {
	if c.Alias != "" {
		return c.Alias
	}
	return nameFor(KindCertificate, o, short(c.Chain))
}

// Imported reports whether an alias is one that imports for an owner have.
func Imported(o loadbalancer.Owner, alias string) bool {
	prefix := nameFor(KindCertificate, o, "")
	if o.Name == "" {
		prefix = prefixes[KindCertificate] // a long marker leaves out what the name was made of
	}
	return o.Cluster != "" && strings.HasPrefix(alias, prefix)
}
