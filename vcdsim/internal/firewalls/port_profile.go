// SPDX-License-Identifier: Apache-2.0

package firewalls

import (
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func profileCollection() *documents.Collection {
	return &documents.Collection{
		Path:     gateways.ProfilePath,
		Kind:     "applicationPortProfile",
		Right:    "APPLICATION_PORT_PROFILE",
		Title:    "Application Port Profile",
		Unique:   []string{"name", "scope"},
		Required: []string{"name"},
		Defaults: map[string]any{"description": "", "orgRef": nil},
		Fixed:    []string{"scope", "orgRef"},
		Scope:    profileScope,
		Prepare:  prepareProfile,
		Free:     checkProfileUnused,
		Show: func(r *api.Request, d *store.Object, out map[string]any) {
			out["status"] = documents.Realization(r.Cloud.Tasks, store.Bare(d.ID()), d.Failed)
			out["usableForNAT"] = usableForNAT(d.Body)
			out["networkProviderScope"] = nil
			delete(out, "contextEntityId")
		},
	}
}

// profileScope returns the owner of a profile. A tenant's profile belongs to a VDC or a VDC group, a provider's profile
// to an NSX manager.
func profileScope(r *api.Request, body map[string]any) (documents.Scope, error) {
	context := store.Text(body, "contextEntityId")
	switch store.Text(body, "scope") {
	case "TENANT":
		org, vdc, group, err := gateways.EdgeOwner(r.Session, r.Cloud.Store, context)
		if err != nil {
			return documents.Scope{}, err
		}
		if group == "" {
			group = vdc.ID
		}
		return documents.Scope{OrgID: org.ID, Parent: group}, nil
	case "PROVIDER":
		if err := r.ByProvider("APPLICATION_PORT_PROFILE_MANAGE"); err != nil {
			return documents.Scope{}, err
		}
		return documents.Scope{}, nil
	case "SYSTEM":
		return documents.Scope{}, store.Forbidden("APPLICATION_PORT_PROFILE_MANAGE", store.Text(body, "id"))
	}
	return documents.Scope{}, store.BadRequest("The scope %q is invalid.", store.Text(body, "scope"))
}

func prepareProfile(r *api.Request, body map[string]any, old *store.Object) error {
	if old != nil {
		body["contextEntityId"] = old.Body["contextEntityId"]
	} else if org := r.Cloud.Store.Org(store.Bare(store.RefID(body, "orgRef"))); org != nil && r.Session.Sees(org.ID) {
		body["orgRef"] = api.Ref("org", org.ID, org.Name)
	} else if store.Text(body, "scope") == "TENANT" && r.Cloud.Assume.TenantProfilesNeedOrg {
		return store.BadRequest("An application port profile of scope TENANT must name its organization in orgRef.")
	}
	ports, _ := body["applicationPorts"].([]any)
	if len(ports) == 0 {
		return store.BadRequest("The field applicationPorts must not be empty.")
	}
	for _, p := range ports {
		m, _ := p.(map[string]any)
		if !slices.Contains([]string{"TCP", "UDP", "ICMPv4", "ICMPv6"}, store.Text(m, "protocol")) {
			return store.BadRequest("The protocol %q is invalid.", store.Text(m, "protocol"))
		}
	}
	return nil
}

// usableForNAT reports whether a NAT rule can use a profile: it must have one TCP or UDP entry with one port.
func usableForNAT(body map[string]any) bool {
	ports, _ := body["applicationPorts"].([]any)
	if len(ports) != 1 {
		return false
	}
	m, _ := ports[0].(map[string]any)
	destinations, _ := m["destinationPorts"].([]any)
	return len(destinations) == 1 && (store.Text(m, "protocol") == "TCP" || store.Text(m, "protocol") == "UDP")
}

// checkProfileUnused refuses to delete a profile that a NAT rule or a firewall rule uses.
func checkProfileUnused(s *cloud.Cloud, d *store.Object) error {
	for _, nat := range s.Store.Documents[gateways.NATPath] {
		if store.RefID(nat.Body, "applicationPortProfile") == d.ID() {
			return documents.InUse("application port profile", store.Text(d.Body, "name"), "NAT rule "+store.Text(nat.Body, "name"))
		}
	}
	return checkNoFirewallRules(s, "application port profile", d, "applicationPortProfiles")
}

// systemProfiles lists services that NSX defines, with protocol and port.
var systemProfiles = []struct{ name, protocol, port string }{
	{"DNS-TCP", "TCP", "53"},
	{"DNS-UDP", "UDP", "53"},
	{"HTTP", "TCP", "80"},
	{"HTTPS", "TCP", "443"},
	{"SSH", "TCP", "22"},
	{"FTP", "TCP", "21"},
	{"TELNET", "TCP", "23"},
	{"SMTP", "TCP", "25"},
	{"SMTP_TLS", "TCP", "587"},
	{"TFTP", "UDP", "69"},
	{"POP3", "TCP", "110"},
	{"POP3S", "TCP", "995"},
	{"IMAP", "TCP", "143"},
	{"IMAP_SSL", "TCP", "993"},
	{"NTP", "UDP", "123"},
	{"SNMP-Receive", "UDP", "161"},
	{"SNMP-Send", "UDP", "162"},
	{"LDAP", "TCP", "389"},
	{"LDAP-UDP", "UDP", "389"},
	{"LDAP-over-SSL", "TCP", "636"},
	{"SMB", "TCP", "445"},
	{"Syslog-TCP", "TCP", "514"},
	{"Syslog-UDP", "UDP", "514"},
	{"RDP", "TCP", "3389"},
	{"MySQL", "TCP", "3306"},
	{"NFS-TCP", "TCP", "2049"},
	{"NFS-UDP", "UDP", "2049"},
	{"Oracle", "TCP", "1521"},
	{"Kerberos-TCP", "TCP", "88"},
	{"Kerberos-UDP", "UDP", "88"},
	{"DHCP-Server", "UDP", "67"},
	{"DHCP-Client", "UDP", "68"},
	{"BGP", "TCP", "179"},
	{"BOOTPC", "UDP", "68"},
	{"CIFS-TCP", "TCP", "445"},
	{"DNS-TLS", "TCP", "853"},
	{"Docker", "TCP", "2376"},
	{"Elasticsearch", "TCP", "9200"},
	{"etcd", "TCP", "2379"},
	{"Finger", "TCP", "79"},
	{"FTPS", "TCP", "990"},
	{"Git", "TCP", "9418"},
	{"Gopher", "TCP", "70"},
	{"H323", "TCP", "1720"},
	{"HTTP-Alternate", "TCP", "8080"},
	{"HTTPS-Alternate", "TCP", "8443"},
	{"IKE", "UDP", "500"},
	{"IKE-NAT", "UDP", "4500"},
	{"IPP", "TCP", "631"},
	{"IRC", "TCP", "6667"},
	{"iSCSI", "TCP", "3260"},
	{"Kafka", "TCP", "9092"},
	{"Kubernetes-API", "TCP", "6443"},
	{"L2TP", "UDP", "1701"},
	{"LPD", "TCP", "515"},
	{"Memcached", "TCP", "11211"},
	{"MongoDB", "TCP", "27017"},
	{"MS-SQL", "TCP", "1433"},
	{"MS-SQL-Monitor", "UDP", "1434"},
	{"NetBIOS-Datagram", "UDP", "138"},
	{"NetBIOS-Name", "UDP", "137"},
	{"NetBIOS-Session", "TCP", "139"},
	{"NNTP", "TCP", "119"},
	{"OpenVPN", "UDP", "1194"},
	{"PostgreSQL", "TCP", "5432"},
	{"PPTP", "TCP", "1723"},
	{"RADIUS", "UDP", "1812"},
	{"RADIUS-Accounting", "UDP", "1813"},
	{"Redis", "TCP", "6379"},
	{"RPC", "TCP", "111"},
	{"RPC-UDP", "UDP", "111"},
	{"RSYNC", "TCP", "873"},
	{"RTSP", "TCP", "554"},
	{"SIP", "UDP", "5060"},
	{"SIP-TLS", "TCP", "5061"},
	{"SOCKS", "TCP", "1080"},
	{"Squid", "TCP", "3128"},
	{"STUN", "UDP", "3478"},
	{"TACACS", "TCP", "49"},
	{"VNC", "TCP", "5900"},
	{"VXLAN", "UDP", "4789"},
	{"WHOIS", "TCP", "43"},
	{"WinRM", "TCP", "5985"},
	{"XMPP", "TCP", "5222"},
	{"Zookeeper", "TCP", "2181"},
	{"ICMPv4-ALL", "ICMPv4", "any"},
	{"ICMPv6-ALL", "ICMPv6", "any"},
}

// SeedProfiles adds the system profiles that every site has.
func SeedProfiles(s *cloud.Cloud) {
	for _, p := range systemProfiles {
		ports := []any{p.port}
		if p.port == "any" {
			ports = []any{}
		}
		s.Store.Documents.Add(gateways.ProfilePath, "", map[string]any{
			"id":          store.URN("applicationPortProfile", s.IDs.Named("applicationPortProfile", p.name)),
			"name":        p.name,
			"description": p.name,
			"scope":       "SYSTEM",
			"orgRef":      nil,
			"applicationPorts": []any{map[string]any{
				"name":             p.name,
				"protocol":         p.protocol,
				"destinationPorts": ports,
			}},
		})
	}
}
