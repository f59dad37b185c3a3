// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// A pool with health checks of its own refers to a health monitor, an object of the gateway. The marker of the pool
// announces the monitor before it is created, and is removed after the monitor. So each monitor is found again after a
// crash, and only pools with this marker cost requests for monitors.

// ensureMonitor creates or updates the health monitor of a pool, and returns it.
func ensureMonitor(ctx context.Context, w writer, step lb.Step) (vcd.HealthMonitor, error) {
	want := monitorFor(step)
	have, owned, err := findMonitor(ctx, w, step, w.gateway.details.monitor(step.ID))
	if err == nil && have.ID != "" && !owned {
		err = failed(loadbalancer.ErrRefused, "the health monitor %s is not marked as one of the pool %s: rename or remove it",
			have.Name, step.Name)
	}
	if err != nil {
		return vcd.HealthMonitor{}, err
	}
	if have.ID != "" && have.Type != want.Type { // a monitor keeps its type
		if err := dropMonitor(ctx, w, step, have); err != nil {
			return vcd.HealthMonitor{}, err
		}
		have.ID = ""
	}
	if have.ID == "" {
		task, err := w.session.Balancers.CreateHealthMonitor(ctx, w.gateway.id, want)
		created, err := w.wait(ctx, task, err)
		if err != nil {
			return vcd.HealthMonitor{}, err
		}
		if have, owned, err = findMonitor(ctx, w, step, created.Owner); err == nil && !owned {
			err = failed(loadbalancer.ErrUnknown, "VCD does not list the health monitor %s, which it created", want.Name)
		}
		return have, err
	}
	want.ID = have.ID
	task, err := w.session.Balancers.UpdateHealthMonitor(ctx, want)
	_, err = w.wait(ctx, task, err)
	return want, err
}

// removeMonitor removes the health monitor of a pool, first from the pool, and then itself.
func removeMonitor(ctx context.Context, w writer, step lb.Step) error {
	have, owned, err := findMonitor(ctx, w, step, w.gateway.details.monitor(step.ID))
	if err != nil || !owned {
		return err
	}
	return dropMonitor(ctx, w, step, have)
}

func dropMonitor(ctx context.Context, w writer, step lb.Step, have vcd.HealthMonitor) error {
	w.gateway.details.forget(step.ID)
	w.gateway.details.keepMonitor(step.ID, "")
	task, err := w.session.Balancers.UpdatePool(ctx, step.ID, vcd.PoolChange{NoCheck: &have.ID})
	if _, err = w.wait(ctx, task, err); err != nil {
		return err
	}
	return deleteMonitor(ctx, w, have.ID)
}

func deleteMonitor(ctx context.Context, w writer, id string) error {
	task, err := w.session.Balancers.DeleteHealthMonitor(ctx, id)
	_, err = w.wait(ctx, task, err)
	return err
}

// findMonitor finds the health monitor of a pool by its name, and reports whether it belongs to the owner of the pool.
// The result is zero if there is none. findMonitor reads the monitor with the given URN, and lists the monitors of the
// gateway only if that is empty or not the monitor of the pool.
func findMonitor(ctx context.Context, w writer, step lb.Step, id string) (found vcd.HealthMonitor, owned bool, err error) {
	name := lb.MonitorName(step.Name)
	if id != "" {
		found, err = w.session.Balancers.HealthMonitor(ctx, id)
	}
	if err != nil && !is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound}) {
		return vcd.HealthMonitor{}, false, err
	}
	if err != nil || found.Name != name {
		if found, err = listedMonitor(ctx, w, name); err != nil || found.ID == "" {
			return vcd.HealthMonitor{}, false, err
		}
	}
	return found, !found.SystemDefined && sameOwner(found.Description, poolDescription(w, step)), nil
}

// listedMonitor returns the health monitor of the gateway with a name. The result is zero if there is none.
func listedMonitor(ctx context.Context, w writer, name string) (vcd.HealthMonitor, error) {
	monitors, err := w.session.Balancers.HealthMonitors(ctx, w.gateway.id)
	if err != nil {
		return vcd.HealthMonitor{}, err
	}
	i := slices.IndexFunc(monitors, func(m vcd.HealthMonitor) bool { return m.Name == name })
	if i < 0 {
		return vcd.HealthMonitor{}, nil
	}
	return monitors[i], nil
}

// poolDescription returns the description of the pool of a step, with the ownership marker.
func poolDescription(w writer, step lb.Step) string {
	if step.Pool != nil {
		return step.Pool.Description
	}
	return knownPool(w, step.ID).Description
}

// knownPool returns a pool as the cached list shows it. It is zero if the list does not contain the pool.
func knownPool(w writer, id string) lb.Pool {
	for _, p := range w.gateway.pools.known() {
		if p.ID == id {
			return p
		}
	}
	return lb.Pool{}
}

// isChecked reports whether a pool has, or may have, a health monitor with its own settings.
func isChecked(p lb.Pool) bool {
	m, _ := lb.ParseMarker(p.Description)
	return m.Checked
}

// monitorFor returns the health monitor that the pool of a step should have.
func monitorFor(step lb.Step) vcd.HealthMonitor {
	check := step.Pool.Check
	m := vcd.HealthMonitor{
		Ref:         vcd.Ref{Name: lb.MonitorName(step.Name)},
		Description: lb.MonitorDescription(step.Pool.Description),
		Type:        string(check.Type),
		HealthMonitorSettings: vcd.HealthMonitorSettings{
			Interval:  int(check.Interval / time.Second),
			Timeout:   int(check.Timeout / time.Second),
			Successes: check.Successes,
			Failures:  check.Failures,
		},
	}
	if check.Path != "" {
		m.Request = requestMethod + check.Path + requestVersion
		for class := range strings.SplitSeq(check.Codes, ",") {
			m.Codes = append(m.Codes, codePrefix+strings.ToUpper(class))
		}
	}
	return m
}

// Parts of the request line, and of the names of classes of status codes, of NSX Advanced Load Balancer.
const (
	requestMethod  = "GET "
	requestVersion = " HTTP/1.0"
	codePrefix     = "HTTP_"
)

// checkOf converts a health monitor to the check of its pool. A request or code that this program does not write
// differs from all that it writes.
func checkOf(m vcd.HealthMonitor) lb.PoolCheck {
	out := lb.PoolCheck{
		Type: lb.Monitor(m.Type),
		HealthCheck: lb.HealthCheck{
			Interval:  time.Duration(m.Interval) * time.Second,
			Timeout:   time.Duration(m.Timeout) * time.Second,
			Successes: m.Successes,
			Failures:  m.Failures,
			Path:      m.Request,
		},
	}
	path, isGet := strings.CutPrefix(m.Request, requestMethod)
	if path, hasVersion := strings.CutSuffix(path, requestVersion); isGet && hasVersion {
		out.Path = path
	}
	var codes []string
	for _, code := range m.Codes {
		codes = append(codes, strings.ToLower(strings.TrimPrefix(code, codePrefix)))
	}
	slices.Sort(codes)
	out.Codes = strings.Join(codes, ",")
	return out
}

// ownMonitor returns the URN of the health monitor of a pool, if its marker announces one.
func ownMonitor(p vcd.ServerPool) string {
	if m, _ := lb.ParseMarker(p.Description); !m.Checked {
		return ""
	}
	i := slices.IndexFunc(p.Checks, func(r vcd.Ref) bool { return r.Name == lb.MonitorName(p.Name) })
	if i < 0 {
		return ""
	}
	return p.Checks[i].ID
}

// readCheck reads the health monitor of a pool. A monitor that is gone counts as none.
func readCheck(ctx context.Context, s *vcd.Session, monitor string) (lb.PoolCheck, error) {
	if monitor == "" {
		return lb.PoolCheck{}, nil
	}
	m, err := s.Balancers.HealthMonitor(ctx, monitor)
	if is(err, []error{vcd.ErrForbidden, vcd.ErrNotFound}) {
		return lb.PoolCheck{}, nil
	}
	return checkOf(m), err
}
