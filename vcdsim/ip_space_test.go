// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) space() string {
	return "ipSpaces/" + c.values("ipSpaces/summaries")[0]["id"].(string)
}

func (c *client) allocations(filter string) []map[string]any {
	return c.values(c.space() + "/allocations?pageSize=128&filter=type==FLOATING_IP" + filter)
}

// allocate allocates addresses and returns them with the IDs of their allocations.
func (c *client) allocate(body string) (values, ids []string) {
	a := c.ok(http.MethodPost, cloudAPI+c.space()+"/allocate", body)
	var result []struct{ ID, Value string }
	text := c.get(a.header.Get("Location")).xml.At("Result", "ResultContent").Text
	c.Expect(json.Unmarshal([]byte(text), &result)).To(Succeed())
	for _, r := range result {
		values = append(values, r.Value)
		ids = append(ids, r.ID)
	}
	return values, ids
}

func TestFloatingIPsAreAllocatedUsedAndReleased(t *testing.T) {
	c := start(t, preset("ip-spaces"))
	values, ids := c.allocate(`{"type":"FLOATING_IP","quantity":2}`)
	c.Expect(values).To(Equal([]string{"198.51.100.10", "198.51.100.11"}))
	one, oneIDs := c.allocate(`{"type":"FLOATING_IP","value":"198.51.100.77"}`)
	c.Expect(one).To(Equal([]string{"198.51.100.77"}))
	suggestions := "ipSpaces/floatingIpSuggestions?filter=gatewayId==" + c.gatewayURN()
	c.Expect(c.values(suggestions)[0]["unusedValues"]).To(ConsistOf("198.51.100.10", "198.51.100.11", "198.51.100.77"))

	path := cloudAPI + c.space() + "/allocations/" + ids[0]
	c.make("loadBalancer/virtualServices", c.service("vs", c.pool("p", "192.168.100.11"), values[0], 80))
	c.make(c.natPath(), dnat("nat", values[0], "192.168.100.11", `,"dnatExternalPort":"8080"`))
	c.Expect(c.get(path).json).To(And(HaveKeyWithValue("usageState", "USED"),
		HaveKeyWithValue("usedByRef", HaveKeyWithValue("id", c.gatewayURN())),
		HaveKeyWithValue("usageCategories", ConsistOf("DNAT", "LOAD_BALANCER"))))
	c.Expect(c.used()).To(ConsistOf("198.51.100.10 DNAT", "198.51.100.10 Load_Balancer"))
	c.Expect(c.refused(http.MethodDelete, path, "", 400, "VALIDATION_ERROR")).To(ContainSubstring("in use (USED)"))
	c.Expect(c.values(suggestions)[0]["unusedValues"]).To(ConsistOf("198.51.100.11", "198.51.100.77"))

	marked := cloudAPI + c.space() + "/allocations/" + oneIDs[0]
	c.ok(http.MethodPut, marked,
		with(c.get(marked).json, map[string]any{"usageState": "USED_MANUAL", "description": "mine"}))
	c.Expect(c.allocations(";usageState==USED_MANUAL")).To(ConsistOf(And(HaveKeyWithValue("value", "198.51.100.77"),
		HaveKeyWithValue("description", "mine"))))
	c.ok(http.MethodDelete, marked, "")
	c.Expect(c.allocations("")).To(HaveLen(2))
	c.allocate(`{"type":"FLOATING_IP","value":"198.51.100.77"}`)
}

func TestAnAllocationInManualUseCanBeKept(t *testing.T) {
	assume := vcdsim.DefaultAssumptions()
	assume.ManualUseBlocksRelease = true
	c := start(t, preset("ip-spaces"), func(cfg *vcdsim.Config) { cfg.Assumptions = &assume })
	_, ids := c.allocate(`{"type":"FLOATING_IP","quantity":1}`)
	marked := cloudAPI + c.space() + "/allocations/" + ids[0]
	c.ok(http.MethodPut, marked, with(c.get(marked).json, map[string]any{"usageState": "USED_MANUAL"}))

	c.refused(http.MethodDelete, marked, "", 400, "VALIDATION_ERROR")
	c.ok(http.MethodPut, marked, with(c.get(marked).json, map[string]any{"usageState": "UNUSED"}))
	c.ok(http.MethodDelete, marked, "")
}

func TestAProviderAllocatesForAnOrganization(t *testing.T) {
	c := start(t, preset("ip-spaces"))
	acme := HaveKeyWithValue("orgRef", HaveKeyWithValue("name", "acme"))

	c.provider().allocate(`{"type":"FLOATING_IP","quantity":1,"orgRef":{"id":"urn:vcloud:org:` + c.model().ID + `"}}`)
	c.Expect(c.allocations("")).To(ConsistOf(acme))
	c.provider().allocate(`{"type":"FLOATING_IP","quantity":1}`)
	c.Expect(c.allocations("")).To(ConsistOf(acme, acme), "no other organization has the space")
}

func TestIPSpacesRunOut(t *testing.T) {
	few := func(cfg *vcdsim.Config) {
		cfg.Model.IPSpaces[0].Ranges = []vcdsim.Range{{
			From: netip.MustParseAddr("198.51.100.10"),
			To:   netip.MustParseAddr("198.51.100.12"),
		}}
	}
	for _, tc := range []struct {
		name, body, code, message string
		first                     string
		mods                      []func(*vcdsim.Config)
	}{
		{
			name:    "the quota",
			body:    `{"type":"FLOATING_IP","quantity":2}`,
			code:    "QUOTA_EXCEEDED",
			message: `quota of 10 for FLOATING_IP in the IP space "public" would be exceeded`,
			first:   `{"type":"FLOATING_IP","quantity":9}`,
		},
		{
			name:    "all addresses",
			body:    `{"type":"FLOATING_IP","quantity":2}`,
			code:    "BAD_REQUEST",
			message: "does not have enough free values",
			first:   `{"type":"FLOATING_IP","quantity":2}`,
			mods:    []func(*vcdsim.Config){few},
		},
		{
			name:    "an address in use",
			body:    `{"type":"FLOATING_IP","value":"198.51.100.10"}`,
			code:    "BAD_REQUEST",
			message: "198.51.100.10 is not available",
			first:   `{"type":"FLOATING_IP","quantity":1}`,
		},
		{
			name:    "a nonexistent address",
			body:    `{"type":"FLOATING_IP","value":"192.0.2.1"}`,
			code:    "BAD_REQUEST",
			message: "192.0.2.1 is not available",
			first:   `{"type":"FLOATING_IP","quantity":1}`,
		},
		{
			name:    "prefixes",
			body:    `{"type":"IP_PREFIX","quantity":2,"prefixLength":28}`,
			code:    "QUOTA_EXCEEDED",
			message: "quota of 2 for IP_PREFIX",
			first:   `{"type":"IP_PREFIX","quantity":1,"prefixLength":28}`,
		},
		{
			name:    "a value and a number",
			body:    `{"type":"FLOATING_IP","value":"198.51.100.20","quantity":2}`,
			code:    "BAD_REQUEST",
			message: "allocation request is invalid",
			first:   `{"type":"FLOATING_IP","quantity":1}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, append([]func(*vcdsim.Config){preset("ip-spaces")}, tc.mods...)...)
			c.allocate(tc.first)
			c.Expect(c.refused(http.MethodPost, cloudAPI+c.space()+"/allocate", tc.body, 400,
				tc.code)).To(ContainSubstring(tc.message))
		})
	}
}

func TestSimultaneousRequestsForTheLastAddress(t *testing.T) {
	c := start(t, preset("ip-spaces"), manual, func(cfg *vcdsim.Config) {
		cfg.Model.IPSpaces[0].Ranges = []vcdsim.Range{{
			From: netip.MustParseAddr("198.51.100.10"),
			To:   netip.MustParseAddr("198.51.100.10"),
		}}
	})
	ask := func() string {
		a := c.call(http.MethodPost, cloudAPI+c.space()+"/allocate", `{"type":"FLOATING_IP","value":"198.51.100.10"}`)
		c.Expect(a.status).To(Equal(http.StatusAccepted), "both are requested before either is done")
		return a.header.Get("Location")
	}
	first := ask()
	second := ask()
	c.advance(time.Minute)
	statuses := []string{c.get(first).xml.Attr("status"), c.get(second).xml.Attr("status")}
	c.Expect(statuses).To(ConsistOf("success", "error"))
	c.Expect(c.allocations("")).To(HaveLen(1))
}

func TestAllocationsAreListedByTypeAndPage(t *testing.T) {
	c := start(t, preset("ip-spaces"))
	c.allocate(`{"type":"FLOATING_IP","quantity":7}`)
	c.allocate(`{"type":"IP_PREFIX","quantity":1,"prefixLength":28}`)
	c.Expect(c.refused(http.MethodGet, cloudAPI+c.space()+"/allocations", "", 400,
		"BAD_REQUEST")).To(ContainSubstring("type must be specified"))
	var got []any
	for page := 1; page <= 4; page++ {
		a := c.get(cloudAPI + c.space() + fmt.Sprintf("/allocations?filter=type==FLOATING_IP&pageSize=3&page=%d",
			page)).json
		c.Expect(a).To(And(HaveKeyWithValue("resultTotal", 7.0), HaveKeyWithValue("pageCount", 3.0)))
		for _, v := range a["values"].([]any) {
			got = append(got, v.(map[string]any)["value"])
		}
	}
	c.Expect(got).To(HaveLen(7))
	c.Expect(c.values(c.space() + "/allocations?filter=type==IP_PREFIX")).To(ConsistOf(HaveKeyWithValue("value",
		"198.51.100.128/28")))
	c.Expect(c.values("ipSpaces/floatingIpSuggestions?filter=gatewayId==" +
		c.gatewayURN())[0]["unusedValues"]).To(HaveLen(5), "no more are suggested")
}

func TestIPSpacesOfOtherOrganizations(t *testing.T) {
	c := start(t, preset("ip-spaces"), func(cfg *vcdsim.Config) {
		other := vcdsim.Minimal().Orgs[1]
		other.Name = "other"
		cfg.Model.Orgs = append(cfg.Model.Orgs, other)
	})
	values, _ := c.allocate(`{"type":"FLOATING_IP","quantity":1}`)
	space := c.space()
	c.token = c.login("admin", "other", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	c.Expect(c.values("ipSpaces/summaries")).To(BeEmpty(), "no gateway of the organization has an uplink to it")
	c.refused(http.MethodGet, cloudAPI+space, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodPost, cloudAPI+space+"/allocate", `{"type":"FLOATING_IP","quantity":1}`, 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(values).To(HaveLen(1))
}

func TestGatewaysWithoutIPSpaces(t *testing.T) {
	c := start(t)
	suggestions := cloudAPI + "ipSpaces/floatingIpSuggestions?filter=gatewayId==" + c.gatewayURN()
	c.refused(http.MethodGet, suggestions, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	old := start(t, func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version103 })
	old.refused(http.MethodGet, suggestions, "", 404, "NOT_FOUND")
}

func TestAllocationsSurviveADump(t *testing.T) {
	c := start(t, preset("ip-spaces"), manual)
	_, ids := c.allocate(`{"type":"FLOATING_IP","quantity":1}`)
	path := cloudAPI + c.space() + "/allocations/" + ids[0]
	mark := c.call(http.MethodPut, path,
		with(c.get(path).json,
			map[string]any{"usageState": "USED_MANUAL", "description": "mine"})).header.Get("Location")
	dump := c.dump()
	c.finish(c.get(mark).xml)
	c.ok(http.MethodPut, path, with(c.get(path).json, map[string]any{"usageState": "UNUSED", "description": ""}))
	c.ok(http.MethodDelete, path, "")
	c.Expect(c.sim.Restore(dump)).To(Succeed())
	c.finish(c.get(mark).xml)
	c.Expect(c.get(path).json).To(And(HaveKeyWithValue("usageState", "USED_MANUAL"),
		HaveKeyWithValue("description", "mine")), "the running task is in the dump")
}
