// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// balancer changes settings of the first gateway's load balancer.
func balancer(fields map[string]any) func(*vcdsim.Config) {
	return func(c *vcdsim.Config) { c.Model.Orgs[1].VDCs[0].EdgeGateways[0].LoadBalancer.Fields = fields }
}

func TestFeaturesOfPremiumAreRefusedWithStandard(t *testing.T) {
	c := start(t, balancer(map[string]any{"supportedFeatureSet": "STANDARD"}))
	pool := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"gatewayRef":{"id":%q}%s}`, name, c.gatewayURN(), more)
	}
	for _, more := range []string{
		`,"algorithm":"FASTEST_RESPONSE"`, `,"algorithm":"CORE_AFFINITY"`,
		`,"persistenceProfile":{"type":"APP_COOKIE","value":"id"}`,
	} {
		c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/pools", pool("premium", more), 400,
			"BAD_REQUEST")).To(ContainSubstring("requires the feature set PREMIUM"), more)
	}
	for i, more := range []string{
		`,"algorithm":"CONSISTENT_HASH"`, `,"persistenceProfile":{"type":"CLIENT_IP"}`,
		`,"persistenceProfile":{"type":"HTTP_COOKIE","value":"id"}`,
	} {
		c.make("loadBalancer/pools", pool(fmt.Sprint("standard-", i), more))
	}

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().PremiumFeaturesRefused = false })
	c.make("loadBalancer/pools", pool("premium", `,"algorithm":"RANDOM"`))
}

func TestVirtualIPsNeedAServiceNetworkOfTheirFamily(t *testing.T) {
	const v4, v6 = "203.0.113.20", "fd00:200::20"
	for name, tt := range map[string]struct {
		fields map[string]any
		lacks  string
	}{
		"VCD's default": {nil, v6},
		"only IPv6":     {map[string]any{"ipv6ServiceNetworkDefinition": "fd00:255::1/120"}, v4},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, balancer(tt.fields))
			pool := c.pool("api", "192.168.100.11")
			service := func(name, vip string) string {
				body := c.service(name, pool, v4, 80)
				if vip == v6 {
					body = with(c.body(body), map[string]any{"virtualIpAddress": nil, "ipv6VirtualIpAddress": v6})
				}
				return body
			}

			c.Expect(c.refused(http.MethodPost, cloudAPI+"loadBalancer/virtualServices", service("x", tt.lacks), 400,
				"BAD_REQUEST")).To(ContainSubstring("no service network for the virtual IP address " + tt.lacks))

			has := map[string]string{v4: v6, v6: v4}[tt.lacks]
			c.make("loadBalancer/virtualServices", service("has", has))
			c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().IPv6NeedsServiceNetwork = false })
			c.make("loadBalancer/virtualServices", service("lacks", tt.lacks))
		})
	}
}

func TestASharedVirtualIPStays(t *testing.T) {
	c := start(t)
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().SharedVIPStays = true })
	pool := c.pool("api", "192.168.100.11")
	one := c.make("loadBalancer/virtualServices", c.service("one", pool, "203.0.113.20", 80))
	two := c.make("loadBalancer/virtualServices", c.service("two", pool, "203.0.113.20", 443))
	path := cloudAPI + "loadBalancer/virtualServices/" + one
	moved := with(c.get(path).json, map[string]any{"virtualIpAddress": "203.0.113.21"})

	c.Expect(c.refused(http.MethodPut, path, moved, 400, "BAD_REQUEST")).To(ContainSubstring(`"two" shares it`))
	c.ok(http.MethodPut, path, with(c.get(path).json, map[string]any{"description": "changed"}))

	c.ok(http.MethodDelete, cloudAPI+"loadBalancer/virtualServices/"+two, "")
	c.ok(http.MethodPut, path, moved)
	c.make("loadBalancer/virtualServices", c.service("two", pool, "203.0.113.21", 443))
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().SharedVIPStays = false })
	c.ok(http.MethodPut, path, with(c.get(path).json, map[string]any{"virtualIpAddress": "203.0.113.22"}))
}

func TestFirewallGroupsOfADataCenterGroup(t *testing.T) {
	c := start(t, preset("vdc-group"))
	set := func(name, owner string) string {
		return fmt.Sprintf(`{"name":%q,"type":"IP_SET","ownerRef":{"id":%q},"ipAddresses":["192.168.100.11"]}`, name, owner)
	}
	c.Expect(c.refused(http.MethodPost, cloudAPI+"firewallGroups", set("nodes", c.gatewayURN()), 400,
		"BAD_REQUEST")).To(ContainSubstring("belongs to a data center group"))
	c.make("firewallGroups", set("nodes", c.groupURN()))
	c.Expect(c.values("firewallGroups/summaries?filter=ownerRef.id==" + c.groupURN())).To(HaveLen(1))

	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().GroupOwnsFirewallGroups = false })
	c.make("firewallGroups", set("of-the-gateway", c.gatewayURN()))
}
