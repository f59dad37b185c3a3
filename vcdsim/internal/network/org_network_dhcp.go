// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
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
		Range gateways.JSONRange `json:"ipRange"`
	} `json:"dhcpPools"`
}

func getDHCP(r *api.Request) (*api.Response, error) {
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
	return api.JSON(out), nil
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

// putDHCP sets the DHCP mode of a network: EDGE, where the gateway assigns addresses, NETWORK, where a server on the
// network does, or RELAY, which forwards requests to other servers.
func putDHCP(r *api.Request, _ *store.VDC, n *store.Network) (*api.Response, error) {
	var body dhcpBody
	if err := r.Document(&body); err != nil {
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
	return r.Start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

// readDHCPPools reads the DHCP pools. They must not overlap with each other or with the static pool.
func readDHCPPools(n *store.Network, body dhcpBody) ([]store.Range, error) {
	var pools []store.Range
	for _, p := range body.Pools {
		subnet := n.Gateway
		if a, err := netip.ParseAddr(p.Range.StartAddress); err == nil && a.Is6() && n.Second != nil {
			subnet = n.Second.Gateway
		}
		got, err := gateways.JSONRanges{Values: []gateways.JSONRange{p.Range}}.Ranges(subnet)
		if err != nil {
			return nil, err
		}
		if gateways.Overlap(got, n.StaticPool) || gateways.Overlap(got, pools) {
			return nil, store.BadRequest("The DHCP pool %s-%s overlaps with another IP range of the network.", got[0].From,
				got[0].To)
		}
		pools = append(pools, got[0])
	}
	return pools, nil
}

func deleteDHCP(r *api.Request, _ *store.VDC, n *store.Network) (*api.Response, error) {
	n.DHCP = nil
	n.DHCPPool = nil
	id := n.ID
	r.Cloud.Store.Documents[bindingPath] = slices.DeleteFunc(slices.Clone(r.Cloud.Store.Documents[bindingPath]),
		func(d *store.Object) bool { return d.Parent == id })
	return r.Start(store.Work{Op: "update orgVdcNetwork"}, n.Entity(), n.Locks()), nil
}

// bindingCollection returns the collection of DHCP bindings, the addresses that the DHCP server of a network reserves
// for MAC addresses.
func bindingCollection() *documents.Collection {
	return &documents.Collection{
		Path:     bindingPath,
		Kind:     "dhcpBinding",
		Right:    "ORG_VDC_NETWORK",
		Title:    "DHCP Binding",
		Reveals:  true,
		Within:   "network",
		Bare:     true,
		Cursor:   true,
		Required: []string{"name", "macAddress", "ipAddress"},
		Unique:   []string{"ipAddress"},
		Scope: func(r *api.Request, _ map[string]any) (documents.Scope, error) {
			org, _, n := r.Cloud.Store.Network(store.Bare(r.Vars["network"]))
			if n == nil || !r.Session.Sees(org.ID) {
				return documents.Scope{}, store.Forbidden("ORG_VDC_NETWORK_VIEW", r.Vars["network"])
			}
			return documents.Scope{OrgID: org.ID, Parent: n.ID, Locks: n.Locks()}, nil
		},
		Prepare: func(_ *api.Request, body map[string]any, old *store.Object) error {
			return gateways.SameVersion(body, old)
		},
		Show: gateways.OnlyVersions,
	}
}
