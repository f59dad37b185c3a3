// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/wire"
)

const (
	monitorsPath = "/cloudapi/1.0.0/loadBalancer/healthMonitors"
	// monitorSummariesPath lists the health monitors of a gateway, under the path of the gateway.
	monitorSummariesPath = "/loadBalancer/healthMonitorSummaries"
)

// healthMonitorAPI is the first version with health monitors as objects, that of VCD 10.6.0.
var healthMonitorAPI = transport.Version{Major: 39, Minor: 0}

// A HealthMonitor is a health monitor with its own settings, which pools of its gateway may refer to.
type HealthMonitor struct {
	Ref

	Description string // contains the ownership marker
	Type        string // HTTP, HTTPS, TCP, UDP or PING
	// SystemDefined is true for the monitors of VCD itself and of the provider, which cannot be changed.
	SystemDefined bool

	// The following fields are not set in lists.

	HealthMonitorSettings
}

// HealthMonitorSettings are the settings of a health monitor. Zero values mean the defaults of the load balancer.
type HealthMonitorSettings struct {
	Interval  int // seconds between probes
	Timeout   int // seconds to wait for a response
	Successes int // successful probes until a member is up
	Failures  int // failed probes until a member is down
	// Request is the request line of the types HTTP and HTTPS, such as "GET / HTTP/1.0".
	Request string
	// Codes are the classes of status codes that the types HTTP and HTTPS accept, such as HTTP_2XX.
	Codes []string
}

// scopeTenant is the scope of health monitors that users of the organization created.
const scopeTenant = "TENANT"

type wireMonitor struct {
	wireObject
	wireType

	SystemDefined bool              `json:"systemDefined"`
	Scope         string            `json:"scope"` // in summaries
	Interval      int               `json:"sendInterval"`
	Timeout       int               `json:"receiveTimeout"`
	Successes     int               `json:"successfulChecksCount"`
	Failures      int               `json:"failedChecksCount"`
	HTTP          *wireHTTPSettings `json:"httpSettings"`
	HTTPS         *wireHTTPSettings `json:"httpsSettings"`
}

type wireHTTPSettings struct {
	Request string   `json:"requestHeader"`
	Codes   []string `json:"expectedResponseCodes"`
}

func (w *wireMonitor) monitor() HealthMonitor {
	m := HealthMonitor{
		Ref:           refOf(&w.Ref),
		Description:   w.Description,
		Type:          w.Type,
		SystemDefined: w.SystemDefined || w.Scope != "" && w.Scope != scopeTenant,
		HealthMonitorSettings: HealthMonitorSettings{
			Interval:  w.Interval,
			Timeout:   w.Timeout,
			Successes: w.Successes,
			Failures:  w.Failures,
		},
	}
	for _, settings := range []*wireHTTPSettings{w.HTTP, w.HTTPS} {
		if settings != nil {
			m.Request = settings.Request
			m.Codes = settings.Codes
		}
	}
	return m
}

// HealthMonitors lists the health monitors of a gateway, of all owners; see Features.HealthMonitors. It requires the
// right "Organization vDC Gateway: View Load Balancer".
func (b *Balancers) HealthMonitors(ctx context.Context, gateway string) ([]HealthMonitor, error) {
	l := onGateway(gateway, monitorSummariesPath, "health monitors", "name")
	return api.ListAs(ctx, b.client, l, (*wireMonitor).monitor)
}

// HealthMonitor reads a health monitor by its URN.
func (b *Balancers) HealthMonitor(ctx context.Context, id string) (HealthMonitor, error) {
	return api.Read(ctx, b.client, "health monitor", id, monitorPath(id), (*wireMonitor).monitor)
}

func monitorPath(id string) string { return monitorsPath + "/" + url.PathEscape(id) }

// CreateHealthMonitor starts the creation of a health monitor on a gateway. The owner of the task is the new monitor.
// Like all changes, it requires the right "Organization vDC Gateway: Configure Load Balancer".
func (b *Balancers) CreateHealthMonitor(ctx context.Context, gateway string, m HealthMonitor) (Task, error) {
	body := wire.Object{}
	body.Set("name", m.Name)
	body.Set("description", m.Description)
	body.Set("type", m.Type)
	body.Set("systemDefined", false)
	body.Set("gatewayRef", wire.RefTo(gateway))
	setSettings(body, m.HealthMonitorSettings)
	return startCreating(ctx, b.client, "health monitor", m.Name, monitorsPath, body)
}

// UpdateHealthMonitor reads a health monitor, replaces its description and settings, and starts writing it back. Its
// type cannot be changed. If nothing changes, UpdateHealthMonitor writes nothing and returns a succeeded task.
func (b *Balancers) UpdateHealthMonitor(ctx context.Context, m HealthMonitor) (Task, error) {
	return startChanging(ctx, b.client, "health monitor", m.ID, monitorPath(m.ID), func(o wire.Object) (bool, error) {
		return wire.Either(o.Set("description", m.Description), setSettings(o, m.HealthMonitorSettings)), nil
	})
}

// DeleteHealthMonitor starts the deletion of a health monitor, which must not be in use by a pool.
func (b *Balancers) DeleteHealthMonitor(ctx context.Context, id string) (Task, error) {
	return startDeleting(ctx, b.client, "health monitor", id, monitorPath(id))
}

// setSettings sets all settings of a monitor that are not zero. It keeps the others.
func setSettings(o wire.Object, s HealthMonitorSettings) bool {
	changed := false
	for field, value := range map[string]int{
		"sendInterval":          s.Interval,
		"receiveTimeout":        s.Timeout,
		"successfulChecksCount": s.Successes,
		"failedChecksCount":     s.Failures,
	} {
		changed = value != 0 && o.Set(field, value) || changed
	}
	field, isHTTP := httpSettings[o.Text("type")]
	if !isHTTP || s.Request == "" && len(s.Codes) == 0 {
		return changed
	}
	now := wire.Object{}
	_ = json.Unmarshal(o[field], &now) // may be null
	if now == nil {
		now = wire.Object{}
	}
	inner := s.Request != "" && now.Set("requestHeader", s.Request)
	inner = len(s.Codes) > 0 && now.Set("expectedResponseCodes", slices.Sorted(slices.Values(s.Codes))) || inner
	return inner && o.Set(field, now) || changed
}

// httpSettings are the fields with the settings of HTTP requests, by type of the monitor.
var httpSettings = map[string]string{
	"HTTP":  "httpSettings",
	"HTTPS": "httpsSettings",
}
