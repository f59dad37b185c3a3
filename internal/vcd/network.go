// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"github.com/vmware/go-vcloud-director/v2/types/v56"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/cache"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

// A Network is an org VDC network.
type Network struct {
	Ref

	Subnets []Subnet
	// EdgeGateway is the gateway that a routed network is connected to, in its VDC or VDC group. It is zero for other
	// networks.
	EdgeGateway Ref
}

// IsIPv6Only reports whether the network has subnets, but none of IPv4.
func (n Network) IsIPv6Only() bool {
	return len(n.Subnets) > 0 && !slices.ContainsFunc(n.Subnets, func(s Subnet) bool { return s.Prefix.Addr().Is4() })
}

// A Subnet is one subnet of a network.
type Subnet struct {
	Prefix     netip.Prefix // network address and length
	Gateway    netip.Addr
	DNS        []netip.Addr
	DNSSuffix  string
	StaticPool []AddressRange // addresses that VCD assigns to NICs of mode POOL
	DHCPPool   []AddressRange // addresses that VCD's DHCP server leases
}

const networksPath = "/cloudapi/1.0.0/orgVdcNetworks"

// Networks is the client for the networks that VMs can be connected to.
type Networks struct {
	client  *api.Client
	lookups *cache.Cache
	recent  *cache.Cache // cache of values that change often
}

// FindNetwork finds an organization network by name or URN. It searches the networks that VMs of the VDC can be
// connected to: those of the VDC, those of its VDC group and those shared with the VDC. A result by name is also cached
// for the URN.
func (n *Networks) FindNetwork(ctx context.Context, vdc VDC, nameOrURN string) (Network, error) {
	return cache.Lookup(ctx, n.lookups, cache.Key("network", vdc.ID, nameOrURN), func(ctx context.Context) (Network, error) {
		found, err := n.findNetwork(ctx, vdc, nameOrURN)
		if err == nil {
			n.lookups.Put(cache.Key("network", vdc.ID, found.ID), found)
		}
		return found, err
	})
}

// ForgetNetwork removes a network from the cache, so that the next FindNetwork by its name or URN queries VCD. It is
// for callers that wait for a change of the network.
func (n *Networks) ForgetNetwork(vdc VDC, network Ref) {
	n.lookups.Drop(cache.Key("network", vdc.ID, network.ID))
	n.lookups.Drop(cache.Key("network", vdc.ID, network.Name))
}

func (n *Networks) findNetwork(ctx context.Context, vdc VDC, nameOrURN string) (Network, error) {
	in := "VDC " + vdc.Name
	if err := fiql.CheckName("network", nameOrURN, in); err != nil {
		return Network{}, err
	}
	by := fiql.Is("name", nameOrURN)
	if urn.Is(nameOrURN) {
		by = fiql.Is("id", nameOrURN)
	}
	found, err := n.networks(ctx, nameOrURN, fiql.Is("ownerRef.id", vdc.ID), fiql.Is("_context", "includeAccessible"), by)
	if err == nil && len(found) == 0 {
		found, err = n.groupNetworks(ctx, vdc, nameOrURN, by)
	}
	if err != nil {
		return Network{}, err
	}
	hits := make([]Ref, len(found))
	byID := map[string]*types.OpenApiOrgVdcNetwork{}
	for i, doc := range found {
		hits[i] = Ref{ID: doc.ID, Name: doc.Name}
		byID[doc.ID] = doc
	}
	ref, err := only("network", nameOrURN, in, hits)
	if err != nil {
		return Network{}, err
	}
	dhcp, err := n.dhcpPools(ctx, ref)
	if err != nil {
		return Network{}, err
	}
	return network(byID[ref.ID], dhcp), nil
}

func (n *Networks) networks(ctx context.Context, nameOrURN string, terms ...fiql.Term) ([]*types.OpenApiOrgVdcNetwork, error) {
	var page struct {
		Values []*types.OpenApiOrgVdcNetwork `json:"values"`
	}
	if err := n.client.GetJSON(ctx, networksPath, api.Params("page", "1", "pageSize", "32", "filter", fiql.JSON(terms...)),
		&page); err != nil {
		return nil, fmt.Errorf("looking up network %s: %w", nameOrURN, err)
	}
	return page.Values, nil
}

// groupNetworks finds networks of the VDC groups that contain the VDC. If the user may not view a group, it assumes
// that the group contains the VDC.
func (n *Networks) groupNetworks(ctx context.Context, vdc VDC, nameOrURN string, by fiql.Term) ([]*types.OpenApiOrgVdcNetwork, error) {
	found, err := n.networks(ctx, nameOrURN, by)
	if err != nil {
		return nil, err
	}
	var inGroups []*types.OpenApiOrgVdcNetwork
	for _, doc := range found {
		if doc.OwnerRef == nil || !isVDCGroup(doc.OwnerRef.ID) {
			continue
		}
		member, err := n.inGroup(ctx, vdc, doc.OwnerRef.ID)
		if err != nil {
			return nil, fmt.Errorf("looking up network %s: %w", nameOrURN, err)
		}
		if member {
			inGroups = append(inGroups, doc)
		}
	}
	return inGroups, nil
}

// inGroup reports whether a VDC group contains the VDC, or the user may not view the group.
func (n *Networks) inGroup(ctx context.Context, vdc VDC, group string) (bool, error) {
	var doc struct {
		Members []struct {
			VDC wire.Ref `json:"vdcRef"`
		} `json:"participatingOrgVdcs"`
	}
	err := n.client.GetJSON(ctx, "/cloudapi/1.0.0/vdcGroups/"+url.PathEscape(group), "", &doc)
	if errors.Is(err, ErrForbidden) {
		return true, nil
	}
	for _, m := range doc.Members {
		if urn.UUID(m.VDC.ID) == urn.UUID(vdc.ID) {
			return true, nil
		}
	}
	return false, err
}

// dhcpPools returns the ranges of VCD's DHCP server on a network. It returns none if they are not visible to the user.
func (n *Networks) dhcpPools(ctx context.Context, network Ref) ([]AddressRange, error) {
	var dhcp types.OpenApiOrgVdcNetworkDhcp
	err := n.client.GetJSON(ctx, networksPath+"/"+url.PathEscape(network.ID)+"/dhcp", "", &dhcp)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading DHCP of network %s: %w", network.Name, err)
	}
	var ranges []AddressRange
	for _, pool := range dhcp.DhcpPools {
		ranges = appendRange(ranges, pool.IPRange.StartAddress, pool.IPRange.EndAddress)
	}
	return ranges, nil
}

// defaultSpoofGuard is the default SpoofGuard profile of NSX, which allows all addresses.
const defaultSpoofGuard = "default-spoofguard-profile"

// SpoofGuard returns the name of the SpoofGuard segment profile that the provider assigned to a network (VCD 10.3.2).
// It returns the empty string if the profile is the default one of NSX or not visible to the user. Only providers can
// see the content of a profile.
func (n *Networks) SpoofGuard(ctx context.Context, network Ref) (string, error) {
	return cache.Lookup(ctx, n.lookups, cache.Key("spoofguard", network.ID), func(ctx context.Context) (string, error) {
		return n.spoofGuard(ctx, network)
	})
}

func (n *Networks) spoofGuard(ctx context.Context, network Ref) (string, error) {
	var doc struct {
		Profile *wire.Ref `json:"spoofGuardProfile"`
	}
	err := n.client.GetJSON(ctx, networksPath+"/"+url.PathEscape(network.ID)+"/segmentProfiles", "", &doc)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrForbidden), errors.Is(err, ErrInvalid):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading segment profiles of network %s: %w", network.Name, err)
	}
	if profile := refOf(doc.Profile); profile.Name != defaultSpoofGuard {
		return profile.Name, nil
	}
	return "", nil
}

func network(n *types.OpenApiOrgVdcNetwork, dhcp []AddressRange) Network {
	found := Network{Ref: Ref{ID: n.ID, Name: n.Name}}
	if n.Connection != nil && urn.Is(n.Connection.RouterRef.ID) {
		found.EdgeGateway = Ref{ID: n.Connection.RouterRef.ID, Name: n.Connection.RouterRef.Name}
	}
	for _, values := range n.Subnets.Values {
		gateway, err := netip.ParseAddr(values.Gateway)
		if err != nil {
			continue
		}
		subnet := Subnet{
			Prefix:    netip.PrefixFrom(gateway, values.PrefixLength).Masked(),
			Gateway:   gateway,
			DNSSuffix: values.DNSSuffix,
		}
		for _, server := range []string{values.DNSServer1, values.DNSServer2} {
			if addr, err := netip.ParseAddr(server); err == nil {
				subnet.DNS = append(subnet.DNS, addr)
			}
		}
		for _, r := range values.IPRanges.Values {
			subnet.StaticPool = appendRange(subnet.StaticPool, r.StartAddress, r.EndAddress)
		}
		for _, r := range dhcp {
			if subnet.Prefix.Contains(r.From) {
				subnet.DHCPPool = append(subnet.DHCPPool, r)
			}
		}
		found.Subnets = append(found.Subnets, subnet)
	}
	return found
}

// A NetworkUsage is the usage of the static pools of a network.
type NetworkUsage struct {
	Ref

	Status    Realization
	Counted   bool   // VCD reported the number of addresses in static pools
	Addresses Amount // used and total addresses of the static pools
}

type wireUsage struct {
	wire.Ref

	Status Realization `json:"status"`
	Total  *int        `json:"totalIpCount"`
	Used   *int        `json:"usedIpCount"`
}

// Usage reads the usage of the static pools of a network.
func (n *Networks) Usage(ctx context.Context, network Ref) (NetworkUsage, error) {
	return api.Read(ctx, n.client, "network", network.Name, networksPath+"/"+url.PathEscape(network.ID),
		func(w *wireUsage) NetworkUsage {
			return NetworkUsage{
				Ref:       refOf(&w.Ref),
				Status:    w.Status,
				Counted:   w.Total != nil,
				Addresses: Amount{Used: wire.Number(w.Used), Limit: wire.Number(w.Total)},
			}
		})
}

// List returns the networks that VMs of a VDC can be connected to, except those of its VDC group, sorted by name.
func (n *Networks) List(ctx context.Context, vdc VDC) ([]Ref, error) {
	return api.ListAs(ctx, n.client, api.Listing{
		Path:  networksPath,
		What:  "networks",
		Of:    " of VDC " + vdc.Name,
		Sort:  "name",
		Size:  networksPage,
		Terms: []fiql.Term{fiql.Is("ownerRef.id", vdc.ID), fiql.Is("_context", "includeAccessible")},
	}, func(w *wireUsage) Ref { return refOf(&w.Ref) })
}
