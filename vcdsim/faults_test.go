// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAFaultRespondsWithItsKindOfBody(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		name, path, contentType, body string
		fault                         vcdsim.Fault
	}{
		{
			name:        "XML for the legacy API",
			path:        "/api/org",
			contentType: "application/vnd.vmware.vcloud.error+xml",
			body:        `minorErrorCode="TOO_MANY_REQUESTS"`,
			fault:       vcdsim.Fault{Status: 429},
		},
		{
			name:        "JSON for cloudapi",
			path:        "/cloudapi/1.0.0/vdcs",
			contentType: "application/json",
			body:        `"minorErrorCode":"SERVICE_UNAVAILABLE"`,
			fault:       vcdsim.Fault{Status: 503},
		},
		{
			name:        "HTML of a proxy",
			path:        "/api/org",
			contentType: "text/html; charset=utf-8",
			body:        "<h1>502 Bad Gateway</h1>",
			fault:       vcdsim.Fault{Status: 502, Body: vcdsim.BodyHTML},
		},
		{name: "nothing", path: "/api/org", fault: vcdsim.Fault{Status: 500, Body: vcdsim.BodyEmpty}},
		{
			name:        "a list without entries",
			path:        "/api/query",
			contentType: "application/vnd.vmware.vcloud.query.records+xml",
			body:        `<QueryResultRecords xmlns="http://www.vmware.com/vcloud/v1.5" total="0"`,
			fault:       vcdsim.Fault{Status: 200, Body: vcdsim.BodyNothing},
		},
		{
			name:        "a list of cloudapi without entries",
			path:        "/cloudapi/1.0.0/vdcs",
			contentType: "application/json",
			body:        `"resultTotal":0`,
			fault:       vcdsim.Fault{Status: 200, Body: vcdsim.BodyNothing},
		},
		{
			name:        "JSON although XML was requested",
			path:        "/api/org",
			contentType: "application/json",
			body:        `"stackTrace":null`,
			fault:       vcdsim.Fault{Status: 412, Body: vcdsim.BodyJSON},
		},
		{
			name:        "a custom text",
			path:        "/api/org",
			contentType: "application/vnd.vmware.vcloud.error+xml",
			body:        `majorErrorCode="403" message="[ 00000000-0000-0000-0000-000000000000 ] not today" minorErrorCode="NO"`,
			fault:       vcdsim.Fault{Status: 403, Code: "NO", Message: "not today"},
		},
		{
			name:        "busy, with the message for tenants",
			path:        "/api/org",
			contentType: "application/vnd.vmware.vcloud.error+xml",
			body:        "Unable to perform this action. Contact your cloud administrator. VDC_RECOMPOSE_VAPP(com.vmware.vcloud.entity.task:",
			fault:       vcdsim.Fault{Busy: vcdsim.BusyTenant},
		},
		{
			name:        "busy, with the message for providers",
			path:        "/api/org",
			contentType: "application/vnd.vmware.vcloud.error+xml",
			body:        "is busy completing an operation VDC_RECOMPOSE_VAPP. VDC_RECOMPOSE_VAPP(",
			fault:       vcdsim.Fault{Busy: vcdsim.BusyProvider},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(tc.fault.Validate()).To(Succeed())
			tc.fault.Count = 1
			c.sim.Faults().Add(tc.fault)
			res, err := c.http.Do(c.request(http.MethodGet, tc.path, ""))
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			g.Expect(err).NotTo(HaveOccurred())

			status := tc.fault.Status
			if tc.fault.Busy != "" {
				status = 400
			}
			g.Expect(res.StatusCode).To(Equal(status))
			g.Expect(res.Header.Get("Content-Type")).To(Equal(tc.contentType))
			g.Expect(string(body)).To(ContainSubstring(tc.body))
			requests := c.sim.Requests()
			g.Expect(requests[len(requests)-1].Status).To(Equal(status))
		})
	}
}

func TestAFaultMatchesAnEntityAUserOrAShareOfCalls(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	a := c.vm(vapp, "a")
	b := c.vm(vapp, "b")
	f := c.sim.Faults()
	for _, entity := range []string{"a", c.state("a").ID, vcdsim.URN("vm", c.state("a").ID)} {
		id := f.Add(vcdsim.Fault{Entity: entity, Status: 500})
		c.Expect(c.call(http.MethodGet, a, "").status).To(Equal(500), entity)
		c.Expect(c.call(http.MethodGet, b, "").status).To(Equal(200))
		c.Expect(f.Remove(id)).To(BeTrue())
		c.Expect(f.Remove(id)).To(BeFalse())
	}

	f.Add(vcdsim.Fault{User: "admin@acme", Status: 403})
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(200))
	c.Expect(c.login("admin", "acme", "password").status).To(Equal(403), "a login has a user, too")
	byToken := func() answer {
		req := c.request(http.MethodPost, "/oauth/tenant/acme/token",
			"grant_type=refresh_token&refresh_token=ccm-api-token")
		req.Header.Del("Authorization")
		return c.do(req)
	}
	c.Expect(byToken().status).To(Equal(200))
	f.Add(vcdsim.Fault{User: "ccm", Status: 503})
	c.Expect(byToken().status).To(Equal(503), "one by API token, too")
	f.Clear()

	f.Add(vcdsim.Fault{Entity: "web", Status: 502})
	c.Expect(c.call(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("web", "")).status).To(Equal(502),
		"the new vApp has a name")
	c.Expect(c.call(http.MethodPost, vapp+"/action/recomposeVApp",
		recompose(c.item("web", nic("POOL", ""), ""))).status).To(Equal(502))
	c.Expect(c.call(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="web" sizeMb="1"/></DiskCreateParams>`).status).To(Equal(502))
	c.Expect(c.call(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("db", "")).status).To(Equal(201))
	f.Clear()
	made := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1"/></DiskCreateParams>`)
	f.Add(vcdsim.Fault{Entity: "data", Status: 500})
	c.Expect(c.call(http.MethodPost, a+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+made.xml.Attr("href")+
			`"/></DiskAttachOrDetachParams>`).status).To(Equal(500))
	f.Clear()

	share := func() (statuses []int) {
		c := start(t, func(cfg *vcdsim.Config) { cfg.Seed = 7 })
		c.sim.Faults().Add(vcdsim.Fault{Probability: 0.3, Status: 503})
		for range 40 {
			statuses = append(statuses, c.call(http.MethodGet, "/api/org", "").status)
		}
		return statuses
	}
	first := share()
	c.Expect(first).To(ContainElements(200, 503))
	c.Expect(share()).To(Equal(first), "it depends on the seed")
}

func TestSlowAndTruncatedResponses(t *testing.T) {
	c := start(t)
	c.sim.Faults().Add(vcdsim.Fault{Operation: "GET /api/vdc", Count: 1, Truncate: true})
	res, err := c.http.Do(c.request(http.MethodGet, c.vdc(), ""))
	c.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(res.Body)
	c.Expect(err).To(MatchError(io.ErrUnexpectedEOF))
	c.Expect(int64(len(body))).To(BeNumerically("~", res.ContentLength/2, 1))
	c.Expect(res.Body.Close()).To(Succeed())

	clock := vcdsim.NewManualClock(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
	slow := start(t, func(cfg *vcdsim.Config) { cfg.Clock = clock })
	for _, fault := range []vcdsim.Fault{{Delay: time.Minute, Count: 1}, {SlowBody: time.Minute, Count: 1}} {
		slow.sim.Faults().Add(fault)
		done := make(chan answer, 1)
		go func() { done <- slow.call(http.MethodGet, "/api/org", "") }()
		slow.Eventually(slow.sim.Faults().List).Should(BeEmpty())
		slow.Consistently(done, 30*time.Millisecond).ShouldNot(Receive())
		var got answer
		slow.Eventually(func() chan answer { clock.Advance(10 * time.Second); return done }).Should(Receive(&got))
		slow.Expect(got.xml.Name).To(Equal("OrgList"))
	}
}

func TestASessionAndATokenAreRevoked(t *testing.T) {
	c := start(t)
	c.sim.Faults().Add(vcdsim.Fault{Count: 1, EndSession: true})
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(401))
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(401), "until the next login")
	byToken := func() answer {
		req := c.request(http.MethodPost, "/oauth/tenant/acme/token",
			"grant_type=refresh_token&refresh_token=capvcd-api-token")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return c.do(req)
	}
	a := byToken()
	c.Expect(a.status).To(Equal(200))
	c.token = a.json["access_token"].(string)

	c.sim.Faults().Add(vcdsim.Fault{Count: 1, RevokeToken: true})
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(401))
	c.Expect(byToken().status).To(Equal(400))
	c.Expect(c.login("capvcd", "acme", "password").status).To(Equal(200), "the password is still valid")
}

func TestFailedAbortedAndStuckTasks(t *testing.T) {
	c := start(t, manual)
	vm := c.vm(c.vapp("cluster"), "node")
	f := c.sim.Faults()
	change := func(fault vcdsim.Fault) string {
		fault.Operation = "vappUpdateVm"
		fault.Count = 1
		f.Add(fault)
		task := c.call(http.MethodPost, vm+"/action/reconfigureVm", userdata).xml.Attr("href")
		c.advance(time.Minute)
		return task
	}
	status := func(task string) string { return c.get(task).xml.Attr("status") }

	failed := change(vcdsim.Fault{FailTask: true, Entity: "node", Message: "no host"})
	c.Expect(c.get(failed).xml.At("Error").Attr("message")).To(HaveSuffix("no host"))
	c.Expect(status(change(vcdsim.Fault{AbortTask: true}))).To(Equal("aborted"))
	c.Expect(c.state("node").ExtraConfig).To(BeEmpty())

	slow := change(vcdsim.Fault{StickTask: true, Delay: time.Hour})
	c.Expect(status(slow)).To(Equal("running"))
	c.refused(http.MethodPost, vm+"/action/reconfigureVm", userdata, 400, "BUSY_ENTITY")
	c.advance(time.Hour)
	c.Expect(status(slow)).To(Equal("success"))

	stuck := change(vcdsim.Fault{StickTask: true})
	c.advance(100 * time.Hour)
	c.Expect(status(stuck)).To(Equal("running"))
	c.Expect(c.call(http.MethodPost, stuck+"/action/cancel", "").status).To(Equal(204))
	c.Expect(status(stuck)).To(Equal("canceled"))
}

func TestAStarInAFaultMatchesSlashes(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		glob          string
		query, change int
	}{
		{"*", 503, 503},
		{"GET *", 503, 200},
		{"GET /api/*", 503, 200},
		{"P* /cloudapi/*", 200, 503},
		{"GET /api", 200, 200},
	} {
		t.Run(tc.glob, func(t *testing.T) {
			g := NewWithT(t)
			c.sim.Faults().Clear()
			c.sim.Faults().Add(vcdsim.Fault{Operation: tc.glob, Status: 503})

			g.Expect(c.call(http.MethodGet, "/api/query?type=vm", "").status).To(Equal(tc.query))
			got := c.call(http.MethodPost, cloudAPI+"sessions/none", "").status
			if tc.change == 503 {
				g.Expect(got).To(Equal(503))
			} else {
				g.Expect(got).NotTo(Equal(503))
			}
		})
	}
}

func TestFaultsInJSON(t *testing.T) {
	g := NewWithT(t)
	in := vcdsim.Fault{
		Operation: "GET *",
		Delay:     90 * time.Second,
		Status:    503,
		Header:    map[string]string{"Retry-After": "5"},
		Body:      vcdsim.BodyHTML,
	}
	data, err := json.Marshal(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(data).To(MatchJSON(
		`{"operation": "GET *", "delay": "1m30s", "status": 503, "header": {"Retry-After": "5"}, "body": "html"}`))
	var out vcdsim.Fault
	g.Expect(json.Unmarshal(data, &out)).To(Succeed())
	g.Expect(out).To(Equal(in))

	for text, message := range map[string]string{
		`{"colour": 1}`:                               "unknown field",
		`{"delay": "soon"}`:                           "invalid duration",
		`{"status": 99}`:                              "status 99 is not one of HTTP",
		`{"operation": "[", "status": 500}`:           "syntax error in pattern",
		`{"probability": 2, "hang": true}`:            "probability 2 is not between",
		`{"busy": "very"}`:                            `busy "very" is not`,
		`{"body": "pdf", "status": 500}`:              `body "pdf" is not`,
		`{"count": -1, "hang": true}`:                 "-1 is negative",
		`{"operation": "GET /api/org", "entity": ""}`: "it has no effect",
		`{"failTask": true, "hang": true}`:            "failTask, abortTask or stickTask is of tasks",
		`{"abortTask": true, "delay": "1m"}`:          "delay 1m0s is for stickTask",
	} {
		var f vcdsim.Fault
		err := json.Unmarshal([]byte(text), &f)
		if err == nil {
			err = f.Validate()
		}
		g.Expect(err).To(MatchError(ContainSubstring(message)), text)
	}
}
