// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// MimeEdge is the media type of an edge gateway in the XML API.
const MimeEdge = "application/vnd.vmware.admin.edgeGateway+xml"

// legacyEdgeRoutes adds the edge gateways of the legacy API, which is read-only: the services of NSX-T gateways are
// part of cloudapi.
func legacyEdgeRoutes(add api.AddRoute) {
	add("GET", "/api/admin/edgeGateway/{gateway}", getLegacyGateway, cloud.LatencyLegacy)
	add("GET", "/api/edgeGateway/{gateway}", getLegacyGateway, cloud.LatencyLegacy)
}

// EdgeHref returns the address of an edge gateway in the XML API.
func EdgeHref(site wire.Site, id string) string { return site.Base() + "/api/admin/edgeGateway/" + id }

// EdgeRef returns a reference to an edge gateway.
func EdgeRef(site wire.Site, g *store.EdgeGateway) *xmltree.Node {
	return xmltree.New("EdgeGateway", xmltree.A("href", EdgeHref(site, g.ID)), xmltree.A("id", store.URN("gateway", g.ID)),
		xmltree.A("name", g.Name), xmltree.A("type", MimeEdge))
}

func getLegacyGateway(r *api.Request) (*api.Response, error) {
	_, vdc, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["gateway"])
	if err != nil {
		return nil, err
	}
	T := xmltree.T
	interfaces := xmltree.New("GatewayInterfaces")
	for i, u := range g.Uplinks {
		interfaces.Add(uplinkInterface(r.Site, r.Cloud.Store, u, i == 0))
	}
	for i := range vdc.Networks {
		if n := &vdc.Networks[i]; n.Edge == g.ID && n.Type == store.Routed {
			interfaces.Add(networkInterface(r.Site, n))
		}
	}
	return api.XML(xmltree.New("EdgeGateway", wire.Namespaces(), xmltree.A("status", 1), xmltree.A("name", g.Name),
		xmltree.A("id", store.URN("gateway", g.ID)),
		xmltree.A("href", EdgeHref(r.Site, g.ID)), xmltree.A("type", MimeEdge),
		r.Site.Link("up", "/api/admin/vdc/"+vdc.ID, "application/vnd.vmware.admin.vdc+xml"),
		T("Description", g.Description), api.TasksNode(r, g.ID),
		xmltree.New("Configuration", T("BackwardCompatibilityMode", false), T("GatewayBackingConfig", "compact"),
			interfaces,
			T("HaEnabled", true), T("UseDefaultRouteForDnsRelay", false), T("AdvancedNetworkingEnabled", false),
			T("DistributedRoutingEnabled", false)))), nil
}

// gatewayInterface returns the interface that connects a gateway to a network.
func gatewayInterface(name, kind string, network *xmltree.Node, subnets []*xmltree.Node, first bool) *xmltree.Node {
	T := xmltree.T
	return xmltree.New("GatewayInterface", T("Name", name), T("DisplayName", name), network, T("InterfaceType", kind),
		subnets,
		T("ApplyRateLimit", false), T("UseForDefaultRoute", first))
}

func adminNetworkRef(site wire.Site, id, name string) *xmltree.Node {
	return xmltree.New("Network", xmltree.A("href", site.Base()+"/api/admin/network/"+id),
		xmltree.A("id", store.URN("network", id)), xmltree.A("name", name),
		xmltree.A("type", "application/vnd.vmware.admin.network+xml"))
}

func uplinkInterface(site wire.Site, st *store.Store, u store.Uplink, first bool) *xmltree.Node {
	name := u.Network
	if n := st.External(u.Network); n != nil {
		name = n.Name
	}
	var subnets []*xmltree.Node
	for i, s := range u.Subnets {
		subnets = append(subnets, subnetParticipation(s.Gateway, s.Primary, s.Addresses, first && i == 0))
	}
	return gatewayInterface(name, "uplink", adminNetworkRef(site, u.Network, name), subnets, first)
}

func networkInterface(site wire.Site, n *store.Network) *xmltree.Node {
	return gatewayInterface(n.Name, "internal", adminNetworkRef(site, n.ID, n.Name),
		[]*xmltree.Node{subnetParticipation(n.Gateway, n.Gateway.Addr(), nil, false)}, false)
}

// subnetParticipation returns the addresses of a gateway in a subnet.
func subnetParticipation(subnet netip.Prefix, address netip.Addr, ranges []store.Range, first bool) *xmltree.Node {
	T := xmltree.T
	n := xmltree.New("SubnetParticipation", T("Gateway", subnet.Addr()), T("Netmask", ovf.Netmask(subnet)))
	if address.IsValid() {
		n.Add(T("IpAddress", address))
	}
	if len(ranges) > 0 {
		all := xmltree.New("IpRanges")
		for _, x := range ranges {
			all.Add(xmltree.New("IpRange", T("StartAddress", x.From), T("EndAddress", x.To)))
		}
		n.Add(all)
	}
	n.Add(T("UseForDefaultRoute", first))
	return n
}
