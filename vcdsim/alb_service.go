// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const servicePath = "1.0.0/loadBalancer/virtualServices"

func serviceCollection() *collection {
	return &collection{
		path:     servicePath,
		kind:     "loadBalancerVirtualService",
		hides:    true,
		right:    "LOAD_BALANCER_VIRTUAL_SERVICE",
		title:    "Virtual Service",
		unique:   []string{"name"},
		required: []string{"name"},
		defaults: map[string]any{
			"enabled":                true,
			"description":            "",
			"certificateRef":         nil,
			"ipv6VirtualIpAddress":   nil,
			"transparentModeEnabled": false,
			"virtualIpAddress":       nil,
		},
		since:   map[string]string{"ipv6VirtualIpAddress": "37.0", "transparentModeEnabled": "37.1"},
		scope:   balancedScope,
		prepare: prepareService,
		show:    showService,
	}
}

// applicationProfiles are the types of virtual services with the profile VCD chooses.
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

func prepareService(r *request, body map[string]any, old *store.Object) error {
	g, err := balancedGateway(r.session, r.cloud.store, body, old)
	if err != nil {
		return err
	}
	pool := r.cloud.store.Documents.Find(poolPath, store.RefID(body, "loadBalancerPoolRef"))
	if pool == nil || pool.Parent != g.ID {
		return store.Forbidden("LOAD_BALANCER_POOL_VIEW", store.RefID(body, "loadBalancerPoolRef"))
	}
	body["loadBalancerPoolRef"] = map[string]any{"id": pool.ID(), "name": store.Text(pool.Body, "name")}
	if err := serviceEngineGroup(r.cloud.store, body, old, g); err != nil {
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
	if err := refusePremium(&r.cloud.assume, g, "application profile", kind, premiumApplications); err != nil {
		return err
	}
	if err := servicePorts(body); err != nil {
		return err
	}
	if err := serviceCertificate(r.session, r.cloud.store, body, kind); err != nil {
		return err
	}
	return freeVIP(r, body, old, g)
}

// servicePorts completes and checks the ports.
func servicePorts(body map[string]any) error {
	ports, _ := body["servicePorts"].([]any)
	if len(ports) == 0 {
		return store.BadRequest("The field servicePorts must not be empty.")
	}
	if err := atMost(body, "servicePorts", 10); err != nil {
		return err
	}
	for _, p := range ports {
		m, _ := p.(map[string]any)
		if err := servicePort(m); err != nil {
			return err
		}
	}
	return nil
}

func servicePort(m map[string]any) error {
	from, ok := m["portStart"].(float64)
	if !ok || from < 1 || from > 65535 {
		return store.BadRequest("The service port is invalid.")
	}
	if to, ok := m["portEnd"].(float64); !ok || to < from {
		m["portEnd"] = from
	}
	complete(m, map[string]any{"sslEnabled": false, "tcpUdpProfile": map[string]any{"type": "TCP_PROXY"}})
	tcp, _ := m["tcpUdpProfile"].(map[string]any)
	name, ok := tcpProfiles[store.Text(tcp, "type")]
	if !ok {
		return store.BadRequest("The TCP/UDP profile type %q is invalid.", store.Text(tcp, "type"))
	}
	tcp["name"] = name
	tcp["systemDefined"] = true
	return nil
}

// serviceCertificate checks the certificate, which encrypted services must have.
func serviceCertificate(session *store.Session, st *store.Store, body map[string]any, kind string) error {
	id := store.RefID(body, "certificateRef")
	if id == "" {
		if body["certificateRef"] = nil; kind == "HTTPS" || kind == "L4_TLS" {
			return store.BadRequest("A certificate must be specified for a virtual service with the application profile %s.",
				kind)
		}
		return nil
	}
	d := st.Documents.Find(certificatePath, id)
	if d == nil || !session.Sees(d.OrgID) {
		return store.Forbidden("CERTIFICATE_LIBRARY_ITEM_VIEW", id)
	}
	body["certificateRef"] = map[string]any{"id": d.ID(), "name": store.Text(d.Body, "alias")}
	return nil
}

func knownCertificates(session *store.Session, st *store.Store, ids []string) error {
	for _, id := range ids {
		if d := st.Documents.Find(certificatePath, store.URN("certificateLibraryItem", id)); d == nil ||
			!session.Sees(d.OrgID) {
			return store.Forbidden("CERTIFICATE_LIBRARY_ITEM_VIEW", id)
		}
	}
	return nil
}

// sharedVIP is the API version, VCD 10.4's, since which virtual services may share an address.
const sharedVIP = "37.0"

// freeVIP refuses an address that the gateway does not have, and an address and port that another virtual service of it
// listens on. Before VCD 10.4 no address has two virtual services, whatever their ports.
func freeVIP(r *request, body map[string]any, old *store.Object, g *store.EdgeGateway) error {
	vips := virtualIPs(body)
	if len(vips) == 0 {
		return store.BadRequest("A virtual service needs a virtual IP address.")
	}
	for _, vip := range vips {
		if _, err := netip.ParseAddr(vip); err != nil {
			return store.BadRequest("The IP address %q is invalid.", vip)
		}
		if err := ownAddress(r, g.ID, vip); err != nil {
			return err
		}
	}
	if err := refuseFamilies(&r.cloud.assume, body, g); err != nil {
		return err
	}
	others := slices.DeleteFunc(r.cloud.store.Documents.On(g.ID, servicePath), func(d *store.Object) bool { return d == old })
	if err := refuseMove(&r.cloud.assume, body, old, others); err != nil {
		return err
	}
	return unsharedVIP(body, others, highestVersion(r) >= sharedVIP)
}

// unsharedVIP refuses an address that another virtual service has, on the same port if addresses can be shared.
func unsharedVIP(body map[string]any, others []*store.Object, shared bool) error {
	vips := virtualIPs(body)
	for _, d := range others {
		if shared && !portsMeet(body, d.Body) {
			continue
		}
		for _, vip := range virtualIPs(d.Body) {
			if slices.Contains(vips, vip) {
				return takenVIP(vip, store.Text(d.Body, "name"), shared)
			}
		}
	}
	return nil
}

func takenVIP(vip, by string, shared bool) error {
	if shared {
		return store.BadRequest("The virtual IP address %s is already used with the same port by the virtual service %q.",
			vip, by)
	}
	return store.BadRequest("The virtual IP address %s is already used by the virtual service %q.", vip, by)
}

func virtualIPs(body map[string]any) []string {
	var out []string
	for _, f := range []string{"virtualIpAddress", "ipv6VirtualIpAddress"} {
		if a := store.Text(body, f); a != "" {
			out = append(out, a)
		}
	}
	return out
}

// portsMeet reports whether two virtual services share a port of the same protocol.
func portsMeet(a, b map[string]any) bool {
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

func showService(r *request, d *store.Object, out map[string]any) {
	members := 0
	if pool := r.cloud.store.Documents.Find(poolPath, store.RefID(d.Body, "loadBalancerPoolRef")); pool != nil &&
		enabled(pool.Body) {
		members = balancingOf(r.cloud).upMembers(pool)
	}
	health := balancingOf(r.cloud).health(d, members)
	out["status"] = balancingOf(r.cloud).balancing(d)
	out["healthStatus"] = health
	if out["healthMessage"] = healthMessages[health]; r.session.Provider() {
		out["detailedHealthMessage"] = healthMessages[health]
	}
}

// serviceSummary is a virtual service as lists show it.
func serviceSummary(r *request, d *store.Object) map[string]any {
	out := serviceCollection().shown(r, d)
	profile, _ := d.Body["applicationProfile"].(map[string]any)
	out["applicationProfileType"] = profile["type"]
	delete(out, "applicationProfile")
	return out
}

// summaries lists what a gateway has of a collection.
func summaries(path string, summary func(*request, *store.Object) map[string]any) handler {
	return func(r *request) (*response, error) {
		_, _, g, err := edgeByID(r.session, r.cloud.store, r.vars["gateway"])
		if err != nil {
			return nil, err
		}
		var out []any
		for _, d := range r.cloud.store.Documents[path] {
			if d.Parent == g.ID {
				out = append(out, summary(r, d))
			}
		}
		return r.page(out)
	}
}
