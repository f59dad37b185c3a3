// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// algorithms are the algorithms that VCD supports.
var algorithms = []string{
	"ROUND_ROBIN", "LEAST_CONNECTIONS", "CONSISTENT_HASH", "FASTEST_RESPONSE", "LEAST_LOAD", "FEWEST_SERVERS", "RANDOM",
	"FEWEST_TASKS", "CORE_AFFINITY",
}

// standardAlgorithms are the algorithms that do not require the feature set PREMIUM. The provider guide of VCD 10.5
// lists those that require it.
var standardAlgorithms = []string{"CONSISTENT_HASH", "LEAST_CONNECTIONS", "ROUND_ROBIN"}

// maxPort is the highest port of TCP and UDP.
const maxPort = 65535

// Algorithms returns the sorted names of the algorithms that pools support.
func Algorithms() []string { return slices.Sorted(slices.Values(algorithms)) }

// validate refuses requests that are impossible regardless of the observed state. It returns the possible families.
func validate(in input) ([]loadbalancer.Family, outcome) {
	if in.can.Disabled {
		out := in.outcome()
		out.refuse(Unsupported, "the edge gateway %q has no load balancer: ask the provider to enable NSX Advanced Load Balancer on it", in.observed.Gateway.Name)
		return nil, out
	}
	families, all := validateFamilies(in)
	all.add(validateListeners(in))
	all.add(validateRequested(in))
	all.add(validateRequests(in))
	all.add(validateTransparency(in, families))
	all.add(validateAlgorithm(in))
	all.add(validateConfiguration(in))
	return families, all
}

// validateFamilies determines the families that the load balancer can have. Others are left out, unless all are
// required or none remains.
func validateFamilies(in input) ([]loadbalancer.Family, outcome) {
	out := in.outcome()
	if len(in.desired.Families) == 0 {
		out.refuse(InvalidFamilies, "the load balancer requires an IP family: IPv4 or IPv6")
		return nil, out
	}
	var families []loadbalancer.Family
	var lacking []string
	for _, f := range in.desired.Families {
		if why := unsupportedReason(in, f); why != "" {
			lacking = append(lacking, why)
		} else {
			families = append(families, f)
		}
	}
	for _, why := range lacking {
		out.add(omitFamily(in, families, why))
	}
	if len(families) > 0 && len(in.desired.members(families[0])) == 0 && !in.desired.OwnMembers {
		out.refuse(NoMembers, "no node has an %s address, which members need", families[0])
	}
	return families, out
}

// unsupportedReason explains why the load balancer cannot have a family. It returns an empty string if it can.
func unsupportedReason(in input, f loadbalancer.Family) string {
	switch {
	case f == loadbalancer.IPv6 && !in.can.IPv6:
		return "the load balancer of the edge gateway does not support IPv6, which requires VCD 10.4 and an IPv6 service network"
	case f == loadbalancer.IPv4 && in.can.OnlyIPv6:
		return "the load balancer of the edge gateway has an IPv6 service network only"
	case f == loadbalancer.IPv6 && in.desired.OneArm != nil && !mayBeInternal(in.desired):
		return untranslatable
	}
	return ""
}

// untranslatable is the reason why a load balancer that is reached through DNAT rules has no IPv6 address.
const untranslatable = "one-arm mode translates addresses, which is not possible for IPv6"

// mayBeInternal reports whether the load balancer can be inside the organization. [choosesInternal] decides whether it
// is.
func mayBeInternal(d Desired) bool {
	return d.Internal || slices.ContainsFunc(d.Requested, netip.Addr.IsPrivate)
}

// omitFamily adds a notice that the load balancer has only the given families, or refuses that.
func omitFamily(in input, families []loadbalancer.Family, why string) outcome {
	out := in.outcome()
	switch {
	case len(families) == 0:
		out.refuse(Unsupported, "%s: set ipFamilies of the Service to the other family", why)
	case in.desired.AllFamilies:
		out.refuse(Unsupported, "%s: set ipFamilyPolicy of the Service to PreferDualStack or SingleStack, or ask the provider", why)
	default:
		out.notice(Unsupported, "%s: the load balancer has an %s address only", why, families[0])
	}
	return out
}

func validateListeners(in input) outcome {
	out := in.outcome()
	if len(in.desired.Listeners) == 0 {
		out.refuse(NoPorts, "the Service has no ports")
	}
	seen := map[string]bool{}
	for _, l := range in.desired.Listeners {
		if seen[l.key()] {
			out.refuse(InvalidPort, "port %d is duplicated for %s", l.Port, l.Protocol)
		}
		seen[l.key()] = true
		out.add(validateListener(in, l))
	}
	return out
}

func validateListener(in input, l Listener) outcome {
	out := in.outcome()
	switch {
	case !isPort(l.Port):
		out.refuse(InvalidPort, "port %d is invalid", l.Port)
	case !isPort(l.NodePort):
		out.refuse(InvalidPort, "port %d has no node port: set allocateLoadBalancerNodePorts to true", l.Port)
	case l.Protocol != loadbalancer.TCP && l.Protocol != loadbalancer.UDP:
		out.refuse(Unsupported, "port %d has protocol %s: use TCP or UDP", l.Port, l.Protocol)
	case l.Protocol == loadbalancer.UDP && l.Application != L4:
		out.refuse(Unsupported, "port %d is UDP, which cannot be %s: remove its appProtocol", l.Port, l.Application)
	case l.Application.TLS() && l.Certificate == (Certificate{}):
		out.refuse(CertificateMissing,
			"port %d terminates TLS but has no certificate: set one with an annotation, or disable TLS for this port", l.Port)
	case l.Application == L4TLS && !in.can.Premium:
		out.refuse(Unsupported,
			"port %d requests TLS on layer 4, which requires the feature set PREMIUM of the load balancer: use appProtocol https", l.Port)
	}
	out.add(validateMonitor(in, l))
	out.add(validateCheck(in, l))
	out.add(validateRules(in, l))
	return out
}

func isPort(n int) bool { return n >= 1 && n <= maxPort }

func validateRequested(in input) outcome {
	out := in.outcome()
	seen := map[loadbalancer.Family]bool{}
	for _, a := range in.desired.Requested {
		f := loadbalancer.FamilyOf(a)
		switch {
		case seen[f]:
			out.refuse(InvalidFamilies, "more than one %s address is requested: request one for each family", f)
		case !slices.Contains(in.desired.Families, f):
			out.refuse(InvalidFamilies, "the address %s is requested, but the Service has no %s", a, f)
		}
		seen[f] = true
	}
	return out
}

// validateRequests refuses requests that the gateway does not support.
func validateRequests(in input) outcome {
	out := in.outcome()
	d := in.desired
	if d.IPSpace != "" && !d.Internal && !in.observed.Gateway.UsesSpaces {
		out.notice(Unsupported,
			"the edge gateway has no IP Spaces: the address comes from its own ranges instead of the IP Space %q", d.IPSpace)
	}
	if len(d.SourceRanges) > 0 && !in.can.SourceRanges {
		out.refuse(Unsupported,
			"loadBalancerSourceRanges require firewall rules on the edge gateway, which are disabled or cannot be created individually: enable them (VCD 10.5.1 and later), or remove the ranges and filter in the cluster")
	}
	return out
}

// validateTransparency refuses to preserve client addresses if that is impossible.
func validateTransparency(in input, families []loadbalancer.Family) outcome {
	out := in.outcome()
	switch {
	case !in.desired.PreserveClientIP:
	case !in.can.PreserveClientIP:
		out.refuse(Unsupported, "client addresses cannot be preserved: the edge gateway's load balancer is not in transparent mode (VCD 10.4.1 and later)")
	case !in.can.MemberSets:
		out.refuse(Unsupported,
			"preserving client addresses requires IP sets, which the user may not create: grant the user the right to manage security groups")
	case len(families) > 1:
		out.refuse(Unsupported, "client addresses cannot be preserved if IP families are translated: use one family")
	}
	return out
}

// validateAlgorithm refuses an algorithm that is unknown or unavailable on this edge gateway.
func validateAlgorithm(in input) outcome {
	out := in.outcome()
	switch a := in.desired.Algorithm; {
	case a == "":
	case !slices.Contains(algorithms, a):
		out.refuse(Unsupported, "the algorithm %q is unknown: use one of %s", a, strings.Join(Algorithms(), ", "))
	case !in.can.Premium && !slices.Contains(standardAlgorithms, a):
		out.refuse(Unsupported, "the algorithm %s requires the feature set PREMIUM, but the load balancer of the edge gateway has STANDARD: use one of %s, or ask the provider for PREMIUM", a,
			strings.Join(standardAlgorithms, ", "))
	}
	return out
}

// validateConfiguration refuses an unusable key of a shared address or an invalid one-arm range.
func validateConfiguration(in input) outcome {
	out := in.outcome()
	d := in.desired
	if d.Share != "" && !widestMarker(d).roundTrips() {
		out.refuse(Unsupported, "the key %q of a shared address cannot be stored in VCD: use a short key of letters and digits", d.Share)
	}
	if r := d.OneArm; r != nil && !r.valid() {
		out.refuse(InvalidRange, "the one-arm range %s to %s is invalid: correct it in the configuration", r.First, r.Last)
	}
	return out
}
