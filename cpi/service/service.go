// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of findings.
const (
	// InvalidAnnotation means that an annotation is invalid or unknown.
	InvalidAnnotation = "InvalidAnnotation"
	// InvalidFamilies means that the requested addresses do not match the IP families.
	InvalidFamilies = "InvalidFamilies"
	// InvalidSourceRanges means that the source ranges cannot be parsed or are not enabled.
	InvalidSourceRanges = "InvalidSourceRanges"
	// NodeExcluded means that a node cannot be a member.
	NodeExcluded = "NodeExcluded"
)

// RangesAnnotation is the annotation for source ranges that Kubernetes used before spec.loadBalancerSourceRanges.
const RangesAnnotation = "service.beta.kubernetes.io/load-balancer-source-ranges"

// Defaults are the settings for all Services.
type Defaults struct {
	// Cluster is the ID of the cluster.
	Cluster string
	// Class is the load balancer class of this process. A process of another class for the same cluster has separate
	// records.
	Class string
	// Records returns the records of Services; nil if there are none. [cpi.NewLoadBalancers] sets it.
	Records Records
	Dialect Dialect
	// SourceRanges allows Services to have source ranges.
	SourceRanges bool
	// IncludeControlPlane also makes control plane nodes members.
	IncludeControlPlane bool
	// Locations are the names of the locations that Services can choose from. The first is the default.
	Locations []string
}

// An Input is everything that the load balancer of a Service depends on.
type Input struct {
	Defaults

	Service *corev1.Service
	// Nodes are all nodes of the cluster. Generation is that of their list ([loadbalancer.Desired.Generation]).
	Nodes      []*corev1.Node
	Generation uint64
	// Secrets are the existing Secrets, by name, among those that [Dialect.SecretNames] returns.
	Secrets map[string]*corev1.Secret
	// Hidden are the names of Secrets that this process may not read.
	Hidden []string
	// Duplicates are the other Services with the same name that have, or had, a load balancer.
	Duplicates []*corev1.Service
	Now        time.Time
}

// A Request is what a Service requests: a load balancer at a location.
type Request struct {
	Desired Desired
	// Location is the name of the location.
	Location string
	// Refusals explain why the Service is invalid. If there are any, nothing may be created.
	Refusals []loadbalancer.Finding
	// Notices explain deviations from the request.
	Notices []loadbalancer.Finding
	// Wait names missing data; empty if nothing is missing.
	Wait string
	// Terminates means that connections end at the load balancer, as with TLS, so that clients in the cluster must also
	// connect to it.
	Terminates bool
	// Hostname is published instead of the addresses; empty means that the addresses are published.
	Hostname string
	// DryRun requests that nothing is changed.
	DryRun bool
}

// Refuse adds a refusal.
func (r *Request) Refuse(reason, format string, args ...any) {
	r.Refusals = append(r.Refusals, finding(reason, format, args...))
}

// Notice adds a notice.
func (r *Request) Notice(reason, format string, args ...any) {
	r.Notices = append(r.Notices, finding(reason, format, args...))
}

// Settings returns the settings in the annotations of a Service, as far as they can be parsed.
func (d Defaults) Settings(s *corev1.Service) Settings {
	if d.Dialect == nil {
		return Settings{}
	}
	settings, _ := d.Dialect.Read(s)
	return settings
}

// OwnerOf returns the owner of a Service's load balancer.
func (d Defaults) OwnerOf(s *corev1.Service) loadbalancer.Owner {
	return loadbalancer.Owner{Cluster: d.Cluster, Namespace: s.Namespace, Name: s.Name, UID: string(s.UID)}
}

// Promised returns the addresses and ports that a Service keeps from another one, whether or not objects exist there.
// These are its published addresses. They also include addresses that it requests or that were recorded before their
// first use, unless they are published, requested or recorded for the other Service.
func (d Defaults) Promised(s, other *corev1.Service) []loadbalancer.Use {
	share, mine := d.claims(s)
	_, wanted := d.claims(other)
	before := slices.Concat(published(other), wanted, d.Stored(other).Addresses)
	addresses := published(s)
	for _, a := range append(mine, d.Stored(s).Addresses...) {
		if !slices.Contains(before, a) {
			addresses = append(addresses, a)
		}
	}
	var out []loadbalancer.Use
	for _, a := range addresses {
		for _, p := range s.Spec.Ports {
			out = append(out, loadbalancer.Use{
				Address:  a,
				Protocol: loadbalancer.Protocol(p.Protocol),
				Port:     int(p.Port),
				Kind:     "Service",
				Name:     s.Namespace + "/" + s.Name,
				Owner:    d.OwnerOf(s),
				Share:    share,
				Promised: true,
			})
		}
	}
	return out
}

// claims returns the key under which a Service shares its address, and the addresses that it requests. It returns no
// addresses if the Service is invalid.
func (d Defaults) claims(s *corev1.Service) (share string, addresses []netip.Addr) {
	settings, wrong := d.Dialect.Read(s)
	addresses, err := requestedAddresses(settings, s)
	if err != nil || len(wrong) > 0 {
		addresses = nil
	}
	return settings.Share, addresses
}

// Absent returns the desired state without any load balancer. Errors in the Service are ignored. Members are all nodes.
func Absent(in Input) Desired {
	d := in.identity()
	d.Absent = true
	d.Keep = in.Settings(in.Service).Keep
	for _, n := range in.Nodes {
		d.Members = append(d.Members,
			Member{Node: n.Name, ProviderID: n.Spec.ProviderID, Addresses: InternalIPs(n)})
	}
	for _, p := range in.Service.Spec.Ports {
		d.Ports = append(d.Ports, portOf(p))
	}
	return d
}

func portOf(p corev1.ServicePort) Port {
	return Port{
		Name:        p.Name,
		Protocol:    loadbalancer.Protocol(p.Protocol),
		AppProtocol: ptr.Deref(p.AppProtocol, ""),
		Number:      int(p.Port),
		NodePort:    int(p.NodePort),
	}
}

// identity returns the data that identifies the load balancer.
func (in Input) identity() Desired {
	d := Desired{Desired: loadbalancer.Desired{
		Owner:     in.OwnerOf(in.Service),
		Intent:    in.Stored(in.Service).Addresses,
		Duplicate: len(in.Duplicates) > 0,
	}}
	for _, a := range published(in.Service) {
		if !slices.ContainsFunc(in.Duplicates,
			func(s *corev1.Service) bool { return slices.Contains(published(s), a) }) {
			d.Published = append(d.Published, a)
		}
	}
	return d
}

func published(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(ingress.IP); err == nil {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// For returns the load balancer that a Service requests.
func For(in Input) Request {
	settings, wrong := in.Dialect.Read(in.Service)
	b := builder{Input: in, request: Request{Desired: in.identity(), Refusals: wrong, DryRun: settings.DryRun}}
	b.location(settings)
	b.frontend(settings)
	b.ports()
	b.sources()
	b.members()
	in.Dialect.Extend(in, &b.request)
	return b.request
}

// A builder computes one request.
type builder struct {
	Input

	request Request
}

func (b *builder) location(settings Settings) {
	for i, name := range b.Locations {
		if name == settings.Location || settings.Location == "" && i == 0 {
			b.request.Location = name
			return
		}
	}
	names := b.Dialect.Names()
	b.request.Refuse(InvalidAnnotation,
		"the configuration of the cloud controller manager has no %s %q: correct the annotation %s",
		names.Noun, settings.Location, names.Location)
}

// frontend sets the properties that clients see.
func (b *builder) frontend(settings Settings) {
	d := &b.request.Desired
	s := b.Service.Spec
	for _, f := range s.IPFamilies {
		d.Families = append(d.Families, loadbalancer.Family(f))
	}
	if len(d.Families) == 0 {
		d.Families = []loadbalancer.Family{loadbalancer.IPv4}
	}
	d.AllFamilies = ptr.Deref(s.IPFamilyPolicy, "") == corev1.IPFamilyPolicyRequireDualStack
	var err error
	if d.Requested, err = requestedAddresses(settings, b.Service); err != nil {
		b.request.Refuse(InvalidFamilies, "spec.loadBalancerIP is invalid: %v", err)
	}
	d.Share = settings.Share
	d.Keep = settings.Keep
	d.Sticky = s.SessionAffinity == corev1.ServiceAffinityClientIP
}

// requested returns the addresses that a Service requests.
func requestedAddresses(settings Settings, s *corev1.Service) ([]netip.Addr, error) {
	if len(settings.Addresses) > 0 {
		return settings.Addresses, nil
	}
	return Addresses(s.Spec.LoadBalancerIP)
}

func (b *builder) ports() {
	for _, p := range b.Service.Spec.Ports {
		port := portOf(p)
		port.Protocol = cmp.Or(port.Protocol, loadbalancer.TCP)
		if s := b.Service.Spec; s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			port.HealthPort = int(s.HealthCheckNodePort)
		}
		b.request.Desired.Ports = append(b.request.Desired.Ports, port)
	}
}

// sources sets the clients that may connect.
func (b *builder) sources() {
	ranges := b.Service.Spec.LoadBalancerSourceRanges
	if len(ranges) == 0 {
		ranges = List(b.Service.Annotations[RangesAnnotation])
	}
	d := &b.request.Desired
	open := map[loadbalancer.Family]bool{}
	for _, text := range ranges {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			b.request.Refuse(InvalidSourceRanges, "the source range %q is not a CIDR: use a value such as 192.0.2.0/24", text)
			continue
		}
		if p.Bits() == 0 {
			open[loadbalancer.FamilyOf(p.Addr())] = true
		}
		d.SourceRanges = append(d.SourceRanges, p.Masked())
	}
	if !slices.ContainsFunc(d.Families, func(f loadbalancer.Family) bool { return !open[f] }) {
		d.SourceRanges = nil
	}
	if len(d.SourceRanges) > 0 && !b.SourceRanges {
		b.request.Refuse(InvalidSourceRanges, "source ranges are not enabled: set loadbalancer.sourceRanges in the configuration of the cloud controller manager, or remove them from the Service")
	}
}
