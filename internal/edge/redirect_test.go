// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const policyDocument = "1.0.0/loadBalancer/virtualServices/{service}/httpPolicy/requestRules"

// redirected returns a load balancer of an HTTP port that redirects to a port of HTTPS.
func redirected(port int) lb.Desired {
	d := desired(service("c1", "web"), 80)
	d.Listeners[0].Application = lb.HTTP
	d.Listeners[0].Rules.Redirect = port
	return d
}

// rules returns the HTTP request rules of all virtual services.
func (w *fixture) rules() []map[string]any { return w.rulesIn(policyDocument) }

// rulesIn returns the HTTP rules of all virtual services in a list.
func (w *fixture) rulesIn(list string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, doc := range w.sim.State().Documents {
		var body struct{ Values []map[string]any }
		if doc.Path == list {
			w.Expect(json.Unmarshal(doc.Body, &body)).To(Succeed())
			out = append(out, body.Values...)
		}
	}
	return out
}

// redirectTo matches the rule that redirects to a port of HTTPS.
func redirectTo(port float64) any {
	return And(HaveKeyWithValue("active", true), HaveKeyWithValue("matchCriteria", map[string]any{"protocol": "HTTP"}),
		HaveKeyWithValue("redirectAction", And(HaveKeyWithValue("protocol", "HTTPS"), HaveKeyWithValue("port", port),
			HaveKeyWithValue("statusCode", 301.0), HaveKeyWithValue("keepQuery", true))))
}

// TestTheRedirectOfAVirtualService follows a virtual service from its creation with a redirect to its deletion.
func TestTheRedirectOfAVirtualService(t *testing.T) {
	w, now := newTimedFixture(t)
	d := redirected(443)
	w.converge(&d)
	w.Expect(w.rules()).To(ConsistOf(redirectTo(443)))
	w.calls()
	now.Advance(31 * time.Second)
	w.converge(&d)
	_, writes, calls := w.calls()
	w.Expect(writes).To(BeZero(), "%v", calls)

	d.Listeners[0].Rules.Redirect = 8443
	w.converge(&d)
	w.Expect(w.rules()).To(ConsistOf(redirectTo(8443)))

	theirs := map[string]any{"name": "theirs", "active": true}
	w.editRules(func(values []any) []any { return append(values, theirs) })
	d.Listeners[0].Rules.Redirect = 443
	w.converge(&d)
	w.Expect(w.rules()).To(HaveExactElements(redirectTo(443), Equal(theirs)))

	for name, edit := range map[string]func([]any) []any{
		"removed":  func(values []any) []any { return values[1:] },
		"inactive": func(values []any) []any { values[0].(map[string]any)["active"] = false; return values },
		"another port": func(values []any) []any {
			values[0].(map[string]any)["redirectAction"].(map[string]any)["port"] = 1.0
			return values
		},
	} {
		now.Advance(time.Minute)
		w.converge(&d)
		w.editRules(edit)
		for range 4 { // a pool, a set and a virtual service, one each minute
			now.Advance(time.Minute)
			w.converge(&d)
		}
		w.Expect(w.rules()).To(HaveExactElements(redirectTo(443), Equal(theirs)), name)
	}

	d.Listeners[0].Rules.Redirect = 0
	w.converge(&d)
	w.Expect(w.rules()).To(ConsistOf(theirs))

	d.Listeners[0].Rules.Redirect = 443
	w.converge(&d)
	d.Listeners[0].Rules.Redirect = 0
	d.Listeners[0].Application = lb.L4
	w.converge(&d)
	w.Expect(w.rules()).To(ConsistOf(theirs))
	w.remove(d)
	w.Expect(w.documents("1.0.0/loadBalancer/virtualServices")).To(BeEmpty())
	w.Expect(w.rules()).To(BeEmpty())
}

// editRules changes the HTTP request rules by hand.
func (w *fixture) editRules(edit func([]any) []any) {
	w.t.Helper()
	w.sim.Edit(func(e *vcdsim.Editor) {
		w.Expect(e.Document("", func(body map[string]any) { // the only setting, which has no ID
			values, _ := body["values"].([]any)
			body["values"] = edit(values)
		})).To(BeTrue())
	})
}

func TestARedirectSurvivesACrash(t *testing.T) {
	for _, operation := range []string{
		"PUT /cloudapi/1.0.0/loadBalancer/virtualServices/httpPolicy/requestRules", "PUT /cloudapi/1.0.0/loadBalancer/virtualServices",
	} {
		t.Run(operation, func(t *testing.T) {
			w, _ := newTimedFixture(t)
			stopsAt := func(d *lb.Desired) {
				w.sim.Faults().Add(vcdsim.Fault{Operation: operation, Status: http.StatusServiceUnavailable})
				_, _ = w.reach(d)
				w.restart()
				w.sim.Faults().Clear()
			}
			d := redirected(443)
			stopsAt(&d)
			d.Listeners[0].Rules.Redirect = 0 // the annotation is removed before the next attempt
			w.converge(&d)
			w.Expect(w.rules()).To(BeEmpty())

			d.Listeners[0].Rules.Redirect = 443
			stopsAt(&d)
			w.converge(&d)
			w.Expect(w.rules()).To(ConsistOf(redirectTo(443)))

			d.Listeners[0].Rules.Redirect = 0
			stopsAt(&d)
			w.converge(&d)
			w.Expect(w.rules()).To(BeEmpty())
		})
	}
}

func TestAVirtualServiceWithoutRedirectCostsNoRequestForRules(t *testing.T) {
	w, now := newTimedFixture(t)
	d := redirected(0)

	w.converge(&d)
	now.Advance(time.Minute)
	w.converge(&d)
	w.remove(d)

	_, _, calls := w.calls()
	for operation := range calls {
		w.Expect(operation).NotTo(ContainSubstring("httpPolicy"))
	}
}

func TestARedirectIsRefusedBeforeVCD105(t *testing.T) {
	w := newFixture(t, vcdsim.K8sTenant(), func(c *vcdsim.Config) { c.Version = vcdsim.Version104 })
	d := redirected(443)

	plan := w.converge(&d)

	w.Expect(plan.Refusals).To(ConsistOf(HaveField("Message", ContainSubstring("VCD 10.5 (API version 38.0)"))))
	_, writes, _ := w.calls()
	w.Expect(writes).To(BeZero())
	w.Expect(strings.Join(w.documents(poolsDocument), "")).To(BeEmpty())
}

const responseDocument = "1.0.0/loadBalancer/virtualServices/{service}/httpPolicy/responseRules"

// headerRule matches the rule with actions on headers.
func headerRule(protocol string, actions ...any) any {
	return And(HaveKeyWithValue("active", true), HaveKeyWithValue("matchCriteria", map[string]any{"protocol": protocol}),
		HaveKeyWithValue("headerActions", HaveExactElements(actions...)))
}

func headerAction(action, name, value string) any {
	return Equal(map[string]any{"action": action, "name": name, "value": value})
}

// TestTheHeadersOfAVirtualService follows a virtual service from its creation with header rules to their removal.
func TestTheHeadersOfAVirtualService(t *testing.T) {
	w, now := newTimedFixture(t)
	d := redirected(0)
	d.Listeners[0].Rules.RequestHeaders = "X-Env: prod: a\nX-Old:"
	w.converge(&d)
	request := headerRule("HTTP", headerAction("REMOVE", "X-Env", ""), headerAction("ADD", "X-Env", "prod: a"),
		headerAction("REMOVE", "X-Old", ""))
	response := headerRule("HTTP", headerAction("REMOVE", "Server", ""))
	w.Expect(w.rules()).To(ConsistOf(request))
	w.calls()
	for range 4 { // all objects are read again
		now.Advance(time.Minute)
		w.converge(&d)
	}
	_, writes, calls := w.calls()
	w.Expect(writes).To(BeZero(), "%v", calls)

	theirs := map[string]any{"name": "theirs", "active": true}
	w.editRules(func(values []any) []any {
		values[0].(map[string]any)["headerActions"] = []any{}
		return append(values, theirs)
	})
	for range 4 {
		now.Advance(time.Minute)
		w.converge(&d)
	}
	w.Expect(w.rules()).To(HaveExactElements(request, Equal(theirs)))

	d.Listeners[0].Rules.ResponseHeaders = "Server:"
	w.converge(&d)
	w.Expect(w.rulesIn(responseDocument)).To(ConsistOf(response))
	d.Listeners[0].Rules.ResponseHeaders = ""
	w.converge(&d)
	w.Expect(w.rulesIn(responseDocument)).To(BeEmpty())
	w.Expect(w.rules()).To(HaveExactElements(request, Equal(theirs)))

	d.Listeners[0].Rules = lb.HTTPRules{Redirect: 443}
	w.converge(&d)
	w.Expect(w.rules()).To(HaveExactElements(redirectTo(443), Equal(theirs)))

	d.Listeners[0].Rules = lb.HTTPRules{}
	w.converge(&d)
	w.Expect(w.rules()).To(ConsistOf(theirs))
}
