// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) rulesPath() string { return "edgeGateways/" + c.gatewayURN() + "/firewall/rules" }

// rules returns the user-defined rules of the gateway's firewall, by ID and name, and their versions.
func (c *client) rules() (ids map[string]string, names []string, versions []any) {
	ids = map[string]string{}
	list, _ := c.get(cloudAPI + c.rulesPath()).json["userDefinedRules"].([]any)
	for _, x := range list {
		m := x.(map[string]any)
		ids[m["name"].(string)] = m["id"].(string)
		names = append(names, m["name"].(string))
		versions = append(versions, m["version"].(map[string]any)["version"])
	}
	return ids, names, versions
}

func TestOneFirewallRuleIsCreatedAndDeletedSeparately(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Model.Orgs[1].Users[1].Role = "Organization Administrator" })
	c.version = "39.0"
	create := func(name, position string) {
		c.ok(http.MethodPost, cloudAPI+c.rulesPath(), `{"name":"`+name+`","actionValue":"ALLOW"`+position+`}`)
	}
	c.ok(http.MethodPut, cloudAPI+c.rulesPath(), `{"userDefinedRules":[{"name":"first","actionValue":"DROP"}]}`)
	create("bottom", "")
	create("top", `,"relativePosition":{"rulePosition":"TOP"}`)
	ids, _, _ := c.rules()
	create("before", `,"relativePosition":{"rulePosition":"BEFORE","adjacentRuleId":"`+ids["first"]+`"}`)
	create("after", `,"relativePosition":{"rulePosition":"AFTER","adjacentRuleId":"`+ids["first"]+`"}`)
	ids, names, versions := c.rules()
	c.Expect(names).To(Equal([]string{"top", "before", "first", "after", "bottom"}))
	c.Expect(versions).To(HaveEach(0.0), "the other rules are not touched")
	c.Expect(ids["first"]).NotTo(BeEmpty())

	one := cloudAPI + c.rulesPath() + "/" + ids["before"]
	c.Expect(c.get(one).json).To(HaveKeyWithValue("name", "before"))
	c.ok(http.MethodPut, one, `{"name":"changed","actionValue":"REJECT","version":{"version":0}}`)
	c.ok(http.MethodDelete, cloudAPI+c.rulesPath()+"/"+ids["first"], "")
	_, names, versions = c.rules()
	c.Expect(names).To(Equal([]string{"top", "changed", "after", "bottom"}))
	c.Expect(versions).To(Equal([]any{0.0, 1.0, 0.0, 0.0}))
	c.refused(http.MethodGet, cloudAPI+c.rulesPath()+"/"+ids["first"], "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(),
		`{"name":"x","actionValue":"ALLOW","relativePosition":{"rulePosition":"AFTER","adjacentRuleId":"none"}}`, 400,
		"BAD_REQUEST")
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(),
		`{"name":"x","actionValue":"ALLOW","relativePosition":{"rulePosition":"SOMEWHERE"}}`, 400, "BAD_REQUEST")

	c.version = "38.0"
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(), `{"name":"x","actionValue":"ALLOW"}`, 405, "METHOD_NOT_ALLOWED")
	c.ok(http.MethodDelete, cloudAPI+c.rulesPath()+"/"+ids["before"], "")
}

func TestVersionTwoFirewallRules(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		cfg.Model.Orgs[1].Users[1].Role = "Organization Administrator"
		cfg.Version = vcdsim.Version105
		withRoles(map[string][]string{"viewer": {"Organization vDC Gateway: View Firewall"}})(cfg)
	})
	second := "/cloudapi/2.0.0/" + c.rulesPath()
	c.refused(http.MethodGet, second, "", 404, "NOT_FOUND")
	c.version = "38.1"
	rule := func(name, more string) string { return `{"name":"` + name + `","actionValue":"DROP"` + more + `}` }

	c.ok(http.MethodPost, second, rule("first", `,"active":false`))
	first, _ := c.get(second).json["userDefinedRules"].([]any)
	c.Expect(first).To(ConsistOf(And(HaveKeyWithValue("name", "first"), HaveKeyWithValue("active", false),
		Not(HaveKey("enabled")), Not(HaveKey("action")))))
	adjacent := first[0].(map[string]any)["id"].(string)
	c.ok(http.MethodPost, second, rule("before", `,"ipProtocol":"IPV4","sourceFirewallIpAddresses":["192.0.2.0/24"],"destinationFirewallIpAddresses":["203.0.113.20"],
		"rawPortProtocols":[{"layer4Item":{"protocol":"TCP","destinationPorts":["80","8000-8010"]}}],
		"relativePosition":{"rulePosition":"BEFORE","adjacentRuleId":"`+adjacent+`"}`))
	c.ok(http.MethodPost, second, rule("last", ""))
	_, names, _ := c.rules()
	c.Expect(names).To(Equal([]string{"before", "first", "last"}), "both versions show the same rules")
	list, _ := c.get(cloudAPI + c.rulesPath()).json["userDefinedRules"].([]any)
	c.Expect(list[0]).To(And(HaveKeyWithValue("enabled", true), Not(HaveKey("rawPortProtocols"))),
		"the first version has no ports")
	c.Expect(c.get(second).json["defaultRules"]).To(ConsistOf(And(HaveKeyWithValue("active", true),
		HaveKeyWithValue("actionValue", "DROP"))))

	c.Expect(c.get(second + "/" + adjacent).json).To(HaveKeyWithValue("active", false))
	c.ok(http.MethodPut, second+"/"+adjacent, rule("changed", `,"active":true`))
	c.Expect(c.get(second + "/" + adjacent).json).To(And(HaveKeyWithValue("active", true),
		HaveKeyWithValue("name", "changed")))
	c.ok(http.MethodDelete, second+"/"+adjacent, "")
	for _, bad := range []string{
		`,"relativePosition":{"rulePosition":"TOP"}`,
		`,"relativePosition":{"rulePosition":"BEFORE","adjacentRuleId":"` + adjacent + `"}`,
		`,"ipProtocol":"IPV4","sourceFirewallIpAddresses":["2001:db8::/32"]`,
		`,"sourceFirewallIpAddresses":["here"]`,
		`,"sourceFirewallIpAddresses":["192.0.2.0/33"]`,
		`,"rawPortProtocols":[{"layer4Item":{"protocol":"ICMP"}}]`,
		`,"rawPortProtocols":[{}]`,
		`,"rawPortProtocols":[{"layer4Item":{"protocol":"TCP","destinationPorts":["90-80"]}}]`,
	} {
		c.refused(http.MethodPost, second, rule("bad", bad), 400, "BAD_REQUEST")
	}

	viewer := c.user("viewer")
	c.Expect(viewer.get(second).json).To(HaveKey("userDefinedRules"))
	viewer.refused(http.MethodPost, second, rule("viewer's", ""), 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")

	c.ok(http.MethodPut, second, `{"userDefinedRules":[`+rule("only", `,"active":false`)+`]}`)
	_, names, _ = c.rules()
	c.Expect(names).To(Equal([]string{"only"}))
	c.ok(http.MethodDelete, second, "")
	c.Expect(c.get(second).json).To(HaveKeyWithValue("userDefinedRules", BeEmpty()))
}
