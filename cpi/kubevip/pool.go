// SPDX-License-Identifier: Apache-2.0

package kubevip

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A Range is a range of addresses for Services. Both ends are included.
type Range struct{ First, Last netip.Addr }

func (r Range) contains(addr netip.Addr) bool {
	return r.First.Compare(addr) <= 0 && addr.Compare(r.Last) <= 0
}

// String returns the range in the form first-last.
func (r Range) String() string { return r.First.String() + "-" + r.Last.String() }

// claims maps addresses to the Services that have them.
type claims map[netip.Addr]holder

// A holder is a Service that has an address. Its name is only for human readers.
type holder struct {
	Service string    `json:"service"`
	UID     types.UID `json:"uid"`
}

// of returns the sorted addresses of a Service.
func (c claims) of(uid types.UID) []netip.Addr {
	var held []netip.Addr
	for addr, by := range c {
		if by.UID == uid {
			held = append(held, addr)
		}
	}
	slices.SortFunc(held, netip.Addr.Compare)
	return held
}

// A pool is the set of addresses that are available to Services.
type pool struct {
	ranges   []Range
	reserved map[netip.Addr]string // description of the user of an address
}

// choose returns the addresses of a Service, in the order of its families, and findings for requests that it refused. A
// Service that cannot get an address of each required family gets none.
func (p pool) choose(s *corev1.Service, held claims) ([]netip.Addr, []loadbalancer.Finding) {
	wanted, problems := requested(s)
	problems = append(problems, otherFamilies(s, wanted)...)
	var chosen []netip.Addr
	var missing []loadbalancer.Finding
	for _, family := range familiesOf(s) {
		addr, found := p.chooseOf(family, s, wanted, held)
		problems = append(problems, found...)
		if addr.IsValid() {
			chosen = append(chosen, addr)
			continue
		}
		missing = append(missing, p.exhausted(family))
	}
	preferred := ptr.Deref(s.Spec.IPFamilyPolicy, "") == corev1.IPFamilyPolicyPreferDualStack
	switch {
	case len(missing) == 0, preferred && len(chosen) > 0:
		return chosen, problems
	}
	return nil, append(problems, missing...)
}

// chooseOf returns an address of a family: a requested one, the one that the Service has, or the first free one.
func (p pool) chooseOf(family corev1.IPFamily, s *corev1.Service, wanted []netip.Addr, held claims) (netip.Addr, []loadbalancer.Finding) {
	var problems []loadbalancer.Finding
	for _, addr := range wanted {
		if familyOf(addr) != family {
			continue
		}
		refused := p.refuses(addr, s.UID, held)
		if refused == nil {
			return addr, problems
		}
		problems = append(problems, *refused)
	}
	for _, addr := range held.of(s.UID) {
		if familyOf(addr) == family && p.refuses(addr, s.UID, held) == nil {
			return addr, problems
		}
	}
	return p.free(family, held), problems
}

// free returns the first unused address of a family, or the zero address if none is left.
func (p pool) free(family corev1.IPFamily, held claims) netip.Addr {
	for _, r := range p.ranges {
		if familyOf(r.First) != family {
			continue
		}
		for addr := r.First; addr.IsValid() && r.contains(addr); addr = addr.Next() {
			if p.refuses(addr, "", held) == nil {
				return addr
			}
		}
	}
	return netip.Addr{}
}

// refuses returns the reason why a Service cannot have an address, or nil if it can.
func (p pool) refuses(addr netip.Addr, uid types.UID, held claims) *loadbalancer.Finding {
	if !slices.ContainsFunc(p.ranges, func(r Range) bool { return r.contains(addr) }) {
		return &loadbalancer.Finding{Reason: reasonOutside, Message: fmt.Sprintf("address %s is outside the ranges %s: request another", addr, p)}
	}
	switch by, taken := held[addr]; {
	case taken && by.UID == uid:
		return nil
	case taken:
		return &loadbalancer.Finding{Reason: reasonTaken, Message: fmt.Sprintf("address %s is that of Service %s: request another", addr, by.Service)}
	}
	if what, taken := p.reserved[addr]; taken {
		return &loadbalancer.Finding{Reason: reasonTaken, Message: fmt.Sprintf("address %s is that of %s: request another", addr, what)}
	}
	return nil
}

// exhausted returns the finding that no address of a family is left.
func (p pool) exhausted(family corev1.IPFamily) loadbalancer.Finding {
	if !slices.ContainsFunc(p.ranges, func(r Range) bool { return familyOf(r.First) == family }) {
		return loadbalancer.Finding{
			Reason:  reasonFamilies,
			Message: fmt.Sprintf("there is no range of %s addresses: add one to the configuration, loadbalancer.kubeVIP.addressRanges, or change spec.ipFamilies", family),
		}
	}
	return loadbalancer.Finding{
		Reason:  reasonExhausted,
		Message: fmt.Sprintf("no %s address of the ranges %s is free: delete a Service, or add a range to the configuration, loadbalancer.kubeVIP.addressRanges", family, p),
	}
}

// String returns all ranges, for messages.
func (p pool) String() string {
	names := make([]string, 0, len(p.ranges))
	for _, r := range p.ranges {
		names = append(names, r.String())
	}
	return strings.Join(names, ", ")
}

// requested returns the requested addresses of a Service: those in its spec, or else those in the annotation, which
// users of kube-vip also set.
func requested(s *corev1.Service) ([]netip.Addr, []loadbalancer.Finding) {
	return parseAddresses(cmp.Or(s.Spec.LoadBalancerIP, s.Annotations[addressesAnnotation]))
}

// parseAddresses parses addresses that are separated by commas. It returns a finding for each word that is not an
// address.
func parseAddresses(text string) ([]netip.Addr, []loadbalancer.Finding) {
	var addresses []netip.Addr
	var problems []loadbalancer.Finding
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		addr, err := netip.ParseAddr(word)
		if err != nil || addr.Zone() != "" || addr.Is4In6() {
			problems = append(problems, loadbalancer.Finding{
				Reason:  reasonOutside,
				Message: fmt.Sprintf("%q is not an IP address: correct spec.loadBalancerIP, or annotation %s", word, addressesAnnotation),
			})
			continue
		}
		addresses = append(addresses, addr)
	}
	return addresses, problems
}

// otherFamilies returns findings for requested addresses that do not match the families of a Service.
func otherFamilies(s *corev1.Service, wanted []netip.Addr) []loadbalancer.Finding {
	var problems []loadbalancer.Finding
	for _, addr := range wanted {
		if !slices.Contains(familiesOf(s), familyOf(addr)) {
			problems = append(problems, loadbalancer.Finding{
				Reason:  reasonFamilies,
				Message: fmt.Sprintf("address %s is requested, and spec.ipFamilies of the Service does not have %s: add the family, or request another address", addr, familyOf(addr)),
			})
		}
	}
	return problems
}

// familiesOf returns the families of a Service in their order of preference.
func familiesOf(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) == 0 {
		return []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return s.Spec.IPFamilies
}

func familyOf(addr netip.Addr) corev1.IPFamily {
	if addr.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
