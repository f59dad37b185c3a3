// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"cmp"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig/vcdconfig"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// reasonInvalidSecret means that the Secret with the certificate is missing, not readable or invalid.
const reasonInvalidSecret = "InvalidSecret"

// A Dialect reads the VCD-specific parts of a Service, and contains defaults for Services that do not set them.
type Dialect struct {
	// Certificate is the alias for ports that terminate TLS and name none; empty means <cluster id>-cert.
	Certificate            string
	EngineGroup, Algorithm string
	// Reserved are addresses that no Service gets.
	Reserved []netip.Addr
	// TLSAsAnnotated terminates TLS only on ports that an annotation names. The appProtocol https alone is not enough.
	TLSAsAnnotated bool
	// Gateways are the gateways that Services can choose from. The first is the default.
	Gateways []vcdconfig.Gateway
}

var _ service.Dialect = (*Dialect)(nil)

// Names implements [service.Dialect].
func (*Dialect) Names() service.Names {
	return service.Names{
		OlderAddresses: prefix + "intended-addresses",
		OlderLocations: prefix + "standing-at",
		Location:       prefix + "gateway",
		Noun:           "gateway",
		LocationID:     gatewayURN,
	}
}

// gatewayURN matches the URN of an edge gateway.
var gatewayURN = regexp.MustCompile(`^urn:vcloud:gateway:[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// Read implements [service.Dialect].
func (*Dialect) Read(s *corev1.Service) (service.Settings, []loadbalancer.Finding) {
	requested, wrong := annotations.Read(s.Annotations)
	return requested.Settings, wrong
}

// An extension adds the VCD-specific part to one request.
type extension struct {
	dialect *Dialect
	service.Input
	settings

	request *service.Request
}

// Extend implements [service.Dialect].
func (d *Dialect) Extend(in service.Input, request *service.Request) {
	requested, _ := annotations.Read(in.Service.Annotations)
	e := extension{
		dialect:  d,
		Input:    in,
		settings: requested,
		request:  request,
	}
	request.Notices = append(request.Notices, annotations.Unknown(in.Service.Annotations)...)
	out := lb.Desired{
		Internal:         e.internal,
		PreserveClientIP: e.preserve,
		EngineGroup:      cmp.Or(e.engineGroup, d.EngineGroup),
		Algorithm:        cmp.Or(e.algorithm, d.Algorithm),
	}
	if i := slices.IndexFunc(d.Gateways, func(g vcdconfig.Gateway) bool { return g.Name == request.Location }); i >= 0 {
		g := d.Gateways[i]
		out.Subnet = g.VIPSubnet
		out.IPSpace = cmp.Or(e.ipSpace, g.IPSpace)
		out.InternalSubnets = g.InternalSubnets
		if g.OneArm != nil {
			out.OneArm = &lb.Range{First: g.OneArm.StartIP, Last: g.OneArm.EndIP}
		}
	}
	if e.internal {
		out.Subnet = e.subnet
	}
	for _, p := range request.Desired.Ports {
		out.Listeners = append(out.Listeners, e.listener(p))
	}
	e.noticeRules(out.Listeners)
	e.noticeIgnored()
	e.reserve()
	request.Desired.Extra = out
}

// reserve excludes the addresses of nodes and the reserved addresses of the configuration. The plan excludes the
// addresses of VMs.
func (e *extension) reserve() {
	d := &e.request.Desired
	for _, n := range e.Nodes {
		for _, address := range n.Status.Addresses {
			if a, err := netip.ParseAddr(address.Address); err == nil {
				d.Reserved = append(d.Reserved, loadbalancer.Use{
					Address:  a.Unmap(),
					Kind:     "node",
					Name:     n.Name,
					Reserved: true,
				})
			}
		}
	}
	for _, a := range e.dialect.Reserved {
		d.Reserved = append(d.Reserved, loadbalancer.Use{
			Address:  a.Unmap(),
			Kind:     "configuration",
			Name:     "loadbalancer.reservedAddresses",
			Reserved: true,
		})
	}
}

// listener returns the VCD-specific part of a port.
func (e *extension) listener(p service.Port) lb.Listener {
	l := lb.Listener{Application: e.application(p), Monitor: e.monitor, Check: e.check}
	l.Rules = e.rules(l.Application)
	if l.Application.TLS() {
		l.Certificate = e.certificate(p.Number)
		e.request.Terminates = true
	}
	return l
}

// rules returns the rules for the HTTP requests of a port. A port that redirects requests has no headers, because the
// requests do not reach the nodes.
func (e *extension) rules(application lb.Application) lb.HTTPRules {
	switch {
	case application == lb.HTTP && e.redirect != 0:
		return lb.HTTPRules{Redirect: e.redirect}
	case application == lb.HTTP, application == lb.HTTPS:
		return lb.HTTPRules{RequestHeaders: e.requestHeaders, ResponseHeaders: e.responseHeaders}
	}
	return lb.HTTPRules{}
}

// noticeRules reports annotations for HTTP that apply to no port.
func (e *extension) noticeRules(listeners []lb.Listener) {
	applies := func(to func(lb.HTTPRules) bool) bool {
		return slices.ContainsFunc(listeners, func(l lb.Listener) bool { return to(l.Rules) })
	}
	if e.redirect != 0 && !applies(func(r lb.HTTPRules) bool { return r.Redirect != 0 }) {
		e.request.Notice(service.InvalidAnnotation,
			"the annotation %s has no effect, because no port is HTTP: set the appProtocol of a port to http, or remove it",
			prefix+"http-redirect-https")
	}
	var idle []string
	if e.requestHeaders != "" && !applies(func(r lb.HTTPRules) bool { return r.RequestHeaders != "" }) {
		idle = append(idle, prefix+"http-request-headers")
	}
	if e.responseHeaders != "" && !applies(func(r lb.HTTPRules) bool { return r.ResponseHeaders != "" }) {
		idle = append(idle, prefix+"http-response-headers")
	}
	for _, annotation := range idle {
		e.request.Notice(service.InvalidAnnotation, "the annotation %s has no effect, because no port forwards HTTP requests: set the appProtocol of a port to http or https, or remove it", annotation)
	}
}

// application returns the protocol of a port: the profile in an annotation, else L4 if TLS passes through, else the
// appProtocol.
func (e *extension) application(p service.Port) lb.Application {
	if a, ok := e.profiles[p.Number]; ok {
		return a
	}
	if e.noTermination || p.Protocol == loadbalancer.UDP {
		return lb.L4
	}
	ssl := slices.Contains(e.sslPorts, p.Number)
	switch {
	case strings.EqualFold(p.AppProtocol, "https") && (ssl || !e.dialect.TLSAsAnnotated):
		return lb.HTTPS
	case strings.EqualFold(p.AppProtocol, "http"):
		if ssl {
			e.request.Notice(service.InvalidAnnotation,
				"port %d has appProtocol http and no TLS, although %s lists it: set its appProtocol to https",
				p.Number, prefix+"avi-ssl-ports")
		}
		return lb.HTTP
	case ssl:
		return lb.L4TLS
	}
	return lb.L4
}

// maxUnknown is the maximum number of ports that a notice lists.
const maxUnknown = 10

// noticeIgnored adds notices for settings without effect.
func (e *extension) noticeIgnored() {
	var unknown []string
	for _, n := range e.namedPorts() {
		if !slices.ContainsFunc(e.request.Desired.Ports, func(p service.Port) bool { return p.Number == n }) {
			unknown = append(unknown, strconv.Itoa(n))
		}
	}
	if n := len(unknown); n > 0 {
		e.request.Notice(service.InvalidAnnotation,
			"annotations refer to %d ports that the Service does not have: correct or remove them: %s", n,
			strings.Join(unknown[:min(n, maxUnknown)], ", "))
	}
	e.noticeIgnoredProbes()
	if e.subnet.IsValid() && !e.internal {
		e.request.Notice(service.InvalidAnnotation,
			"the annotation %[1]s has no effect without %[2]s: set %[2]s to true, or remove %[1]s",
			prefix+"internal-subnet", prefix+"internal")
	}
	if c := e.Service.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil &&
		*c.ClientIP.TimeoutSeconds != corev1.DefaultClientIPServiceAffinitySeconds {
		e.request.Notice(lb.Unsupported,
			"VCD has no timeout for session affinity: sessionAffinityConfig is ignored")
	}
}

// noticeIgnoredProbes adds notices for health checks that VCD does not support. Monitors of pools probe the node port.
// On nodes without endpoints, a local traffic policy makes kube-proxy drop TCP, which monitors detect, but also UDP,
// which they do not detect.
func (e *extension) noticeIgnoredProbes() {
	if e.monitor == "" && slices.ContainsFunc(e.request.Desired.Ports,
		func(p service.Port) bool { return p.Protocol == loadbalancer.UDP && p.HealthPort != 0 }) {
		e.request.Notice(lb.Unsupported,
			"this VCD version cannot check whether nodes have endpoints of the Service, so UDP packets may go to nodes without endpoints: use externalTrafficPolicy Cluster")
	}
}

// namedPorts returns the sorted ports that annotations name.
func (e *extension) namedPorts() []int {
	out := slices.Clone(e.sslPorts)
	for n := range e.profiles {
		out = append(out, n)
	}
	for _, m := range []map[int]string{e.aliases, e.secrets} {
		for n := range m {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Defaults returns the defaults for all Services of a cluster.
func (d *Dialect) Defaults(cluster string, sourceRanges, includeControlPlane bool) service.Defaults {
	out := service.Defaults{
		Cluster:             cluster,
		Dialect:             d,
		SourceRanges:        sourceRanges,
		IncludeControlPlane: includeControlPlane,
	}
	for _, g := range d.Gateways {
		out.Locations = append(out.Locations, g.Name)
	}
	return out
}
