// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"context"
	"net/netip"
	"net/url"
)

// dnsSuffix replaces the DNS suffix of a network.
const dnsSuffix = "example.com"

type wireNetwork struct {
	ref

	Type       string `json:"networkType"`
	Owner      ref    `json:"ownerRef"`
	Connection struct {
		Router ref `json:"routerRef"`
	} `json:"connection"`
	Subnets struct {
		Values []wireSubnet `json:"values"`
	} `json:"subnets"`
}

type wireDHCP struct {
	Enabled *bool    `json:"enabled"`
	Mode    string   `json:"mode"`
	Address string   `json:"ipAddress"`
	Lease   int      `json:"leaseTime"`
	DNS     []string `json:"dnsServers"`
	Pools   []struct {
		Range wireRange `json:"ipRange"`
	} `json:"dhcpPools"`
}

// addNetworks adds the networks to their VDCs.
func (r *reader) addNetworks(ctx context.Context, names *aliases, vdcs []VDC, homeOf func(string) (home, bool)) error {
	found, err := readList[wireNetwork](ctx, r, "networks", "/cloudapi/1.0.0/orgVdcNetworks", url.Values{
		"sortAsc":  {"name"},
		"pageSize": {"32"}, // VCD's limit for networks
	})
	if err != nil {
		return r.noteIfHidden("networks", err)
	}
	for _, x := range inOrder(found, func(x wireNetwork) string { return x.Name }) {
		at, found := homeOf(x.Owner.ID)
		if !found {
			r.note("networks: those of VDCs that are not visible to the user are omitted")
			continue
		}
		network, usable := r.network(x)
		if !usable {
			continue
		}
		network.Group = at.group
		network.Edge = names.of(x.Connection.Router.ID)
		if network.Type == routed && network.Edge == "" {
			r.note("networks: those of edge gateways that are not visible to the user are omitted")
			continue
		}
		if err := r.addDHCP(ctx, x.ID, &network); err != nil {
			return err
		}
		network.Name = names.assign("network", x.ID)
		vdcs[at.vdc].Networks = append(vdcs[at.vdc].Networks, network)
	}
	return nil
}

// routed is the type of networks that are connected to an edge gateway.
const routed = "NAT_ROUTED"

// network converts a network, and reports whether the simulator supports it.
func (r *reader) network(x wireNetwork) (_ Network, usable bool) {
	network := Network{Type: oneOf(x.Type, routed, "ISOLATED", "OPAQUE")}
	if network.Type == "" {
		r.note("networks: those that are neither routed, isolated nor imported are omitted")
		return network, false
	}
	for _, s := range x.Subnets.Values {
		gateway := subnetOf(s.Gateway, s.Length)
		dns := addressesOf(s.DNS1, s.DNS2)
		switch {
		case !gateway.IsValid():
			r.note("networks: subnets shorter than /%d, or /%d of IPv6, are omitted", shortestIPv4, shortestIPv6)
		case !network.Gateway.IsValid():
			network.Gateway = gateway
			network.StaticPool = within(gateway, s.Ranges.ranges())
			network.DNS = dns
			if s.Suffix != "" {
				network.DNSSuffix = dnsSuffix
			}
		case network.Second == nil:
			network.Second = &SecondSubnet{
				Gateway:    gateway,
				StaticPool: within(gateway, s.Ranges.ranges()),
				DNS:        dns,
			}
		}
	}
	return network, network.Gateway.IsValid()
}

// addressesOf parses addresses and skips invalid ones.
func addressesOf(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		if a := addressOf(text); a.IsValid() {
			all = append(all, a)
		}
	}
	return all
}

// addDHCP reads the DHCP service of a network.
func (r *reader) addDHCP(ctx context.Context, id string, network *Network) error {
	var shown wireDHCP
	path := "/cloudapi/1.0.0/orgVdcNetworks/" + url.PathEscape(id) + "/dhcp"
	if err := r.readJSON(ctx, path, nil, &shown); err != nil {
		return r.noteIfHidden("DHCP of networks", err)
	}
	for _, pool := range shown.Pools {
		network.DHCPPool = append(network.DHCPPool, within(network.Gateway, rangesOf([]wireRange{pool.Range}))...)
	}
	dhcp := DHCP{
		Disabled: len(shown.Pools) > 0 && shown.Enabled != nil && !*shown.Enabled,
		Mode:     oneOf(shown.Mode, "EDGE", "NETWORK", "RELAY"),
		Lease:    shown.Lease,
		DNS:      addressesOf(shown.DNS...),
	}
	if a := addressOf(shown.Address); network.Gateway.Contains(a) {
		dhcp.Address = a
	}
	if dhcp.Disabled || dhcp.Mode != "" || dhcp.Lease != 0 || len(dhcp.DNS) > 0 || dhcp.Address.IsValid() {
		network.DHCP = &dhcp
	}
	return nil
}
