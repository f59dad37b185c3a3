// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"maps"
	"net"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func networkRoutes(add addRoute) {
	add("GET", "/api/network/{id}", getNetwork, latencyLegacy)
	add("DELETE", "/api/network/{id}", deleteVAppNetwork, latencyWrite)
	add("GET", "/api/admin/network/{id}", getNetwork, latencyLegacy)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks", listNetworks, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}", getNetworkJSON, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}/dhcp", getDHCP, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}/allocatedIpAddresses", listAllocated, latencyCloudAPI)
}

func netmask(p netip.Prefix) string {
	return net.IP(net.CIDRMask(p.Bits(), p.Addr().BitLen())).String()
}

// ipScope is the IpScopes element of a subnet.
func ipScope(gateway netip.Prefix, dns []netip.Addr, suffix string, pool []store.Range, inherited bool) *xmltree.Node {
	s := xmltree.New("IpScope", xmltree.T("IsInherited", inherited), xmltree.T("Gateway", gateway.Addr()),
		xmltree.T("Netmask", netmask(gateway)), xmltree.T("SubnetPrefixLength", gateway.Bits()))
	for i, name := range []string{"Dns1", "Dns2"} {
		if len(dns) > i {
			s.Add(xmltree.T(name, dns[i]))
		}
	}
	s.Add([]*xmltree.Node{xmltree.OptT("DnsSuffix", suffix), xmltree.T("IsEnabled", true)})
	if len(pool) > 0 {
		ranges := xmltree.New("IpRanges")
		for _, p := range pool {
			ranges.Add(xmltree.New("IpRange", xmltree.T("StartAddress", p.From), xmltree.T("EndAddress", p.To)))
		}
		s.Add(ranges)
	}
	return xmltree.New("IpScopes", s)
}

func fenceMode(n *store.Network) string {
	switch n.Type {
	case store.Isolated:
		return "isolated"
	case store.Opaque:
		return "bridged"
	default:
		return "natRouted"
	}
}

func getNetwork(r *request) (*response, error) {
	id := store.Bare(r.vars["id"])
	org, vdc, n := r.cloud.store.Network(id)
	if n == nil {
		return getVAppNetwork(r, id)
	}
	if !r.session.Sees(org.ID) {
		return nil, store.Forbidden("ORG_NETWORK_VIEW", id)
	}
	out := r.site.Entity("OrgVdcNetwork", "network", n.ID, n.Name, xmltree.A("status", 1))
	out.Add([]*xmltree.Node{
		r.site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.site.Link("down", "/api/network/"+n.ID+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", n.Description),
		xmltree.New("Configuration",
			ipScope(n.Gateway, n.DNS, n.DNSSuffix, n.StaticPool, false),
			xmltree.T("FenceMode", fenceMode(n)),
			xmltree.T("RetainNetInfoAcrossDeployments", false)),
	})
	if _, _, g := r.cloud.store.Gateway(n.Edge); g != nil {
		out.Add(edgeRef(r.site, g))
	}
	out.Add(xmltree.T("IsShared", false))
	return xmlOK(out), nil
}

// getVAppNetwork shows the network of a vApp.
func getVAppNetwork(r *request, id string) (*response, error) {
	viewer := viewerOf(r)
	for _, v := range r.cloud.store.VApps {
		for _, n := range v.Networks {
			if n.ID != id || !viewer.sees(v) {
				continue
			}
			out := xmltree.New("VAppNetwork", wire.Namespaces(), xmltree.A("name", n.Name),
				xmltree.A("id", store.URN("network", n.ID)),
				xmltree.A("href", r.site.Href("network", n.ID)), xmltree.A("type", wire.Mime("vAppNetwork")))
			out.Add([]*xmltree.Node{
				r.site.Link("up", "/api/vApp/vapp-"+v.ID, wire.Mime("vapp")),
				xmltree.T("Description", n.Description),
				vappNetworkConfiguration(r.site, r.cloud.store, n),
			})
			return xmlOK(out), nil
		}
	}
	return nil, store.Forbidden("ORG_NETWORK_VIEW", id)
}

func networkJSON(r *request, org *store.Org, vdc *store.VDC, n *store.Network) map[string]any { //nolint:funlen // A table with one field per line.
	total := count(n.StaticPool)
	used := len(ipamOf(r.cloud).addressesIn(n.ID))
	dns := func(i int) any {
		if i < len(n.DNS) {
			return n.DNS[i].String()
		}
		return ""
	}
	subnets := []any{map[string]any{
		"gateway":      n.Gateway.Addr().String(),
		"prefixLength": n.Gateway.Bits(),
		"dnsServer1":   dns(0),
		"dnsServer2":   dns(1),
		"dnsSuffix":    n.DNSSuffix,
		"ipRanges":     rangesJSON(n.StaticPool),
		"enabled":      true,
		"totalIpCount": total,
		"usedIpCount":  used,
	}}
	if n.Second != nil {
		subnets = append(subnets, map[string]any{
			"gateway":      n.Second.Gateway.Addr().String(),
			"prefixLength": n.Second.Gateway.Bits(),
			"dnsServer1":   "",
			"dnsServer2":   "",
			"dnsSuffix":    "",
			"ipRanges":     rangesJSON(n.Second.StaticPool),
			"enabled":      true,
			"totalIpCount": count(n.Second.StaticPool),
			"usedIpCount":  0,
		})
	}
	out := map[string]any{
		"backingNetworkId":        r.cloud.ids.Named("segment", n.ID),
		"backingNetworkType":      "NSXT_FLEXIBLE_SEGMENT",
		"routeAdvertised":         false,
		"retainNicResources":      false,
		"guestVlanTaggingAllowed": false,
		"enableDualSubnetNetwork": n.Second != nil,
		"shared":                  false,
	}
	maps.Copy(out, n.Fields)
	for _, f := range []string{"segmentProfileTemplateRef", "segmentProfiles", "connectionType"} {
		delete(out, f) // shown elsewhere
	}
	maps.Copy(out, map[string]any{
		"id":                         store.URN("network", n.ID),
		"name":                       n.Name,
		"description":                n.Description,
		"networkType":                string(n.Type),
		"status":                     r.cloud.tasks.realization(n.ID, n.Failed),
		"subnets":                    map[string]any{"values": subnets},
		"orgVdcIsNsxTBacked":         n.Group == "",
		"isDefaultNetwork":           nil,
		"totalIpCount":               total,
		"usedIpCount":                used,
		"crossVdcNetworkId":          nil,
		"crossVdcNetworkLocationId":  nil,
		"parentNetworkId":            nil,
		"lastTaskFailureMessage":     nil,
		"locationId":                 nil,
		"directNetworkConfiguration": nil,
		"connection":                 nil,
	})
	addEdgeOwner(org, vdc, n.Group, out)
	if _, _, g := r.cloud.store.Gateway(n.Edge); g != nil && n.Type == store.Routed {
		kind := "INTERNAL"
		if k, ok := n.Fields["connectionType"].(string); ok {
			kind = k
		}
		out["connection"] = map[string]any{
			"routerRef":           jsonRef("gateway", g.ID, g.Name),
			"connectionType":      kind,
			"connectionTypeValue": kind,
			"connected":           true,
		}
		if kind == "NON_DISTRIBUTED" {
			// the older field does not know it
			out["connection"] = map[string]any{
				"routerRef":           jsonRef("gateway", g.ID, g.Name),
				"connectionTypeValue": kind,
				"connected":           true,
			}
		}
	}
	return out
}

func listNetworks(r *request) (*response, error) {
	var out []any
	vdcID := vdcContext(r.query)
	for _, o := range visibleOrgs(r.session, r.cloud.store) {
		for v := range o.VDCs {
			for n := range o.VDCs[v].Networks {
				if vdcID == "" || vdcID == o.VDCs[v].ID {
					out = append(out, networkJSON(r, o, &o.VDCs[v], &o.VDCs[v].Networks[n]))
				}
			}
		}
	}
	return r.page(out)
}

// ownNetwork finds the network in the path.
func ownNetwork(r *request) (*store.Org, *store.VDC, *store.Network, error) {
	org, vdc, n := r.cloud.store.Network(store.Bare(r.vars["id"]))
	if n == nil || !r.session.Sees(org.ID) {
		return nil, nil, nil, store.Forbidden("ORG_VDC_NETWORK_VIEW", r.vars["id"])
	}
	return org, vdc, n, nil
}

func getNetworkJSON(r *request) (*response, error) {
	org, vdc, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	return jsonOK(networkJSON(r, org, vdc, n)), nil
}

func listAllocated(r *request) (*response, error) {
	org, _, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	var out []any
	for _, a := range ipamOf(r.cloud).addressesIn(n.ID) {
		out = append(out, map[string]any{
			"ipAddress":      a.address.String(),
			"allocationType": "VM_ALLOCATED",
			"entityId":       store.URN("vm", a.vm.ID),
			"entityName":     a.vm.Name,
			"vAppName":       r.cloud.store.VApps[a.vm.VAppID].Name,
			"deployed":       a.vm.Deployed,
			"networkRef":     jsonRef("network", n.ID, n.Name),
			"orgRef":         jsonRef("org", org.ID, org.Name),
		})
	}
	return r.page(out)
}
