// SPDX-License-Identifier: Apache-2.0

package siteexport

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"slices"
)

type wireSubnet struct {
	Gateway string     `json:"gateway"`
	Length  int        `json:"prefixLength"`
	Ranges  wireRanges `json:"ipRanges"`
	Primary string     `json:"primaryIp"`
	DNS1    string     `json:"dnsServer1"`
	DNS2    string     `json:"dnsServer2"`
	Suffix  string     `json:"dnsSuffix"`
}

type wireUplink struct {
	ID         string `json:"uplinkId"`
	Name       string `json:"uplinkName"`
	Backing    string `json:"backingType"`
	UsesSpaces bool   `json:"usingIpSpace"`
	Dedicated  bool   `json:"dedicated"`
	Subnets    struct {
		Values []wireSubnet `json:"values"`
	} `json:"subnets"`
}

type wireGateway struct {
	ref

	Owner   ref          `json:"ownerRef"`
	Uplinks []wireUplink `json:"edgeGatewayUplinks"`
}

// readGateways lists the edge gateways that are visible to the user, with their uplinks.
func (r *reader) readGateways(ctx context.Context) ([]wireGateway, error) {
	found, err := readList[wireGateway](ctx, r, "edge gateways", "/cloudapi/1.0.0/edgeGateways", url.Values{"sortAsc": {"name"}})
	if err != nil {
		return nil, r.noteIfHidden("edge gateways", err)
	}
	return inOrder(found, func(x wireGateway) string { return x.Name }), nil
}

// externalNetworks derives the external networks from the uplinks of the gateways, because a tenant cannot see them in
// any other way. Their pools are the addresses of the gateways.
func externalNetworks(names *aliases, gateways []wireGateway) []ExternalNetwork {
	var uplinks []wireUplink
	for _, gateway := range gateways {
		uplinks = append(uplinks, gateway.Uplinks...)
	}
	inOrder(uplinks, func(u wireUplink) string { return u.Name })
	var networks []ExternalNetwork
	for _, uplink := range uplinks {
		i := slices.IndexFunc(networks, func(n ExternalNetwork) bool { return n.Name == names.of(uplink.ID) })
		if i < 0 {
			i = len(networks)
			networks = append(networks, ExternalNetwork{
				Name:       names.assign("external", uplink.ID),
				Backing:    oneOf(uplink.Backing, "NSXT_VRF_TIER0", "IMPORTED_T_LOGICAL_SWITCH"),
				UsesSpaces: uplink.UsesSpaces,
			})
		}
		for _, subnet := range uplinkSubnets(uplink) {
			networks[i].Subnets = addPool(networks[i].Subnets, subnet)
		}
	}
	return networks
}

// addPool adds the addresses of a gateway to the pool of the same subnet of its external network.
func addPool(subnets []ExternalSubnet, of UplinkSubnet) []ExternalSubnet {
	i := slices.IndexFunc(subnets, func(s ExternalSubnet) bool { return s.Gateway == of.Gateway })
	if i < 0 {
		i = len(subnets)
		subnets = append(subnets, ExternalSubnet{Gateway: of.Gateway})
	}
	pool := append(subnets[i].Pool, of.Addresses...) //nolint:gocritic // It is the pool again.
	slices.SortFunc(pool, func(x, y Range) int {
		return cmp.Or(x.From.Compare(y.From), x.To.Compare(y.To))
	})
	subnets[i].Pool = slices.Compact(pool)
	return subnets
}

// uplinkSubnets returns the addresses of a gateway in each subnet of an external network.
func uplinkSubnets(uplink wireUplink) []UplinkSubnet {
	var subnets []UplinkSubnet
	for _, x := range uplink.Subnets.Values {
		gateway := subnetOf(x.Gateway, x.Length)
		if !gateway.IsValid() {
			continue
		}
		subnet := UplinkSubnet{Gateway: gateway, Addresses: within(gateway, x.Ranges.ranges())}
		if primary := addressOf(x.Primary); gateway.Contains(primary) {
			subnet.Primary = primary
		}
		subnets = append(subnets, subnet)
	}
	return subnets
}

// addGateways adds gateways to their VDCs, and returns the service engine groups that they may use.
func (r *reader) addGateways(ctx context.Context, names *aliases, gateways []wireGateway, vdcs []VDC,
	homeOf func(string) (home, bool),
) ([]EngineGroup, error) {
	engines := &engineReader{reader: r, names: names}
	for _, x := range gateways {
		at, found := homeOf(x.Owner.ID)
		if !found {
			r.note("edge gateways: those of VDCs that are not visible to the user are omitted")
			continue
		}
		gateway := EdgeGateway{Name: names.assign("gateway", x.ID), Group: at.group}
		for _, uplink := range x.Uplinks {
			gateway.Uplinks = append(gateway.Uplinks, Uplink{
				Network:   names.of(uplink.ID),
				Dedicated: uplink.Dedicated,
				Subnets:   uplinkSubnets(uplink),
			})
		}
		var err error
		if gateway.LoadBalancer, err = engines.balancer(ctx, x.ID); err != nil {
			return nil, err
		}
		vdcs[at.vdc].EdgeGateways = append(vdcs[at.vdc].EdgeGateways, gateway)
	}
	return engines.all, nil
}

// An engineReader reads the load balancers of gateways, and collects their service engine groups without duplicates.
type engineReader struct {
	reader *reader
	names  *aliases
	all    []EngineGroup
}

type wireBalancer struct {
	Enabled     bool   `json:"enabled"`
	FeatureSet  string `json:"supportedFeatureSet"`
	Transparent bool   `json:"transparentModeEnabled"`
	Service     string `json:"serviceNetworkDefinition"`
	ServiceIPv6 string `json:"ipv6ServiceNetworkDefinition"`
}

// balancer reads the load balancer of a gateway. It returns nil if the load balancer is disabled or not visible to the
// user.
func (e *engineReader) balancer(ctx context.Context, gateway string) (*LoadBalancer, error) {
	const what = "load balancers of edge gateways"
	var shown wireBalancer
	path := "/cloudapi/1.0.0/edgeGateways/" + url.PathEscape(gateway) + "/loadBalancer"
	if err := e.reader.readJSON(ctx, path, nil, &shown); err != nil {
		return nil, e.reader.noteIfHidden(what, err)
	}
	if !shown.Enabled {
		return nil, nil //nolint:nilnil // There is none, as the signature says.
	}
	balancer := &LoadBalancer{
		Enabled: true,
		Fields: BalancerFields{
			FeatureSet:  oneOf(shown.FeatureSet, "STANDARD", "PREMIUM"),
			Transparent: shown.Transparent,
			Service:     prefixOf(shown.Service),
			ServiceIPv6: prefixOf(shown.ServiceIPv6),
		},
	}
	var err error
	balancer.Groups, err = e.groups(ctx, gateway)
	return balancer, err
}

// prefixOf parses a prefix. It returns the zero value if the prefix is invalid or cannot be moved.
func prefixOf(text string) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	if err != nil || !movable(p) {
		return netip.Prefix{}
	}
	return p
}

type wireAssignment struct {
	Group ref `json:"serviceEngineGroupRef"`
	Max   int `json:"maxVirtualServices"`
}

// groups returns the aliases of the service engine groups of a gateway.
func (e *engineReader) groups(ctx context.Context, gateway string) ([]alias, error) {
	found, err := readList[wireAssignment](ctx, e.reader, "service engine groups",
		"/cloudapi/1.0.0/loadBalancer/serviceEngineGroups/assignments", url.Values{"filter": {"gatewayRef.id==" + gateway}})
	if err != nil {
		return nil, e.reader.noteIfHidden("service engine groups", err)
	}
	var names []alias
	for _, x := range inOrder(found, func(x wireAssignment) string { return x.Group.Name }) {
		name := e.names.of(x.Group.ID)
		if name == "" {
			name = e.names.assign("engines", x.Group.ID)
			e.all = append(e.all, EngineGroup{Name: name})
		}
		i := slices.IndexFunc(e.all, func(g EngineGroup) bool { return g.Name == name })
		e.all[i].MaxService = max(e.all[i].MaxService, x.Max)
		names = append(names, name)
	}
	return names, nil
}
