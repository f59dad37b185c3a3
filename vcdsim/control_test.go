// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestFaultRulesByTheControlAPI(t *testing.T) {
	c := start(t)
	added := c.call(http.MethodPost, "/_sim/faults",
		`{"operation": "GET /api/org", "delay": "1ms", "status": 503, "body": "html"}`)
	c.Expect(added.status).To(Equal(201))
	c.Expect(added.json).To(HaveKeyWithValue("id", 1.0))
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(503))
	c.Expect(string(c.get("/_sim/faults").body)).To(
		MatchJSON(`[{"id": 1, "operation": "GET /api/org", "delay": "1ms", "status": 503, "body": "html"}]`))
	c.Expect(c.call(http.MethodDelete, "/_sim/faults/1", "").status).To(Equal(204))
	c.Expect(c.call(http.MethodDelete, "/_sim/faults/1", "").status).To(Equal(404))
	for body, message := range map[string]string{
		`{"colour": 1}`:                 "unknown field",
		`{"operation": "GET /api/org"}`: "it has no effect",
		`<xml/>`:                        "invalid character",
	} {
		refused := c.call(http.MethodPost, "/_sim/faults", body)
		c.Expect(refused.status).To(Equal(400))
		c.Expect(refused.json["error"]).To(ContainSubstring(message))
	}
}

func TestCellsByTheControlAPI(t *testing.T) {
	c := start(t, manual, twoCells)
	cell := func(body string) answer { return c.call(http.MethodPost, "/_sim/cells/2", body) }
	c.Expect(cell(`{"do": "restart", "down": "1m"}`).json).To(HaveKeyWithValue("up", false))
	c.advance(time.Minute)
	c.Expect(cell(`{"do": "maintain"}`).json).To(And(HaveKeyWithValue("up", true),
		HaveKeyWithValue("maintenance", true)))
	c.Expect(cell(`{"do": "serve"}`).json).To(HaveKeyWithValue("maintenance", false))
	c.Expect(cell(`{"do": "upgrade", "version": "38.1"}`).json).To(HaveKeyWithValue("version", "38.1"))
	c.Expect(cell(`{"do": "crash"}`).json).To(And(HaveKeyWithValue("up", false), HaveKeyWithValue("inRotation", true)))
	c.Expect(cell(`{"do": "stop"}`).json).To(HaveKeyWithValue("inRotation", false), "the load balancer notices now")
	c.Expect(cell(`{"do": "start"}`).json).To(HaveKeyWithValue("up", true))
	c.Expect(cell(`{"do": "renewCertificate", "newAuthority": true}`).status).To(Equal(200))
	c.Expect(strings.Count(string(c.get("/_sim/ca").body), "BEGIN")).To(Equal(2))
	c.Expect(cell(`{"do": "dance"}`).status).To(Equal(400))
	c.Expect(cell(`{"do": "restart", "down": "long"}`).status).To(Equal(400))
	c.Expect(c.call(http.MethodPost, "/_sim/cells/3", `{"do": "stop"}`).status).To(Equal(404))
	c.Expect(string(c.get("/_sim/cells").body)).To(ContainSubstring(`"number":2`))
}

func TestTheClockByTheControlAPI(t *testing.T) {
	c := start(t, manual)
	c.Expect(c.call(http.MethodPost, "/_sim/clock", `{"advance": "90s"}`).json).To(HaveKeyWithValue("now",
		"2026-03-01T00:01:30Z"))
	c.Expect(c.get("/_sim/clock").json).To(HaveKeyWithValue("rate", 0.0))
	c.Expect(c.call(http.MethodPost, "/_sim/clock", `{"rate": 50000}`).json).To(HaveKeyWithValue("rate", 50000.0))
	c.Eventually(func() time.Time { return c.sim.Clock().Now() }).Should(BeTemporally(">",
		time.Date(2026, time.March, 1, 1, 0, 0, 0, time.UTC)))
	c.Expect(c.call(http.MethodPost, "/_sim/clock", `{"rate": 0}`).status).To(Equal(200))
	now := c.sim.Clock().Now()
	c.Consistently(c.sim.Clock().Now, 20*time.Millisecond).Should(Equal(now))
	for _, body := range []string{`{"rate": -1}`, `{"rate": 1e9}`, `{"advance": "-1s"}`, `{"hour": 1}`} {
		c.Expect(c.call(http.MethodPost, "/_sim/clock", body).status).To(Equal(400), body)
	}
}

func TestMetrics(t *testing.T) {
	c := start(t, manual)
	c.vm(c.vapp("cluster"), `node`)
	c.sim.Faults().Add(vcdsim.Fault{DropBefore: true, Count: 1})
	c.status(c.sim.URL() + "/api/org") // Go's client may retry
	a := c.get("/_sim/metrics")
	c.Expect(a.header.Get("Content-Type")).To(HavePrefix("text/plain; version=0.0.4"))
	text := string(a.body)
	for _, line := range []string{
		"# TYPE vcdsim_requests_total counter",
		`vcdsim_requests_total{operation="POST /api/vdc/action/composeVApp",status="201"} 1`,
		`vcdsim_requests_total{operation="GET /api/org",status="none"} 1`,
		`vcdsim_tasks{status="success"} 2`, `vcdsim_tasks{status="running"} 0`,
		`vcdsim_entities{kind="vm"} 1`, `vcdsim_sessions 1`, `vcdsim_cell_up{cell="1"} 1`,
	} {
		c.Expect(text).To(ContainSubstring("\n" + line + "\n"))
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		c.Expect(line).To(MatchRegexp(
			`^(# (HELP|TYPE) vcdsim_[a-z_]+ .+|vcdsim_[a-z_]+(\{[a-z]+="([^"\\]|\\.)*"(,[a-z]+="([^"\\]|\\.)*")*\})? [0-9.]+)$`))
	}
}

func TestTheOverviewIsBoundedAndFiltered(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.vm(vapp, "node-a")
	c.vm(vapp, "node-b")
	c.vapp("other")
	get := func(query string) map[string]any { return c.get("/_sim/overview" + query).json }
	all := get("")
	c.Expect(all["vApps"]).To(HaveLen(2))
	c.Expect(all["counts"]).To(HaveKeyWithValue("vms", 2.0))
	c.Expect(all["tasks"]).To(HaveLen(4))
	last := all["last"].(float64)
	c.Expect(all["requests"]).To(HaveLen(int(last)))

	some := get("?filter=NODE-B&since=" + strconv.Itoa(int(last)-1))
	c.Expect(some["requests"]).To(HaveLen(1))
	c.Expect(some["vApps"]).To(HaveLen(1))
	c.Expect(some["vApps"].([]any)[0].(map[string]any)["vms"]).To(HaveLen(1))
	c.Expect(get("?filter=nothing")["vApps"]).To(BeEmpty())
}

func TestTheStateShowsNoSecrets(t *testing.T) {
	c := start(t)
	state := string(c.get("/_sim/state").body)
	for _, secret := range []string{`"Password":"p`, "capvcd-api-token", c.token} {
		c.Expect(state).NotTo(ContainSubstring(secret))
	}
	c.Expect(state).To(ContainSubstring(`"acme-vdc"`))
	c.Expect(string(c.get("/_sim/dump").body)).To(ContainSubstring("capvcd-api-token"), "a dump is complete")
}

func TestControlAPIAuthorization(t *testing.T) {
	c := start(t)
	ask := func(sim *vcdsim.Simulator, from string, header map[string]string) int {
		r := httptest.NewRequest(http.MethodPost, "https://vcd.example.com/_sim/faults",
			strings.NewReader(`{"hang": true}`))
		r.RemoteAddr = from
		for k, v := range header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		sim.ServeHTTP(w, r)
		return w.Code
	}
	c.Expect(ask(c.sim, "127.0.0.1:5", nil)).To(Equal(201))
	c.Expect(ask(c.sim, "[::1]:5", nil)).To(Equal(201))
	c.Expect(ask(c.sim, "192.0.2.7:5", nil)).To(Equal(403), "another machine")
	c.Expect(ask(c.sim, "127.0.0.1:5", map[string]string{"Origin": "https://evil.example"})).To(Equal(403),
		"a page of another origin")
	c.Expect(ask(c.sim, "127.0.0.1:5", map[string]string{"Sec-Fetch-Site": "cross-site"})).To(Equal(403))
	c.Expect(ask(c.sim, "127.0.0.1:5", map[string]string{"Origin": "https://vcd.example.com"})).To(Equal(201))

	guarded := start(t, func(cfg *vcdsim.Config) { cfg.ControlToken = "secret" })
	c.Expect(ask(guarded.sim, "127.0.0.1:5", nil)).To(Equal(401))
	c.Expect(ask(guarded.sim, "192.0.2.7:5", map[string]string{"Authorization": "Bearer wrong"})).To(Equal(401))
	c.Expect(ask(guarded.sim, "192.0.2.7:5", map[string]string{"Authorization": "Bearer secret"})).To(Equal(201))
	guarded.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	guarded.token = ""
	c.Expect(guarded.call(http.MethodGet, "/_sim/?token=wrong", "").status).To(Equal(401))
	in := guarded.call(http.MethodGet, "/_sim/?token=secret", "")
	c.Expect(in.status).To(Equal(303))
	cookie := in.header.Get("Set-Cookie")
	c.Expect(cookie).To(And(ContainSubstring("HttpOnly"), ContainSubstring("Secure"),
		ContainSubstring("SameSite=Strict")))
	c.Expect(ask(guarded.sim, "192.0.2.7:5", map[string]string{"Cookie": strings.Split(cookie, ";")[0]})).To(Equal(201))
}

func TestThePageIsServedWithAStrictPolicy(t *testing.T) {
	c := start(t)
	for path, mediaType := range map[string]string{
		"/_sim/":              "text/html; charset=utf-8",
		"/_sim":               "text/html; charset=utf-8",
		"/_sim/page/page.js":  "text/javascript; charset=utf-8",
		"/_sim/page/page.css": "text/css; charset=utf-8",
		"/_sim/page/icon.svg": "image/svg+xml",
	} {
		res, err := c.http.Do(c.request(http.MethodGet, path, ""))
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(res.Body.Close()).To(Succeed())
		c.Expect(res.StatusCode).To(Equal(200), path)
		c.Expect(res.Header.Get("Content-Type")).To(Equal(mediaType))
		c.Expect(res.Header.Get("Content-Security-Policy")).To(And(HavePrefix("default-src 'none'"),
			Not(ContainSubstring("unsafe"))))
		c.Expect(res.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
	}
	c.Expect(c.call(http.MethodGet, "/_sim/page/page.go", "").status).To(Equal(404))
}

func TestTheControlAPIReportsUnknownRoutes(t *testing.T) {
	c := start(t)
	for _, call := range [][2]string{
		{http.MethodGet, "/_sim/nothing"},
		{http.MethodPut, "/_sim/faults"},
		{http.MethodDelete, "/_sim/clock/x"},
	} {
		a := c.call(call[0], call[1], "")
		c.Expect(a.status).To(Equal(http.StatusNotFound), call[1])
		c.Expect(a.json).To(HaveKeyWithValue("error", "the control API has no "+call[0]+" "+call[1]))
	}
	c.Expect(c.sim.Unhandled()).To(BeEmpty(), "that is for VCD")
	c.Expect(c.call(http.MethodGet, "/_simple", "").status).To(Equal(http.StatusNotFound))
	c.Expect(c.sim.Unhandled()).To(HaveLen(1))
}
