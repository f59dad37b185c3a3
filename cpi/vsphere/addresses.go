// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// reasonAddress means that the VM lacks an address of a family that the configuration asks for.
const reasonAddress = "AddressNotFound"

// AddressPolicy selects the addresses of Nodes.
type AddressPolicy struct {
	Families           []corev1.IPFamily // in the order in which addresses are reported; empty: IPv4
	Internal, External Selection
}

// A Selection selects addresses of one type.
type Selection struct {
	CIDRs   []netip.Prefix // the first that contains an address wins
	Network string         // name, ignoring case; CIDRs take precedence
	Exclude []netip.Prefix
}

// A candidate is an address of a guest.
type candidate struct {
	address netip.Addr
	network string
}

// choose returns the addresses of a guest for its Node, and findings for missing ones. It returns at most one
// InternalIP and one ExternalIP per family.
func (p AddressPolicy) choose(guest guest) ([]corev1.NodeAddress, []loadbalancer.Finding) {
	all := guest.candidates()
	families := p.Families
	if len(families) == 0 {
		families = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	var out []corev1.NodeAddress
	var wrong []loadbalancer.Finding
	for _, family := range families {
		internal, external := p.ofFamily(family, all)
		if !internal.IsValid() && !external.IsValid() {
			wrong = append(wrong, loadbalancer.Finding{
				Reason:  reasonAddress,
				Message: fmt.Sprintf("the VM has no %s address that the configuration allows; VMware Tools reports %s", family, describe(all)),
			})
		}
		out = appendAddress(out, corev1.NodeInternalIP, internal)
		out = appendAddress(out, corev1.NodeExternalIP, external)
	}
	if len(out) == 0 {
		return nil, wrong
	}
	return append(out, guest.names(out)...), wrong
}

func appendAddress(to []corev1.NodeAddress, kind corev1.NodeAddressType, a netip.Addr) []corev1.NodeAddress {
	if !a.IsValid() {
		return to
	}
	return append(to, corev1.NodeAddress{Type: kind, Address: a.String()})
}

// ofFamily selects the addresses of one family. If neither CIDRs nor networks select any, the first address is used for
// both types.
func (p AddressPolicy) ofFamily(family corev1.IPFamily, all []candidate) (internal, external netip.Addr) {
	of := slices.DeleteFunc(slices.Clone(all),
		func(c candidate) bool { return c.address.Is4() != (family == corev1.IPv4Protocol) })
	forInternal := p.Internal.allowed(of)
	forExternal := p.External.allowed(of)
	internal = p.Internal.byCIDR(forInternal)
	external = p.External.byCIDR(forExternal)
	if !internal.IsValid() {
		internal = p.Internal.byNetwork(forInternal)
	}
	if !external.IsValid() {
		external = p.External.byNetwork(forExternal)
	}
	if internal.IsValid() || external.IsValid() || p.strict(all) {
		return internal, external
	}
	return first(forInternal), first(forExternal)
}

// strict reports whether both networks are configured and the VM has neither. Then any other address would be wrong.
func (p AddressPolicy) strict(all []candidate) bool {
	if p.Internal.Network == "" || p.External.Network == "" {
		return false
	}
	return !slices.ContainsFunc(all, func(c candidate) bool {
		return strings.EqualFold(c.network, p.Internal.Network) || strings.EqualFold(c.network, p.External.Network)
	})
}

func (s Selection) allowed(all []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
		return slices.ContainsFunc(s.Exclude, func(p netip.Prefix) bool { return p.Contains(c.address) })
	})
}

func (s Selection) byCIDR(all []candidate) netip.Addr {
	for _, prefix := range s.CIDRs {
		for _, c := range all {
			if prefix.Contains(c.address) {
				return c.address
			}
		}
	}
	return netip.Addr{}
}

func (s Selection) byNetwork(all []candidate) netip.Addr {
	for _, c := range all {
		if s.Network != "" && strings.EqualFold(c.network, s.Network) {
			return c.address
		}
	}
	return netip.Addr{}
}

func first(all []candidate) netip.Addr {
	if len(all) == 0 {
		return netip.Addr{}
	}
	return all[0].address
}

func describe(all []candidate) string {
	var texts []string
	for _, c := range all {
		texts = append(texts, fmt.Sprintf("%s in network %q", c.address, c.network))
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// A guest is the data that VMware Tools report about the system in a VM.
type guest struct {
	hostname string // as the guest reports it
	domain   string // of the guest's DNS client
	fallback string // name of the VM, used if the guest reports no hostname
	nics     []guestNIC
	static   []netip.Addr // addresses in cloud-init's configuration, in their order
}

type guestNIC struct {
	network   string
	virtual   bool // created in the guest: it belongs to a container network, not to the VM
	addresses []string
}

// candidates returns the addresses that other machines may use. Addresses in cloud-init's configuration come first.
func (g guest) candidates() []candidate {
	var all []candidate
	for _, nic := range g.nics {
		for _, text := range nic.addresses {
			a, err := netip.ParseAddr(text)
			if a = a.Unmap(); err == nil && !nic.virtual && usable(a) {
				all = append(all, candidate{a.WithZone(""), nic.network})
			}
		}
	}
	rank := func(c candidate) int {
		if i := slices.Index(g.static, c.address); i >= 0 {
			return i
		}
		return len(g.static)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return rank(a) - rank(b) })
	return all
}

// usable reports whether other machines can reach an address.
func usable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast()
}

// names returns the hostname and DNS names of a Node. A DNS name requires that the guest has a domain. It is also an
// external name if the external address equals the internal one.
func (g guest) names(addresses []corev1.NodeAddress) []corev1.NodeAddress {
	out := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: cmp.Or(g.hostname, g.fallback)}}
	fqdn := strings.TrimSuffix(g.hostname, ".")
	if !strings.Contains(fqdn, ".") && fqdn != "" && g.domain != "" {
		fqdn += "." + g.domain
	}
	if !strings.Contains(fqdn, ".") {
		return out
	}
	for _, a := range addresses {
		same := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.Address}
		kind := corev1.NodeInternalDNS
		known := a.Type == corev1.NodeInternalIP
		if a.Type == corev1.NodeExternalIP && slices.Contains(addresses, same) {
			kind = corev1.NodeExternalDNS
			known = true
		}
		if name := (corev1.NodeAddress{Type: kind, Address: fqdn}); known && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
