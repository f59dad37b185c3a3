// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func assuming(change func(*vcdsim.Assumptions)) func(*vcdsim.Config) {
	return func(cfg *vcdsim.Config) {
		assume := vcdsim.DefaultAssumptions()
		change(&assume)
		cfg.Assumptions = &assume
	}
}

// states returns the status of the gateway, of pools by name, and of virtual services.
func (c *client) states() []string {
	edge := "edgeGateways/" + c.gatewayURN()
	out := []string{fmt.Sprint("gateway ", c.get(cloudAPI + edge).json["status"])}
	for _, list := range []string{"poolSummaries", "virtualServiceSummaries"} {
		for _, m := range c.values(edge + "/loadBalancer/" + list) {
			out = append(out, fmt.Sprint(m["name"], " ", m["status"]))
		}
	}
	return out
}

func TestConfigurationDuringAGatewayChange(t *testing.T) {
	for _, tc := range []struct {
		name   string
		assume func(*vcdsim.Assumptions)
		busy   bool
		states []string
	}{
		{
			name:   "the changing object, and the gateway",
			assume: func(*vcdsim.Assumptions) {},
			busy:   true,
			states: []string{"gateway CONFIGURING", "a REALIZED", "b CONFIGURING", "vs REALIZED"},
		},
		{
			name:   "all objects of the gateway",
			assume: func(a *vcdsim.Assumptions) { a.BusyGatewayConfiguresAll = true },
			busy:   true,
			states: []string{"gateway CONFIGURING", "a CONFIGURING", "b CONFIGURING", "vs CONFIGURING"},
		},
		{
			name:   "two concurrent changes",
			assume: func(a *vcdsim.Assumptions) { a.GatewayWritesExclude = false },
			states: []string{"gateway CONFIGURING", "a REALIZED", "b CONFIGURING", "vs REALIZED"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, manual, assuming(tc.assume))
			a := c.pool("a", "192.168.100.11")
			b := c.pool("b", "192.168.100.11")
			vs := c.make("loadBalancer/virtualServices", c.service("vs", a, "203.0.113.20", 80))
			put := func(pool, name string) answer {
				return c.call(http.MethodPut, cloudAPI+"loadBalancer/pools/"+pool,
					`{"name":"`+name+`","gatewayRef":{"id":"`+c.gatewayURN()+`"}}`)
			}
			c.Expect(put(b, "b").status).To(Equal(http.StatusAccepted))
			c.Expect(c.states()).To(Equal(tc.states))
			c.Expect(c.get(cloudAPI + "loadBalancer/virtualServices/" +
				vs).json["status"]).To(Equal(strings.Fields(tc.states[3])[1]))
			c.Expect(put(b, "b").status).To(Equal(400), "the same change again")

			c.advance(2 * time.Second)
			wanted := http.StatusAccepted
			if tc.busy {
				wanted = http.StatusBadRequest
			}
			c.Expect(put(a, "a").status).To(Equal(wanted))
			c.advance(4 * time.Second)
			if !tc.busy {
				c.Expect(c.states()[:3]).To(Equal([]string{"gateway CONFIGURING", "a CONFIGURING", "b REALIZED"}),
					"until the last one ends")
			}
			c.advance(4 * time.Second)
			c.Expect(c.states()).To(HaveEach(HaveSuffix(" REALIZED")))
		})
	}
}

func TestSummariesListExistingObjects(t *testing.T) {
	c := start(t)
	body := with(c.body(c.service("vs", c.pool("p", "192.168.100.11"), "203.0.113.20", 80)),
		map[string]any{"description": "whose it is"})
	c.make("loadBalancer/virtualServices", body)
	edge := "edgeGateways/" + c.gatewayURN() + "/loadBalancer/"
	service := c.values(edge + "virtualServiceSummaries")[0]
	pool := c.values(edge + "poolSummaries")[0]
	for _, f := range []string{
		"status", "id", "name", "enabled", "virtualIpAddress", "ipv6VirtualIpAddress", "loadBalancerPoolRef",
		"gatewayRef", "serviceEngineGroupRef", "certificateRef",
		"servicePorts", "healthStatus", "healthMessage", "transparentModeEnabled", "applicationProfileType",
	} {
		c.Expect(service).To(HaveKey(f))
	}
	c.Expect(service).To(And(HaveKeyWithValue("description", "whose it is"), Not(HaveKey("detailedHealthMessage")),
		Not(HaveKey("applicationProfile"))))
	c.Expect(c.provider().values(edge + "virtualServiceSummaries")[0]).To(HaveKey("detailedHealthMessage"),
		"for providers only")
	for _, f := range []string{
		"status", "id", "name", "description", "enabled", "passiveMonitoringEnabled", "activeMonitoringEnabled",
		"healthStatus", "memberCount", "enabledMemberCount",
		"upMemberCount", "healthMessage", "virtualServiceRefs", "memberSslEnabled",
	} {
		c.Expect(pool).To(HaveKey(f))
	}
	c.Expect(pool).To(And(Not(HaveKey("members")), Not(HaveKey("gatewayRef"))))

	for i := range 12 {
		c.make("loadBalancer/virtualServices",
			c.service(fmt.Sprint("vs-", i), pool["id"].(string), "203.0.113.20", 1000+i))
	}
	c.Expect(c.values(edge + "poolSummaries")[0]["virtualServiceRefs"]).To(HaveLen(10))
	c.Expect(c.get(cloudAPI + "loadBalancer/pools/" + pool["id"].(string)).json["virtualServiceRefs"]).To(HaveLen(13))
}

func TestSizesAreLimited(t *testing.T) {
	c := start(t)
	members := func(n int) string {
		return `[` + strings.TrimSuffix(strings.Repeat(`{"ipAddress":"192.168.100.11"},`, n), ",") + `]`
	}
	pool := func(more string) string {
		return `{"gatewayRef":{"id":"` + c.gatewayURN() + `"},` + more + `}`
	}
	vs := func(changes map[string]any) string {
		return with(c.body(c.service("vs",
			c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/poolSummaries")[0]["id"].(string),
			"203.0.113.20", 80)), changes)
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	c.make("loadBalancer/pools", pool(`"name":"`+long(128)+`","description":"`+long(1024)+`","members":`+members(100)))
	for _, tc := range []struct{ name, path, body, message string }{
		{
			name:    "members",
			path:    "loadBalancer/pools",
			body:    pool(`"name":"x","members":` + members(101)),
			message: "size of the field members is 101",
		},
		{name: "a name", path: "loadBalancer/pools", body: pool(`"name":"` + long(129) + `"`), message: "length of the field name is 129"},
		{
			name:    "a description",
			path:    "loadBalancer/pools",
			body:    pool(`"name":"x","description":"` + long(1025) + `"`),
			message: "length of the field description is 1025",
		},
		{name: "a port", path: "loadBalancer/pools", body: pool(`"name":"x","defaultPort":65536`), message: "must be between 1 and 65535"},
		{
			name:    "a member's port",
			path:    "loadBalancer/pools",
			body:    pool(`"name":"x","members":[{"ipAddress":"192.168.100.11","port":0}]`),
			message: "must be between 1 and 65535",
		},
		{
			name:    "a ratio",
			path:    "loadBalancer/pools",
			body:    pool(`"name":"x","members":[{"ipAddress":"192.168.100.11","ratio":21}]`),
			message: "must be between 1 and 20",
		},
		{name: "half a minute", path: "loadBalancer/pools", body: pool(`"name":"x","gracefulTimeoutPeriod":0.5`), message: "between -1 and 7200"},
		{name: "an invalid number", path: "loadBalancer/pools", body: pool(`"name":"x","defaultPort":"80"`), message: "is not a number"},
		{
			name:    "ports",
			path:    "loadBalancer/virtualServices",
			body:    vs(map[string]any{"servicePorts": make([]map[string]int, 11)}),
			message: "size of the field servicePorts is 11",
		},
		{
			name:    "no ports",
			path:    "loadBalancer/virtualServices",
			body:    vs(map[string]any{"servicePorts": []any{}}),
			message: "servicePorts must not be empty",
		},
		{
			name:    "a NAT rule's name",
			path:    c.natPath(),
			body:    dnat(long(129), "203.0.113.20", "192.168.100.5", ""),
			message: "length of the field name is 129",
		},
		{
			name:    "a NAT rule's priority",
			path:    c.natPath(),
			body:    dnat("x", "203.0.113.20", "192.168.100.5", `,"priority":-1`),
			message: "field priority must be between 0",
		},
		{
			name:    "an alias",
			path:    "ssl/certificateLibrary",
			body:    `{"alias":"` + long(129) + `","certificate":"x"}`,
			message: "length of the field alias is 129",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.refused(http.MethodPost, cloudAPI+tc.path, tc.body, 400,
				"BAD_REQUEST")).To(ContainSubstring(tc.message))
		})
	}
}

func TestOlderClientsDoNotReceiveNewerFields(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version104 })
	set := c.make("firewallGroups",
		`{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+c.gatewayURN()+`"},"ipAddresses":["192.168.100.11"]}`)
	body := `{"name":"p","gatewayRef":{"id":"` + c.gatewayURN() + `"},"memberGroupRef":{"id":"` + set + `"}}`
	pool := c.make("loadBalancer/pools", body)
	old := *c
	old.version = "36.0"
	full := old.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(full).To(And(HaveKeyWithValue("memberCount", 1.0), Not(HaveKey("memberGroupRef")),
		Not(HaveKey("sslEnabled"))))
	c.Expect(old.refused(http.MethodPost, cloudAPI+"loadBalancer/pools", strings.Replace(body, `"p"`, `"q"`, 1), 400,
		"BAD_REQUEST")).
		To(ContainSubstring("memberGroupRef is not known in API version 36.0"))
	old.ok(http.MethodPut, cloudAPI+"loadBalancer/pools/"+pool,
		with(full, map[string]any{"description": "changed", "members": nil}))
	c.Expect(c.get(cloudAPI+"loadBalancer/pools/"+pool).json).To(And(HaveKeyWithValue("description", "changed"),
		HaveKeyWithValue("memberGroupRef", HaveKeyWithValue("id", set))),
		"fields unknown to the client are kept")

	lax := start(t, assuming(func(a *vcdsim.Assumptions) { a.NewerFieldsRefused = false }),
		func(cfg *vcdsim.Config) { cfg.Version = vcdsim.Version103 })
	group := lax.make("firewallGroups",
		`{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+lax.gatewayURN()+`"},"ipAddresses":["192.168.100.11"]}`)
	id := lax.make("loadBalancer/pools",
		`{"name":"p","gatewayRef":{"id":"`+lax.gatewayURN()+`"},"memberGroupRef":{"id":"`+group+`"}}`)
	lax.Expect(lax.get(cloudAPI+"loadBalancer/pools/"+id).json).To(HaveKeyWithValue("memberCount", 0.0), "omitted")
}

func TestTasksOfNATRulesDoNotRevealTheirIDs(t *testing.T) {
	c := start(t, manual)
	location := c.call(http.MethodPost, cloudAPI+c.natPath(),
		dnat("web", "203.0.113.20", "192.168.100.5", "")).header.Get("Location")
	c.Expect(c.get(location).xml.At("Owner").Attr("id")).To(Equal(c.gatewayURN()))
	c.Expect(c.get(cloudAPI + "edgeGateways/" + c.gatewayURN()).json["status"]).To(Equal("CONFIGURING"))
	c.sim.Faults().Add(vcdsim.Fault{Operation: "createNatRule", Count: 1, FailTask: true})
	c.finish(c.get(location).xml)
	c.Expect(c.get(cloudAPI + "edgeGateways/" + c.gatewayURN()).json["status"]).To(Equal("REALIZED"),
		"the gateway did not fail")
}
