package vcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/vmware/go-vcloud-director/v2/types/v56"
)

const networksPath = "/cloudapi/1.0.0/orgVdcNetworks"

// FindNetwork finds an organisation network by name or URN, among those that VMs of the VDC can be connected to: its
// own, those of its VDC group and those shared with it. What was found by name is remembered for its URN, too.
func (s *Session) FindNetwork(ctx context.Context, vdc VDC, nameOrURN string) (Network, error) {
	return lookup(ctx, s.lookups, key("network", vdc.ID, nameOrURN), func(ctx context.Context) (Network, error) {
		n, err := s.findNetwork(ctx, vdc, nameOrURN)
		if err == nil {
			s.lookups.put(key("network", vdc.ID, n.ID), n)
		}
		return n, err
	})
}

// ForgetNetwork lets the next FindNetwork of that network, by whatever name, ask VCD: it is for who waits until somebody
// changes the network there.
func (s *Session) ForgetNetwork(vdc VDC, network Ref) {
	s.lookups.drop(key("network", vdc.ID, network.ID))
	s.lookups.drop(key("network", vdc.ID, network.Name))
}

func (s *Session) findNetwork(ctx context.Context, vdc VDC, nameOrURN string) (Network, error) {
	in := "VDC " + vdc.Name
	if err := checkName("network", nameOrURN, in); err != nil {
		return Network{}, err
	}
	by := term{"name", nameOrURN}
	if isURN(nameOrURN) {
		by = term{"id", nameOrURN}
	}
	found, err := s.networks(ctx, nameOrURN, term{"ownerRef.id", vdc.ID}, term{"_context", "includeAccessible"}, by)
	if err == nil && len(found) == 0 {
		found, err = s.groupNetworks(ctx, vdc, nameOrURN, by)
	}
	if err != nil {
		return Network{}, err
	}
	hits := make([]Ref, len(found))
	byID := map[string]*types.OpenApiOrgVdcNetwork{}
	for i, n := range found {
		hits[i] = Ref{ID: n.ID, Name: n.Name}
		byID[n.ID] = n
	}
	ref, err := only("network", nameOrURN, in, hits)
	if err != nil {
		return Network{}, err
	}
	dhcp, err := s.dhcpPools(ctx, ref)
	if err != nil {
		return Network{}, err
	}
	return network(byID[ref.ID], dhcp), nil
}

func (s *Session) networks(ctx context.Context, nameOrURN string, terms ...term) ([]*types.OpenApiOrgVdcNetwork, error) {
	var page struct {
		Values []*types.OpenApiOrgVdcNetwork `json:"values"`
	}
	if err := s.getJSON(ctx, networksPath, params("page", "1", "pageSize", "32", "filter", jsonFilter(terms...)), &page); err != nil {
		return nil, fmt.Errorf("looking up network %s: %w", nameOrURN, err)
	}
	return page.Values, nil
}

// groupNetworks finds networks that belong to a VDC group which the VDC is in. Who may not see the groups has to believe that it is.
func (s *Session) groupNetworks(ctx context.Context, vdc VDC, nameOrURN string, by term) ([]*types.OpenApiOrgVdcNetwork, error) {
	found, err := s.networks(ctx, nameOrURN, by)
	if err != nil {
		return nil, err
	}
	var inGroups []*types.OpenApiOrgVdcNetwork
	for _, n := range found {
		if n.OwnerRef == nil || !strings.HasPrefix(n.OwnerRef.ID, "urn:vcloud:vdcGroup:") {
			continue
		}
		member, err := s.inGroup(ctx, vdc, n.OwnerRef.ID)
		if err != nil {
			return nil, fmt.Errorf("looking up network %s: %w", nameOrURN, err)
		}
		if member {
			inGroups = append(inGroups, n)
		}
	}
	return inGroups, nil
}

func (s *Session) inGroup(ctx context.Context, vdc VDC, group string) (bool, error) {
	var doc struct {
		Members []struct {
			VDC wireRef `json:"vdcRef"`
		} `json:"participatingOrgVdcs"`
	}
	err := s.getJSON(ctx, "/cloudapi/1.0.0/vdcGroups/"+url.PathEscape(group), "", &doc)
	if errors.Is(err, ErrForbidden) {
		return true, nil
	}
	for _, m := range doc.Members {
		if uuidOf(m.VDC.ID) == uuidOf(vdc.ID) {
			return true, nil
		}
	}
	return false, err
}

// dhcpPools returns the ranges of VCD's DHCP server on a network. Who may not see them goes without.
func (s *Session) dhcpPools(ctx context.Context, n Ref) ([]AddressRange, error) {
	var dhcp types.OpenApiOrgVdcNetworkDhcp
	err := s.getJSON(ctx, networksPath+"/"+url.PathEscape(n.ID)+"/dhcp", "", &dhcp)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrInvalid) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading DHCP of network %s: %w", n.Name, err)
	}
	var ranges []AddressRange
	for _, pool := range dhcp.DhcpPools {
		ranges = appendRange(ranges, pool.IPRange.StartAddress, pool.IPRange.EndAddress)
	}
	return ranges, nil
}

func network(n *types.OpenApiOrgVdcNetwork, dhcp []AddressRange) Network {
	found := Network{Ref: Ref{ID: n.ID, Name: n.Name}}
	if n.Connection != nil && isURN(n.Connection.RouterRef.ID) {
		found.EdgeGateway = Ref{ID: n.Connection.RouterRef.ID, Name: n.Connection.RouterRef.Name}
	}
	for _, values := range n.Subnets.Values {
		gateway, err := netip.ParseAddr(values.Gateway)
		if err != nil {
			continue
		}
		subnet := Subnet{
			Prefix: netip.PrefixFrom(gateway, values.PrefixLength).Masked(), Gateway: gateway, DNSSuffix: values.DNSSuffix,
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

// appendRange adds a range of which VCD wrote both ends, or only the first.
func appendRange(ranges []AddressRange, from, to string) []AddressRange {
	first, err := netip.ParseAddr(from)
	if err != nil {
		return ranges
	}
	last, err := netip.ParseAddr(cmp.Or(to, from))
	if err != nil {
		return ranges
	}
	return append(ranges, AddressRange{From: first, To: last})
}
