// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// A HealthCheck contains the settings of a health monitor. Zero values mean the defaults. Only monitors of the types
// HTTP and HTTPS have a path and codes.
type HealthCheck struct {
	// Interval is the time between two probes, Timeout the time to wait for a response. Both are whole seconds.
	Interval, Timeout time.Duration
	// Successes and Failures are the numbers of consecutive probes after which a member is up or down.
	Successes, Failures int
	// Path is the path of the requested URL.
	Path string
	// Codes are the accepted classes of status codes, sorted and separated by commas, such as "2xx,3xx".
	Codes string
}

// A PoolCheck is the health monitor with its own settings of a pool. The zero value means that it has none.
type PoolCheck struct {
	HealthCheck

	Type Monitor
}

// Default settings of health monitors. They match those of the monitors that VCD defines.
const (
	defaultInterval = 10 * time.Second
	defaultTimeout  = 4 * time.Second
	defaultChecks   = 3
	defaultPath     = "/"
	defaultCodes    = "2xx,3xx"
)

// Bounds of the settings, as NSX Advanced Load Balancer defines them. A timeout must be shorter than the interval.
const (
	minInterval = 2 * time.Second
	maxInterval = time.Hour
	minTimeout  = time.Second
	maxTimeout  = 40 * time.Minute
	maxChecks   = 50
	maxPath     = 1024
)

// statusClasses are the classes of status codes, sorted. VCD has no single codes.
var statusClasses = []string{"1xx", "2xx", "3xx", "4xx", "5xx"}

// StatusClasses returns the sorted classes of status codes that health checks can accept.
func StatusClasses() []string { return slices.Clone(statusClasses) }

// isHTTP reports whether a monitor sends HTTP requests.
func (m Monitor) isHTTP() bool { return m == MonitorHTTP || m == MonitorHTTPS }

// check returns the health monitor with its own settings for the pool of the listener.
func (l Listener) check() PoolCheck {
	monitors := l.monitors()
	if l.Check == (HealthCheck{}) || len(monitors) == 0 {
		return PoolCheck{}
	}
	return PoolCheck{
		HealthCheck: l.Check.complete(monitors[0]),
		Type:        monitors[0],
	}
}

// complete returns the settings with the defaults for a type of monitor.
func (c HealthCheck) complete(m Monitor) HealthCheck {
	if c.Interval == 0 {
		c.Interval = max(defaultInterval, c.Timeout+time.Second)
	}
	if c.Timeout == 0 {
		c.Timeout = min(defaultTimeout, c.Interval-time.Second)
	}
	if c.Successes == 0 {
		c.Successes = defaultChecks
	}
	if c.Failures == 0 {
		c.Failures = defaultChecks
	}
	if m.isHTTP() && c.Path == "" {
		c.Path = defaultPath
	}
	if m.isHTTP() && c.Codes == "" {
		c.Codes = defaultCodes
	}
	return c
}

// validateMonitor refuses a health monitor that connects to a port that only receives UDP: all members would be down.
func validateMonitor(in input, l Listener) outcome {
	out := in.outcome()
	if l.Protocol == loadbalancer.UDP && (l.Monitor == MonitorTCP || l.Monitor.isHTTP()) {
		out.refuse(Unsupported, "port %d is UDP, which the health monitor %s cannot check: set the health monitor to udp, ping or none, remove it to use udp for UDP and tcp for TCP, or move the port to a Service of its own", l.Port, strings.ToLower(string(l.Monitor)))
	}
	return out
}

// validateCheck refuses settings of a health monitor that are impossible.
func validateCheck(in input, l Listener) outcome {
	out := in.outcome()
	if l.Check == (HealthCheck{}) {
		return out
	}
	monitors := l.monitors()
	switch {
	case len(monitors) == 0:
		out.refuse(Unsupported, "port %d has settings of health checks but no health monitor: set the health monitor to another value than none, or remove the settings", l.Port)
		return out
	case !in.can.HealthMonitors:
		out.refuse(Unsupported, "port %d has settings of health checks, which require VCD 10.6 (API version 39.0): remove the annotations of health checks except for the health monitor, or ask the provider for an upgrade", l.Port)
		return out
	case (l.Check.Path != "" || l.Check.Codes != "") && !monitors[0].isHTTP():
		out.refuse(Unsupported, "port %d has a path or status codes for health checks, but the health monitor %s: set the health monitor to http or https", l.Port, strings.ToLower(string(monitors[0])))
	}
	out.add(validateBounds(in, l.Port, l.Check.complete(monitors[0])))
	return out
}

// validateBounds refuses settings of a health monitor that are out of bounds.
func validateBounds(in input, port int, c HealthCheck) outcome {
	out := in.outcome()
	if c.Interval < minInterval || c.Interval > maxInterval {
		out.refuse(InvalidHealthCheck, "the interval of health checks of port %d is %s: use %s to %s", port, c.Interval,
			minInterval, maxInterval)
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout || c.Timeout >= c.Interval {
		out.refuse(InvalidHealthCheck, "the timeout of health checks of port %d is %s: use %s to %s, and less than the interval of %s", port, c.Timeout, minTimeout, maxTimeout, c.Interval)
	}
	if c.Successes < 1 || c.Successes > maxChecks {
		out.refuse(InvalidHealthCheck, "port %d needs %d successful health checks: use 1 to %d", port, c.Successes, maxChecks)
	}
	if c.Failures < 1 || c.Failures > maxChecks {
		out.refuse(InvalidHealthCheck, "port %d allows %d failed health checks: use 1 to %d", port, c.Failures, maxChecks)
	}
	if c.Path != "" && !isPath(c.Path) {
		out.refuse(InvalidHealthCheck, "the path of health checks of port %d is invalid: begin it with a slash, without spaces, and with at most %d characters of ASCII", port, maxPath)
	}
	if c.Codes != "" && !areClasses(c.Codes) {
		out.refuse(InvalidHealthCheck, "the status codes %q of health checks of port %d are invalid: use classes of %s",
			c.Codes, port, strings.Join(statusClasses, ", "))
	}
	return out
}

// areClasses reports whether a text is a list of classes of status codes.
func areClasses(codes string) bool {
	return !slices.ContainsFunc(strings.Split(codes, ","), func(c string) bool { return !slices.Contains(statusClasses, c) })
}

// isPath reports whether a path can be part of a request line.
func isPath(path string) bool {
	return strings.HasPrefix(path, "/") && len(path) <= maxPath &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' })
}

// MonitorName returns the name of the health monitor with its own settings that belongs to a pool. It is unique on the
// gateway, as the name of the pool is.
func MonitorName(pool string) string { return "hm-" + pool }

// MonitorDescription returns the description of the health monitor of a pool, with the ownership marker. It returns an
// empty description if the pool has no marker.
func MonitorDescription(pool string) string {
	m, ok := ParseMarker(pool)
	if !ok {
		return ""
	}
	return Marker{Owner: m.Owner, Listener: m.Listener}.String()
}

// pendingWrite is the hash in the marker of a virtual service while its rules are being written.
const pendingWrite = "pending"

// PendingRules returns the description of a virtual service whose rules are about to be written. It differs from the
// final description in the hash of the rules.
func PendingRules(final string) string {
	m, _ := ParseMarker(final)
	m.Wrote = pendingWrite
	return describe(final, m)
}

// Announced returns the description of a pool whose health monitor is about to be created. It has the marker of the
// final description, except for the hash of the content: until that is written, the pool is not complete.
func Announced(final string) string {
	m, _ := ParseMarker(final)
	m.Wrote = ""
	return describe(final, m)
}
