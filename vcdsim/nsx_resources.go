// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/fiql"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// Objects of NSX that the provider can use.
const (
	edgeCluster = "edge-cluster-1"
	qosProfile  = "qos-100m"
)

// nsxRouters are the tier-0 routers and segments that can back an external network, with their kinds; segments also
// back imported networks.
var nsxRouters = []struct{ name, kind string }{
	{"tier0", store.BackingTier0},
	{"tier0-b", store.BackingTier0},
	{"tier0-vrf", store.BackingVRF},
	{"segment-1", store.BackingSegment},
	{"segment-2", store.BackingSegment},
}

// segmentProfiles are the kinds of segment profiles, each with its one profile.
var segmentProfiles = map[string]string{
	"segmentIpDiscoveryProfiles":  "ip-discovery",
	"segmentMacDiscoveryProfiles": "mac-discovery",
	"segmentSpoofGuardProfiles":   "spoof-guard",
	"segmentQoSProfiles":          "segment-qos",
	"segmentSecurityProfiles":     "segment-security",
}

func resourceRoutes(add addRoute) {
	const path = "/cloudapi/1.0.0/nsxTResources/"
	add("GET", path+"importableTier0Routers", listRouters, latencyCloudAPI)
	add("GET", path+"edgeClusters", listEdgeClusters, latencyCloudAPI)
	add("GET", path+"gatewayQoSProfiles", listQoS, latencyCloudAPI)
	add("GET", path+"tier0RouterInterfaces", listInterfaces, latencyCloudAPI)
	for kind, name := range segmentProfiles {
		add("GET", path+kind, func(r *request) (*response, error) { return listSegmentProfiles(r, kind, name) },
			latencyCloudAPI)
	}
	add("GET", "/api/admin/extension/nsxtManagers/{id}", getManager, latencyLegacy)
	add("GET", "/network/orgvdcnetworks/importableswitches", listSwitches, latencyCloudAPI)
	add("GET", "/cloudapi/1.0.0/networkContextProfiles", listContextProfiles, latencyCloudAPI)
}

// filterValue is what a filter asks an attribute to be, empty if it does not; of several, the last.
func (r *request) filterValue(attribute string) string {
	filter, err := fiql.Parse(r.query.get("filter"))
	if err != nil {
		return ""
	}
	value := ""
	for _, t := range filter.Terms() {
		if t.Attr == attribute {
			value = t.Value
		}
	}
	return value
}

type backing struct{ id, name, kind string }

// externalBackings are the routers and segments, used or not.
func externalBackings(s *cloud) []backing {
	var out []backing
	for _, r := range nsxRouters {
		out = append(out, backing{s.ids.Named("backing", r.name), r.name, r.kind})
	}
	return out
}

// freeBacking reports whether no external or imported network uses a router or segment; a tier-0 router may be
// shared by any number of networks that use IP blocks.
func freeBacking(s *cloud, b backing) bool {
	for _, e := range s.store.Model.ExternalNetworks {
		if cmp.Or(e.BackingName, strings.ToLower(e.Name)) == b.name {
			return false
		}
	}
	return true
}

func listRouters(r *request) (*response, error) {
	if err := r.byProvider("NSXT_RESOURCES_VIEW"); err != nil {
		return nil, err
	}
	if store.Bare(r.filterValue("_context")) != r.cloud.ids.Named("nsxtmanager", providerNetworks) {
		return nil, store.Forbidden("NSXT_MANAGER_VIEW", r.filterValue("_context"))
	}
	var out []any
	for _, b := range externalBackings(r.cloud) {
		if b.kind != store.BackingSegment && freeBacking(r.cloud, b) {
			out = append(out, map[string]any{"id": b.id, "displayName": b.name, "description": ""})
		}
	}
	return r.cursorPage(out)
}

func listEdgeClusters(r *request) (*response, error) {
	return r.cursorPage([]any{map[string]any{
		"id":             r.cloud.ids.Named("edgeCluster", edgeCluster),
		"name":           edgeCluster,
		"description":    "",
		"nodeCount":      2,
		"nodeType":       "EDGE_NODE",
		"deploymentType": "VIRTUAL_MACHINE",
	}}, "orgVdcId", "vdcGroupId", "pvdcId")
}

func listQoS(r *request) (*response, error) {
	return r.cursorPage([]any{map[string]any{
		"id":                 r.cloud.ids.Named("qosProfile", qosProfile),
		"displayName":        qosProfile,
		"description":        "",
		"burstSize":          10000,
		"committedBandwidth": 100,
		"excessAction":       "DROP",
		"nsxTManagerRef":     jsonRef("nsxtmanager", r.cloud.ids.Named("nsxtmanager", providerNetworks), providerNetworks),
	}})
}

// listInterfaces are the interfaces of the router behind an external network.
func listInterfaces(r *request) (*response, error) {
	e := r.cloud.store.External(store.Bare(r.filterValue("externalNetworkId")))
	if e == nil || !r.session.Provider() {
		return nil, store.Forbidden("EXTERNAL_NETWORK_VIEW", r.filterValue("externalNetworkId"))
	}
	return r.cursorPage([]any{map[string]any{
		"id":            r.cloud.ids.Named("interface", externalBacking(e)),
		"name":          "uplink-1",
		"displayName":   "uplink-1",
		"description":   "",
		"interfaceType": "EXTERNAL",
	}}, "externalNetworkId")
}

func listSegmentProfiles(r *request, kind, name string) (*response, error) {
	var out []any
	for _, n := range []string{"default-" + name, name} {
		out = append(out, map[string]any{
			"id":          r.cloud.ids.Named(kind, n),
			"displayName": n,
			"description": "",
			"nsxTManagerRef": jsonRef("nsxtmanager", r.cloud.ids.Named("nsxtmanager", providerNetworks),
				providerNetworks),
		})
	}
	return r.cursorPage(out, "orgVdcId", "vdcGroupId")
}

// listSwitches are the segments that can be imported, a plain list outside of cloudapi.
func listSwitches(r *request) (*response, error) {
	if r.query.get("orgVdc") == "" && r.query.get("nsxTManager") == "" && r.query.get("vdcGroup") == "" {
		return nil, store.BadRequest("One of the parameters orgVdc, vdcGroup and nsxTManager is required.")
	}
	out := []any{}
	for _, b := range externalBackings(r.cloud) {
		if b.kind == store.BackingSegment && freeBacking(r.cloud, b) && !importedSegment(r.cloud, b.id) {
			out = append(out, map[string]any{"id": b.id, "name": b.name})
		}
	}
	return jsonOK(out), nil
}

// importedSegment reports whether a network uses a segment.
func importedSegment(s *cloud, segment string) bool {
	return slices.ContainsFunc(s.store.Model.Orgs, func(o store.Org) bool {
		return slices.ContainsFunc(o.VDCs, func(v store.VDC) bool {
			return slices.ContainsFunc(v.Networks,
				func(n store.Network) bool { return n.Type == store.Opaque && n.Fields["backingNetworkId"] == segment })
		})
	})
}

// contextProfiles are some of the applications NSX recognises.
var contextProfiles = []string{
	"ACTIVDIR", "AMQP", "APACHE", "BITTRNT", "CIFS", "CITRIX", "CVS", "DHCP", "DIAMETER", "DNS", "EPIC", "FIX", "FTP",
	"GIT",
	"GITHUB", "GTALK", "HTTP", "HTTP2", "ICQ", "IMAP", "KERBEROS", "LDAP", "MAXDB", "MMS", "MONGODB", "MSSQL", "MYSQL",
	"NFS",
	"NNTP", "NTBIOSNS", "NTP", "OCSP", "ORACLE", "PCOIP", "POP3", "POSTGRES", "RADIUS", "RDP", "RTCP", "RTP", "RTSP",
	"SIP", "SMTP",
	"SNMP", "SOCKS", "SSH", "SSL", "SVN", "SYSLOG", "TACACS", "TELNET", "TFTP", "TNS", "VNC", "WINS", "XMPP",
}

func listContextProfiles(r *request) (*response, error) {
	var out []any
	for _, name := range contextProfiles {
		out = append(out, map[string]any{
			"id":                   store.URN("networkContextProfile", r.cloud.ids.Named("networkContextProfile", name)),
			"name":                 name,
			"description":          name,
			"scope":                "SYSTEM",
			"orgRef":               nil,
			"contextEntityId":      nil,
			"networkProviderScope": nil,
			"attributes":           []any{map[string]any{"type": "APP_ID", "values": []any{name}, "subAttributes": nil}},
		})
	}
	return r.page(out)
}

func managerRecords(r *request) []*record {
	if !r.session.Provider() {
		return nil
	}
	A := xmltree.A
	id := r.cloud.ids.Named("nsxtmanager", providerNetworks)
	return []*record{{attrs: []xmltree.Attr{
		A("name", providerNetworks),
		A("url", "https://"+providerNetworks+".example"),
		A("username", "admin"),
		A("vc", ""),
		A("href", r.site.Base()+"/api/admin/extension/nsxtManagers/"+id),
		A("type", "application/vnd.vmware.admin.nsxTmanager+xml"),
	}}}
}

func poolRecords(r *request) []*record {
	if !r.session.Provider() {
		return nil
	}
	A := xmltree.A
	return []*record{{attrs: []xmltree.Attr{
		A("name", providerPool),
		A("isBusy", false),
		A("networkPoolType", 4),
		A("href", r.site.Base()+"/api/admin/extension/networkPool/"+poolID(r.cloud)),
		A("type", "application/vnd.vmware.admin.networkPool+xml"),
	}}}
}

// getManager shows the NSX manager; the legacy API answers this in JSON.
func getManager(r *request) (*response, error) {
	id := r.cloud.ids.Named("nsxtmanager", providerNetworks)
	if !r.session.Provider() || store.Bare(r.vars["id"]) != id {
		return nil, store.Forbidden("NSXT_MANAGER_VIEW", r.vars["id"])
	}
	return jsonOK(map[string]any{
		"id":                   store.URN("nsxtmanager", id),
		"name":                 providerNetworks,
		"description":          "",
		"href":                 r.site.Base() + r.URL.Path,
		"type":                 "application/vnd.vmware.admin.nsxTmanager+json",
		"url":                  "https://" + providerNetworks + ".example",
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

// templateDefaults are the templates of networks whose VDC says nothing.
func templateDefaults() *setting {
	return &setting{
		path:  "1.0.0/segmentProfileTemplates/default",
		kind:  "segmentProfileTemplateDefault",
		title: "Default Segment Profile Template",
		plain: true,
		scope: func(r *request) (scope, error) { return scope{}, r.byProvider("SEGMENT_PROFILE_TEMPLATE_MANAGE") },
		initial: always(map[string]any{
			"vappNetworkSegmentProfileTemplateRef": nil,
			"vdcNetworkSegmentProfileTemplateRef":  nil,
		}),
	}
}

// templateCollection are the segment profile templates.
func templateCollection() *collection {
	return &collection{
		path:     "1.0.0/segmentProfileTemplates",
		kind:     "segmentProfileTemplate",
		right:    "SEGMENT_PROFILE_TEMPLATE",
		title:    "Segment Profile Template",
		unique:   []string{"name"},
		required: []string{"name"},
		scope:    providerScope,
		defaults: map[string]any{"description": ""},
	}
}
