package vcdsim

import "net/netip"

// internet is an external network with a block of addresses.
func internet() ExternalNetwork {
	return ExternalNetwork{
		Name: "internet", Description: "To outside", BackingName: "tier0-internet",
		Subnets: []ExternalSubnet{{Gateway: netip.MustParsePrefix("203.0.113.1/24"), Pool: []Range{addresses("203.0.113.10", "203.0.113.250")}}},
	}
}

// k8sGateway has 90 addresses of the internet and a load balancer.
func k8sGateway() EdgeGateway {
	return EdgeGateway{
		Name: "acme-vdc-gateway", Description: "To the internet",
		Uplinks: []Uplink{{Network: "internet", Subnets: []UplinkSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"), Addresses: []Range{addresses("203.0.113.10", "203.0.113.99")},
			Primary: netip.MustParseAddr("203.0.113.10"),
		}}}},
		LoadBalancer: &LoadBalancer{Enabled: true, Groups: []string{"engines"}},
	}
}

// IPSpaces is K8sTenant with IP Spaces: the gateway's addresses are floating IPs of the space public, which the tenant
// allocates, ten at most; it has prefixes, too.
func IPSpaces() Model {
	m := K8sTenant()
	m.ExternalNetworks[0].Subnets, m.ExternalNetworks[0].UsesSpaces = nil, true
	m.IPSpaces = []IPSpace{PublicSpace("public", "internet")}
	m.Orgs[1].VDCs[0].EdgeGateways[0].Uplinks = []Uplink{{Network: "internet"}}
	return m
}

// PublicSpace is an IP Space with floating IPs and prefixes for the gateways of an external network.
func PublicSpace(name, network string) IPSpace {
	return IPSpace{
		Name: name, Type: SpacePublic, Description: "Addresses for tenants",
		Internal: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, External: netip.MustParsePrefix("0.0.0.0/0"),
		Ranges: []Range{addresses("198.51.100.10", "198.51.100.109")}, RangeQuota: 10,
		Prefixes: []PrefixPool{{First: netip.MustParsePrefix("198.51.100.128/28"), Count: 8, Quota: 2}},
		Uplinks:  []SpaceUplink{{Name: name + "-uplink", Network: network}},
	}
}

// VDCGroupTenant is K8sTenant with a second VDC and a data center group of both, which has the gateway and the network nodes.
func VDCGroupTenant() Model {
	m := K8sTenant()
	acme := &m.Orgs[1]
	acme.VDCs = append(acme.VDCs, VDC{
		Name: "acme-vdc-2", Description: "The second zone", Policies: acme.VDCs[0].Policies,
		StorageProfiles: []StorageProfile{{Name: "standard", Default: true}},
	})
	acme.VDCGroups = []VDCGroup{{Name: "acme-group", Description: "Both zones", VDCs: []string{"acme-vdc", "acme-vdc-2"}}}
	acme.VDCs[0].EdgeGateways[0].Group = "acme-group"
	for n := range acme.VDCs[0].Networks {
		acme.VDCs[0].Networks[n].Group = "acme-group"
	}
	return m
}
