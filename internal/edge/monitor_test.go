// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/edge"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const monitorsDocument = "1.0.0/loadBalancer/healthMonitors"

// monitorOperations are the operations on health monitors.
const monitorOperations = "healthMonitor"

// checked returns a load balancer of a port with health checks of its own.
func checked(o loadbalancer.Owner, check lb.HealthCheck) lb.Desired {
	d := desired(o, 80)
	d.Listeners[0].Monitor = lb.MonitorHTTP
	d.Listeners[0].Check = check
	return d
}

// healthMonitors returns the health monitors with their own settings, without IDs and references.
func (w *fixture) healthMonitors() []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, doc := range w.sim.State().Documents {
		if doc.Path != monitorsDocument {
			continue
		}
		body := map[string]any{}
		w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
		maps.DeleteFunc(body, func(k string, v any) bool { return v == nil || k == "id" || k == "gatewayRef" || k == "systemDefined" })
		out = append(out, body)
	}
	return out
}

// poolMonitors returns the names of the health monitors of the only pool.
func (w *fixture) poolMonitors() []string {
	w.t.Helper()
	var names []string
	w.editManually(w.documents(poolsDocument)[0], func(body map[string]any) {
		list, _ := body["healthMonitors"].([]any)
		for _, m := range list {
			names = append(names, m.(map[string]any)["name"].(string))
		}
	})
	return names
}

// TestHealthChecksOfAPool follows a pool from its creation with health checks of its own to its deletion.
func TestHealthChecksOfAPool(t *testing.T) {
	w, now := newTimedFixture(t)
	d := checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second, Timeout: 2 * time.Second, Path: "/healthz", Codes: "2xx"})
	w.converge(&d)
	pool := w.sim.State().Documents
	i := slices.IndexFunc(pool, func(x vcdsim.Document) bool { return x.Path == poolsDocument })
	var named struct{ Name, Description string }
	w.Expect(json.Unmarshal(pool[i].Body, &named)).To(Succeed())
	want := map[string]any{
		"name":                  lb.MonitorName(named.Name),
		"description":           lb.MonitorDescription(named.Description),
		"type":                  "HTTP",
		"sendInterval":          5.0,
		"receiveTimeout":        2.0,
		"successfulChecksCount": 3.0,
		"failedChecksCount":     3.0,
		"httpSettings": map[string]any{
			"requestHeader":         "GET /healthz HTTP/1.0",
			"expectedResponseCodes": []any{"HTTP_2XX"},
		},
	}
	w.Expect(w.healthMonitors()).To(ConsistOf(want))
	w.Expect(w.poolMonitors()).To(ConsistOf(lb.MonitorName(named.Name)))

	w.calls()
	now.Advance(31 * time.Second)
	w.converge(&d)
	_, writes, calls := w.calls()
	w.Expect(writes).To(BeZero(), "%v", calls)

	d.Listeners[0].Check.Interval = 20 * time.Second
	w.converge(&d)
	_, _, calls = w.calls()
	for operation := range calls {
		w.Expect(operation).NotTo(ContainSubstring("healthMonitorSummaries"), "the reference in the pool is sufficient")
	}
	want["sendInterval"] = 20.0
	w.Expect(w.healthMonitors()).To(ConsistOf(want))

	d.Listeners[0].Monitor = lb.MonitorTCP
	d.Listeners[0].Check = lb.HealthCheck{Failures: 1}
	w.converge(&d)
	delete(want, "httpSettings")
	maps.Copy(want, map[string]any{"type": "TCP", "sendInterval": 10.0, "receiveTimeout": 4.0, "failedChecksCount": 1.0})
	w.Expect(w.healthMonitors()).To(ConsistOf(want))
	w.Expect(w.poolMonitors()).To(ConsistOf(lb.MonitorName(named.Name)))

	d.Listeners[0].Check = lb.HealthCheck{}
	w.converge(&d)
	w.Expect(w.healthMonitors()).To(BeEmpty())
	w.Expect(w.poolMonitors()).To(ConsistOf("System-TCP"))

	d.Listeners[0].Check = lb.HealthCheck{Failures: 2}
	w.converge(&d)
	w.Expect(w.healthMonitors()).To(HaveLen(1))
	w.remove(d)
	w.Expect(w.healthMonitors()).To(BeEmpty())
	w.Expect(w.documents(poolsDocument)).To(BeEmpty())
}

func TestDriftOfHealthChecksIsRepaired(t *testing.T) {
	for name, edit := range map[string]func(w *fixture){
		"settings": func(w *fixture) {
			w.editManually(w.documents(monitorsDocument)[0], func(body map[string]any) { body["sendInterval"] = 60.0 })
		},
		"the path": func(w *fixture) {
			w.editManually(w.documents(monitorsDocument)[0], func(body map[string]any) {
				body["httpSettings"].(map[string]any)["requestHeader"] = "HEAD / HTTP/1.1"
			})
		},
		"another monitor in its place": func(w *fixture) {
			w.editManually(w.documents(poolsDocument)[0], func(body map[string]any) {
				body["healthMonitors"] = []any{map[string]any{"type": "PING", "name": "System-PING", "systemDefined": true}}
			})
		},
		"the monitor is gone": func(w *fixture) {
			w.editManually(w.documents(poolsDocument)[0], func(body map[string]any) { body["healthMonitors"] = []any{} })
			monitor := w.documents(monitorsDocument)[0]
			w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteDocument(monitor) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := newTimedFixture(t)
			d := checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second})
			w.converge(&d)
			before := w.healthMonitors()
			ours := w.poolMonitors()
			now.Advance(time.Minute)
			w.converge(&d)
			edit(w)

			for range 3 { // a pool and a set, one each minute
				now.Advance(time.Minute)
				w.converge(&d)
			}

			w.Expect(w.healthMonitors()).To(Equal(before))
			w.Expect(w.poolMonitors()).To(ContainElements(ours))
		})
	}
}

// TestHealthChecksSurviveACrash stops before each write of a creation, a change and a removal.
func TestHealthChecksSurviveACrash(t *testing.T) {
	for _, operation := range []string{
		"POST /cloudapi/1.0.0/loadBalancer/pools", "PUT /cloudapi/1.0.0/loadBalancer/pools",
		"POST /cloudapi/1.0.0/loadBalancer/healthMonitors", "PUT /cloudapi/1.0.0/loadBalancer/healthMonitors",
		"DELETE /cloudapi/1.0.0/loadBalancer/healthMonitors", "DELETE /cloudapi/1.0.0/loadBalancer/pools",
	} {
		t.Run(operation, func(t *testing.T) {
			w, _ := newTimedFixture(t)
			stopsAt := func(d *lb.Desired) {
				w.t.Helper()
				w.sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: http.StatusServiceUnavailable})
				_, _ = w.reach(d)
				w.restart()
				w.sim.Faults().Clear()
			}
			d := checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second})
			stopsAt(&d)
			gone := absent(d)
			w.converge(&gone) // the Service is deleted before the next attempt
			w.Expect(w.healthMonitors()).To(BeEmpty())

			d = checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second})
			w.converge(&d)
			d.Listeners[0].Check.Interval = 7 * time.Second
			stopsAt(&d)
			w.converge(&d)
			w.Expect(w.healthMonitors()).To(ConsistOf(HaveKeyWithValue("sendInterval", 7.0)))

			d.Listeners[0].Check = lb.HealthCheck{}
			stopsAt(&d)
			w.converge(&d)
			w.Expect(w.healthMonitors()).To(BeEmpty())

			d.Listeners[0].Check.Failures = 5
			w.converge(&d)
			gone = absent(d)
			stopsAt(&gone)
			w.converge(&gone)
			w.Expect(w.healthMonitors()).To(BeEmpty())
			w.Expect(w.documents(poolsDocument)).To(BeEmpty())
		})
	}
}

func TestAPoolWithoutHealthChecksOfItsOwnCostsNoRequestForMonitors(t *testing.T) {
	w, now := newTimedFixture(t)
	d := desired(service("c1", "web"), 80)

	w.converge(&d)
	now.Advance(time.Minute)
	w.converge(&d)
	w.remove(d)
	w.Expect(w.driver.Purge(t.Context(), w.gateway, edge.PurgeOptions{Cluster: "c1"})).To(Succeed())

	_, _, calls := w.calls()
	for operation := range calls {
		w.Expect(operation).NotTo(ContainSubstring(monitorOperations))
	}
}

func TestAHealthMonitorOfOthersIsNeverWritten(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant())
	d := checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second})
	org := w.sim.State().Model.Orgs[1].ID
	plan, err := w.plan(&d)
	w.Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(plan.Steps, func(s loadbalancer.Step) bool { return s.(lb.Step).Kind == lb.KindPool })
	theirs := map[string]any{
		"name":         lb.MonitorName(plan.Steps[i].(lb.Step).Name),
		"description":  "theirs",
		"type":         "HTTP",
		"sendInterval": 99.0,
	}
	var id string
	w.sim.Edit(func(e *vcdsim.Editor) {
		id = e.AddDocument(monitorsDocument, "loadBalancerHealthMonitor", org, w.gateway, maps.Clone(theirs))
	})

	_, err = w.reach(&d)

	w.Expect(errors.Is(err, loadbalancer.ErrRefused)).To(BeTrue(), "%v", err)
	w.Expect(err).To(MatchError(ContainSubstring("rename or remove it")))
	w.remove(d)
	w.Expect(w.documents(monitorsDocument)).To(ConsistOf(id))
	w.Expect(w.healthMonitors()).To(ConsistOf(theirs))
}

func TestAPurgeRemovesHealthMonitorsWithoutPools(t *testing.T) {
	w, now := newTimedFixture(t)
	for _, cluster := range []string{"c1", "c2"} {
		d := checked(service(cluster, "web"), lb.HealthCheck{Interval: 5 * time.Second})
		w.converge(&d)
	}
	pools := w.documents(poolsDocument)
	for _, id := range append(w.documents("1.0.0/loadBalancer/virtualServices"), pools...) {
		w.sim.Edit(func(e *vcdsim.Editor) { e.DeleteDocument(id) })
	}
	now.Advance(time.Hour)
	marked, _, err := w.driver.Marked(t.Context(), w.gateway)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(marked).To(ContainElement(And(HaveField("Kind", lb.KindMonitor), HaveField("Cluster", "c1"))))

	w.Expect(w.driver.Purge(t.Context(), w.gateway, edge.PurgeOptions{Cluster: "c1", Thorough: true})).To(Succeed())

	w.Expect(w.healthMonitors()).To(ConsistOf(HaveKeyWithValue("description", ContainSubstring("cluster=c2"))))
}

func TestHealthChecksAreRefusedBeforeVCD106(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant(), func(c *vcdsim.Config) { c.Version = vcdsim.Version105 })
	d := checked(service("c1", "web"), lb.HealthCheck{Interval: 5 * time.Second})

	plan := w.converge(&d)

	w.Expect(plan.Refusals).To(ConsistOf(And(HaveField("Reason", lb.Unsupported), HaveField("Message", And(
		ContainSubstring("VCD 10.6 (API version 39.0)"), ContainSubstring("remove the annotations"),
	)))))
	_, writes, _ := w.calls()
	w.Expect(writes).To(BeZero())
	d.Listeners[0].Check = lb.HealthCheck{}
	w.Expect(w.converge(&d).Done()).To(BeTrue())
	w.Expect(strings.Join(w.poolMonitors(), " ")).To(Equal("System-HTTP"))
}
