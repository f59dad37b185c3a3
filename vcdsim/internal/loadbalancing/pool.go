// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/firewalls"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/gateways"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

func poolCollection() *documents.Collection {
	return &documents.Collection{
		Path:     documents.PoolPath,
		Kind:     "loadBalancerPool",
		Hides:    true,
		Right:    "LOAD_BALANCER_POOL",
		Title:    "Load Balancer Pool",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Defaults: map[string]any{
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
		// VMware's document has memberGroupRef since 37.1, but its SDK uses it with 37.0.
		Since:   map[string]string{"memberGroupRef": "37.0", "sslEnabled": "37.0"},
		Scope:   gatewayScope,
		Prepare: preparePool,
		Show:    showPool,
		Free:    checkPoolUnused,
	}
}

// gatewayScope returns the scope of the gateway of a pool or virtual service.
func gatewayScope(r *api.Request, body map[string]any) (documents.Scope, error) {
	return gateways.GatewayScope(r.Session, r.Cloud.Store, store.RefID(body, "gatewayRef"))
}

// loadBalancerGateway returns the gateway of an object and completes the reference to it. It returns an error if the
// gateway has no load balancer or differs from the gateway of old.
func loadBalancerGateway(session *store.Session, st *store.Store, body map[string]any, old *store.Object) (*store.EdgeGateway, error) {
	if old != nil {
		if id := store.RefID(body, "gatewayRef"); id != "" && id != store.RefID(old.Body, "gatewayRef") {
			return nil, store.BadRequest("The edge gateway of %q cannot be changed.", store.Text(old.Body, "name"))
		}
		body["gatewayRef"] = old.Body["gatewayRef"]
	}
	_, _, g, err := gateways.EdgeByID(session, st, store.RefID(body, "gatewayRef"))
	if err != nil {
		return nil, err
	}
	if g.LoadBalancer == nil || !g.LoadBalancer.Enabled {
		return nil, store.BadRequest("The load balancer is not enabled on the edge gateway %q.", g.Name)
	}
	body["gatewayRef"] = api.Ref("gateway", g.ID, g.Name)
	return g, nil
}

var poolAlgorithms = []string{
	"LEAST_CONNECTIONS", "ROUND_ROBIN", "CONSISTENT_HASH", "FASTEST_RESPONSE", "LEAST_LOAD", "FEWEST_SERVERS", "RANDOM",
	"FEWEST_TASKS", "CORE_AFFINITY",
}

func preparePool(r *api.Request, body map[string]any, old *store.Object) error {
	g, err := loadBalancerGateway(r.Session, r.Cloud.Store, body, old)
	if err != nil {
		return err
	}
	algorithm := store.Text(body, "algorithm")
	if !slices.Contains(poolAlgorithms, algorithm) {
		return store.BadRequest("The load balancer algorithm %q is invalid.", algorithm)
	}
	if err := refusePremium(&r.Cloud.Assume, g, "algorithm", algorithm, premiumAlgorithms); err != nil {
		return err
	}
	if err := checkPoolSizes(body); err != nil {
		return err
	}
	if err := completeMemberGroup(r.Session, r.Cloud.Store, body); err != nil {
		return err
	}
	err = cmp.Or(
		completeMembers(body),
		completeMonitors(r.Cloud, g.ID, body),
		completePersistence(&r.Cloud.Assume, g, body),
	)
	if err != nil {
		return err
	}
	return checkCertificates(r.Session, r.Cloud.Store, documents.Members(body, "caCertificateRefs"))
}

// completePersistence sets the name of a persistence profile to its type by default. It refuses a type that the
// gateway's feature set lacks.
func completePersistence(assume *cloud.Assumptions, g *store.EdgeGateway, body map[string]any) error {
	profile, _ := body["persistenceProfile"].(map[string]any)
	if err := refusePremium(assume, g, "persistence", store.Text(profile, "type"), premiumPersistence); err != nil {
		return err
	}
	if profile != nil && store.Text(profile, "type") != "" && store.Text(profile, "name") == "" {
		profile["name"] = store.Text(profile, "type")
	}
	return nil
}

// checkPoolSizes refuses a pool that exceeds the limits of VMware's OpenAPI document.
func checkPoolSizes(body map[string]any) error {
	for field, limit := range map[string]int{"members": 100, "caCertificateRefs": 100, "domainNames": 10} {
		if err := documents.AtMost(body, field, limit); err != nil {
			return err
		}
	}
	return documents.WithinBounds(body, documents.Bound{Field: "defaultPort", From: 1, To: 65535}, documents.Bound{Field: "gracefulTimeoutPeriod", From: -1, To: 7200})
}

// completeMemberGroup completes the reference to the firewall group whose addresses are the members of the pool.
func completeMemberGroup(session *store.Session, st *store.Store, body map[string]any) error {
	id := store.RefID(body, "memberGroupRef")
	if id == "" {
		body["memberGroupRef"] = nil
		return nil
	}
	ref, err := gateways.DocumentReference(session, st, firewalls.GroupPath, "FIREWALL_GROUP_VIEW", id)
	if err != nil {
		return err
	}
	if body["memberGroupRef"] = ref; len(PoolMembers(body)) > 0 {
		return store.BadRequest("A pool has either members or a member group.")
	}
	return nil
}

func completeMembers(body map[string]any) error {
	for _, m := range PoolMembers(body) {
		if _, err := netip.ParseAddr(store.Text(m, "ipAddress")); err != nil {
			return store.BadRequest("The IP address %q is invalid.", store.Text(m, "ipAddress"))
		}
		documents.Complete(m, map[string]any{"enabled": true, "ratio": 1})
		if err := documents.WithinBounds(m, documents.Bound{Field: "port", From: 1, To: 65535}, documents.Bound{Field: "ratio", From: 1, To: 20}); err != nil {
			return err
		}
	}
	return nil
}

// PoolMembers returns the members of a pool as objects.
func PoolMembers(body map[string]any) []map[string]any {
	var out []map[string]any
	list, _ := body["members"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// enabledMembers returns the number of enabled members of a pool, and the number of all members.
func (lb LoadBalancing) enabledMembers(d *store.Object) (on, all int) {
	if g := lb.cloud.Store.Documents.Find(firewalls.GroupPath, store.RefID(d.Body, "memberGroupRef")); g != nil {
		n := len(firewalls.SetAddresses(g))
		return n, n
	}
	for _, m := range PoolMembers(d.Body) {
		all++
		if documents.Enabled(m) {
			on++
		}
	}
	return on, all
}

// UpMembers returns the number of members that respond. Without probes, all enabled members are up.
func (lb LoadBalancing) UpMembers(d *store.Object) int {
	on, _ := lb.enabledMembers(d)
	probed := lb.cloud.Probed[d.ID()]
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

// MemberPort returns the port of a member. It defaults to the default port of the pool.
func MemberPort(pool, member map[string]any) uint16 {
	return uint16(cmp.Or(documents.Number(member["port"]), documents.Number(pool["defaultPort"]))) //nolint:gosec // within its bounds
}

// MemberHealth returns the health of one member of a pool. The parameter health is the health of the pool.
func (lb LoadBalancing) MemberHealth(d *store.Object, m map[string]any, health string) string {
	address, _ := netip.ParseAddr(store.Text(m, "ipAddress"))
	up, known := lb.cloud.Probed[d.ID()][netip.AddrPortFrom(address, MemberPort(d.Body, m))]
	switch {
	case health != "UP" || !known || up:
		return health
	default:
		return "DOWN"
	}
}

// ServicesOfPool returns the virtual services that use a pool.
func ServicesOfPool(ds store.Objects, pool string) []*store.Object {
	var out []*store.Object
	for _, d := range ds[documents.ServicePath] {
		if store.RefID(d.Body, "loadBalancerPoolRef") == pool {
			out = append(out, d)
		}
	}
	return out
}

// Health returns the health of a pool or virtual service with a number of members that are up. The health is pending
// for some time after a change of the object.
func (lb LoadBalancing) Health(d *store.Object, members int) string {
	switch {
	case d.Since.IsZero() || lb.cloud.Clock.Now().Sub(d.Since) < lb.cloud.Profile.Scaled(cloud.DurationHealth):
		return documents.StatePending
	case !documents.Enabled(d.Body):
		return "DISABLED"
	case members == 0:
		return "DOWN"
	}
	return "UP"
}

func showPool(r *api.Request, d *store.Object, out map[string]any) {
	on, all := BalancingOf(r.Cloud).enabledMembers(d)
	up := BalancingOf(r.Cloud).UpMembers(d)
	health := BalancingOf(r.Cloud).Health(d, up)
	if health != "UP" {
		up = 0
	}
	refs := []any{}
	for _, vs := range ServicesOfPool(r.Cloud.Store.Documents, d.ID()) {
		refs = append(refs, map[string]any{"name": store.Text(vs.Body, "name"), "id": vs.ID()})
	}
	if len(refs) == 0 && health == "UP" {
		health = "UNAVAILABLE"
		up = 0 // members of a pool without virtual services are not probed
	}
	message := healthMessages[health]
	if len(refs) == 0 {
		message = "The pool is unassigned."
	}
	out["status"] = BalancingOf(r.Cloud).realization(d)
	out["healthStatus"] = health
	out["healthMessage"] = message
	out["memberCount"] = all
	out["enabledMemberCount"] = on
	out["upMemberCount"] = up
	out["virtualServiceRefs"] = refs
	out["healthMonitors"] = shownMonitors(r, d.Body)
	var shown []any
	for _, m := range PoolMembers(d.Body) {
		shown = append(shown, memberJSON(m, BalancingOf(r.Cloud).MemberHealth(d, m, health)))
	}
	out["members"] = shown
}

var healthMessages = map[string]string{
	"UP":                   "The health status is up.",
	"DOWN":                 "No member is up.",
	"DISABLED":             "It is disabled.",
	documents.StatePending: "The health status is not known yet.",
	"UNAVAILABLE":          "The health status is not available.",
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
	if !documents.Enabled(m) {
		out["healthStatus"] = "DISABLED"
	}
	return out
}

func checkPoolUnused(s *cloud.Cloud, d *store.Object) error {
	for _, vs := range ServicesOfPool(s.Store.Documents, d.ID()) {
		return documents.InUse("load balancer pool", store.Text(d.Body, "name"), "virtual service "+store.Text(vs.Body, "name"))
	}
	return nil
}

// poolSummary returns a pool as lists show it.
func poolSummary(r *api.Request, d *store.Object) map[string]any {
	full := poolCollection().Shown(r, d)
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
	if g := r.Cloud.Store.Documents.Find(firewalls.GroupPath, store.RefID(d.Body, "memberGroupRef")); g != nil {
		out["memberGroupType"] = g.Body["typeValue"]
	}
	if refs, _ := out["virtualServiceRefs"].([]any); len(refs) > maxSummaryRefs {
		out["virtualServiceRefs"] = refs[:maxSummaryRefs]
	}
	r.Newer("37.0", out, "memberSslEnabled")
	r.Newer("37.0", out, "memberGroupType")
	return out
}

// maxSummaryRefs is the maximum number of virtual services in the summary of a pool.
const maxSummaryRefs = 10
