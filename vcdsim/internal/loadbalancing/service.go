// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func serviceCollection() *documents.Collection {
	return &documents.Collection{
		Path:     documents.ServicePath,
		Kind:     "loadBalancerVirtualService",
		Hides:    true,
		Right:    "LOAD_BALANCER_VIRTUAL_SERVICE",
		Title:    "Virtual Service",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Defaults: map[string]any{
			"enabled":                true,
			"description":            "",
			"certificateRef":         nil,
			"ipv6VirtualIpAddress":   nil,
			"transparentModeEnabled": false,
			"virtualIpAddress":       nil,
		},
		Since:   map[string]string{"ipv6VirtualIpAddress": "37.0", "transparentModeEnabled": "37.1"},
		Scope:   gatewayScope,
		Prepare: prepareService,
		Show:    showService,
	}
}

// applicationProfiles maps the types of virtual services to the application profiles that VCD selects.
var applicationProfiles = map[string]string{
	"HTTP":   "System-HTTP",
	"HTTPS":  "System-Secure-HTTP",
	"L4":     "System-L4-Application",
	"L4_TLS": "System-SSL-Application",
}

var tcpProfiles = map[string]string{
	"TCP_PROXY":     "System-TCP-Proxy",
	"TCP_FAST_PATH": "System-TCP-Fast-Path",
	"UDP_FAST_PATH": "System-UDP-Fast-Path",
}

func prepareService(r *api.Request, body map[string]any, old *store.Object) error {
	g, err := loadBalancerGateway(r.Session, r.Cloud.Store, body, old)
	if err != nil {
		return err
	}
	pool := r.Cloud.Store.Documents.Find(documents.PoolPath, store.RefID(body, "loadBalancerPoolRef"))
	if pool == nil || pool.Parent != g.ID {
		return store.Forbidden("LOAD_BALANCER_POOL_VIEW", store.RefID(body, "loadBalancerPoolRef"))
	}
	body["loadBalancerPoolRef"] = map[string]any{"id": pool.ID(), "name": store.Text(pool.Body, "name")}
	if err := checkServiceEngineGroup(r.Cloud.Store, body, old, g); err != nil {
		return err
	}
	profile, _ := body["applicationProfile"].(map[string]any)
	kind := store.Text(profile, "type")
	name, ok := applicationProfiles[kind]
	if !ok {
		return store.BadRequest("The application profile type %q is invalid.", kind)
	}
	profile["name"] = name
	profile["systemDefined"] = true
	if err := refusePremium(&r.Cloud.Assume, g, "application profile", kind, premiumApplications); err != nil {
		return err
	}
	if err := completeServicePorts(body); err != nil {
		return err
	}
	if err := completeCertificate(r.Session, r.Cloud.Store, body, kind); err != nil {
		return err
	}
	return checkVIPs(r, body, old, g)
}

// completeServicePorts completes and checks the ports of a virtual service.
func completeServicePorts(body map[string]any) error {
	ports, _ := body["servicePorts"].([]any)
	if len(ports) == 0 {
		return store.BadRequest("The field servicePorts must not be empty.")
	}
	if err := documents.AtMost(body, "servicePorts", 10); err != nil {
		return err
	}
	for _, p := range ports {
		m, _ := p.(map[string]any)
		if err := completeServicePort(m); err != nil {
			return err
		}
	}
	return nil
}

func completeServicePort(m map[string]any) error {
	from, ok := m["portStart"].(float64)
	if !ok || from < 1 || from > 65535 {
		return store.BadRequest("The service port is invalid.")
	}
	if to, ok := m["portEnd"].(float64); !ok || to < from {
		m["portEnd"] = from
	}
	documents.Complete(m, map[string]any{"sslEnabled": false, "tcpUdpProfile": map[string]any{"type": "TCP_PROXY"}})
	tcp, _ := m["tcpUdpProfile"].(map[string]any)
	name, ok := tcpProfiles[store.Text(tcp, "type")]
	if !ok {
		return store.BadRequest("The TCP/UDP profile type %q is invalid.", store.Text(tcp, "type"))
	}
	tcp["name"] = name
	tcp["systemDefined"] = true
	return nil
}

// completeCertificate checks the certificate of a virtual service and completes the reference. Encrypted services
// require a certificate.
func completeCertificate(session *store.Session, st *store.Store, body map[string]any, kind string) error {
	id := store.RefID(body, "certificateRef")
	if id == "" {
		if body["certificateRef"] = nil; kind == "HTTPS" || kind == "L4_TLS" {
			return store.BadRequest("A certificate must be specified for a virtual service with the application profile %s.",
				kind)
		}
		return nil
	}
	d := st.Documents.Find(documents.CertificatePath, id)
	if d == nil || !session.Sees(d.OrgID) {
		return store.Forbidden("CERTIFICATE_LIBRARY_ITEM_VIEW", id)
	}
	body["certificateRef"] = map[string]any{"id": d.ID(), "name": store.Text(d.Body, "alias")}
	return nil
}

func checkCertificates(session *store.Session, st *store.Store, ids []string) error {
	for _, id := range ids {
		if d := st.Documents.Find(documents.CertificatePath, store.URN("certificateLibraryItem", id)); d == nil ||
			!session.Sees(d.OrgID) {
			return store.Forbidden("CERTIFICATE_LIBRARY_ITEM_VIEW", id)
		}
	}
	return nil
}

// sharedVIPSince is the API version of VCD 10.4, the first in which virtual services can share an address.
const sharedVIPSince = "37.0"

// checkVIPs refuses an address that the gateway does not own. It also refuses an address and port on which another
// virtual service of the gateway listens. Before VCD 10.4, two virtual services cannot share an address, even with
// different ports.
func checkVIPs(r *api.Request, body map[string]any, old *store.Object, g *store.EdgeGateway) error {
	vips := gateways.VirtualIPs(body)
	if len(vips) == 0 {
		return store.BadRequest("A virtual service needs a virtual IP address.")
	}
	for _, vip := range vips {
		if _, err := netip.ParseAddr(vip); err != nil {
			return store.BadRequest("The IP address %q is invalid.", vip)
		}
		if err := gateways.OwnAddress(r, g.ID, vip); err != nil {
			return err
		}
	}
	if err := refuseUnsupportedFamilies(&r.Cloud.Assume, body, g); err != nil {
		return err
	}
	others := slices.DeleteFunc(r.Cloud.Store.Documents.On(g.ID, documents.ServicePath), func(d *store.Object) bool { return d == old })
	if err := refuseVIPChange(&r.Cloud.Assume, body, old, others); err != nil {
		return err
	}
	return checkVIPConflicts(body, others, api.HighestVersion(r) >= sharedVIPSince)
}

// checkVIPConflicts refuses an address that another virtual service uses. If addresses can be shared, it refuses only a
// common port.
func checkVIPConflicts(body map[string]any, others []*store.Object, shared bool) error {
	vips := gateways.VirtualIPs(body)
	for _, d := range others {
		if shared && !portsOverlap(body, d.Body) {
			continue
		}
		for _, vip := range gateways.VirtualIPs(d.Body) {
			if slices.Contains(vips, vip) {
				return vipInUse(vip, store.Text(d.Body, "name"), shared)
			}
		}
	}
	return nil
}

func vipInUse(vip, by string, shared bool) error {
	if shared {
		return store.BadRequest("The virtual IP address %s is already used with the same port by the virtual service %q.",
			vip, by)
	}
	return store.BadRequest("The virtual IP address %s is already used by the virtual service %q.", vip, by)
}

// portsOverlap reports whether two virtual services have a common port of the same protocol.
func portsOverlap(a, b map[string]any) bool {
	for _, x := range portRanges(a) {
		for _, y := range portRanges(b) {
			if x.udp == y.udp && x.from <= y.to && y.from <= x.to {
				return true
			}
		}
	}
	return false
}

type portRange struct {
	from, to float64
	udp      bool
}

func portRanges(body map[string]any) []portRange {
	var out []portRange
	ports, _ := body["servicePorts"].([]any)
	for _, p := range ports {
		m, _ := p.(map[string]any)
		from, _ := m["portStart"].(float64)
		to, _ := m["portEnd"].(float64)
		tcp, _ := m["tcpUdpProfile"].(map[string]any)
		out = append(out, portRange{from, to, store.Text(tcp, "type") == "UDP_FAST_PATH"})
	}
	return out
}

func showService(r *api.Request, d *store.Object, out map[string]any) {
	members := 0
	if pool := r.Cloud.Store.Documents.Find(documents.PoolPath, store.RefID(d.Body, "loadBalancerPoolRef")); pool != nil &&
		documents.Enabled(pool.Body) {
		members = BalancingOf(r.Cloud).UpMembers(pool)
	}
	health := BalancingOf(r.Cloud).Health(d, members)
	out["status"] = BalancingOf(r.Cloud).realization(d)
	out["healthStatus"] = health
	if out["healthMessage"] = healthMessages[health]; r.Session.Provider() {
		out["detailedHealthMessage"] = healthMessages[health]
	}
}

// serviceSummary returns a virtual service as lists show it.
func serviceSummary(r *api.Request, d *store.Object) map[string]any {
	out := serviceCollection().Shown(r, d)
	profile, _ := d.Body["applicationProfile"].(map[string]any)
	out["applicationProfileType"] = profile["type"]
	delete(out, "applicationProfile")
	return out
}

// gatewayInPath returns the gateway in the path of a request.
func gatewayInPath(r *api.Request) (*store.EdgeGateway, error) {
	_, _, g, err := gateways.EdgeByID(r.Session, r.Cloud.Store, r.Vars["gateway"])
	return g, err
}

// summaries returns a handler that lists the objects of a collection on a gateway.
func summaries(path string, summary func(*api.Request, *store.Object) map[string]any) api.Handler {
	return func(r *api.Request) (*api.Response, error) {
		g, err := gatewayInPath(r)
		if err != nil {
			return nil, err
		}
		var out []any
		for _, d := range r.Cloud.Store.Documents[path] {
			if d.Parent == g.ID {
				out = append(out, summary(r, d))
			}
		}
		return r.Page(out)
	}
}
