package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func (c *client) rulesPath() string { return "edgeGateways/" + c.gatewayURN() + "/firewall/rules" }

// rules are the user's rules of the gateway's firewall, by id and name, and their versions.
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

func TestOneFirewallRuleIsMadeAndDeletedByItself(t *testing.T) {
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
	c.Expect(versions).To(HaveEach(0.0), "the others are not touched")
	c.Expect(ids["first"]).NotTo(BeEmpty())

	one := cloudAPI + c.rulesPath() + "/" + ids["before"]
	c.Expect(c.get(one).json).To(HaveKeyWithValue("name", "before"))
	c.ok(http.MethodPut, one, `{"name":"changed","actionValue":"REJECT","version":{"version":0}}`)
	c.ok(http.MethodDelete, cloudAPI+c.rulesPath()+"/"+ids["first"], "")
	_, names, versions = c.rules()
	c.Expect(names).To(Equal([]string{"top", "changed", "after", "bottom"}))
	c.Expect(versions).To(Equal([]any{0.0, 1.0, 0.0, 0.0}))
	c.refused(http.MethodGet, cloudAPI+c.rulesPath()+"/"+ids["first"], "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(), `{"name":"x","actionValue":"ALLOW","relativePosition":{"rulePosition":"AFTER","adjacentRuleId":"none"}}`, 400, "BAD_REQUEST")
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(), `{"name":"x","actionValue":"ALLOW","relativePosition":{"rulePosition":"SOMEWHERE"}}`, 400, "BAD_REQUEST")

	c.version = "38.1"
	c.refused(http.MethodPost, cloudAPI+c.rulesPath(), `{"name":"x","actionValue":"ALLOW"}`, 405, "METHOD_NOT_ALLOWED")
	c.ok(http.MethodDelete, cloudAPI+c.rulesPath()+"/"+ids["before"], "")
}
