// SPDX-License-Identifier: Apache-2.0

package network

import (
	"maps"
	"net/netip"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/access"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/compute"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/ovf"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/wire"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func networkRoutes(add api.AddRoute) {
	add("GET", "/api/network/{id}", getNetwork, cloud.LatencyLegacy)
	add("DELETE", "/api/network/{id}", compute.DeleteVAppNetwork, cloud.LatencyWrite)
	add("PUT", "/api/network/{id}", compute.PutVAppNetwork, cloud.LatencyWrite)
	add("GET", "/api/admin/network/{id}", getNetwork, cloud.LatencyLegacy)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks", listNetworks, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}", getNetworkJSON, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}/dhcp", getDHCP, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/orgVdcNetworks/{id}/allocatedIpAddresses", listAllocated, cloud.LatencyCloudAPI)
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

func getNetwork(r *api.Request) (*api.Response, error) {
	id := store.Bare(r.Vars["id"])
	org, vdc, n := r.Cloud.Store.Network(id)
	if n == nil {
		return getVAppNetwork(r, id)
	}
	if !r.Session.Sees(org.ID) {
		return nil, store.Forbidden("ORG_NETWORK_VIEW", id)
	}
	out := r.Site.Entity("OrgVdcNetwork", "network", n.ID, n.Name, xmltree.A("status", 1))
	out.Add([]*xmltree.Node{
		r.Site.Link("up", "/api/vdc/"+vdc.ID, wire.Mime("vdc")),
		r.Site.Link("down", "/api/network/"+n.ID+"/metadata", wire.Mime("metadata")),
		xmltree.T("Description", n.Description),
		xmltree.New("Configuration",
			ovf.IPScope(n.Gateway, n.DNS, n.DNSSuffix, n.StaticPool, false),
			xmltree.T("FenceMode", fenceMode(n)),
			xmltree.T("RetainNetInfoAcrossDeployments", false)),
	})
	if _, _, g := r.Cloud.Store.Gateway(n.Edge); g != nil {
		out.Add(gateways.EdgeRef(r.Site, g))
	}
	out.Add(xmltree.T("IsShared", false))
	return api.XML(out), nil
}

// getVAppNetwork returns a network of a vApp.
func getVAppNetwork(r *api.Request, id string) (*api.Response, error) {
	viewer := access.ViewerOf(r)
	for _, v := range r.Cloud.Store.VApps {
		for _, n := range v.Networks {
			if n.ID != id || !viewer.Sees(v) {
				continue
			}
			out := xmltree.New("VAppNetwork", wire.Namespaces(), xmltree.A("name", n.Name),
				xmltree.A("id", store.URN("network", n.ID)),
				xmltree.A("href", r.Site.Href("network", n.ID)), xmltree.A("type", wire.Mime("vAppNetwork")))
			out.Add([]*xmltree.Node{
				r.Site.Link("up", "/api/vApp/vapp-"+v.ID, wire.Mime("vapp")),
				xmltree.T("Description", n.Description),
				ovf.VAppNetworkConfiguration(r.Site, r.Cloud.Store, n),
			})
			return api.XML(out), nil
		}
	}
	return nil, store.Forbidden("ORG_NETWORK_VIEW", id)
}

// dnsServer returns the DNS server at an index, or an empty string if the list is shorter.
func dnsServer(dns []netip.Addr, i int) string {
	if i < len(dns) {
		return dns[i].String()
	}
	return ""
}

func networkJSON(r *api.Request, org *store.Org, vdc *store.VDC, n *store.Network) map[string]any { //nolint:funlen // A table with one field per line.
	total := gateways.Count(n.StaticPool)
	used := len(machines.IPAMOf(r.Cloud).AddressesIn(n.ID))
	subnets := []any{map[string]any{
		"gateway":      n.Gateway.Addr().String(),
		"prefixLength": n.Gateway.Bits(),
		"dnsServer1":   dnsServer(n.DNS, 0),
		"dnsServer2":   dnsServer(n.DNS, 1),
		"dnsSuffix":    n.DNSSuffix,
		"ipRanges":     gateways.RangesJSON(n.StaticPool),
		"enabled":      true,
		"totalIpCount": total,
		"usedIpCount":  used,
	}}
	if n.Second != nil {
		subnets = append(subnets, map[string]any{
			"gateway":      n.Second.Gateway.Addr().String(),
			"prefixLength": n.Second.Gateway.Bits(),
			"dnsServer1":   dnsServer(n.Second.DNS, 0),
			"dnsServer2":   dnsServer(n.Second.DNS, 1),
			"dnsSuffix":    n.Second.DNSSuffix,
			"ipRanges":     gateways.RangesJSON(n.Second.StaticPool),
			"enabled":      true,
			"totalIpCount": gateways.Count(n.Second.StaticPool),
			"usedIpCount":  0,
		})
	}
	out := map[string]any{
		"backingNetworkId":        r.Cloud.IDs.Named("segment", n.ID),
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
		"status":                     documents.Realization(r.Cloud.Tasks, n.ID, n.Failed),
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
	gateways.AddEdgeOwner(org, vdc, n.Group, out)
	if _, _, g := r.Cloud.Store.Gateway(n.Edge); g != nil && n.Type == store.Routed {
		kind := "INTERNAL"
		if k, ok := n.Fields["connectionType"].(string); ok {
			kind = k
		}
		out["connection"] = map[string]any{
			"routerRef":           api.Ref("gateway", g.ID, g.Name),
			"connectionType":      kind,
			"connectionTypeValue": kind,
			"connected":           true,
		}
		if kind == "NON_DISTRIBUTED" {
			// The older field connectionType does not have this value.
			out["connection"] = map[string]any{
				"routerRef":           api.Ref("gateway", g.ID, g.Name),
				"connectionTypeValue": kind,
				"connected":           true,
			}
		}
	}
	return out
}

func listNetworks(r *api.Request) (*api.Response, error) {
	var out []any
	vdcID := vdcs.VDCContext(r.Query)
	for _, o := range api.VisibleOrgs(r.Session, r.Cloud.Store) {
		for v := range o.VDCs {
			for n := range o.VDCs[v].Networks {
				if vdcID == "" || vdcID == o.VDCs[v].ID {
					out = append(out, networkJSON(r, o, &o.VDCs[v], &o.VDCs[v].Networks[n]))
				}
			}
		}
	}
	return r.Page(out)
}

// ownNetwork returns the network in the path, with its organization and VDC.
func ownNetwork(r *api.Request) (*store.Org, *store.VDC, *store.Network, error) {
	org, vdc, n := r.Cloud.Store.Network(store.Bare(r.Vars["id"]))
	if n == nil || !r.Session.Sees(org.ID) {
		return nil, nil, nil, store.Forbidden("ORG_VDC_NETWORK_VIEW", r.Vars["id"])
	}
	return org, vdc, n, nil
}

func getNetworkJSON(r *api.Request) (*api.Response, error) {
	org, vdc, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	return api.JSON(networkJSON(r, org, vdc, n)), nil
}

func listAllocated(r *api.Request) (*api.Response, error) {
	org, _, n, err := ownNetwork(r)
	if err != nil {
		return nil, err
	}
	if r.FilterValue("ipAddress") != "" && !r.Cloud.Assume.UsedAddressesAreFiltered {
		return nil, store.BadRequest("The filter by ipAddress is not supported.")
	}
	var out []any
	for _, a := range machines.IPAMOf(r.Cloud).AddressesIn(n.ID) {
		out = append(out, map[string]any{
			"ipAddress":      a.Address.String(),
			"allocationType": "VM_ALLOCATED",
			"entityId":       store.URN("vm", a.VM.ID),
			"entityName":     a.VM.Name,
			"vAppName":       r.Cloud.Store.VApps[a.VM.VAppID].Name,
			"deployed":       a.VM.Deployed,
			"networkRef":     api.Ref("network", n.ID, n.Name),
			"orgRef":         api.Ref("org", org.ID, org.Name),
		})
	}
	return r.Page(out)
}
