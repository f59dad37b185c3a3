// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const cloudAPI = "/cloudapi/1.0.0/"

// provider logs in as the system administrator.
func (c *client) provider() *client {
	p := *c
	p.token = ""
	p.token = p.loginProvider("administrator")
	return &p
}

func (c *client) loginProvider(user string) string {
	req := c.request(http.MethodPost, "/cloudapi/1.0.0/sessions/provider", "")
	req.SetBasicAuth(user+"@System", "password")
	return c.do(req).header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
}

func (c *client) gateway() vcdsim.EdgeGateway { return c.model().VDCs[0].EdgeGateways[0] }

func (c *client) gatewayURN() string { return "urn:vcloud:gateway:" + c.gateway().ID }

// make creates an object with a task and returns the ID of the task's owner.
func (c *client) make(path, body string) string {
	a := c.ok(http.MethodPost, cloudAPI+path, body)
	return c.get(a.header.Get("Location")).xml.At("Owner").Attr("id")
}

// values returns the items of a list.
func (c *client) values(path string) []map[string]any {
	list, ok := c.get(cloudAPI + path).json["values"].([]any)
	c.Expect(ok).To(BeTrue(), path)
	var out []map[string]any
	for _, v := range list {
		out = append(out, v.(map[string]any))
	}
	return out
}

// used returns the used addresses of a gateway, with their uses.
func (c *client) used() []string {
	var out []string
	for _, u := range c.values("edgeGateways/" + c.gatewayURN() + "/usedIpAddresses?pageSize=128") {
		out = append(out, fmt.Sprint(u["ipAddress"], " ", u["category"]))
	}
	return out
}

func (c *client) pool(name string, addresses ...string) string {
	var members []string
	for _, a := range addresses {
		members = append(members, `{"ipAddress":"`+a+`","port":30080}`)
	}
	return c.make("loadBalancer/pools",
		`{"name":"`+name+`","gatewayRef":{"id":"`+c.gatewayURN()+`"},"members":[`+strings.Join(members, ",")+`]}`)
}

// service returns the body of a TCP virtual service.
func (c *client) service(name, pool, vip string, port int) string {
	engines := c.values("loadBalancer/serviceEngineGroups/assignments")[0]["serviceEngineGroupRef"].(map[string]any)["id"]
	return fmt.Sprintf(`{"enabled":true,"name":%q,"gatewayRef":{"id":%q},"loadBalancerPoolRef":{"id":%q},"serviceEngineGroupRef":{"id":%q},"virtualIpAddress":%q,
"servicePorts":[{"portStart":%d}],"applicationProfile":{"type":"L4"}}`, name, c.gatewayURN(), pool, engines, vip, port)
}

func dnat(name, external, internal, more string) string {
	return fmt.Sprintf(`{"name":%q,"type":"DNAT","externalAddresses":%q,"internalAddresses":%q%s}`, name, external,
		internal, more)
}

func (c *client) natPath() string { return "edgeGateways/" + c.gatewayURN() + "/nat/rules" }

// body reads a JSON object.
func (c *client) body(text string) map[string]any {
	out := map[string]any{}
	c.Expect(json.Unmarshal([]byte(text), &out)).To(Succeed())
	return out
}

// with changes fields of an object for a PUT.
func with(object map[string]any, changes map[string]any) string {
	for k, v := range changes {
		object[k] = v
	}
	out, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(out)
}
