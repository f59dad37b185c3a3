// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// A UsedAddress is an external address that a gateway uses.
type UsedAddress struct {
	Address  netip.Addr
	Category string
	network  string // id of the external network
}

// UsedBy are the addresses a gateway uses of its uplinks, sorted, each once per category.
func (eg EdgeGateways) UsedBy(g *store.EdgeGateway) []UsedAddress {
	var out []UsedAddress
	for _, u := range g.Uplinks {
		for _, sub := range u.Subnets {
			if sub.Primary.IsValid() {
				out = append(out, UsedAddress{sub.Primary, "PRIMARY_IP", u.Network})
			}
		}
	}
	for _, d := range eg.cloud.Store.Documents.On(g.ID, NATPath) {
		category := "DNAT"
		if strings.HasSuffix(store.Text(d.Body, "type"), "SNAT") {
			category = "SNAT"
		}
		out = append(out, eg.externalAddresses(g, store.Text(d.Body, "externalAddresses"), category)...)
	}
	for _, d := range eg.cloud.Store.Documents.On(g.ID, documents.ServicePath) {
		for _, vip := range VirtualIPs(d.Body) {
			out = append(out, eg.externalAddresses(g, vip, "Load_Balancer")...)
		}
	}
	for _, d := range eg.cloud.Store.Documents.On(g.ID, documents.IPsecPath) {
		local, _ := tunnelAddresses(d.Body)
		out = append(out, eg.externalAddresses(g, local, "IPsec_VPN")...)
	}
	for _, d := range eg.cloud.Store.Documents.On(g.ID, l2Path) {
		out = append(out, eg.externalAddresses(g, store.Text(d.Body, "localEndpointIP"), "L2_VPN")...)
	}
	slices.SortStableFunc(out, func(a, b UsedAddress) int {
		return a.Address.Compare(b.Address)
	})
	return slices.CompactFunc(out,
		func(a, b UsedAddress) bool { return a.Address == b.Address && a.Category == b.Category })
}

// externalAddresses are the external addresses in a text.
func (eg EdgeGateways) externalAddresses(g *store.EdgeGateway, text, category string) []UsedAddress {
	var out []UsedAddress
	for _, a := range ParseAddresses(text) {
		if network, ok := eg.externalNetworkOf(g, a); ok {
			out = append(out, UsedAddress{a, category, network})
		}
	}
	return out
}

// externalNetworkOf finds the external network whose address this is.
func (eg EdgeGateways) externalNetworkOf(g *store.EdgeGateway, a netip.Addr) (string, bool) {
	for _, u := range g.Uplinks {
		for _, sub := range u.Subnets {
			if sub.Gateway.Masked().Contains(a) {
				return u.Network, true
			}
		}
		if eg.usesSpaces(u) &&
			slices.ContainsFunc(spacesOf(eg.cloud).of(u.Network),
				func(p *store.IPSpace) bool { return InRanges(p.Ranges, a) || spaceHasPrefix(p, a) }) {
			return u.Network, true
		}
	}
	return "", false
}

// ParseAddresses reads an address, the ends of a range, or the first address of a prefix; nothing if it is none.
func ParseAddresses(text string) []netip.Addr {
	if a, err := netip.ParseAddr(text); err == nil {
		return []netip.Addr{a}
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return []netip.Addr{p.Addr()}
	}
	from, to, _ := strings.Cut(text, "-")
	a, err := netip.ParseAddr(strings.TrimSpace(from))
	b, err2 := netip.ParseAddr(strings.TrimSpace(to))
	if err != nil || err2 != nil || b.Less(a) {
		return nil
	}
	var out []netip.Addr
	for r := (store.Range{From: a, To: b}); r.Contains(a) && len(out) < 256; a = a.Next() {
		out = append(out, a)
	}
	return out
}

func listUsed(r *api.Request) (*api.Response, error) {
	_, _, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["id"])
	if err != nil {
		return nil, err
	}
	var out []any
	for _, u := range EdgesOf(r.Cloud).UsedBy(g) {
		name := ""
		if e := r.Cloud.Store.External(u.network); e != nil {
			name = e.Name
		}
		out = append(out, map[string]any{
			"networkRef": api.Ref("network", u.network, name),
			"ipAddress":  u.Address.String(),
			"category":   u.Category,
		})
	}
	return r.Page(out)
}

// OwnAddress refuses external addresses that the gateway's organization has not allocated from an IP Space, or that its
// gateway does not have of its external network. Internal addresses are not checked.
func OwnAddress(r *api.Request, gateway, text string) error {
	org, _, g, err := EdgeByID(r.Session, r.Cloud.Store, gateway)
	if err != nil {
		return err
	}
	for _, a := range ParseAddresses(text) {
		for _, u := range g.Uplinks {
			if err := EdgesOf(r.Cloud).allocatedTo(org, u, a); err != nil {
				return err
			}
			if err := EdgesOf(r.Cloud).suballocatedTo(u, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// allocatedTo refuses an address of an IP Space that the organization has not allocated.
func (eg EdgeGateways) allocatedTo(org *store.Org, u store.Uplink, a netip.Addr) error {
	if !eg.cloud.Assume.SpaceAddressMustBeAllocated {
		return nil
	}
	for _, p := range spacesOf(eg.cloud).of(u.Network) {
		if InRanges(p.Ranges, a) && !slices.ContainsFunc(p.Allocations, func(x store.IPAllocation) bool {
			return x.OrgID == org.ID && x.Type == store.FloatingIP && x.Value == a.String()
		}) {
			return store.BadRequest("The IP address %s is not allocated to the organization from the IP space %q.", a, p.Name)
		}
	}
	return nil
}

// suballocatedTo refuses an address in a subnet of the external network that is not among the gateway's own.
func (eg EdgeGateways) suballocatedTo(u store.Uplink, a netip.Addr) error {
	if !eg.cloud.Assume.UplinkAddressMustBeOwn {
		return nil
	}
	for _, sub := range u.Subnets {
		if sub.Gateway.Masked().Contains(a) && a != sub.Primary && !InRanges(sub.Addresses, a) {
			return store.BadRequest("The IP address %s is not allocated to the edge gateway.", a)
		}
	}
	return nil
}

// VirtualIPs are the addresses of a virtual service.
func VirtualIPs(body map[string]any) []string {
	var out []string
	for _, f := range []string{"virtualIpAddress", "ipv6VirtualIpAddress"} {
		if a := store.Text(body, f); a != "" {
			out = append(out, a)
		}
	}
	return out
}
