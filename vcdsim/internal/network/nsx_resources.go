// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/vdcs"
)

// segmentProfiles maps the types of segment profiles to the name of their only custom profile.
var segmentProfiles = map[string]string{
	"segmentIpDiscoveryProfiles":  "ip-discovery",
	"segmentMacDiscoveryProfiles": "mac-discovery",
	"segmentSpoofGuardProfiles":   "spoof-guard",
	"segmentQoSProfiles":          "segment-qos",
	"segmentSecurityProfiles":     "segment-security",
}

func resourceRoutes(add api.AddRoute) {
	const path = "/cloudapi/1.0.0/nsxTResources/"
	add("GET", path+"importableTier0Routers", listRouters, cloud.LatencyCloudAPI)
	add("GET", path+"edgeClusters", listEdgeClusters, cloud.LatencyCloudAPI)
	add("GET", path+"gatewayQoSProfiles", listQoS, cloud.LatencyCloudAPI)
	add("GET", path+"tier0RouterInterfaces", listInterfaces, cloud.LatencyCloudAPI)
	for kind, name := range segmentProfiles {
		add("GET", path+kind, func(r *api.Request) (*api.Response, error) { return listSegmentProfiles(r, kind, name) },
			cloud.LatencyCloudAPI)
	}
	add("GET", "/api/admin/extension/nsxtManagers/{id}", getManager, cloud.LatencyLegacy)
	add("GET", "/network/orgvdcnetworks/importableswitches", listSwitches, cloud.LatencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/networkContextProfiles", listContextProfiles, cloud.LatencyCloudAPI)
}

func listRouters(r *api.Request) (*api.Response, error) {
	if err := r.ByProvider("NSXT_RESOURCES_VIEW"); err != nil {
		return nil, err
	}
	if store.Bare(r.FilterValue("_context")) != r.Cloud.IDs.Named("nsxtmanager", vdcs.ProviderNetworks) {
		return nil, store.Forbidden("NSXT_MANAGER_VIEW", r.FilterValue("_context"))
	}
	var out []any
	for _, b := range gateways.ExternalBackings(r.Cloud) {
		if b.Kind != store.BackingSegment && gateways.FreeBacking(r.Cloud, b) {
			out = append(out, map[string]any{"id": b.ID, "displayName": b.Name, "description": ""})
		}
	}
	return r.CursorPage(out)
}

func listEdgeClusters(r *api.Request) (*api.Response, error) {
	return r.CursorPage([]any{map[string]any{
		"id":             r.Cloud.IDs.Named("edgeCluster", gateways.EdgeCluster),
		"name":           gateways.EdgeCluster,
		"description":    "",
		"nodeCount":      2,
		"nodeType":       "EDGE_NODE",
		"deploymentType": "VIRTUAL_MACHINE",
	}}, "orgVdcId", "vdcGroupId", "pvdcId")
}

func listQoS(r *api.Request) (*api.Response, error) {
	return r.CursorPage([]any{map[string]any{
		"id":                 r.Cloud.IDs.Named("qosProfile", gateways.QosProfile),
		"displayName":        gateways.QosProfile,
		"description":        "",
		"burstSize":          10000,
		"committedBandwidth": 100,
		"excessAction":       "DROP",
		"nsxTManagerRef":     api.Ref("nsxtmanager", r.Cloud.IDs.Named("nsxtmanager", vdcs.ProviderNetworks), vdcs.ProviderNetworks),
	}})
}

// listInterfaces returns the interfaces of the router that backs an external network.
func listInterfaces(r *api.Request) (*api.Response, error) {
	e := r.Cloud.Store.External(store.Bare(r.FilterValue("externalNetworkId")))
	if e == nil || !r.Session.Provider() {
		return nil, store.Forbidden("EXTERNAL_NETWORK_VIEW", r.FilterValue("externalNetworkId"))
	}
	return r.CursorPage([]any{map[string]any{
		"id":            r.Cloud.IDs.Named("interface", gateways.ExternalBacking(e)),
		"name":          "uplink-1",
		"displayName":   "uplink-1",
		"description":   "",
		"interfaceType": "EXTERNAL",
	}}, "externalNetworkId")
}

func listSegmentProfiles(r *api.Request, kind, name string) (*api.Response, error) {
	var out []any
	for _, n := range []string{"default-" + name, name} {
		out = append(out, map[string]any{
			"id":          r.Cloud.IDs.Named(kind, n),
			"displayName": n,
			"description": "",
			"nsxTManagerRef": api.Ref("nsxtmanager", r.Cloud.IDs.Named("nsxtmanager", vdcs.ProviderNetworks),
				vdcs.ProviderNetworks),
		})
	}
	return r.CursorPage(out, "orgVdcId", "vdcGroupId")
}

// listSwitches returns the segments that can be imported. The response is a plain list, as the path is not part of
// cloudapi.
func listSwitches(r *api.Request) (*api.Response, error) {
	if r.Query.Get("orgVdc") == "" && r.Query.Get("nsxTManager") == "" && r.Query.Get("vdcGroup") == "" {
		return nil, store.BadRequest("One of the parameters orgVdc, vdcGroup and nsxTManager is required.")
	}
	out := []any{}
	for _, b := range gateways.ExternalBackings(r.Cloud) {
		if b.Kind == store.BackingSegment && gateways.FreeBacking(r.Cloud, b) && !importedSegment(r.Cloud, b.ID) {
			out = append(out, map[string]any{"id": b.ID, "name": b.Name})
		}
	}
	return api.JSON(out), nil
}

// importedSegment reports whether a network uses a segment.
func importedSegment(s *cloud.Cloud, segment string) bool {
	return slices.ContainsFunc(s.Store.Model.Orgs, func(o store.Org) bool {
		return slices.ContainsFunc(o.VDCs, func(v store.VDC) bool {
			return slices.ContainsFunc(v.Networks,
				func(n store.Network) bool { return n.Type == store.Opaque && n.Fields["backingNetworkId"] == segment })
		})
	})
}

// contextProfiles lists some of the applications that NSX recognizes.
var contextProfiles = []string{
	"ACTIVDIR", "AMQP", "APACHE", "BITTRNT", "CIFS", "CITRIX", "CVS", "DHCP", "DIAMETER", "DNS", "EPIC", "FIX", "FTP",
	"GIT",
	"GITHUB", "GTALK", "HTTP", "HTTP2", "ICQ", "IMAP", "KERBEROS", "LDAP", "MAXDB", "MMS", "MONGODB", "MSSQL", "MYSQL",
	"NFS",
	"NNTP", "NTBIOSNS", "NTP", "OCSP", "ORACLE", "PCOIP", "POP3", "POSTGRES", "RADIUS", "RDP", "RTCP", "RTP", "RTSP",
	"SIP", "SMTP",
	"SNMP", "SOCKS", "SSH", "SSL", "SVN", "SYSLOG", "TACACS", "TELNET", "TFTP", "TNS", "VNC", "WINS", "XMPP",
}

func listContextProfiles(r *api.Request) (*api.Response, error) {
	var out []any
	for _, name := range contextProfiles {
		out = append(out, map[string]any{
			"id":                   store.URN("networkContextProfile", r.Cloud.IDs.Named("networkContextProfile", name)),
			"name":                 name,
			"description":          name,
			"scope":                "SYSTEM",
			"orgRef":               nil,
			"contextEntityId":      nil,
			"networkProviderScope": nil,
			"attributes":           []any{map[string]any{"type": "APP_ID", "values": []any{name}, "subAttributes": nil}},
		})
	}
	return r.Page(out)
}

// getManager returns the NSX manager. The legacy API responds to this request in JSON.
func getManager(r *api.Request) (*api.Response, error) {
	id := r.Cloud.IDs.Named("nsxtmanager", vdcs.ProviderNetworks)
	if !r.Session.Provider() || store.Bare(r.Vars["id"]) != id {
		return nil, store.Forbidden("NSXT_MANAGER_VIEW", r.Vars["id"])
	}
	return api.JSON(map[string]any{
		"id":                   store.URN("nsxtmanager", id),
		"name":                 vdcs.ProviderNetworks,
		"description":          "",
		"href":                 r.Site.Base() + r.URL.Path,
		"type":                 "application/vnd.vmware.admin.nsxTmanager+json",
		"url":                  "https://" + vdcs.ProviderNetworks + ".example",
		"username":             "admin",
		"version":              "4.1.2",
		"deploymentType":       "UNIFIED",
		"networkProviderScope": scopeOfVDCs,
		"globalManager":        false,
		"link":                 []any{},
		"otherAttributes":      map[string]any{},
		"vCloudExtension":      []any{},
	}), nil
}

// templateDefaults returns the default segment profile templates, which apply if the VDC of a network does not specify
// any.
func templateDefaults() *documents.Setting {
	return &documents.Setting{
		Path:  "1.0.0/segmentProfileTemplates/default",
		Kind:  "segmentProfileTemplateDefault",
		Title: "Default Segment Profile Template",
		Plain: true,
		Scope: func(r *api.Request) (documents.Scope, error) {
			return documents.Scope{}, r.ByProvider("SEGMENT_PROFILE_TEMPLATE_MANAGE")
		},
		Initial: gateways.Always(map[string]any{
			"vappNetworkSegmentProfileTemplateRef": nil,
			"vdcNetworkSegmentProfileTemplateRef":  nil,
		}),
	}
}

// templateCollection returns the collection of segment profile templates.
func templateCollection() *documents.Collection {
	return &documents.Collection{
		Path:     "1.0.0/segmentProfileTemplates",
		Kind:     "segmentProfileTemplate",
		Right:    "SEGMENT_PROFILE_TEMPLATE",
		Title:    "Segment Profile Template",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Scope:    documents.ProviderScope,
		Defaults: map[string]any{"description": ""},
	}
}
