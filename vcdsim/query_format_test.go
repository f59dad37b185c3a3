// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// linked returns the target of a link in a document.
func (c *client) linked(a answer, rel string) string {
	for _, l := range a.xml.All("Link") {
		if l.Attr("rel") == rel {
			return l.Attr("href")
		}
	}
	return ""
}

func TestQueryFormats(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	id := strings.TrimPrefix(vapp, "/api/vApp/vapp-")

	references := c.get("/api/query?type=vApp&format=references")
	c.Expect(references.xml.Name).To(Equal("VAppReferences"))
	c.Expect(references.xml.Attr("total")).To(Equal("1"))
	found := references.xml.All("VAppReference")
	c.Expect(found).To(HaveLen(1))
	c.Expect([]string{found[0].Attr("name"), found[0].Attr("href")}).To(Equal([]string{"cluster", c.sim.URL() + vapp}))
	c.Expect(found[0].Attr("status")).To(BeEmpty(), "only a reference")

	records := c.get(c.linked(references, "alternate"))
	c.Expect(records.xml.Name).To(Equal("QueryResultRecords"))
	c.Expect(records.xml.All("VAppRecord")[0].Attr("vdc")).To(HavePrefix(c.sim.URL() + "/api/vdc/"))

	ids := c.get("/api/query?type=vApp&format=idrecords").xml.All("VAppRecord")[0]
	c.Expect([]string{ids.Attr("id"), ids.Attr("href")}).To(Equal([]string{"urn:vcloud:vapp:" + id, ""}))
	c.Expect(ids.Attr("vdc")).To(Equal("urn:vcloud:vdc:" + c.model().VDCs[0].ID))
	c.Expect(ids.Attr("name")).To(Equal("cluster"))

	c.refused(http.MethodGet, "/api/query?type=vApp&format=csv", "", 400, "BAD_REQUEST")
	c.provider().refused(http.MethodGet, "/api/query?type=nsxTManager&format=references", "", 400, "BAD_REQUEST")
}

func TestTheQueryServiceListsItsTypes(t *testing.T) {
	c := start(t)
	list := c.get("/api/query")
	c.Expect(list.xml.Name).To(Equal("QueryList"))
	names := map[string]int{}
	for _, l := range list.xml.All("Link") {
		names[l.Attr("name")]++
		c.Expect(c.get(l.Attr("href")).status).To(Equal(http.StatusOK), l.Attr("href"))
	}
	c.Expect(names).To(HaveKeyWithValue("vm", 3))
	c.Expect(names).NotTo(HaveKey("adminVM"), "a tenant must not request it")
	c.vm(c.vapp("cluster"), "node")
	for _, kind := range []string{"adminVM", "adminVApp"} {
		of := c.provider().records("type=" + kind + "&filter=org==urn:vcloud:org:" + c.model().ID)
		c.Expect(of).To(HaveLen(1), kind)
		c.Expect(of[0].Attr("org")).To(HaveSuffix(c.model().ID))
	}
}

func TestAPageLinkKeepsItsFilter(t *testing.T) {
	c := start(t)
	for i := range 3 {
		c.vapp(fmt.Sprintf("a &amp; b %d", i))
	}
	first := c.get("/api/query?type=vApp&pageSize=2&sortAsc=name&filter=name==a%20%26%20b*")
	c.Expect(first.xml.Attr("total")).To(Equal("3"))
	c.Expect(c.get(c.linked(first, "nextPage")).xml.All("VAppRecord")[0].Attr("name")).To(Equal("a & b 2"))
}

func TestPagesAreLimitedToTheSizeOfVCD(t *testing.T) {
	c := start(t)
	for path, most := range map[string]int{"edgeGateways": 128, "orgVdcNetworks": 32, c.natPath(): 128} {
		c.Expect(c.get(fmt.Sprintf("%s%s?pageSize=%d", cloudAPI, path, most)).status).To(Equal(http.StatusOK), path)
		for _, size := range []string{fmt.Sprint(most + 1), "-1", "many"} {
			refused := c.call(http.MethodGet, cloudAPI+path+"?pageSize="+size, "")
			c.Expect(refused.status).To(Equal(http.StatusBadRequest), path+" "+size)
			c.Expect(refused.json).To(HaveKeyWithValue("minorErrorCode", "BAD_REQUEST"))
		}
	}
	c.Expect(c.get("/api/query?type=vm&pageSize=500").xml.Attr("pageSize")).To(Equal("128"),
		"the query service truncates it, as assumed")
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().QueryPageSizeIsCut = false })
	c.refused(http.MethodGet, "/api/query?type=vm&pageSize=500", "", 400, "BAD_REQUEST")
}

func TestNumbersAreSortedNumerically(t *testing.T) {
	c := start(t).provider()
	for _, cpus := range []int{2, 10, 9} {
		body := fmt.Sprintf(`{"name":"sorted-%d","cpuCount":%d,"memory":%d}`, cpus, cpus, cpus*1_000_000)
		c.Expect(c.call(http.MethodPost, cloudAPI+"vdcComputePolicies", body).status).To(Equal(http.StatusCreated))
	}
	var got []string
	for _, v := range c.get(cloudAPI +
		"vdcComputePolicies?sortAsc=cpuCount&filter=name==sorted-*").json["values"].([]any) {
		got = append(got, v.(map[string]any)["name"].(string))
	}
	c.Expect(got).To(Equal([]string{"sorted-2", "sorted-9", "sorted-10"}))
	large := c.get(cloudAPI + "vdcComputePolicies?filter=memory==9000000").json["values"]
	c.Expect(large).To(HaveLen(1), "large numbers have no exponent")
}

func TestATooLargeRequestIsRejected(t *testing.T) {
	c := start(t)
	over := strings.Repeat("x", 16<<20+1)
	vapp := c.vapp("cluster")
	c.refused(http.MethodPost, vapp+"/action/recomposeVApp", over, 413, "BAD_REQUEST")
	c.Expect(c.call(http.MethodPost, cloudAPI+"firewallGroups",
		over).status).To(Equal(http.StatusRequestEntityTooLarge))
	c.Expect(c.get(vapp).status).To(Equal(http.StatusOK))
}
