// SPDX-License-Identifier: Apache-2.0

package loadbalancing

import (
	"cmp"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/cloud"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/documents"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
)

// monitorsSince is the API version that introduced health monitors as objects, that of VCD 10.6.
const monitorsSince = "39.0"

// monitorTypes are the types of health monitors. VCD defines a monitor of each type.
var monitorTypes = []string{"HTTP", "HTTPS", "TCP", "UDP", "PING"}

// monitorSettings maps the types of health monitors to the fields with the settings of only this type.
var monitorSettings = map[string]string{
	"HTTP":  "httpSettings",
	"HTTPS": "httpsSettings",
	"TCP":   "tcpSettings",
	"UDP":   "udpSettings",
}

func monitorCollection() *documents.Collection {
	return &documents.Collection{
		Path:     documents.MonitorPath,
		Kind:     "loadBalancerHealthMonitor",
		Hides:    true,
		Right:    "LOAD_BALANCER_HEALTH_MONITOR",
		Title:    "Load Balancer Health Monitor",
		Unique:   []string{"name"},
		Required: []string{"name"},
		Fixed:    []string{"type", "gatewayRef"},
		Defaults: map[string]any{
			"description":           "",
			"sendInterval":          10,
			"receiveTimeout":        4,
			"successfulChecksCount": 3,
			"failedChecksCount":     3,
			"httpSettings":          nil,
			"httpsSettings":         nil,
			"tcpSettings":           nil,
			"udpSettings":           nil,
		},
		Scope:   gatewayScope,
		Prepare: prepareMonitor,
		Free:    checkMonitorUnused,
	}
}

func prepareMonitor(r *api.Request, body map[string]any, old *store.Object) error {
	if _, err := loadBalancerGateway(r.Session, r.Cloud.Store, body, old); err != nil {
		return err
	}
	kind := store.Text(body, "type")
	if !slices.Contains(monitorTypes, kind) {
		return store.BadRequest("The health monitor type %q is invalid.", kind)
	}
	body["systemDefined"] = false
	err := documents.WithinBounds(body,
		documents.Bound{Field: "sendInterval", From: 1, To: 3600}, documents.Bound{Field: "receiveTimeout", From: 1, To: 2400},
		documents.Bound{Field: "successfulChecksCount", From: 1, To: 50}, documents.Bound{Field: "failedChecksCount", From: 1, To: 50},
	)
	if err != nil {
		return err
	}
	if documents.Number(body["receiveTimeout"]) >= documents.Number(body["sendInterval"]) {
		return store.BadRequest("The receive timeout of a health monitor must be less than its send interval.")
	}
	for other, field := range monitorSettings {
		if settings, ok := body[field].(map[string]any); ok && other != kind {
			return store.BadRequest("A health monitor of the type %s has no %s.", kind, field)
		} else if err := cmp.Or(
			documents.WithinBounds(settings, documents.Bound{Field: "port", From: 1, To: 65535}),
			documents.AtMost(settings, "expectedResponseCodes", 6),
		); err != nil {
			return err
		}
	}
	return nil
}

func checkMonitorUnused(s *cloud.Cloud, d *store.Object) error {
	for _, pool := range poolsWithMonitor(s.Store.Documents, d.ID()) {
		return documents.InUse("health monitor", store.Text(d.Body, "name"), "load balancer pool "+store.Text(pool.Body, "name"))
	}
	return nil
}

// poolsWithMonitor returns the pools that refer to a health monitor.
func poolsWithMonitor(ds store.Objects, monitor string) []*store.Object {
	var out []*store.Object
	for _, pool := range ds[documents.PoolPath] {
		if slices.ContainsFunc(poolMonitors(pool.Body), func(m map[string]any) bool { return store.Text(m, "id") == monitor }) {
			out = append(out, pool)
		}
	}
	return out
}

// poolMonitors returns the health monitors of a pool as objects.
func poolMonitors(body map[string]any) []map[string]any {
	var out []map[string]any
	list, _ := body["healthMonitors"].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// completeMonitors checks the health monitors of a pool. A monitor with the ID, or with the name, of one of the gateway
// is that monitor. Any other is the one that VCD defines for the type. The pool stores references only.
func completeMonitors(s *cloud.Cloud, gateway string, body map[string]any) error {
	for _, m := range poolMonitors(body) {
		kind := store.Text(m, "type")
		if !slices.Contains(monitorTypes, kind) {
			return store.BadRequest("The health monitor type %q is invalid.", kind)
		}
		own := monitorOf(s.Store.Documents, gateway, m)
		if own == nil && store.Text(m, "id") != "" && store.Text(m, "id") != systemMonitor(kind) {
			return store.Forbidden("LOAD_BALANCER_HEALTH_MONITOR_VIEW", store.Text(m, "id"))
		}
		clear(m)
		m["type"] = kind
		m["name"] = "System-" + kind
		m["systemDefined"] = true
		if own != nil {
			m["id"] = own.ID()
			m["type"] = own.Body["type"]
			m["name"] = own.Body["name"]
			m["systemDefined"] = false
		}
	}
	return nil
}

// monitorOf returns the health monitor of a gateway that an entry of a pool refers to, or nil.
func monitorOf(ds store.Objects, gateway string, entry map[string]any) *store.Object {
	for _, d := range ds.On(gateway, documents.MonitorPath) {
		if id := store.Text(entry, "id"); d.ID() == id || id == "" && store.Text(d.Body, "name") == store.Text(entry, "name") {
			return d
		}
	}
	return nil
}

// systemMonitor returns the URN of the health monitor that VCD defines for a type.
func systemMonitor(kind string) string { return store.URN("loadBalancerHealthMonitor", "system-"+kind) }

// shownMonitors returns the health monitors of a pool as responses show them: with ID and settings since API 39.0.
func shownMonitors(r *api.Request, pool map[string]any) any {
	if pool["healthMonitors"] == nil {
		return nil
	}
	out := []any{}
	for _, m := range poolMonitors(pool) {
		shown := map[string]any{
			"name":          m["name"],
			"type":          m["type"],
			"systemDefined": m["systemDefined"],
		}
		if r.Version >= monitorsSince {
			shown["id"] = systemMonitor(store.Text(m, "type"))
		}
		if own := r.Cloud.Store.Documents.Find(documents.MonitorPath, store.Text(m, "id")); own != nil && r.Version >= monitorsSince {
			shown = monitorCollection().Shown(r, own)
			delete(shown, "gatewayRef")
		}
		out = append(out, shown)
	}
	return out
}

// monitorSummary returns a health monitor as lists show it.
func monitorSummary(s *cloud.Cloud, d *store.Object) map[string]any {
	return map[string]any{
		"id":          d.ID(),
		"name":        d.Body["name"],
		"description": d.Body["description"],
		"type":        d.Body["type"],
		"poolCount":   len(poolsWithMonitor(s.Store.Documents, d.ID())),
		"scope":       "TENANT",
	}
}

// listMonitors lists the health monitors of a gateway, after those that VCD defines.
func listMonitors(r *api.Request) (*api.Response, error) {
	var out []any
	for _, kind := range monitorTypes {
		out = append(out, map[string]any{
			"id":          systemMonitor(kind),
			"name":        "System-" + kind,
			"description": "",
			"type":        kind,
			"poolCount":   0,
			"scope":       "SYSTEM",
		})
	}
	g, err := gatewayInPath(r)
	if err != nil {
		return nil, err
	}
	for _, d := range r.Cloud.Store.Documents.On(g.ID, documents.MonitorPath) {
		out = append(out, monitorSummary(r.Cloud, d))
	}
	return r.Page(out)
}

// monitorRoutes adds the list of health monitors.
func monitorRoutes(add api.AddRoute) {
	add("GET", "/cloudapi/1.0.0/edgeGateways/{gateway}/loadBalancer/healthMonitorSummaries", listMonitors, cloud.LatencyCloudAPI)
}
