// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"slices"
	"strings"
)

// algorithms that VCD knows.
var algorithms = []string{
	"ROUND_ROBIN", "LEAST_CONNECTIONS", "CONSISTENT_HASH", "FASTEST_RESPONSE", "LEAST_LOAD", "FEWEST_SERVERS", "RANDOM",
	"FEWEST_TASKS", "CORE_AFFINITY",
}

// standardAlgorithms are those that do not take the feature set PREMIUM. The guide of VCD 10.5 for providers lists
// which do.
var standardAlgorithms = []string{"CONSISTENT_HASH", "LEAST_CONNECTIONS", "ROUND_ROBIN"}

// Algorithms returns the names of the algorithms that pools can have, sorted.
func Algorithms() []string { return slices.Sorted(slices.Values(algorithms)) }

// A validator checks the desired state.
type validator struct{ *planner }

// validate refuses what cannot be, whatever is observed.
func (p validator) validate() {
	if p.c.Disabled {
		p.refuse(Unsupported, "the edge gateway %q has no load balancer: ask the provider to enable NSX Advanced Load "+
			"Balancer on it", p.o.Gateway.Name)
		return
	}
	p.validateFamilies()
	p.validateListeners()
	p.validateRequested()
	p.validateWishes()
	p.validateAlgorithm()
	if p.d.Share != "" && !widestMarker(p.d).survives() {
		p.refuse(Unsupported, "the key %q of a shared address cannot be stored in VCD: use a short word of letters "+
			"and digits", p.d.Share)
	}
	if r := p.d.OneArm; r != nil &&
		(!r.First.IsValid() || !r.Last.IsValid() || r.First.Is4() != r.Last.Is4() || r.Last.Less(r.First)) {
		p.refuse(BadRange, "the one-arm range %s to %s is invalid: correct it in the configuration", r.First, r.Last)
	}
}

// validateAlgorithm refuses an algorithm that there is not, or not on this edge gateway.
func (p validator) validateAlgorithm() {
	switch a := p.d.Algorithm; {
	case a == "":
	case !slices.Contains(algorithms, a):
		p.refuse(Unsupported, "the algorithm %q is unknown: use one of %s", a, strings.Join(Algorithms(), ", "))
	case !p.c.Premium && !slices.Contains(standardAlgorithms, a):
		p.refuse(Unsupported, "the algorithm %s takes the feature set PREMIUM, and the load balancer of the edge "+
			"gateway has STANDARD: use one of %s, or ask the provider for PREMIUM", a,
			strings.Join(standardAlgorithms, ", "))
	}
}

// validateFamilies finds out which families the load balancer can have. Those that it cannot have are left out, unless
// all are required or none is left.
func (p validator) validateFamilies() {
	if len(p.d.Families) == 0 {
		p.refuse(BadFamilies, "the load balancer needs a family of addresses: IPv4 or IPv6")
		return
	}
	var lacking []string
	for _, f := range p.d.Families {
		if why := p.lacking(f); why != "" {
			lacking = append(lacking, why)
		} else {
			p.families = append(p.families, f)
		}
	}
	p.without(lacking)
	if len(p.families) > 0 && len(p.d.members(p.families[0])) == 0 && !p.d.OwnMembers {
		p.refuse(NoMembers, "no node has an %s address: nodes need one to be members", p.families[0])
	}
}

// without leaves families out, for the given reasons, or refuses that.
func (p *planner) without(reasons []string) {
	for _, why := range reasons {
		switch {
		case len(p.families) == 0:
			p.refuse(Unsupported, "%s: set ipFamilies of the Service to the other family", why)
		case p.d.AllFamilies:
			p.refuse(Unsupported,
				"%s: set ipFamilyPolicy of the Service to PreferDualStack or SingleStack, or ask the "+
					"provider", why)
		default:
			p.notice(Unsupported, "%s: the load balancer has an %s address only", why, p.families[0])
		}
	}
}

// lacking explains why the load balancer cannot have a family.
func (p validator) lacking(f Family) string {
	switch {
	case f == IPv6 && !p.c.IPv6:
		return "the load balancer of the edge gateway has no IPv6, which takes VCD 10.4 and an IPv6 service network"
	case f == IPv4 && p.c.OnlyIPv6:
		return "the load balancer of the edge gateway has an IPv6 service network only"
	case f == IPv6 && p.d.OneArm != nil && !p.d.Internal:
		return "in one-arm mode addresses are translated, which IPv6 cannot be"
	}
	return ""
}

func (p validator) validateListeners() {
	if len(p.d.Listeners) == 0 {
		p.refuse(NoPorts, "the Service has no ports")
	}
	seen := map[string]bool{}
	for _, l := range p.d.Listeners {
		if seen[l.Key()] {
			p.refuse(BadPort, "port %d is there twice for %s", l.Port, l.Protocol)
		}
		seen[l.Key()] = true
		p.validateListener(l)
	}
}

func (p validator) validateListener(l Listener) {
	switch {
	case !isPort(l.Port):
		p.refuse(BadPort, "port %d is invalid", l.Port)
	case !isPort(l.NodePort):
		p.refuse(BadPort, "port %d has no node port: set allocateLoadBalancerNodePorts to true", l.Port)
	case l.Protocol != TCP && l.Protocol != UDP:
		p.refuse(Unsupported, "port %d has the protocol %s: use TCP or UDP", l.Port, l.Protocol)
	case l.Protocol == UDP && l.Application != L4:
		p.refuse(Unsupported, "port %d is UDP, which cannot be %s: remove its appProtocol", l.Port, l.Application)
	case l.Application.TLS():
		p.validateTLS(l)
	}
}

func isPort(n int) bool { return n >= 1 && n <= 65535 }

func (p validator) validateTLS(l Listener) {
	switch {
	case l.Certificate == (Certificate{}):
		p.refuse(CertificateMissing,
			"port %d ends TLS and has no certificate: name one by annotation, or switch TLS off for this port", l.Port)
	case l.Application == L4TLS && !p.c.Premium:
		p.refuse(Unsupported,
			"port %d asks for TLS on layer 4, which takes the feature set PREMIUM of the load balancer: "+
				"use appProtocol https", l.Port)
	}
}

func (p validator) validateRequested() {
	seen := map[Family]bool{}
	for _, a := range p.d.Requested {
		f := FamilyOf(a)
		switch {
		case seen[f]:
			p.refuse(BadFamilies, "more than one %s address is requested: request one for each family", f)
		case !slices.Contains(p.d.Families, f):
			p.refuse(BadFamilies, "the address %s is requested, but the Service has no %s", a, f)
		}
		seen[f] = true
	}
}

// validateWishes refuses what the gateway cannot do.
func (p validator) validateWishes() {
	if p.d.IPSpace != "" && !p.d.Internal && !p.o.Gateway.UsesSpaces {
		p.notice(Unsupported,
			"the edge gateway has no IP Spaces: the address is taken from its own ranges, not from the "+
				"IP Space %q", p.d.IPSpace)
	}
	if len(p.d.SourceRanges) > 0 && !p.c.SourceRanges {
		p.refuse(Unsupported,
			"loadBalancerSourceRanges need rules of the edge gateway's firewall, which are not switched on or "+
				"cannot be created one by one here: switch them on (VCD 10.5.1 and later), or remove the ranges and "+
				"filter in the cluster")
	}
	if !p.d.PreserveClientIP {
		return
	}
	switch {
	case !p.c.PreserveClientIP:
		p.refuse(Unsupported, "client addresses cannot be preserved: the edge gateway's load balancer is not in "+
			"transparent mode (VCD 10.4.1 and later)")
	case !p.c.MemberSets:
		p.refuse(Unsupported,
			"client addresses are preserved only with IP sets as members, which the user may not create: "+
				"give it the right to manage security groups")
	case len(p.families) > 1:
		p.refuse(Unsupported, "client addresses cannot be preserved when families are translated: use one family")
	}
}
