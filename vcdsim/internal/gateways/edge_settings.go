// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/machines"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// OnGateway returns the scope of documents on the gateway in the path.
func OnGateway(r *api.Request) (documents.Scope, error) {
	return GatewayScope(r.Session, r.Cloud.Store, r.Vars["gateway"])
}

// Always returns an Initial function with the same value for every entity.
func Always(body map[string]any) func(*api.Request) map[string]any {
	return func(*api.Request) map[string]any {
		out := map[string]any{}
		for k, v := range body {
			out[k] = v
		}
		return out
	}
}

// Settings returns the settings of edge gateways.
func Settings() []*documents.Setting { //nolint:funlen // A table with one field per line.
	const gw = "1.0.0/edgeGateways/{gateway}/"
	return []*documents.Setting{
		{
			Path:    gw + "dns",
			Kind:    "edgeDns",
			Title:   "DNS Forwarder",
			Scope:   OnGateway,
			Prepare: prepareDNS,
			Initial: Always(map[string]any{
				"enabled":                   false,
				"listenerIp":                nil,
				"defaultForwarderZone":      nil,
				"conditionalForwarderZones": nil,
				"snatRuleExternalIpAddress": nil,
				"snatRuleEnabled":           false,
			}),
		},
		{
			Path:    gw + "dhcpForwarder",
			Kind:    "edgeDhcpForwarder",
			Title:   "DHCP Forwarder",
			Scope:   OnGateway,
			Initial: Always(map[string]any{"enabled": false, "dhcpServers": nil}),
		},
		{
			Path:    machines.SLAACProfilePath,
			Kind:    "edgeSlaacProfile",
			Title:   "SLAAC Profile",
			Plain:   true,
			Scope:   OnGateway,
			Prepare: prepareSLAAC,
			Initial: Always(map[string]any{
				"enabled":   false,
				"mode":      "DISABLED",
				"dnsConfig": map[string]any{"domainNames": nil, "dnsServerIpv6Addresses": nil},
			}),
		},
		{
			Path:    gw + "qos",
			Kind:    "edgeQos",
			Title:   "QoS",
			Plain:   true,
			Scope:   OnGateway,
			Prepare: prepareQoS,
			Initial: Always(map[string]any{"ingressProfile": nil, "egressProfile": nil}),
		},
		{
			Path:    gw + "routing/advertisement",
			Kind:    "routeAdvertisement",
			Title:   "Route Advertisement",
			Plain:   true,
			Scope:   OnGateway,
			Initial: Always(map[string]any{"enable": false, "subnets": nil}),
		},
		{
			Path:    gw + "routing/bgp",
			Kind:    "edgeBgp",
			Title:   "BGP Configuration",
			Scope:   OnGateway,
			Prepare: prepareBGP,
			Initial: Always(map[string]any{
				"enabled":         false,
				"ecmp":            false,
				"localASNumber":   nil,
				"gracefulRestart": nil,
			}),
		},
	}
}

// prepareDNS sets the default listener address of the forwarder and assigns IDs to new zones.
func prepareDNS(r *api.Request, body map[string]any) error {
	if store.Text(body, "listenerIp") == "" {
		body["listenerIp"] = "192.168.255.228"
	}
	zones, _ := body["conditionalForwarderZones"].([]any)
	for _, z := range append([]any{body["defaultForwarderZone"]}, zones...) {
		if m, ok := z.(map[string]any); ok && store.Text(m, "id") == "" {
			m["id"] = r.Cloud.IDs.Next("dnsForwarderZone")
		}
	}
	return nil
}

// prepareSLAAC refuses unknown modes. It sets omitted lists to empty lists, because responses contain them.
func prepareSLAAC(_ *api.Request, body map[string]any) error {
	if mode := store.Text(body, "mode"); !slices.Contains([]string{"SLAAC", "DHCPv6", "DISABLED"}, mode) {
		return store.BadRequest("The mode %q is not one of SLAAC, DHCPv6 and DISABLED.", mode)
	}
	dns, ok := body["dnsConfig"].(map[string]any)
	if !ok {
		dns = map[string]any{}
		body["dnsConfig"] = dns
	}
	for _, f := range []string{"domainNames", "dnsServerIpv6Addresses"} {
		if dns[f] == nil {
			dns[f] = []any{}
		}
	}
	return nil
}

func prepareQoS(r *api.Request, body map[string]any) error {
	for _, f := range []string{"ingressProfile", "egressProfile"} {
		switch id := store.RefID(body, f); id {
		case "":
			body[f] = nil
		case r.Cloud.IDs.Named("qosProfile", QosProfile):
			body[f] = map[string]any{"id": id, "name": QosProfile}
		default:
			return store.Forbidden("QOS_PROFILE_VIEW", id)
		}
	}
	return nil
}

// prepareBGP refuses BGP on a gateway that shares its external network, unless the network uses IP Spaces.
func prepareBGP(r *api.Request, body map[string]any) error {
	_, _, g, err := EdgeByID(r.Session, r.Cloud.Store, r.Vars["gateway"])
	if err != nil {
		return err
	}
	on, _ := body["enabled"].(bool)
	if on && len(g.Uplinks) > 0 && !g.Uplinks[0].Dedicated && !EdgesOf(r.Cloud).usesSpaces(g.Uplinks[0]) {
		return store.BadRequest("BGP can be configured only on an edge gateway that has its external network for itself.")
	}
	return nil
}

// OnlyVersions shows the version of a document in the format of settings.
func OnlyVersions(_ *api.Request, d *store.Object, out map[string]any) {
	out["version"] = map[string]any{"version": d.Version - 1}
}

// gatewayCollection returns a collection of documents on a gateway, with bare IDs and versions.
func gatewayCollection(path, kind, title string, required ...string) *documents.Collection {
	return &documents.Collection{
		Path:     "1.0.0/edgeGateways/{gateway}/" + path,
		Kind:     kind,
		Right:    "GATEWAY",
		Title:    title,
		Within:   "gateway",
		Bare:     true,
		Cursor:   true,
		Required: required,
		Scope:    func(r *api.Request, _ map[string]any) (documents.Scope, error) { return OnGateway(r) },
		Show:     OnlyVersions,
		Prepare:  func(_ *api.Request, body map[string]any, old *store.Object) error { return SameVersion(body, old) },
	}
}

func routeCollection() *documents.Collection {
	c := gatewayCollection("routing/staticRoutes", "staticRoute", "Static Route", "name", "networkCidr")
	c.Show = nil
	c.Unique = []string{"name"}
	c.Defaults = map[string]any{"description": "", "systemOwned": false}
	return c
}

func neighborCollection() *documents.Collection {
	c := gatewayCollection("routing/bgp/neighbors", "bgpNeighbor", "BGP Neighbor", "neighborAddress", "remoteASNumber")
	c.Unique = []string{"neighborAddress"}
	c.Hidden = []string{"neighborPassword"}
	return c
}

func prefixListCollection() *documents.Collection {
	c := gatewayCollection("routing/bgp/prefixLists", "prefixList", "IP Prefix List", "name")
	c.Unique = []string{"name"}
	return c
}
