// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

const poolPath = "1.0.0/loadBalancer/pools"

func poolCollection() *collection {
	return &collection{
		path:     poolPath,
		kind:     "loadBalancerPool",
		hides:    true,
		right:    "LOAD_BALANCER_POOL",
		title:    "Load Balancer Pool",
		unique:   []string{"name"},
		required: []string{"name"},
		defaults: map[string]any{
			"enabled":                  true,
			"description":              "",
			"algorithm":                "LEAST_CONNECTIONS",
			"defaultPort":              80,
			"gracefulTimeoutPeriod":    1,
			"passiveMonitoringEnabled": true,
			"sslEnabled":               false,
			"commonNameCheckEnabled":   false,
			"memberGroupRef":           nil,
			"persistenceProfile":       nil,
			"healthMonitors":           nil,
			"caCertificateRefs":        nil,
			"domainNames":              nil,
			"members":                  nil,
		},
		// VMware's document says 37.1 of memberGroupRef, but its SDK uses it with 37.0.
		since:   map[string]string{"memberGroupRef": "37.0", "sslEnabled": "37.0"},
		scope:   balancedScope,
		prepare: preparePool,
		show:    showPool,
		free:    freePool,
	}
}

// balancedScope is the gateway a pool or virtual service is on.
func balancedScope(r *request, body map[string]any) (scope, error) {
	return gatewayScope(r.session, r.cloud.store, store.RefID(body, "gatewayRef"))
}

// balancedGateway refuses when the gateway has no load balancer, and completes the reference to the gateway.
func balancedGateway(session *store.Session, st *store.Store, body map[string]any, old *store.Object) (*store.EdgeGateway, error) {
	if old != nil {
		body["gatewayRef"] = old.Body["gatewayRef"]
	}
	_, _, g, err := edgeByID(session, st, store.RefID(body, "gatewayRef"))
	if err != nil {
		return nil, err
	}
	if g.LoadBalancer == nil || !g.LoadBalancer.Enabled {
		return nil, store.BadRequest("The load balancer is not enabled on the edge gateway %q.", g.Name)
	}
	body["gatewayRef"] = jsonRef("gateway", g.ID, g.Name)
	return g, nil
}

var poolAlgorithms = []string{
	"LEAST_CONNECTIONS", "ROUND_ROBIN", "CONSISTENT_HASH", "FASTEST_RESPONSE", "LEAST_LOAD", "FEWEST_SERVERS", "RANDOM",
	"FEWEST_TASKS", "CORE_AFFINITY",
}

func preparePool(r *request, body map[string]any, old *store.Object) error {
	g, err := balancedGateway(r.session, r.cloud.store, body, old)
	if err != nil {
		return err
	}
	algorithm := store.Text(body, "algorithm")
	if !slices.Contains(poolAlgorithms, algorithm) {
		return store.BadRequest("The load balancer algorithm %q is invalid.", algorithm)
	}
	if err := refusePremium(&r.cloud.assume, g, "algorithm", algorithm, premiumAlgorithms); err != nil {
		return err
	}
	if err := poolSizes(body); err != nil {
		return err
	}
	if err := poolMemberGroup(r.session, r.cloud.store, body); err != nil {
		return err
	}
	if err := cmp.Or(settleMembers(body), settleMonitors(body), settlePersistence(&r.cloud.assume, g, body)); err != nil {
		return err
	}
	return knownCertificates(r.session, r.cloud.store, members(body, "caCertificateRefs"))
}

// settlePersistence names a persistence profile after its type, and refuses one that the gateway's features lack.
func settlePersistence(assume *Assumptions, g *store.EdgeGateway, body map[string]any) error {
	profile, _ := body["persistenceProfile"].(map[string]any)
	if err := refusePremium(assume, g, "persistence", store.Text(profile, "type"), premiumPersistence); err != nil {
		return err
	}
	if profile != nil && store.Text(profile, "type") != "" && store.Text(profile, "name") == "" {
		profile["name"] = store.Text(profile, "type")
	}
	return nil
}

// poolSizes refuses more of something than VMware's OpenAPI document allows in a pool.
func poolSizes(body map[string]any) error {
	for field, limit := range map[string]int{"members": 100, "caCertificateRefs": 100, "domainNames": 10} {
		if err := atMost(body, field, limit); err != nil {
			return err
		}
	}
	return withinBounds(body, bound{"defaultPort", 1, 65535}, bound{"gracefulTimeoutPeriod", -1, 7200})
}

// poolMemberGroup completes the reference to the group whose addresses are the members.
func poolMemberGroup(session *store.Session, st *store.Store, body map[string]any) error {
	id := store.RefID(body, "memberGroupRef")
	if id == "" {
		body["memberGroupRef"] = nil
		return nil
	}
	ref, err := documentReference(session, st, groupPath, "FIREWALL_GROUP_VIEW", id)
	if err != nil {
		return err
	}
	if body["memberGroupRef"] = ref; len(poolMembers(body)) > 0 {
		return store.BadRequest("A pool has either members or a member group.")
	}
	return nil
}

func settleMembers(body map[string]any) error {
	for _, m := range poolMembers(body) {
		if _, err := netip.ParseAddr(store.Text(m, "ipAddress")); err != nil {
			return store.BadRequest("The IP address %q is invalid.", store.Text(m, "ipAddress"))
		}
		complete(m, map[string]any{"enabled": true, "ratio": 1, "port": body["defaultPort"]})
		if err := withinBounds(m, bound{"port", 1, 65535}, bound{"ratio", 1, 20}); err != nil {
			return err
		}
	}
	return nil
}

// complete sets the fields that are missing to their defaults.
func complete(body, defaults map[string]any) {
	for k, v := range defaults {
		if body[k] == nil || body[k] == "" {
			body[k] = v
		}
	}
}

func settleMonitors(body map[string]any) error {
	monitors, _ := body["healthMonitors"].([]any)
	for _, x := range monitors {
		m, ok := x.(map[string]any)
		if !ok || !slices.Contains([]string{"HTTP", "HTTPS", "TCP", "UDP", "PING"}, store.Text(m, "type")) {
			return store.BadRequest("The health monitor type %q is invalid.", store.Text(m, "type"))
		}
		m["name"] = "System-" + store.Text(m, "type")
		m["systemDefined"] = true
	}
	return nil
}

// poolMembers are the members of a pool as objects.
func poolMembers(body map[string]any) []map[string]any {
	var out []map[string]any
	list, _ := body["members"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// enabled reports whether an object is enabled, which is the default.
func enabled(body map[string]any) bool {
	on, ok := body["enabled"].(bool)
	return on || !ok
}

// enabledMembers counts the members a pool may send to.
func (lb loadBalancing) enabledMembers(d *store.Object) (on, all int) {
	if g := lb.cloud.store.Documents.Find(groupPath, store.RefID(d.Body, "memberGroupRef")); g != nil {
		n := len(setAddresses(g))
		return n, n
	}
	for _, m := range poolMembers(d.Body) {
		all++
		if enabled(m) {
			on++
		}
	}
	return on, all
}

// upMembers counts the members that answer.
func (lb loadBalancing) upMembers(d *store.Object) int {
	on, _ := lb.enabledMembers(d)
	probed := lb.cloud.probed[d.ID()]
	if len(probed) == 0 {
		return on
	}
	up := 0
	for _, answers := range probed {
		if answers {
			up++
		}
	}
	return min(up, on)
}

// memberHealth is that of one member of a pool with some health.
func (lb loadBalancing) memberHealth(d *store.Object, m map[string]any, health string) string {
	address, _ := netip.ParseAddr(store.Text(m, "ipAddress"))
	port, _ := m["port"].(float64)
	up, known := lb.cloud.probed[d.ID()][netip.AddrPortFrom(address, uint16(port))]
	switch {
	case health != "UP" || !known || up:
		return health
	default:
		return "DOWN"
	}
}

// servicesOfPool are the virtual services that send to a pool.
func servicesOfPool(ds store.Objects, pool string) []*store.Object {
	var out []*store.Object
	for _, d := range ds[servicePath] {
		if store.RefID(d.Body, "loadBalancerPoolRef") == pool {
			out = append(out, d)
		}
	}
	return out
}

// health is that of a pool or virtual service; it changes some time after the object.
func (lb loadBalancing) health(d *store.Object, members int) string {
	switch {
	case d.Since.IsZero() || lb.cloud.clock.Now().Sub(d.Since) < lb.cloud.profile.scaled(durationHealth):
		return statePending
	case !enabled(d.Body):
		return "DISABLED"
	case members == 0:
		return "DOWN"
	}
	return "UP"
}

func showPool(r *request, d *store.Object, out map[string]any) {
	on, all := balancingOf(r.cloud).enabledMembers(d)
	up := balancingOf(r.cloud).upMembers(d)
	health := balancingOf(r.cloud).health(d, up)
	if health != "UP" {
		up = 0
	}
	refs := []any{}
	for _, vs := range servicesOfPool(r.cloud.store.Documents, d.ID()) {
		refs = append(refs, map[string]any{"name": store.Text(vs.Body, "name"), "id": vs.ID()})
	}
	if len(refs) == 0 && health == "UP" {
		health = "UNAVAILABLE"
		up = 0 // no virtual service uses it, so its members are not checked
	}
	out["status"] = balancingOf(r.cloud).balancing(d)
	out["healthStatus"] = health
	out["healthMessage"] = healthMessages[health]
	out["memberCount"] = all
	out["enabledMemberCount"] = on
	out["upMemberCount"] = up
	out["virtualServiceRefs"] = refs
	var shown []any
	for _, m := range poolMembers(d.Body) {
		shown = append(shown, memberJSON(m, balancingOf(r.cloud).memberHealth(d, m, health)))
	}
	out["members"] = shown
}

var healthMessages = map[string]string{
	"UP":          "The health status is up.",
	"DOWN":        "No member is up.",
	"DISABLED":    "It is disabled.",
	statePending:  "The health status is not known yet.",
	"UNAVAILABLE": "The health status is not available.",
}

func memberJSON(m map[string]any, health string) map[string]any {
	out := map[string]any{
		"healthStatus":          health,
		"markedDownBy":          []any{},
		"detailedHealthMessage": healthMessages[health],
	}
	for k, v := range m {
		if _, computed := out[k]; !computed {
			out[k] = v
		}
	}
	if !enabled(m) {
		out["healthStatus"] = "DISABLED"
	}
	return out
}

func freePool(r *request, d *store.Object) error {
	for _, vs := range servicesOfPool(r.cloud.store.Documents, d.ID()) {
		return inUse("load balancer pool", store.Text(d.Body, "name"), "virtual service "+store.Text(vs.Body, "name"))
	}
	return nil
}

// poolSummary is a pool as lists show it.
func poolSummary(r *request, d *store.Object) map[string]any {
	full := poolCollection().shown(r, d)
	monitors, _ := d.Body["healthMonitors"].([]any)
	out := map[string]any{
		"activeMonitoringEnabled": len(monitors) > 0,
		"memberSslEnabled":        d.Body["sslEnabled"],
		"memberGroupType":         nil,
	}
	for _, f := range []string{
		"id", "name", "description", "enabled", "status", "passiveMonitoringEnabled", "healthStatus", "healthMessage",
		"memberCount", "enabledMemberCount", "upMemberCount", "virtualServiceRefs",
	} {
		out[f] = full[f]
	}
	if g := r.cloud.store.Documents.Find(groupPath, store.RefID(d.Body, "memberGroupRef")); g != nil {
		out["memberGroupType"] = g.Body["typeValue"]
	}
	if refs, _ := out["virtualServiceRefs"].([]any); len(refs) > maxSummaryRefs {
		out["virtualServiceRefs"] = refs[:maxSummaryRefs]
	}
	r.newer("37.0", out, "memberSslEnabled")
	r.newer("37.0", out, "memberGroupType")
	return out
}

// maxSummaryRefs is how many virtual services the summary of a pool names.
const maxSummaryRefs = 10
