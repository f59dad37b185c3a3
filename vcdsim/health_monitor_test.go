// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const monitorsPath = "loadBalancer/healthMonitors"

func TestAHealthMonitorIsAnObjectOfItsGateway(t *testing.T) {
	c := start(t)
	c.version = "39.0"
	monitor := func(more string) string {
		return fmt.Sprintf(`{"name":"web","gatewayRef":{"id":%q},"type":"HTTP"%s}`, c.gatewayURN(), more)
	}
	for more, message := range map[string]string{
		`,"sendInterval":3601`:                   "sendInterval",
		`,"sendInterval":5,"receiveTimeout":5`:   "must be less than its send interval",
		`,"failedChecksCount":51`:                "failedChecksCount",
		`,"tcpSettings":{"port":80}`:             "has no tcpSettings",
		`,"httpSettings":{"port":70000}`:         "port",
		`,"type":"SCTP","receiveTimeout":1`:      `"SCTP" is invalid`,
		`,"description":"no gateway","type":"-"`: "invalid",
	} {
		c.Expect(c.refused(http.MethodPost, cloudAPI+monitorsPath, monitor(more), 400, "BAD_REQUEST")).To(ContainSubstring(message))
	}
	id := c.make(monitorsPath, monitor(`,"sendInterval":5,"httpSettings":{"requestHeader":"GET /healthz HTTP/1.0"}`))
	c.Expect(c.get(cloudAPI + monitorsPath + "/" + id).json).To(And(HaveKeyWithValue("sendInterval", 5.0),
		HaveKeyWithValue("receiveTimeout", 4.0), HaveKeyWithValue("systemDefined", false),
		HaveKeyWithValue("httpSettings", HaveKeyWithValue("requestHeader", "GET /healthz HTTP/1.0"))))

	pool := c.make("loadBalancer/pools", fmt.Sprintf(
		`{"name":"web","gatewayRef":{"id":%q},"healthMonitors":[{"id":%q,"type":"HTTP"},{"type":"PING"}]}`, c.gatewayURN(), id))
	shown := c.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(shown["healthMonitors"]).To(ConsistOf(
		And(HaveKeyWithValue("id", id), HaveKeyWithValue("name", "web"), HaveKeyWithValue("sendInterval", 5.0)),
		And(HaveKeyWithValue("name", "System-PING"), HaveKeyWithValue("systemDefined", true)),
	))
	summaries := c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/healthMonitorSummaries")
	c.Expect(summaries).To(HaveLen(6))
	c.Expect(summaries).To(ContainElement(And(HaveKeyWithValue("id", id), HaveKeyWithValue("scope", "TENANT"),
		HaveKeyWithValue("poolCount", 1.0), Not(HaveKey("sendInterval")))))

	c.version = "38.1"
	old := c.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(old["healthMonitors"]).To(ConsistOf(
		map[string]any{"name": "web", "type": "HTTP", "systemDefined": false},
		map[string]any{"name": "System-PING", "type": "PING", "systemDefined": true},
	))
	c.ok(http.MethodPut, cloudAPI+"loadBalancer/pools/"+pool, with(old, map[string]any{"description": "changed"}))
	c.Expect(c.refused(http.MethodGet, cloudAPI+monitorsPath+"/"+id, "", 404, "NOT_FOUND")).To(ContainSubstring("38.1"))
	c.Expect(c.call(http.MethodGet, cloudAPI+"edgeGateways/"+c.gatewayURN()+"/loadBalancer/healthMonitorSummaries", "").status).
		To(Equal(http.StatusNotFound))

	c.version = "39.0"
	c.Expect(c.refused(http.MethodDelete, cloudAPI+monitorsPath+"/"+id, "", 400, "VALIDATION_ERROR")).
		To(ContainSubstring("in use by load balancer pool web"))
	c.ok(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool, "")
	c.ok(http.MethodDelete, cloudAPI+monitorsPath+"/"+id, "")
	c.Expect(c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/healthMonitorSummaries")).To(HaveLen(5))
}

func TestHTTPPoliciesAreAsOldAsVCD105(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version106 })
	body := c.body(c.service("web", c.pool("web", "192.168.100.11"), "203.0.113.20", 80))
	id := c.make("loadBalancer/virtualServices", with(body, map[string]any{"applicationProfile": map[string]any{"type": "HTTP"}}))
	rules := cloudAPI + "loadBalancer/virtualServices/" + id + "/httpPolicy/requestRules"

	c.version = "37.3"
	c.Expect(c.call(http.MethodGet, rules, "").status).To(Equal(http.StatusNotFound))
	c.version = "38.0"
	c.Expect(c.call(http.MethodGet, rules, "").status).To(Equal(http.StatusOK))
}
