// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const bindingPath = "1.0.0/orgVdcNetworks/{network}/dhcp/bindings"

type dhcpBody struct {
	Enabled *bool    `json:"enabled"`
	Mode    string   `json:"mode"`
	Address string   `json:"ipAddress"`
	Lease   int      `json:"leaseTime"`
	DNS     []string `json:"dnsServers"`
	Pools   []struct {
		Range jsonRange `json:"ipRange"`
	} `json:"dhcpPools"`
}

func getDHCP(r *request) (*response, error) {
	_, _, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	pools := []any{}
	for _, p := range n.DHCPPool {
		pools = append(pools, map[string]any{
			"enabled":          true,
			"ipRange":          map[string]any{"startAddress": p.From.String(), "endAddress": p.To.String()},
			"defaultLeaseTime": nil,
			"maxLeaseTime":     nil,
		})
	}
	out := map[string]any{
		"enabled":    len(pools) > 0,
		"leaseTime":  nil,
		"dhcpPools":  pools,
		"mode":       nil,
		"ipAddress":  nil,
		"dnsServers": []any{},
	}
	if n.DHCP != nil {
		showDHCP(n.DHCP, out)
	}
	return jsonOK(out), nil
}

// showDHCP adds the fields that are set.
func showDHCP(d *store.NetworkDHCP, out map[string]any) {
	out["enabled"] = !d.Disabled
	if d.DNS != nil {
		out["dnsServers"] = d.DNS
	}
	if d.Mode != "" {
		out["mode"] = d.Mode
	}
	if d.Address != "" {
		out["ipAddress"] = d.Address
	}
	if d.Lease > 0 {
		out["leaseTime"] = d.Lease
	}
}

// putDHCP sets how a network hands out addresses: by its gateway, by a server on the network, or by relaying to others.
func putDHCP(r *request, _ *store.VDC, n *store.Network) (*response, error) {
	var body dhcpBody
	if err := r.document(&body); err != nil {
		return nil, err
	}
	d := &store.NetworkDHCP{
		Mode:     body.Mode,
		Address:  body.Address,
		Lease:    body.Lease,
		DNS:      body.DNS,
		Disabled: body.Enabled != nil && !*body.Enabled,
	}
	switch {
	case !slices.Contains([]string{"", "EDGE", "NETWORK", "RELAY"}, d.Mode):
		return nil, store.BadRequest("The DHCP mode %q is invalid.", d.Mode)
	case n.Type != store.Routed && (d.Mode == "" || d.Mode == "EDGE") && !d.Disabled:
		return nil, store.BadRequest("The DHCP mode EDGE needs a routed network.")
	}
	pools, err := readDHCPPools(n, body)
	if err != nil {
		return nil, err
	}
	n.DHCP = d
	n.DHCPPool = pools
	return r.start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

// readDHCPPools reads the pools, none of which overlaps another or the static one.
func readDHCPPools(n *store.Network, body dhcpBody) ([]store.Range, error) {
	var pools []store.Range
	for _, p := range body.Pools {
		subnet := n.Gateway
		if a, err := netip.ParseAddr(p.Range.StartAddress); err == nil && a.Is6() && n.Second != nil {
			subnet = n.Second.Gateway
		}
		got, err := jsonRanges{[]jsonRange{p.Range}}.ranges(subnet)
		if err != nil {
			return nil, err
		}
		if overlap(got, n.StaticPool) || overlap(got, pools) {
			return nil, store.BadRequest("The DHCP pool %s-%s overlaps with another IP range of the network.", got[0].From,
				got[0].To)
		}
		pools = append(pools, got[0])
	}
	return pools, nil
}

func deleteDHCP(r *request, _ *store.VDC, n *store.Network) (*response, error) {
	n.DHCP = nil
	n.DHCPPool = nil
	id := n.ID
	r.cloud.store.Documents[bindingPath] = slices.DeleteFunc(slices.Clone(r.cloud.store.Documents[bindingPath]),
		func(d *store.Object) bool { return d.Parent == id })
	return r.start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

// bindingCollection are the addresses that the DHCP server of a network keeps for a MAC address.
func bindingCollection() *collection {
	return &collection{
		path:     bindingPath,
		kind:     "dhcpBinding",
		right:    "ORG_VDC_NETWORK",
		title:    "DHCP Binding",
		reveals:  true,
		within:   "network",
		bare:     true,
		cursor:   true,
		required: []string{"name", "macAddress", "ipAddress"},
		unique:   []string{"ipAddress"},
		scope: func(r *request, _ map[string]any) (scope, error) {
			org, _, n := r.cloud.store.Network(store.Bare(r.vars["network"]))
			if n == nil || !r.session.Sees(org.ID) {
				return scope{}, store.Forbidden("ORG_VDC_NETWORK_VIEW", r.vars["network"])
			}
			return scope{org.ID, n.ID, n.Locks()}, nil
		},
		prepare: func(_ *request, body map[string]any, old *store.Object) error { return sameVersion(body, old) },
		show:    onlyVersions,
	}
}
