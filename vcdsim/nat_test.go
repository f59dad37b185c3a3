// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestNATRules(t *testing.T) {
	c := start(t)
	profile := c.make("applicationPortProfiles", c.portProfile("web", c.vdcURN()))
	c.make(c.natPath(), dnat("web", "203.0.113.20", "192.168.100.5",
		`,"dnatExternalPort":"8080","priority":7,"firewallMatch":"BYPASS","applicationPortProfile":{"id":"`+profile+
			`"}`))
	rule := c.values(c.natPath())[0]
	c.Expect(rule).To(And(
		HaveKeyWithValue("ruleType", "DNAT"), HaveKeyWithValue("enabled", true), HaveKeyWithValue("priority", 7.0),
		HaveKeyWithValue("firewallMatch", "BYPASS"),
		HaveKeyWithValue("version", HaveKeyWithValue("version", 0.0)),
		HaveKeyWithValue("applicationPortProfile", HaveKeyWithValue("name", "web"))))
	path := cloudAPI + c.natPath() + "/" + rule["id"].(string)
	c.Expect(rule["id"]).To(MatchRegexp(`^[0-9a-f-]{36}$`), "not a URN")

	c.ok(http.MethodPut, path, with(rule, map[string]any{"description": "changed"}))
	c.Expect(c.get(path).json).To(And(HaveKeyWithValue("description", "changed"),
		HaveKeyWithValue("version", HaveKeyWithValue("version", 1.0))))
	c.Expect(c.refused(http.MethodPut, path, with(rule, nil), 400,
		"OBJECT_VERSION_MISMATCH")).To(ContainSubstring("not the current version 1"),
		"it was changed after it was read")

	message := c.refused(http.MethodDelete, cloudAPI+"applicationPortProfiles/"+profile, "", 400, "VALIDATION_ERROR")
	c.Expect(message).To(ContainSubstring("in use by NAT rule web"))
	c.ok(http.MethodDelete, path, "")
	c.refused(http.MethodGet, path, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.ok(http.MethodDelete, cloudAPI+"applicationPortProfiles/"+profile, "")
}

// portProfile returns an application port profile of a VDC or VDC group.
func (c *client) portProfile(name, owner string) string {
	return fmt.Sprintf(`{"name":%q,"scope":"TENANT","orgRef":{"id":"urn:vcloud:org:%s"},"contextEntityId":%q,`+
		`"applicationPorts":[{"protocol":"TCP","destinationPorts":["80"]}]}`, name, c.model().ID, owner)
}

func (c *client) vdcURN() string { return "urn:vcloud:vdc:" + c.model().VDCs[0].ID }

func TestTenantPortProfilesReferenceTheirOrganization(t *testing.T) {
	c := start(t)
	body := fmt.Sprintf(`{"name":"web","scope":"TENANT","contextEntityId":%q,`+
		`"applicationPorts":[{"protocol":"TCP","destinationPorts":["80"]}]}`, c.vdcURN())

	c.Expect(c.refused(http.MethodPost, cloudAPI+"applicationPortProfiles", body, 400,
		"BAD_REQUEST")).To(ContainSubstring("orgRef"))
	c.make("applicationPortProfiles", c.portProfile("web", c.vdcURN()))

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().TenantProfilesNeedOrg = false })
	c.make("applicationPortProfiles", strings.Replace(body, "web", "other", 1))
}

func TestNATRulesAreValidated(t *testing.T) {
	c := start(t)
	for _, tc := range []struct{ name, body, message string }{
		{name: "no type", body: `{"name":"x","externalAddresses":"203.0.113.20"}`, message: `type "" is invalid`},
		{
			name:    "no internal address",
			body:    `{"name":"x","type":"DNAT","externalAddresses":"203.0.113.20"}`,
			message: "internalAddresses must not be empty",
		},
		{name: "an invalid address", body: dnat("x", "203.0.113.2000", "192.168.100.5", ""), message: `"203.0.113.2000" is invalid`},
		{
			name:    "an invalid port",
			body:    dnat("x", "203.0.113.20", "192.168.100.5", `,"dnatExternalPort":"http"`),
			message: `port "http" is invalid`,
		},
		{name: "no name", body: dnat("", "203.0.113.20", "192.168.100.5", ""), message: "name must not be empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.refused(http.MethodPost, cloudAPI+c.natPath(), tc.body, 400,
				"BAD_REQUEST")).To(ContainSubstring(tc.message))
		})
	}
	c.refused(http.MethodGet, cloudAPI+c.natPath()+"?filter=name==x", "", 400, "BAD_REQUEST")
}

func TestNATRulesArePagedByCursor(t *testing.T) {
	c := start(t)
	for i := range 5 {
		c.make(c.natPath(), dnat(fmt.Sprint("rule-", i), "203.0.113.20", "192.168.100.5", ""))
	}
	next := regexp.MustCompile(`<([^>]*)>;rel="nextPage"`)
	path := cloudAPI + c.natPath() + "?pageSize=2"
	names := []any{}
	for path != "" {
		a := c.get(path)
		for _, v := range a.json["values"].([]any) {
			names = append(names, v.(map[string]any)["name"])
		}
		path = ""
		if m := next.FindStringSubmatch(a.header.Get("Link")); m != nil {
			path = m[1]
			c.Expect(path).To(ContainSubstring("cursor="))
		}
	}
	c.Expect(names).To(Equal([]any{"rule-0", "rule-1", "rule-2", "rule-3", "rule-4"}))
}
