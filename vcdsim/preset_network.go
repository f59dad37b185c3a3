// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/netip"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// internet returns an external network with a block of addresses.
func internet() store.ExternalNetwork {
	return store.ExternalNetwork{
		Name:        "internet",
		Description: "To outside",
		BackingName: "tier0-internet",
		Subnets: []store.ExternalSubnet{{
			Gateway: netip.MustParsePrefix("203.0.113.1/24"),
			Pool:    []store.Range{addresses("203.0.113.10", "203.0.113.250")},
		}},
	}
}

// k8sGateway returns an edge gateway with 90 addresses of the internet and a load balancer.
func k8sGateway() store.EdgeGateway {
	return store.EdgeGateway{
		Name:        "acme-vdc-gateway",
		Description: "To the internet",
		Uplinks: []store.Uplink{{
			Network: "internet",
			Subnets: []store.UplinkSubnet{{
				Gateway:   netip.MustParsePrefix("203.0.113.1/24"),
				Addresses: []store.Range{addresses("203.0.113.10", "203.0.113.99")},
				Primary:   netip.MustParseAddr("203.0.113.10"),
			}},
		}},
		LoadBalancer: &store.LoadBalancer{Enabled: true, Groups: []string{"engines"}},
	}
}

// FullClones returns K8sTenant with a second VDC, acme-vdc-full, without fast provisioning: its VMs are full copies
// of their templates, so their disks can grow at once. The VDC has the gateway acme-vdc-full-gateway, with 30 more
// addresses of the internet and a load balancer, and the network nodes-full behind it.
func FullClones() store.Model {
	m := K8sTenant()
	gateway := k8sGateway()
	gateway.Name = "acme-vdc-full-gateway"
	gateway.Description = "To the internet, from acme-vdc-full"
	own := addresses("203.0.113.220", "203.0.113.249")
	gateway.Uplinks[0].Subnets[0].Addresses = []store.Range{own}
	gateway.Uplinks[0].Subnets[0].Primary = own.From
	m.Orgs[1].VDCs = append(m.Orgs[1].VDCs, store.VDC{
		Name:            "acme-vdc-full",
		Description:     "Full clones, whose disks can grow",
		StorageProfiles: []store.StorageProfile{{Name: "standard", Default: true}},
		EdgeGateways:    []store.EdgeGateway{gateway},
		Policies:        m.Orgs[1].VDCs[0].Policies,
		FullClones:      true,
		Networks: []store.Network{{
			Name:        "nodes-full",
			Description: "Kubernetes nodes of acme-vdc-full",
			Type:        store.Routed,
			Gateway:     netip.MustParsePrefix("192.168.120.1/24"),
			DNS:         []netip.Addr{netip.MustParseAddr("192.168.120.1")},
			StaticPool:  []store.Range{addresses("192.168.120.10", "192.168.120.99")},
		}},
	})
	return m
}

// IPSpaces returns K8sTenant with IP Spaces. The gateway's addresses are floating IPs of the space public; the tenant
// may allocate at most ten. The space also has prefixes.
func IPSpaces() store.Model {
	m := K8sTenant()
	m.ExternalNetworks[0].Subnets = nil
	m.ExternalNetworks[0].UsesSpaces = true
	m.IPSpaces = []store.IPSpace{PublicSpace("public", "internet")}
	m.Orgs[1].VDCs[0].EdgeGateways[0].Uplinks = []store.Uplink{{Network: "internet"}}
	return m
}

// PublicSpace returns an IP Space with floating IPs and prefixes for the gateways of an external network.
func PublicSpace(name, network string) store.IPSpace {
	return store.IPSpace{
		Name:        name,
		Type:        store.SpacePublic,
		Description: "Addresses for tenants",
		Internal:    []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")},
		External:    netip.MustParsePrefix("0.0.0.0/0"),
		Ranges:      []store.Range{addresses("198.51.100.10", "198.51.100.109")},
		RangeQuota:  10,
		Prefixes:    []store.PrefixPool{{First: netip.MustParsePrefix("198.51.100.128/28"), Count: 8, Quota: 2}},
		Uplinks:     []store.SpaceUplink{{Name: name + "-uplink", Network: network}},
	}
}

// VDCGroupTenant returns K8sTenant with a second VDC and a data center group of both VDCs. The group has the gateway
// and the network nodes.
func VDCGroupTenant() store.Model {
	m := K8sTenant()
	acme := &m.Orgs[1]
	acme.VDCs = append(acme.VDCs, store.VDC{
		Name:            "acme-vdc-2",
		Description:     "The second zone",
		Policies:        acme.VDCs[0].Policies,
		StorageProfiles: []store.StorageProfile{{Name: "standard", Default: true}},
	})
	acme.VDCGroups = []store.VDCGroup{{
		Name:        "acme-group",
		Description: "Both zones",
		VDCs:        []string{"acme-vdc", "acme-vdc-2"},
	}}
	acme.VDCs[0].EdgeGateways[0].Group = "acme-group"
	for n := range acme.VDCs[0].Networks {
		acme.VDCs[0].Networks[n].Group = "acme-group"
	}
	return m
}

// ThreeZones returns K8sTenant with three VDCs and a data center group of all of them, which has the gateway and the
// networks. The VDCs are acme-vdc, acme-vdc-b and acme-vdc-c; the last two have catalogs kubernetes-b and kubernetes-c.
func ThreeZones() store.Model {
	m := K8sTenant()
	acme := &m.Orgs[1]
	group := store.VDCGroup{Name: "acme-group", Description: "All zones", VDCs: []string{"acme-vdc"}}
	for _, zone := range []string{"b", "c"} {
		acme.VDCs = append(acme.VDCs, store.VDC{
			Name:            "acme-vdc-" + zone,
			Description:     "Zone " + zone,
			Policies:        acme.VDCs[0].Policies,
			StorageProfiles: []store.StorageProfile{{Name: "standard", Default: true}},
		})
		catalog := k8sCatalog()
		catalog.Name = "kubernetes-" + zone
		catalog.Description = "Node images of zone " + zone
		acme.Catalogs = append(acme.Catalogs, catalog)
		group.VDCs = append(group.VDCs, "acme-vdc-"+zone)
	}
	acme.VDCGroups = []store.VDCGroup{group}
	acme.VDCs[0].EdgeGateways[0].Group = group.Name
	for n := range acme.VDCs[0].Networks {
		acme.VDCs[0].Networks[n].Group = group.Name
	}
	return m
}

// TwoGateways returns K8sTenant with a second edge gateway, acme-vdc-gateway-2. It has 90 more addresses of the
// internet, a load balancer, and the network nodes-2 behind it.
func TwoGateways() store.Model {
	m := K8sTenant()
	vdc := &m.Orgs[1].VDCs[0]
	second := k8sGateway()
	second.Name = "acme-vdc-gateway-2"
	second.Description = "To the internet, too"
	own := addresses("203.0.113.100", "203.0.113.189")
	second.Uplinks[0].Subnets[0].Addresses = []store.Range{own}
	second.Uplinks[0].Subnets[0].Primary = own.From
	vdc.EdgeGateways = append(vdc.EdgeGateways, second)
	vdc.Networks = append(vdc.Networks, secondNodes(second.Name))
	return m
}

func secondNodes(gateway string) store.Network {
	return store.Network{
		Name:        "nodes-2",
		Description: "Kubernetes nodes behind the second gateway",
		Type:        store.Routed,
		Edge:        gateway,
		Gateway:     netip.MustParsePrefix("192.168.110.1/24"),
		DNS:         []netip.Addr{netip.MustParseAddr("192.168.110.1")},
		StaticPool:  []store.Range{addresses("192.168.110.10", "192.168.110.99")},
	}
}

// CloudProvider returns K8sTenant with all features for a cloud controller manager. The internet and the network
// nodes also have IPv6 (2001:db8::/64 and fd00:100::/64). Virtual services can preserve the addresses of their clients.
// A second service engine group, small, holds two of them. The library has the certificates tls and tls-other. A second
// gateway, acme-vdc-gateway-spaces, gets its addresses from the IP Space public and has the network nodes-2 behind it.
func CloudProvider() store.Model {
	m := K8sTenant()
	acme := &m.Orgs[1]
	vdc := &acme.VDCs[0]
	outside := netip.MustParsePrefix("2001:db8::1/64")
	m.ExternalNetworks[0].Subnets = append(m.ExternalNetworks[0].Subnets,
		store.ExternalSubnet{Gateway: outside, Pool: []store.Range{addresses("2001:db8::10", "2001:db8::ff")}})
	m.ExternalNetworks = append(m.ExternalNetworks,
		store.ExternalNetwork{
			Name:        "internet-spaces",
			Description: "To outside",
			BackingName: "tier0-spaces",
			UsesSpaces:  true,
		})
	m.IPSpaces = []store.IPSpace{PublicSpace("public", "internet-spaces")}
	m.ServiceEngineGroups = append(m.ServiceEngineGroups, store.ServiceEngineGroup{Name: "small", MaxService: 2})
	first := &vdc.EdgeGateways[0]
	first.Uplinks[0].Subnets = append(first.Uplinks[0].Subnets,
		store.UplinkSubnet{Gateway: outside, Addresses: []store.Range{addresses("2001:db8::10", "2001:db8::4f")}})
	first.LoadBalancer = &store.LoadBalancer{
		Enabled: true,
		Groups:  []string{"engines", "small"},
		Fields: map[string]any{
			"transparentModeEnabled":       true,
			"serviceNetworkDefinition":     "192.168.255.1/25",
			"ipv6ServiceNetworkDefinition": "fd00:255::1/120",
		},
	}
	vdc.EdgeGateways = append(vdc.EdgeGateways, store.EdgeGateway{
		Name:         "acme-vdc-gateway-spaces",
		Description:  "To the internet, with addresses of an IP Space",
		Uplinks:      []store.Uplink{{Network: "internet-spaces"}},
		LoadBalancer: &store.LoadBalancer{Enabled: true, Groups: []string{"engines"}},
	})
	vdc.Networks[0].Second = &store.SecondSubnet{
		Gateway:    netip.MustParsePrefix("fd00:100::1/64"),
		StaticPool: []store.Range{addresses("fd00:100::10", "fd00:100::ff")},
	}
	vdc.Networks = append(vdc.Networks, secondNodes("acme-vdc-gateway-spaces"))
	acme.Certificates = []store.Certificate{NewCertificate("tls"), NewCertificate("tls-other")}
	return m
}

// NewCertificate creates a certificate for a library. Its host is the alias below example.com. The same alias gives
// the same certificate.
func NewCertificate(alias string) store.Certificate {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, alias)
	key := ed25519.NewKeyFromSeed(seed)
	host := alias + ".example.com"
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2120, time.January, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		panic(err) // the arguments are valid
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return store.Certificate{Alias: alias, PEM: block("CERTIFICATE", der), Key: block("PRIVATE KEY", private)}
}
