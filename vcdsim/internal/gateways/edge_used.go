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
	network  string // ID of the external network
}

// UsedBy returns the addresses of a gateway's uplinks that are in use, sorted by address. It lists an address once per
// category.
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

// externalAddresses returns the external addresses in a string that ParseAddresses can read.
func (eg EdgeGateways) externalAddresses(g *store.EdgeGateway, text, category string) []UsedAddress {
	var out []UsedAddress
	for _, a := range ParseAddresses(text) {
		if network, ok := eg.externalNetworkOf(g, a); ok {
			out = append(out, UsedAddress{a, category, network})
		}
	}
	return out
}

// externalNetworkOf returns the ID of the external network that an address belongs to.
func (eg EdgeGateways) externalNetworkOf(g *store.EdgeGateway, a netip.Addr) (string, bool) {
	for _, u := range g.Uplinks {
		for _, sub := range u.Subnets {
			if sub.Gateway.Masked().Contains(a) {
				return u.Network, true
			}
		}
		if eg.usesSpaces(u) &&
			slices.ContainsFunc(spacesOf(eg.cloud).withUplinkTo(u.Network),
				func(p *store.IPSpace) bool { return InRanges(p.Ranges, a) || prefixesContain(p, a) }) {
			return u.Network, true
		}
	}
	return "", false
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

// OwnAddress refuses an external address of an IP Space that is not allocated to the gateway's organization. It also
// refuses an address of an external network that is not allocated to the gateway. Internal addresses are not checked.
func OwnAddress(r *api.Request, gateway, text string) error {
	org, _, g, err := EdgeByID(r.Session, r.Cloud.Store, gateway)
	if err != nil {
		return err
	}
	for _, a := range ParseAddresses(text) {
		for _, u := range g.Uplinks {
			if err := EdgesOf(r.Cloud).checkAllocatedTo(org, u, a); err != nil {
				return err
			}
			if err := EdgesOf(r.Cloud).checkSuballocatedTo(u, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAllocatedTo refuses an address of an IP Space that is not allocated to the organization.
func (eg EdgeGateways) checkAllocatedTo(org *store.Org, u store.Uplink, a netip.Addr) error {
	if !eg.cloud.Assume.SpaceAddressMustBeAllocated {
		return nil
	}
	for _, p := range spacesOf(eg.cloud).withUplinkTo(u.Network) {
		if InRanges(p.Ranges, a) && !slices.ContainsFunc(p.Allocations, func(x store.IPAllocation) bool {
			return x.OrgID == org.ID && x.Type == store.FloatingIP && x.Value == a.String()
		}) {
			return store.BadRequest("The IP address %s is not allocated to the organization from the IP space %q.", a, p.Name)
		}
	}
	return nil
}

// checkSuballocatedTo refuses an address in a subnet of the external network that is not allocated to the gateway.
func (eg EdgeGateways) checkSuballocatedTo(u store.Uplink, a netip.Addr) error {
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

// VirtualIPs returns the addresses of a virtual service.
func VirtualIPs(body map[string]any) []string {
	var out []string
	for _, f := range []string{"virtualIpAddress", "ipv6VirtualIpAddress"} {
		if a := store.Text(body, f); a != "" {
			out = append(out, a)
		}
	}
	return out
}
