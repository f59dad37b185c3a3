// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"time"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Use is what a network does with an address.
type Use string

// Uses of addresses.
const (
	UseOutside    Use = "outside"     // it is in no subnet
	UseOfNetwork  Use = "network"     // it is that of the gateway, or of the network itself
	UseStaticPool Use = "static pool" // VCD gives it to VMs
	UseDHCP       Use = "DHCP range"  // VCD leases it
	UseNone       Use = ""
)

// UseOf returns what the network does with an address, and the range that it is in, if any.
func (n Network) UseOf(addr netip.Addr) (Use, AddressRange) {
	for _, subnet := range n.Subnets {
		if !subnet.Prefix.Contains(addr) {
			continue
		}
		if addr == subnet.Gateway || addr == subnet.Prefix.Masked().Addr() {
			return UseOfNetwork, AddressRange{}
		}
		if r, found := rangeOf(addr, subnet.StaticPool); found {
			return UseStaticPool, r
		}
		if r, found := rangeOf(addr, subnet.DHCPPool); found {
			return UseDHCP, r
		}
		return UseNone, AddressRange{}
	}
	return UseOutside, AddressRange{}
}

func rangeOf(addr netip.Addr, ranges []AddressRange) (AddressRange, bool) {
	for _, r := range ranges {
		if r.Contains(addr) {
			return r, true
		}
	}
	return AddressRange{}, false
}

// networksPage is the longest page of networks, and of what is on one, that VCD gives.
const networksPage = 32

// A HostAddress is an address inside the organization that a VM or a gateway has.
type HostAddress struct {
	UsedAddress

	// Host names what has the address.
	Host string
}

type wireNetwork struct{ types.OpenApiOrgVdcNetwork }

func (w wireNetwork) Key() string { return w.ID }

type wireAllocated struct {
	Address  string `json:"ipAddress"`
	Type     string `json:"allocationType"`
	EntityID string `json:"entityId"` // of a VM or an edge gateway
	Entity   string `json:"entityName"`
}

func (w wireAllocated) Key() string { return w.Address + " " + w.Type + " " + w.EntityID }

// HostsBehind lists the addresses that are in use on the routed networks of an edge gateway: of the gateway itself, and
// of all VMs, also those that the user may not see. It takes the right to view networks of VDCs.
func (n *Networks) HostsBehind(ctx context.Context, gateway string) ([]HostAddress, error) {
	all, err := api.ListAll[wireNetwork](ctx, n.client, api.Listing{
		Path: networksPath,
		What: "networks",
		Sort: "name",
		Size: networksPage,
	})
	if err != nil {
		return nil, err
	}
	var hosts []HostAddress
	for _, w := range all {
		doc := network(&w.OpenApiOrgVdcNetwork, nil)
		if doc.EdgeGateway.ID != gateway {
			continue
		}
		for _, subnet := range doc.Subnets {
			used := UsedAddress{Address: subnet.Gateway.Unmap(), Category: "gateway"}
			hosts = append(hosts, HostAddress{used, "gateway of network " + doc.Name})
		}
		on, err := n.HostsOn(ctx, doc.Ref)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, on...)
	}
	return hosts, nil
}

// allocatedAge is how old an answer of [Networks.RecentHostsOn] may be, so that machines that are created together
// share one.
const allocatedAge = 20 * time.Second

// RecentHostsOn is [Networks.HostsOn] a moment ago. Who may not see what is allocated gets none: VCD itself refuses
// what is in use.
func (n *Networks) RecentHostsOn(ctx context.Context, network Ref) ([]HostAddress, error) {
	return cache.Lookup(ctx, n.recent, cache.Key("allocated", network.ID), func(ctx context.Context) ([]HostAddress, error) {
		hosts, err := n.HostsOn(ctx, network)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrInvalid) {
			return nil, nil
		}
		return hosts, err
	})
}

// HostsOn lists the addresses that VCD has given to VMs and others on a network, also those that the user may not see.
func (n *Networks) HostsOn(ctx context.Context, network Ref) ([]HostAddress, error) {
	allocated, err := api.ListAll[wireAllocated](ctx, n.client, api.Listing{
		Path: networksPath + "/" + url.PathEscape(network.ID) + "/allocatedIpAddresses",
		What: "allocated addresses",
		Of:   " of network " + network.Name,
		Sort: "ipAddress",
		Size: networksPage,
	})
	if err != nil {
		return nil, fmt.Errorf("reading the objects that use network %s: %w", network.Name, err)
	}
	var hosts []HostAddress
	for _, line := range allocated {
		if addr := wire.Address(line.Address); addr.IsValid() {
			used := UsedAddress{Address: addr, Category: line.Type}
			hosts = append(hosts, HostAddress{used, line.Entity})
		}
	}
	return hosts, nil
}
