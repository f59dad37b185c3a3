// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestLogin(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		name, user, org, password string
		status                    int
	}{
		{"the correct password", "capvcd", "acme", "password", 200},
		{"an incorrect password", "capvcd", "acme", "nope", 401},
		{"an unknown user", "nobody", "acme", "password", 401},
		{"an unknown organization", "capvcd", "nowhere", "password", 401},
		{"the provider's organization", "administrator", "System", "password", 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.login(tc.user, tc.org, tc.password).status).To(Equal(tc.status))
		})
	}
	c.Expect(len(c.token)).To(BeNumerically(">", 32), "clients send a bearer token only if it is longer")
	c.Expect(c.get("/cloudapi/1.0.0/sessions/current").json["org"]).To(HaveKeyWithValue("name", "acme"))
	c.Expect(c.call(http.MethodDelete, "/cloudapi/1.0.0/sessions/current", "").status).To(Equal(http.StatusNoContent))
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(http.StatusUnauthorized))
}

func TestAPITokens(t *testing.T) {
	c := start(t)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"capvcd-api-token"}}.Encode()
	token := func(path string) answer {
		req := c.request(http.MethodPost, path, form)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return c.do(req)
	}
	c.Expect(token("/oauth/provider/token").status).To(Equal(http.StatusBadRequest),
		"the provider rejects a tenant's token")
	a := token("/oauth/tenant/acme/token")
	c.Expect(a.status).To(Equal(http.StatusOK))
	c.token, _ = a.json["access_token"].(string)
	c.get("/api/org")
	c.sim.Edit(func(e *vcdsim.Editor) { e.SetAPITokens("acme", "capvcd") })
	c.Expect(token("/oauth/tenant/acme/token").status).To(Equal(http.StatusBadRequest))
}

func TestTokensExpire(t *testing.T) {
	c := start(t, manual, func(cfg *vcdsim.Config) { cfg.TokenLifetime = time.Hour })
	c.get("/api/org")
	c.advance(time.Hour)
	c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(http.StatusUnauthorized))
}

func TestVersions(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version104 })
	list := c.get("/api/versions").xml.All("VersionInfo")
	c.Expect(list[len(list)-1].Str("Version")).To(Equal("37.3"))
	req := c.request(http.MethodGet, "/api/org", "")
	req.Header.Set("Accept", "application/*+xml;version=39.0")
	a := c.do(req)
	c.Expect(a.status).To(Equal(http.StatusNotAcceptable))
	c.Expect(a.xml.Attr("message")).To(
		ContainSubstring("The request has invalid accept header: Unknown API version 39.0"))
	req = c.request(http.MethodGet, "/api/org", "")
	req.Header["Accept"] = []string{"vnd.vmware.vcloud.org+xml;version=37.3", "*_/_*;version=37.2"}
	c.Expect(c.do(req).status).To(Equal(http.StatusOK))

	_, err := vcdsim.New(vcdsim.Config{Version: "12.0"})
	c.Expect(err).To(MatchError(ContainSubstring(`API version "12.0"`)))
}

func TestTenantsSeeOnlyTheirOwnObjects(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		other := vcdsim.Minimal().Orgs[1]
		other.Name = "other"
		cfg.Model.Orgs = append(cfg.Model.Orgs, other)
	})
	c.vapp("secret")
	vapp := c.sim.State().VApps[0].ID
	c.token = c.login("admin", "other", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")

	c.Expect(c.get("/api/org").xml.All("Org")).To(HaveLen(1))
	c.Expect(c.records("type=vApp")).To(BeEmpty())
	c.Expect(c.records("type=task")).To(BeEmpty())
	c.refused(http.MethodGet, "/api/vApp/vapp-"+vapp, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodGet, c.vdc(), "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodGet, "/cloudapi/1.0.0/orgVdcNetworks/urn:vcloud:network:"+c.model().VDCs[0].Networks[0].ID, "",
		403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodGet, "/api/query?type=adminVM", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestQueries(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	var items []string
	for i := range 7 {
		items = append(items, c.item(fmt.Sprintf("node-%d", i), nic("POOL", ""), ""))
	}
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(items...))
	c.ok(http.MethodPost, vapp+"/metadata",
		`<Metadata `+xmlns+` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><MetadataEntry><Key>owner</Key><TypedValue xsi:type="MetadataStringValue"><Value>me</Value></TypedValue></MetadataEntry></Metadata>`)
	vdc := c.model().VDCs[0].ID
	for _, tc := range []struct {
		name, query string
		rows        int
	}{
		{name: "all VMs, including those of templates", query: "type=vm", rows: 8},
		{name: "only real VMs", query: "&type=vm&filter=isVAppTemplate==false&filterEncoded=true", rows: 7},
		{name: "a raw semicolon", query: "type=vm&filter=isVAppTemplate==false;name==node-3", rows: 1},
		{
			name:  "an encoded filter",
			query: "type=vm&filter=" + url.QueryEscape("(name==node-1,name==node-2);vdc==urn:vcloud:vdc:"+vdc),
			rows:  2,
		},
		{name: "a container by href", query: "type=vm&filter=container==" + c.sim.URL() + vapp, rows: 7},
		{name: "a container by bare id", query: "type=vm&filter=container==" + c.sim.State().VApps[0].ID, rows: 7},
		{name: "by id", query: "type=vm&filter=id==urn:vcloud:vm:" + c.state("node-4").ID, rows: 1},
		{name: "a wildcard", query: "type=vm&filter=name==node-*;status==POWERED_OFF", rows: 7},
		{name: "a page", query: "type=vm&filter=isVAppTemplate==false&pageSize=5&page=2", rows: 2},
		{name: "a page past the end", query: "type=vm&pageSize=5&page=9"},
		{name: "an optional attribute", query: "type=vm&filter=autoUndeployDate=lt=2030-01-01"},
		{name: "metadata", query: "type=vApp&filter=metadata:owner==STRING:me", rows: 1},
		{name: "different metadata", query: "type=vApp&filter=metadata:owner==STRING:you"},
		{name: "metadata of another type", query: "type=vApp&filter=metadata:owner==NUMBER:1"},
		{name: "metadata of another domain", query: "type=vApp&filter=metadata@SYSTEM:owner==STRING:me"},
		{name: "VDCs by organization", query: "type=orgVdc&filter=orgName==acme;name==acme-vdc", rows: 1},
		{name: "networks", query: "type=orgVdcNetwork", rows: 2},
		{name: "storage profiles of a VDC", query: "type=orgVdcStorageProfile&filter=vdc==" + vdc, rows: 2},
		{name: "templates of a catalog", query: "type=vAppTemplate&filter=catalogName==kubernetes", rows: 2},
		{name: "catalog items", query: "type=catalogItem&filter=name==no-vm", rows: 1},
		{name: "catalogs", query: "type=catalog", rows: 1},
		{name: "organizations", query: "type=organization", rows: 1},
		{name: "finished tasks on the vApp", query: "type=task&filter=status==success;object==" + c.sim.URL() + vapp, rows: 3},
		{name: "running tasks", query: "type=task&filter=(status==queued,status==running)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.WithT = NewWithT(t)
			c.Expect(c.records(tc.query)).To(HaveLen(tc.rows))
		})
	}
	c.WithT = NewWithT(t)
	page := c.get("/api/query?type=vm&filter=isVAppTemplate==false&pageSize=5&sortDesc=name")
	first := page.xml
	c.Expect([]string{
		first.Attr("total"),
		first.Attr("pageSize"),
		first.Attr("page"),
	}).To(Equal([]string{"7", "5", "1"}))
	c.Expect(first.All("VMRecord")[0].Attr("name")).To(Equal("node-6"))
	rest := c.get(c.linked(page, "nextPage")).xml
	c.Expect(rest.All("VMRecord")).To(HaveLen(2), "the next page is that of the link")

	row := c.records("type=vm&filter=name==node-0")[0]
	c.Expect(row.Attr("ipAddress")).To(HavePrefix("192.168.100."))
	c.Expect(row.Attr("containerName")).To(Equal("cluster"))
	c.Expect(row.Attr("storageProfileName")).To(Equal("standard"))
	row = c.records("type=vm&filter=name==node-0&fields=name,status")[0]
	c.Expect(row.Attr("status")).NotTo(BeEmpty())
	c.Expect(row.Attr("containerName")).To(BeEmpty())
	c.refused(http.MethodGet, "/api/query?type=vm&filter=colour==red", "", 400, "BAD_REQUEST")
	c.refused(http.MethodGet, "/api/query?type=disk&filter=colour==red", "", 400, "BAD_REQUEST")
	c.refused(http.MethodGet, "/api/query?type=vm&filter=((", "", 400, "BAD_REQUEST")
	c.Expect(c.sim.Unhandled()).To(BeEmpty())
	c.Expect(c.sim.Counters()).To(HaveKey("GET /api/query type=orgVdcNetwork"))
}

// TestEveryAttributeIsSearchable queries rows by each of their attributes.
func TestEveryAttributeIsSearchable(t *testing.T) {
	c := start(t)
	c.ok(http.MethodPost, c.vm(c.vapp("cluster"), "node")+"/power/action/powerOn", "")
	c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`)
	for _, kind := range []string{
		"vm", "vApp", "orgVdc", "orgVdcNetwork", "orgVdcStorageProfile", "catalog", "catalogItem", "vAppTemplate",
		"task", "disk", "organization",
	} {
		for _, a := range c.records("type=" + kind)[0].Attrs {
			if a.Name != "type" {
				c.get("/api/query?type=" + kind + "&filter=" + a.Name + "==x")
			}
		}
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Guest = &fakeGuest{} })
	var done sync.WaitGroup
	for i := range 16 {
		done.Go(func() {
			vapp := c.vapp(fmt.Sprintf("vapp-%d", i))
			vm := c.vm(vapp, fmt.Sprintf("vm-%d", i))
			c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
			c.records("type=vm")
			c.ok(http.MethodPost, vapp+"/action/undeploy", "")
			c.ok(http.MethodDelete, vapp, "")
		})
	}
	done.Wait()
	c.Expect(c.sim.State().VMs).To(BeEmpty())
}

func TestCloudAPILists(t *testing.T) {
	c := start(t)
	for _, tc := range []struct {
		name, path string
		total      float64
	}{
		{name: "all policies", path: "/cloudapi/2.0.0/vdcComputePolicies", total: 4},
		{name: "a policy by name", path: "/cloudapi/1.0.0/vdcComputePolicies?filter=name==small", total: 1},
		{
			name: "sizing policies of a VDC",
			path: "/cloudapi/2.0.0/vdcComputePolicies?filter=isSizingOnly==true;_context==urn:vcloud:vdc:" +
				c.model().VDCs[0].ID,
			total: 3,
		},
		{
			name:  "policies of a VDC",
			path:  "/cloudapi/2.0.0/vdcs/urn%3Avcloud%3Avdc%3A" + c.model().VDCs[0].ID + "/computePolicies/",
			total: 4,
		},
		{name: "networks", path: "/cloudapi/1.0.0/orgVdcNetworks?pageSize=1", total: 2},
		{
			name:  "networks of an owner",
			path:  "/cloudapi/1.0.0/orgVdcNetworks?filter=ownerRef.id==urn:vcloud:vdc:" + c.model().VDCs[0].ID,
			total: 2,
		},
		{name: "organizations", path: "/cloudapi/1.0.0/orgs/", total: 1},
		{name: "VDCs", path: "/cloudapi/1.0.0/vdcs", total: 1},
		{name: "a page past the end", path: "/cloudapi/1.0.0/vdcs?page=7", total: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			a := c.get(tc.path)
			g.Expect(a.json["resultTotal"]).To(Equal(tc.total))
			g.Expect(a.json["values"]).NotTo(BeNil())
		})
	}
	link := c.get("/cloudapi/1.0.0/orgVdcNetworks?pageSize=1").header.Get("Link")
	c.Expect(link).To(ContainSubstring(`>;rel="nextPage"`))
	next := c.get(link[1:strings.Index(link, ">")])
	c.Expect(next.json["page"]).To(BeEquivalentTo(2))

	dhcp := c.get("/cloudapi/1.0.0/orgVdcNetworks/urn:vcloud:network:" + c.model().VDCs[0].Networks[0].ID + "/dhcp")
	c.Expect(dhcp.json["dhcpPools"]).To(HaveLen(1))
	c.refused(http.MethodGet, "/cloudapi/1.0.0/vdcs/urn:vcloud:vdc:11111111-2222-3333-4444-555555555555", "", 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestUnknownRoutesAreRecorded(t *testing.T) {
	c := start(t)
	c.refused(http.MethodGet, "/api/mystery/11111111-2222-3333-4444-555555555555", "", 404, "NOT_FOUND")
	c.refused(http.MethodPatch, "/api/org", "", 405, "METHOD_NOT_ALLOWED")
	c.refused(http.MethodGet, "/cloudapi/9.0.0/mystery", "", 404, "NOT_FOUND")
	c.Expect(c.sim.Unhandled()).To(Equal([]string{"GET /api/mystery", "GET /cloudapi/9.0.0/mystery", "PATCH /api/org"}))
}

func TestHeaders(t *testing.T) {
	h := start(t).get("/api/org").header
	g := NewWithT(t)
	g.Expect(h.Get("X-VMWARE-VCLOUD-REQUEST-ID")).To(MatchRegexp(`^[0-9a-f-]{36}$`))
	g.Expect(h.Get("X-VMWARE-VCLOUD-REQUEST-EXECUTION-TIME")).NotTo(BeEmpty())
	g.Expect(h.Get("Content-Type")).To(Equal("application/vnd.vmware.vcloud.orgList+xml;version=37.2"))
}

func TestStateIsDeterministicForASeed(t *testing.T) {
	state := func() vcdsim.State {
		c := start(t, manual)
		c.vm(c.vapp("cluster"), "node")
		s := c.sim.State()
		s.Sessions = nil
		return s
	}
	NewWithT(t).Expect(state()).To(Equal(state()))
}

func TestFaults(t *testing.T) {
	c := start(t)
	f := c.sim.Faults()
	f.Add(vcdsim.Fault{
		Operation: "GET /api/org",
		Skip:      1,
		Count:     2,
		Status:    503,
		Code:      "SERVICE_UNAVAILABLE",
		Message:   "later",
		Header:    map[string]string{"Retry-After": "7"},
	})
	var statuses []int
	for range 4 {
		statuses = append(statuses, c.call(http.MethodGet, "/api/org", "").status)
	}
	c.Expect(statuses).To(Equal([]int{200, 503, 503, 200}))

	f.Add(vcdsim.Fault{
		Operation: "GET /cloudapi/*/vdcs",
		Count:     1,
		Status:    429,
		Header:    map[string]string{"Retry-After": "7"},
	})
	a := c.call(http.MethodGet, "/cloudapi/1.0.0/vdcs", "")
	c.Expect(a.status).To(Equal(429))
	c.Expect(a.header.Get("Retry-After")).To(Equal("7"))

	f.Add(vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", Count: 1, DropBefore: true})
	f.Add(vcdsim.Fault{Operation: "POST /api/vdc/action/composeVApp", Count: 1, DropAfter: true})
	for want := range 2 {
		_, err := c.http.Do(c.request(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("dropped", ""))) //nolint:bodyclose // there is none
		c.Expect(err).To(HaveOccurred())
		c.Expect(c.sim.State().VApps).To(HaveLen(want), "only a connection dropped after the work leaves objects")
	}
	f.Add(vcdsim.Fault{Hang: true})
	c.http.Timeout = 50 * time.Millisecond
	_, err := c.http.Do(c.request(http.MethodGet, "/api/org", "")) //nolint:bodyclose // there is none
	c.Expect(err).To(HaveOccurred())
	f.Clear()
	c.Expect(f.List()).To(BeEmpty())
}

func TestControlAPI(t *testing.T) {
	c := start(t, manual)
	c.vapp("cluster")
	c.token = ""
	c.Expect(c.get("/_sim/state").json["VApps"]).To(HaveLen(1))
	c.Expect(string(c.get("/_sim/state").body)).NotTo(ContainSubstring("password"))
	c.Expect(c.get("/_sim/counters").json).To(HaveKey("POST /api/vdc/action/composeVApp"))
	before := c.sim.Clock().Now()
	c.Expect(c.call(http.MethodPost, "/_sim/clock", `{"advance": "90s"}`).status).To(Equal(200))
	c.Expect(c.sim.Clock().Now().Sub(before)).To(Equal(90 * time.Second))
	c.Expect(c.call(http.MethodPost, "/_sim/clock", `{"advance": "soon"}`).status).To(Equal(400))
	c.Expect(c.call(http.MethodPost, "/_sim/faults",
		`{"Operation": "GET /api/org", "Status": 500}`).status).To(Equal(201))
	c.Expect(c.sim.Faults().List()).To(HaveLen(1))
	c.Expect(c.call(http.MethodDelete, "/_sim/faults", "").status).To(Equal(204))
	c.Expect(c.sim.Unhandled()).To(BeEmpty())
	requests := c.sim.Requests()
	c.Expect(requests[len(requests)-1].User).To(Equal("capvcd"))
}
