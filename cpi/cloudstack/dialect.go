// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/service"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/cloudstack"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// reasonUnsupported means that CloudStack does not have what the Service asks for.
const reasonUnsupported = "Unsupported"

// A Dialect reads the CloudStack-specific parts of a Service, and contains defaults for Services that do not set them.
type Dialect struct {
	// Algorithm of rules; empty: roundrobin.
	Algorithm string
}

var _ service.Dialect = Dialect{}

// An extra is the part of a request that is specific to this backend.
type extra struct {
	Proxy     bool
	Algorithm string
	// CIDRs restrict the clients in the load balancer rules.
	CIDRs []netip.Prefix
	// Stickiness is the policy of the rules. Nil means that this backend creates none.
	Stickiness *cloudstack.Policy
	// Inherited means that the original controller associated the requested address.
	Inherited bool
}

// Names implements [service.Dialect].
func (Dialect) Names() service.Names {
	return service.Names{
		OlderAddresses: prefix + "intended-addresses",
		OlderLocations: prefix + "standing-at",
		Location:       prefix + "network-id",
		Noun:           "network",
	}
}

// Read implements [service.Dialect]. It rejects an empty list of CIDRs, because then no client could connect.
func (Dialect) Read(s *corev1.Service) (service.Settings, []loadbalancer.Finding) {
	requested, wrong := annotations.Read(s.Annotations)
	const cidrs = prefix + "source-cidrs"
	if value, ok := s.Annotations[cidrs]; ok && strings.TrimSpace(value) == "" {
		wrong = append(wrong, loadbalancer.Finding{
			Reason:  service.InvalidAnnotation,
			Message: "the annotation " + cidrs + " is empty, so no client could connect: set CIDRs, or remove it",
		})
	}
	return requested.Settings, wrong
}

// SecretNames implements [service.Dialect].
func (Dialect) SecretNames(*corev1.Service) []string { return nil }

// Extend implements [service.Dialect].
func (d Dialect) Extend(in service.Input, request *service.Request) {
	requested, _ := annotations.Read(in.Service.Annotations)
	request.Notices = append(request.Notices, annotations.Unknown(in.Service.Annotations)...)
	e := extra{
		Proxy:      requested.proxy,
		Algorithm:  cmp.Or(requested.algorithm, d.Algorithm, "roundrobin"),
		CIDRs:      requested.cidrs,
		Stickiness: requested.stickiness,
		Inherited:  in.Service.Annotations[associatedByPredecessor] == "true",
	}
	if request.Desired.Sticky {
		e.Algorithm = "source"
	}
	request.Desired.Extra = e
	request.Hostname = requested.hostname
	tcp := slices.ContainsFunc(request.Desired.Ports, func(p service.Port) bool { return p.Protocol == loadbalancer.TCP })
	request.Terminates = e.Proxy && tcp
	refuseImpossible(request)
	noticeIgnored(in.Service, requested, request)
}

// refuseImpossible adds refusals for requests that load balancer rules cannot implement.
func refuseImpossible(request *service.Request) {
	d := request.Desired
	if d.Families[0] != loadbalancer.IPv4 || d.AllFamilies {
		request.Refuse(reasonUnsupported, "CloudStack load balancers support only IPv4: set ipFamilyPolicy to SingleStack or PreferDualStack, with IPv4 first in ipFamilies")
	}
	if len(d.Requested) > 1 || slices.ContainsFunc(d.Requested, netip.Addr.Is6) {
		request.Refuse(service.InvalidFamilies, "a load balancer has exactly one IPv4 address: remove other requested addresses")
	}
	for _, p := range d.Ports {
		if p.Protocol != loadbalancer.TCP && p.Protocol != loadbalancer.UDP {
			request.Refuse(reasonUnsupported, "port %d has protocol %s, but CloudStack supports only TCP and UDP", p.Number, p.Protocol)
		}
		if p.NodePort == 0 {
			request.Refuse(reasonUnsupported, "port %d has no node port, which load balancers need: remove allocateLoadBalancerNodePorts: false", p.Number)
		}
	}
	refuseRanges(request)
}

// refuseRanges refuses source ranges if they allow no IPv4 client, and adds notices for IPv6 ranges.
func refuseRanges(request *service.Request) {
	all := request.Desired.SourceRanges
	if len(all) > 0 && len(ipv4(all)) == 0 {
		request.Refuse(service.InvalidSourceRanges, "all source ranges are IPv6, but load balancers support only IPv4: add the allowed IPv4 ranges")
	}
	for _, r := range all {
		if r.Addr().Is6() {
			request.Notice(service.InvalidSourceRanges,
				"the source range %s is IPv6, which load balancers do not support: it is ignored", r)
		}
	}
}

// ipv4 returns the IPv4 ranges.
func ipv4(ranges []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(ranges), func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// noticeIgnored adds notices for settings without effect.
func noticeIgnored(s *corev1.Service, requested settings, request *service.Request) {
	if requested.notProxy != "" {
		request.Notice(service.InvalidAnnotation,
			"the annotation %sproxy-protocol is %q, so the PROXY protocol is not used: set true or false", prefix, requested.notProxy)
	}
	if len(request.Desired.Families) > 1 {
		request.Notice(reasonUnsupported, "CloudStack load balancers support only IPv4: the Service gets no IPv6 address")
	}
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		request.Notice(reasonUnsupported, "CloudStack does not probe the health port of externalTrafficPolicy Local: connections to nodes without endpoints fail; run an endpoint on each node, or set externalTrafficPolicy to Cluster")
	}
	c := s.Spec.SessionAffinityConfig
	if c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil &&
		*c.ClientIP.TimeoutSeconds != corev1.DefaultClientIPServiceAffinitySeconds {
		request.Notice(reasonUnsupported, "CloudStack has no timeout for session affinity, so sessionAffinityConfig is ignored: set a timeout with the annotation %sstickiness, such as SourceBased expire=30m", prefix)
	}
}

// Defaults returns the defaults for all Services of a cluster. Locations are networks by name or ID. The first
// location, with an empty name, is the network of the nodes.
func (d Dialect) Defaults(cluster string, networks []string, includeControlPlane bool) service.Defaults {
	return service.Defaults{
		Cluster:             cluster,
		Dialect:             d,
		SourceRanges:        true,
		IncludeControlPlane: includeControlPlane,
		Locations:           append([]string{""}, networks...),
	}
}
