// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// onGateway is the scope of what belongs to the gateway in the path.
func onGateway(r *request) (scope, error) {
	return gatewayScope(r.session, r.cloud.store, r.vars["gateway"])
}

func always(body map[string]any) func(*request) map[string]any {
	return func(*request) map[string]any {
		out := map[string]any{}
		for k, v := range body {
			out[k] = v
		}
		return out
	}
}

func gatewaySettings() []*setting { //nolint:funlen // A table with one field per line.
	const gw = "1.0.0/edgeGateways/{gateway}/"
	return []*setting{
		{
			path:    gw + "dns",
			kind:    "edgeDns",
			title:   "DNS Forwarder",
			scope:   onGateway,
			prepare: prepareDNS,
			initial: always(map[string]any{
				"enabled":                   false,
				"listenerIp":                nil,
				"defaultForwarderZone":      nil,
				"conditionalForwarderZones": nil,
				"snatRuleExternalIpAddress": nil,
				"snatRuleEnabled":           false,
			}),
		},
		{
			path:    gw + "dhcpForwarder",
			kind:    "edgeDhcpForwarder",
			title:   "DHCP Forwarder",
			scope:   onGateway,
			initial: always(map[string]any{"enabled": false, "dhcpServers": nil}),
		},
		{
			path:    gw + "slaacProfile",
			kind:    "edgeSlaacProfile",
			title:   "SLAAC Profile",
			plain:   true,
			scope:   onGateway,
			prepare: prepareSLAAC,
			initial: always(map[string]any{
				"enabled":   false,
				"mode":      "DISABLED",
				"dnsConfig": map[string]any{"domainNames": nil, "dnsServerIpv6Addresses": nil},
			}),
		},
		{
			path:    gw + "qos",
			kind:    "edgeQos",
			title:   "QoS",
			plain:   true,
			scope:   onGateway,
			prepare: prepareQoS,
			initial: always(map[string]any{"ingressProfile": nil, "egressProfile": nil}),
		},
		{
			path:    gw + "routing/advertisement",
			kind:    "routeAdvertisement",
			title:   "Route Advertisement",
			plain:   true,
			scope:   onGateway,
			initial: always(map[string]any{"enable": false, "subnets": nil}),
		},
		{
			path:    gw + "routing/bgp",
			kind:    "edgeBgp",
			title:   "BGP Configuration",
			scope:   onGateway,
			prepare: prepareBGP,
			initial: always(map[string]any{
				"enabled":         false,
				"ecmp":            false,
				"localASNumber":   nil,
				"gracefulRestart": nil,
			}),
		},
		edgeFirewall(),
	}
}

// prepareDNS gives the forwarder the address it listens on, and its zones ids.
func prepareDNS(r *request, body map[string]any) error {
	if store.Text(body, "listenerIp") == "" {
		body["listenerIp"] = "192.168.255.228"
	}
	zones, _ := body["conditionalForwarderZones"].([]any)
	for _, z := range append([]any{body["defaultForwarderZone"]}, zones...) {
		if m, ok := z.(map[string]any); ok && store.Text(m, "id") == "" {
			m["id"] = r.cloud.ids.Next("dnsForwarderZone")
		}
	}
	return nil
}

// prepareSLAAC fills lists that are left out: they are shown empty.
func prepareSLAAC(_ *request, body map[string]any) error {
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

func prepareQoS(r *request, body map[string]any) error {
	for _, f := range []string{"ingressProfile", "egressProfile"} {
		switch id := store.RefID(body, f); id {
		case "":
			body[f] = nil
		case r.cloud.ids.Named("qosProfile", qosProfile):
			body[f] = map[string]any{"id": id, "name": qosProfile}
		default:
			return store.Forbidden("QOS_PROFILE_VIEW", id)
		}
	}
	return nil
}

// prepareBGP refuses what a gateway that shares its external network cannot do.
func prepareBGP(r *request, body map[string]any) error {
	_, _, g, err := edgeByID(r.session, r.cloud.store, r.vars["gateway"])
	if err != nil {
		return err
	}
	on, _ := body["enabled"].(bool)
	if on && len(g.Uplinks) > 0 && !g.Uplinks[0].Dedicated && !edgesOf(r.cloud).usesSpaces(g.Uplinks[0]) {
		return store.BadRequest("BGP can be configured only on an edge gateway that has its external network for itself.")
	}
	return nil
}

func onlyVersions(_ *request, d *store.Object, out map[string]any) {
	out["version"] = map[string]any{"version": d.Version - 1}
}

// gatewayCollection are the documents of a gateway below a path, with bare ids and versions.
func gatewayCollection(path, kind, title string, required ...string) *collection {
	return &collection{
		path:     "1.0.0/edgeGateways/{gateway}/" + path,
		kind:     kind,
		right:    "GATEWAY",
		title:    title,
		within:   "gateway",
		bare:     true,
		cursor:   true,
		required: required,
		scope:    func(r *request, _ map[string]any) (scope, error) { return onGateway(r) },
		show:     onlyVersions,
		prepare:  func(_ *request, body map[string]any, old *store.Object) error { return sameVersion(body, old) },
	}
}

func routeCollection() *collection {
	c := gatewayCollection("routing/staticRoutes", "staticRoute", "Static Route", "name", "networkCidr")
	c.show = nil
	c.unique = []string{"name"}
	c.defaults = map[string]any{"description": "", "systemOwned": false}
	return c
}

func neighborCollection() *collection {
	c := gatewayCollection("routing/bgp/neighbors", "bgpNeighbor", "BGP Neighbor", "neighborAddress", "remoteASNumber")
	c.unique = []string{"neighborAddress"}
	c.hidden = []string{"neighborPassword"}
	return c
}

func prefixListCollection() *collection {
	c := gatewayCollection("routing/bgp/prefixLists", "prefixList", "IP Prefix List", "name")
	c.unique = []string{"name"}
	return c
}
