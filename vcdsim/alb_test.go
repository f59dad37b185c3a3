// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestAVirtualServiceComesUp(t *testing.T) {
	c := start(t, manual)
	pool := c.pool("api", "192.168.100.11", "192.168.100.12")
	id := c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	get := func() map[string]any { return c.get(cloudAPI + "loadBalancer/virtualServices/" + id).json }
	c.Expect(get()).To(And(HaveKeyWithValue("status", "REALIZED"), HaveKeyWithValue("healthStatus", "PENDING")))
	c.advance(20 * time.Second)
	c.Expect(get()).To(And(HaveKeyWithValue("healthStatus", "UP"),
		HaveKeyWithValue("applicationProfile", HaveKeyWithValue("name", "System-L4-Application"))))
	full := c.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(full).To(And(HaveKeyWithValue("memberCount", 2.0), HaveKeyWithValue("upMemberCount", 2.0),
		HaveKeyWithValue("virtualServiceRefs", HaveLen(1))))

	c.ok(http.MethodPut, cloudAPI+"loadBalancer/pools/"+pool, with(full, map[string]any{"members": []any{}}))
	c.advance(20 * time.Second)
	c.Expect(get()).To(HaveKeyWithValue("healthStatus", "DOWN"), "no member responds")
	c.ok(http.MethodPut, cloudAPI+"loadBalancer/virtualServices/"+id, with(get(), map[string]any{"enabled": false}))
	c.advance(20 * time.Second)
	c.Expect(get()).To(HaveKeyWithValue("healthStatus", "DISABLED"))
	summary := c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/virtualServiceSummaries?filter=name==api")[0]
	c.Expect(summary).To(And(HaveKeyWithValue("applicationProfileType", "L4"), Not(HaveKey("applicationProfile"))))
}

func TestProbesSayWhichMembersAreUp(t *testing.T) {
	c := start(t)
	pool := c.pool("api", "192.168.100.11", "192.168.100.12")
	id := c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	show := func() map[string]any { return c.get(cloudAPI + "loadBalancer/pools/" + pool).json }
	var first, second netip.AddrPort
	for i, m := range show()["members"].([]any) {
		member := m.(map[string]any)
		at := netip.MustParseAddrPort(fmt.Sprintf("%s:%v", member["ipAddress"], member["port"]))
		if second = at; i == 0 {
			first = at
		}
	}
	c.sim.ReportMembers(map[string]map[netip.AddrPort]bool{pool: {first: true, second: false}})
	c.Expect(show()).To(And(HaveKeyWithValue("upMemberCount", 1.0), HaveKeyWithValue("healthStatus", "UP"),
		HaveKeyWithValue("members", HaveExactElements(
			HaveKeyWithValue("healthStatus", "UP"), HaveKeyWithValue("healthStatus", "DOWN")))))

	c.sim.ReportMembers(map[string]map[netip.AddrPort]bool{pool: {first: false, second: false}})
	c.Expect(show()).To(And(HaveKeyWithValue("upMemberCount", 0.0), HaveKeyWithValue("healthStatus", "DOWN")))
	c.Expect(c.get(cloudAPI + "loadBalancer/virtualServices/" + id).json).To(HaveKeyWithValue("healthStatus", "DOWN"))
}

func TestAPoolThatNothingUsesIsUnassigned(t *testing.T) {
	c := start(t)
	pool := c.make("loadBalancer/pools",
		`{"name":"api","gatewayRef":{"id":"`+c.gatewayURN()+`"},"members":[{"ipAddress":"192.168.100.11"}]}`)
	show := c.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(show).To(HaveKeyWithValue("healthMessage", "The pool is unassigned."))
	c.Expect(show["members"].([]any)[0]).NotTo(HaveKey("port"), "it has none of its own")

	c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	up := netip.MustParseAddrPort("192.168.100.11:80") // which is the pool's default
	c.sim.ReportMembers(map[string]map[netip.AddrPort]bool{pool: {up: false}})
	show = c.get(cloudAPI + "loadBalancer/pools/" + pool).json
	c.Expect(show).To(HaveKeyWithValue("upMemberCount", 0.0))
}

func TestAControllerHasNoLicenceTypeOfItsOwn(t *testing.T) {
	c := start(t).provider()
	c.Expect(c.values("loadBalancer/controllers")).To(ConsistOf(HaveKeyWithValue("licenseType", "")))
}

func TestPoolsByMemberGroup(t *testing.T) {
	c := start(t)
	set := c.make("firewallGroups",
		`{"name":"nodes","type":"IP_SET","ownerRef":{"id":"`+c.gatewayURN()+
			`"},"ipAddresses":["192.168.100.11","192.168.100.12"]}`)
	pool := c.make("loadBalancer/pools",
		`{"name":"api","gatewayRef":{"id":"`+c.gatewayURN()+`"},"memberGroupRef":{"id":"`+set+`"}}`)
	c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	c.Expect(c.get(cloudAPI + "loadBalancer/pools/" + pool).json).To(And(HaveKeyWithValue("memberCount", 2.0),
		HaveKeyWithValue("memberGroupRef", HaveKeyWithValue("name", "nodes"))))
	c.ok(http.MethodPut, cloudAPI+"firewallGroups/"+set,
		`{"name":"nodes","type":"IP_SET","ipAddresses":["192.168.100.13"]}`)
	c.Expect(c.get(cloudAPI+"loadBalancer/pools/"+pool).json).To(HaveKeyWithValue("upMemberCount", 1.0),
		"the pool follows the set")
	c.Expect(c.refused(http.MethodDelete, cloudAPI+"firewallGroups/"+set, "", 400,
		"VALIDATION_ERROR")).To(ContainSubstring("in use by load balancer pool api"))
}

func TestLoadBalancersAreChecked(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		cfg.Model.ServiceEngineGroups[0].MaxService = 1
		cfg.Model.Orgs[1].Certificates = []vcdsim.Certificate{{Alias: "tls", PEM: "-"}}
	})
	pool := c.pool("api", "192.168.100.11")
	vs := c.make("loadBalancer/virtualServices", c.service("api", pool, "203.0.113.20", 6443))
	c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/virtualServices",
		c.service("second", pool, "203.0.113.20", 80), 400, "BAD_REQUEST")).
		To(ContainSubstring("has no room for another virtual service"))
	p := c.provider()
	engines := p.values("loadBalancer/serviceEngineGroups")[0]
	p.ok(http.MethodPut, cloudAPI+"loadBalancer/serviceEngineGroups/"+engines["id"].(string),
		with(engines, map[string]any{"maxVirtualServices": 50}))

	base := c.service("second", pool, "203.0.113.20", 80)
	tls := strings.Replace(base, `"L4"`, `"HTTPS"`, 1)
	for _, tc := range []struct {
		name, body, code, message string
		status                    int
	}{
		{
			name:    "the same address and port",
			body:    c.service("second", pool, "203.0.113.20", 6443),
			code:    "BAD_REQUEST",
			message: `already used with the same port by the virtual service "api"`,
			status:  400,
		},
		{name: "a duplicate name", body: c.service("api", pool, "203.0.113.20", 80), code: "DUPLICATE_NAME", message: "already exists", status: 400},
		{name: "HTTPS without a certificate", body: tls, code: "BAD_REQUEST", message: "A certificate must be specified", status: 400},
		{
			name:    "an unknown certificate",
			body:    strings.Replace(tls, `"name"`, `"certificateRef":{"id":"urn:vcloud:certificateLibraryItem:x"},"name"`, 1),
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: "invalid",
			status:  403,
		},
		{
			name:    "an unknown pool",
			body:    c.service("second", "urn:vcloud:loadBalancerPool:x", "203.0.113.20", 80),
			code:    "ACCESS_TO_RESOURCE_IS_FORBIDDEN",
			message: "invalid",
			status:  403,
		},
		{name: "an invalid address", body: c.service("second", pool, "here", 80), code: "BAD_REQUEST", message: `"here" is invalid`, status: 400},
		{name: "no port", body: c.service("second", pool, "203.0.113.20", 0), code: "BAD_REQUEST", message: "service port is invalid", status: 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/virtualServices", tc.body, tc.status,
				tc.code)).To(ContainSubstring(tc.message))
		})
	}
	certificate := c.values("ssl/certificateLibrary")[0]["id"].(string)
	second := c.make("loadBalancer/virtualServices",
		strings.Replace(tls, `"name"`, `"certificateRef":{"id":"`+certificate+`"},"name"`, 1))
	c.Expect(c.refused(http.MethodDelete, cloudAPI+"ssl/certificateLibrary/"+certificate, "", 400,
		"VALIDATION_ERROR")).To(ContainSubstring("in use by virtual service second"))
	c.Expect(c.refused(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool, "", 400,
		"VALIDATION_ERROR")).To(ContainSubstring("in use by virtual service api"))
	for _, id := range []string{vs, second} {
		c.ok(http.MethodDelete, cloudAPI+"loadBalancer/virtualServices/"+id, "")
	}
	c.ok(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool, "")
}

func TestALoadBalancerIsDisabledOnlyWhenItIsEmpty(t *testing.T) {
	c := start(t)
	p := c.provider()
	path := cloudAPI + "edgeGateways/" + c.gatewayURN() + "/loadBalancer"
	c.Expect(c.get(path).json).To(And(HaveKeyWithValue("enabled", true),
		HaveKeyWithValue("serviceNetworkDefinition", "192.168.255.1/25")))
	pool := c.pool("api", "192.168.100.11")
	c.refused(http.MethodPut, path, `{"enabled":false}`, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	p.refused(http.MethodPut, path, `{"enabled":false}`, 400, "VALIDATION_ERROR")
	c.ok(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool, "")
	assignment := p.values("loadBalancer/serviceEngineGroups/assignments")[0]
	c.Expect(assignment).To(And(HaveKeyWithValue("numDeployedVirtualServices", 0.0),
		HaveKeyWithValue("maxVirtualServices", 200.0)))
	p.ok(http.MethodDelete, cloudAPI+"loadBalancer/serviceEngineGroups/assignments/"+assignment["id"].(string), "")
	p.ok(http.MethodPut, path, `{"enabled":false}`)
	c.Expect(c.get(path).json).To(HaveKeyWithValue("enabled", false))
	c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/pools",
		fmt.Sprintf(`{"name":"p","gatewayRef":{"id":%q}}`, c.gatewayURN()), 400, "BAD_REQUEST")).
		To(ContainSubstring("not enabled"))
}

func TestAnAddressIsSharedSinceVCD104(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version vcdsim.Version
		shared  bool
	}{
		{"10.3.3", vcdsim.Version103, false},
		{"10.4.2", vcdsim.Version1042, true},
		{"10.6", vcdsim.Version106, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, func(cfg *vcdsim.Config) { cfg.Version = tc.version })
			pool := c.pool("api", "192.168.100.11")
			c.make("loadBalancer/virtualServices", c.service("http", pool, "203.0.113.20", 80))
			if tc.shared {
				c.make("loadBalancer/virtualServices", c.service("https", pool, "203.0.113.20", 443))
				return
			}
			c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/virtualServices",
				c.service("https", pool, "203.0.113.20", 443), 400, "BAD_REQUEST")).
				To(ContainSubstring(`203.0.113.20 is already used by the virtual service "http"`))
			c.make("loadBalancer/virtualServices", c.service("https", pool, "203.0.113.21", 443))
		})
	}
}

func TestAddressesToOutsideMustBeTheGateways(t *testing.T) {
	c := start(t)
	pool := c.pool("api", "192.168.100.11")
	for _, address := range []string{"203.0.113.100", "203.0.113.2"} {
		c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/virtualServices", c.service("x", pool, address, 80),
			400, "BAD_REQUEST")).
			To(ContainSubstring("is not allocated to the edge gateway"))
		c.Expect(c.refused(http.MethodPost, cloudAPI+c.natPath(), dnat("x", address, "192.168.100.5", ""), 400,
			"BAD_REQUEST")).
			To(ContainSubstring("is not allocated to the edge gateway"))
	}
	c.make("loadBalancer/virtualServices", c.service("primary", pool, "203.0.113.10", 80))
	c.make("loadBalancer/virtualServices", c.service("internal", pool, "192.168.8.2", 80))

	assume := vcdsim.DefaultAssumptions()
	assume.UplinkAddressMustBeOwn = false
	lax := start(t, func(cfg *vcdsim.Config) { cfg.Assumptions = &assume })
	lax.make(lax.natPath(), dnat("x", "203.0.113.100", "192.168.100.5", ""))
}

func TestACanceledCreationIsNotRealized(t *testing.T) {
	c := start(t, manual)
	a := c.call(http.MethodPost, cloudAPI+"loadBalancer/pools",
		`{"name":"api","gatewayRef":{"id":"`+c.gatewayURN()+`"}}`)
	c.Expect(a.status).To(Equal(http.StatusAccepted))
	c.Expect(c.call(http.MethodPost, a.header.Get("Location")+"/action/cancel",
		"").status).To(Equal(http.StatusNoContent))
	pools := c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/poolSummaries")
	c.Expect(pools).To(ConsistOf(HaveKeyWithValue("status", "REALIZATION_FAILED")))
}
