// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// An Application is the application protocol of a virtual service.
type Application string

// Applications, in VCD's terms.
const (
	L4    Application = "L4"
	L4TLS Application = "L4_TLS"
	HTTP  Application = "HTTP"
	HTTPS Application = "HTTPS"
)

// TLS reports whether the load balancer terminates TLS, which requires a certificate.
func (a Application) TLS() bool { return a == L4TLS || a == HTTPS }

// A Listener is one port of a load balancer.
type Listener struct {
	// Name of the Service's port. It may be empty and may change.
	Name        string
	Protocol    loadbalancer.Protocol
	Application Application
	// Port is the port for clients, NodePort that of the nodes.
	Port, NodePort int
	// Certificate for applications that terminate TLS; the zero value for others.
	Certificate Certificate
	// Monitor of the members. The zero value means the default: TCP for TCP, UDP for UDP.
	Monitor Monitor
	// Check contains settings of the monitor. The zero value means a monitor that VCD defines.
	Check HealthCheck
	// Rules for the requests of an HTTP or HTTPS listener, and for their responses.
	Rules HTTPRules
}

// key identifies the listener among those of its owner. It consists of properties that clients see, so that renaming
// the Service's port changes nothing.
func (l Listener) key() string { return key(l.Protocol, l.Port) }

// key returns the key of a listener with a protocol and a port.
func key(p loadbalancer.Protocol, port int) string {
	return fmt.Sprintf("%s-%d", strings.ToLower(string(p)), port)
}

// protocolOf returns the protocol in the key of a listener; empty for the empty key.
func protocolOf(key string) loadbalancer.Protocol {
	protocol, _, _ := strings.Cut(key, "-")
	return loadbalancer.Protocol(strings.ToUpper(protocol))
}

// compare orders listeners by port and protocol.
func (l Listener) compare(other Listener) int {
	return cmp.Or(cmp.Compare(l.Port, other.Port), cmp.Compare(l.Protocol, other.Protocol))
}

// A Monitor is a kind of health check of pool members, in VCD's terms.
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

// defaultMonitor returns the default monitor of a pool.
func defaultMonitor(p loadbalancer.Protocol) Monitor {
	if p == loadbalancer.UDP {
		return MonitorUDP
	}
	return MonitorTCP
}

// monitors returns the monitors of a pool: the requested one, or else one that checks the node port. For TCP it also
// detects whether a node has endpoints of the Service, because kube-proxy drops connections to nodes without endpoints.
func (l Listener) monitors() []Monitor {
	switch l.Monitor {
	case MonitorNone:
		return nil
	case "":
		return []Monitor{defaultMonitor(l.Protocol)}
	default:
		return []Monitor{l.Monitor}
	}
}

// A Certificate is a certificate in the organization's library, given by its alias, or a certificate to import.
type Certificate struct {
	// Alias in the library; empty for a certificate to import.
	Alias string
	// Chain and Key are PEM, for a certificate to import. The key is never part of a text or a hash that leaves the
	// plan.
	Chain, Key string
	// Source describes the origin of the certificate for users.
	Source string
}

// aliasFor returns the alias of a certificate in the library, also if it is not imported for the owner yet.
func (c Certificate) aliasFor(o loadbalancer.Owner) string {
	if c.Alias != "" {
		return c.Alias
	}
	return nameFor(KindCertificate, o, short(c.Chain))
}

// Imported reports whether an alias belongs to a certificate imported for an owner.
func Imported(o loadbalancer.Owner, alias string) bool {
	prefix := nameFor(KindCertificate, o, "")
	if o.Name == "" {
		prefix = prefixes[KindCertificate] // a long marker omits the parts of the name
	}
	return o.Cluster != "" && strings.HasPrefix(alias, prefix)
}
