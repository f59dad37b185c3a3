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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Use is the purpose of an address on a network.
type Use string

// Uses of addresses.
const (
	UseOutside    Use = "outside"     // in no subnet of the network
	UseOfNetwork  Use = "network"     // address of a gateway, or network address of a subnet
	UseStaticPool Use = "static pool" // VCD assigns it to VMs
	UseDHCP       Use = "DHCP range"  // VCD's DHCP server leases it
	UseNone       Use = ""
)

// UseOf returns the use of an address on the network. For the uses that are ranges, it also returns the range that
// contains the address.
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

// networksPage is the maximum page size in VCD for networks, and for the allocated addresses of a network.
const networksPage = 32

// A HostAddress is an address inside the organization that a VM or a gateway uses.
type HostAddress struct {
	UsedAddress

	// Host names the object that uses the address, for messages.
	Host string
}

type wireNetwork struct{ types.OpenApiOrgVdcNetwork }

func (w wireNetwork) Key() string { return w.ID }

type wireAllocated struct {
	Address  string `json:"ipAddress"`
	Type     string `json:"allocationType"`
	EntityID string `json:"entityId"` // ID of a VM or an edge gateway
	Entity   string `json:"entityName"`
}

func (w wireAllocated) Key() string { return w.Address + " " + w.Type + " " + w.EntityID }

// HostsBehind lists the used addresses on the routed networks of an edge gateway: those of the gateway itself and those
// of all VMs, including VMs that are not visible to the user. It requires the right to view networks of VDCs.
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

const (
	// allocatedAge is how long results of [Networks.RecentHostsAt] are cached, so that machines that are created
	// together share them.
	allocatedAge = 20 * time.Second
	// fewHosts is the number of used addresses up to which all addresses of a network are listed, for all callers. On
	// a network with more, VCD is asked for single addresses: thousands of addresses would need hundreds of requests,
	// and change meanwhile.
	fewHosts = 4 * networksPage
)

// hostList is a list of hosts. It is empty if it would be long.
type hostList struct {
	hosts []HostAddress
	long  bool
}

// HostsAt lists objects on a network, like [Networks.HostsOn]. The result contains those at the given addresses, and may
// contain others.
func (n *Networks) HostsAt(ctx context.Context, network Ref, addresses []netip.Addr) ([]HostAddress, error) {
	return hostsAt(ctx, network, addresses, n.hosts)
}

// RecentHostsAt is like [Networks.HostsAt], with a cache of a few seconds. The result is empty if the user may not view
// the objects. That is safe, because VCD rejects addresses that are in use.
func (n *Networks) RecentHostsAt(ctx context.Context, network Ref, addresses []netip.Addr) ([]HostAddress, error) {
	return hostsAt(ctx, network, addresses, n.recentHosts)
}

func hostsAt(
	ctx context.Context, network Ref, addresses []netip.Addr,
	list func(ctx context.Context, network Ref, listing api.Listing) (hostList, error),
) ([]HostAddress, error) {
	all := allocated(network)
	all.Most = fewHosts
	few, err := list(ctx, network, all)
	if err != nil || !few.long {
		return few.hosts, err
	}
	var hosts []HostAddress
	for _, address := range addresses {
		one := allocated(network)
		one.Terms = []fiql.Term{fiql.Is("ipAddress", address.String())}
		found, err := list(ctx, network, one)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, found.hosts...)
	}
	return hosts, nil
}

func (n *Networks) hosts(ctx context.Context, network Ref, listing api.Listing) (hostList, error) {
	hosts, err := n.list(ctx, network, listing)
	if errors.Is(err, api.ErrLong) {
		return hostList{long: true}, nil
	}
	return hostList{hosts: hosts}, err
}

// recentHosts returns a list that is at most [allocatedAge] old.
func (n *Networks) recentHosts(ctx context.Context, network Ref, listing api.Listing) (hostList, error) {
	key := cache.Key("allocated", network.ID)
	for _, term := range listing.Terms {
		key = cache.Key(key, term.String())
	}
	return cache.Lookup(ctx, n.recent, key, func(ctx context.Context) (hostList, error) {
		found, err := n.hosts(ctx, network, listing)
		return found, readable(err)
	})
}

// HostsOn lists the addresses that VCD has assigned to VMs and other objects on a network. They include those of
// objects that are not visible to the user.
func (n *Networks) HostsOn(ctx context.Context, network Ref) ([]HostAddress, error) {
	return n.list(ctx, network, allocated(network))
}

// allocated returns the list of the used addresses of a network. VCD can filter it by address, according to the
// documentation of its API 37.2 and 39.1.
func allocated(network Ref) api.Listing {
	return api.Listing{
		Path: networksPath + "/" + url.PathEscape(network.ID) + "/allocatedIpAddresses",
		What: "allocated addresses",
		Of:   " of network " + network.Name,
		Sort: "ipAddress",
		Size: networksPage,
	}
}

func (n *Networks) list(ctx context.Context, network Ref, listing api.Listing) ([]HostAddress, error) {
	lines, err := api.ListAll[wireAllocated](ctx, n.client, listing)
	if err != nil {
		return nil, fmt.Errorf("reading the objects that use network %s: %w", network.Name, err)
	}
	var hosts []HostAddress
	for _, line := range lines {
		if addr := wire.Address(line.Address); addr.IsValid() {
			used := UsedAddress{Address: addr, Category: line.Type}
			hosts = append(hosts, HostAddress{used, line.Entity})
		}
	}
	return hosts, nil
}
