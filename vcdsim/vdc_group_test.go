// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) groupURN() string { return "urn:vcloud:vdcGroup:" + c.model().VDCGroups[0].ID }

func TestObjectsSharedInAVDCGroup(t *testing.T) {
	c := start(t, preset("vdc-group"))
	group := c.get(cloudAPI + "vdcGroups/" + c.groupURN()).json
	c.Expect(group).To(And(HaveKeyWithValue("name", "acme-group"), HaveKeyWithValue("status", "REALIZED"),
		HaveKeyWithValue("participatingOrgVdcs", HaveLen(2))))
	for _, path := range []string{"edgeGateways", "orgVdcNetworks"} {
		for _, owned := range c.values(path) {
			c.Expect(owned).To(And(HaveKeyWithValue("ownerRef", HaveKeyWithValue("id", c.groupURN())),
				HaveKeyWithValue("orgVdc", BeNil())), path)
		}
	}
	c.Expect(c.get("/api/vdc/"+c.model().VDCs[1].ID).xml.At("AvailableNetworks").All("Network")).To(HaveLen(2),
		"the other VDC has the networks, too")

	c.make("applicationPortProfiles", c.portProfile("web", c.groupURN()))
	set := c.make("firewallGroups",
		`{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+c.groupURN()+`"},"ipAddresses":["192.168.100.11"]}`)
	c.Expect(c.get(cloudAPI + "firewallGroups/" + set).json).To(HaveKeyWithValue("ownerRef",
		HaveKeyWithValue("id", c.groupURN())))
	c.make("loadBalancer/virtualServices", c.service("vs", c.pool("p", "192.168.100.11"), "203.0.113.20", 80))
}

func TestVDCGroupsAreUpdated(t *testing.T) {
	c := start(t, preset("vdc-group"), manual).user("admin")
	path := cloudAPI + "vdcGroups/" + c.groupURN()
	c.Expect(c.refused(http.MethodDelete, path, "", 400,
		"VALIDATION_ERROR")).To(ContainSubstring("in use by network nodes"))
	member := func(i int) map[string]any {
		return map[string]any{"vdcRef": map[string]any{"id": "urn:vcloud:vdc:" + c.model().VDCs[i].ID}}
	}
	body := map[string]any{
		"name":                 "second",
		"orgId":                "urn:vcloud:org:" + c.model().ID,
		"participatingOrgVdcs": []any{member(0)},
	}
	c.Expect(c.refused(http.MethodPost, cloudAPI+"vdcGroups", with(body, nil), 400,
		"BAD_REQUEST")).To(ContainSubstring(`already participates in the data center group "acme-group"`))

	c.ok(http.MethodPut, path, with(c.get(path).json, map[string]any{"participatingOrgVdcs": []any{member(1)}}))
	c.Expect(c.model().VDCs[1].EdgeGateways).To(HaveLen(1), "the group's objects are deleted with it")
	c.Expect(c.get(path).json).To(HaveKeyWithValue("participatingOrgVdcs", HaveLen(1)))
	second := c.make("vdcGroups", with(body, nil))
	c.Expect(c.values("vdcGroups")).To(HaveLen(2))

	dump := c.dump()
	location := c.call(http.MethodDelete, cloudAPI+"vdcGroups/"+second, "").header.Get("Location")
	c.refused(http.MethodPut, cloudAPI+"vdcGroups/"+second, with(body, nil), 400, "BUSY_ENTITY")
	c.Expect(c.finish(c.get(location).xml).Attr("status")).To(Equal("success"))
	c.refused(http.MethodGet, cloudAPI+"vdcGroups/"+second, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.sim.Restore(dump)).To(Succeed())
	c.Expect(c.get(cloudAPI + "vdcGroups/" + second).json).To(HaveKeyWithValue("name", "second"))
	c.advance(time.Minute)
}

// A list with numbered pages returns an empty page for requests beyond its end.
func TestNetworkListsArePaged(t *testing.T) {
	c := start(t, preset("two-gateways"))
	pool := c.pool("p", "192.168.100.11")
	for i := range 5 {
		c.make("loadBalancer/virtualServices", c.service(fmt.Sprint("vs-", i), pool, "203.0.113.20", 1000+i))
		c.make("firewallGroups",
			fmt.Sprintf(`{"name":"set-%d","type":"IP_SET","ownerRef":{"id":%q},"ipAddresses":["192.168.100.11"]}`, i,
				c.gatewayURN()))
		c.make("applicationPortProfiles", c.portProfile(fmt.Sprint("profile-", i), c.vdcURN()))
		if i > 0 {
			c.pool(fmt.Sprint("p-", i), "192.168.100.11")
		}
	}
	for i := range 5 {
		c.make(c.natPath(), dnat(fmt.Sprint("rule-", i), fmt.Sprint("203.0.113.3", i), "192.168.100.5", ""))
	}
	certificates := vcdsim.NewCertificate("tls")
	for i := range 5 {
		c.Expect(c.call(http.MethodPost, cloudAPI+"ssl/certificateLibrary",
			with(map[string]any{"alias": fmt.Sprint("tls-", i), "certificate": certificates.PEM},
				nil)).status).To(Equal(201))
	}
	edge := "edgeGateways/" + c.gatewayURN()
	for name, path := range map[string]string{
		"virtual services": edge + "/loadBalancer/virtualServiceSummaries?",
		"pools":            edge + "/loadBalancer/poolSummaries?",
		"IP sets":          "firewallGroups/summaries?",
		"profiles":         "applicationPortProfiles?filter=scope==TENANT&",
		"certificates":     "ssl/certificateLibrary?",
		"used addresses":   edge + "/usedIpAddresses?filter=category==DNAT&",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			seen := map[string]bool{}
			for page := 1; page <= 5; page++ {
				a := c.get(fmt.Sprintf("%s%spageSize=2&page=%d", cloudAPI, path, page))
				g.Expect(a.json).To(And(HaveKeyWithValue("resultTotal", 5.0), HaveKeyWithValue("pageCount", 3.0),
					HaveKeyWithValue("page", float64(page))))
				values := a.json["values"].([]any)
				g.Expect(values).To(HaveLen(max(0, min(2, 5-2*(page-1)))))
				more := BeEmpty()
				if page < 3 {
					more = Not(more)
				}
				g.Expect(a.header.Get("Link")).To(more)
				for _, v := range values {
					seen[fmt.Sprint(v.(map[string]any)["id"], v.(map[string]any)["ipAddress"])] = true
				}
			}
			g.Expect(seen).To(HaveLen(5))
		})
	}
}
