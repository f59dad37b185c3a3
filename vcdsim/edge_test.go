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

func TestGatewaysUseAddresses(t *testing.T) {
	c := start(t)
	c.Expect(c.used()).To(ConsistOf("203.0.113.10 PRIMARY_IP"))

	c.make(c.natPath(), dnat("web", "203.0.113.20", "192.168.100.5", ""))
	c.make("loadBalancer/virtualServices", c.service("api", c.pool("api", "192.168.100.11"), "203.0.113.21", 6443))
	c.make(c.natPath(), dnat("inside", "10.9.9.9", "192.168.100.6", ""))
	c.Expect(c.used()).To(Equal([]string{"203.0.113.10 PRIMARY_IP", "203.0.113.20 DNAT", "203.0.113.21 Load_Balancer"}),
		"internal addresses do not use the uplink")

	subnet := c.get(cloudAPI + "edgeGateways/" +
		c.gatewayURN()).json["edgeGatewayUplinks"].([]any)[0].(map[string]any)["subnets"].(map[string]any)["values"].([]any)[0]
	c.Expect(subnet).To(And(HaveKeyWithValue("totalIpCount", 90.0), HaveKeyWithValue("usedIpCount", 3.0),
		HaveKeyWithValue("primaryIp", "203.0.113.10")))

	for _, rule := range c.values(c.natPath()) {
		c.ok(http.MethodDelete, cloudAPI+c.natPath()+"/"+rule["id"].(string), "")
	}
	c.ok(http.MethodDelete,
		cloudAPI+"loadBalancer/virtualServices/"+
			c.values("edgeGateways/" + c.gatewayURN() + "/loadBalancer/virtualServiceSummaries")[0]["id"].(string), "")
	c.Expect(c.used()).To(ConsistOf("203.0.113.10 PRIMARY_IP"), "all are returned")
}

// edgeBody returns a new gateway with an uplink.
func (c *client) edgeBody(name, subnet string) string {
	return fmt.Sprintf(`{"name":%q,"ownerRef":{"id":"urn:vcloud:vdc:%s"},"edgeGatewayUplinks":[{"uplinkId":"urn:vcloud:network:%s","subnets":{"values":[%s]}}]}`,
		name, c.model().VDCs[0].ID, c.sim.State().Model.ExternalNetworks[0].ID, subnet)
}

func TestNoAddressIsAssignedToTwoGateways(t *testing.T) {
	c := start(t).provider()
	id := c.make("edgeGateways",
		c.edgeBody("second",
			`{"gateway":"203.0.113.1","prefixLength":24,"autoAllocateIpRanges":true,"totalIpCount":100}`))
	gateways := c.model().VDCs[0].EdgeGateways
	c.Expect(gateways).To(HaveLen(2))
	first := gateways[0].Uplinks[0].Subnets[0]
	second := gateways[1].Uplinks[0].Subnets[0]
	for _, a := range second.Addresses {
		for _, b := range first.Addresses {
			c.Expect(a.Contains(b.From) || b.Contains(a.From)).To(BeFalse(), "%v and %v", a, b)
		}
	}
	c.Expect(second.Addresses[0].From.String()).To(Equal("203.0.113.100"))
	c.Expect(second.Primary).To(Equal(second.Addresses[0].From))

	for _, tc := range []struct{ name, subnet, message string }{
		{
			name:    "addresses of another gateway",
			subnet:  `{"gateway":"203.0.113.1","prefixLength":24,"ipRanges":{"values":[{"startAddress":"203.0.113.50","endAddress":"203.0.113.60"}]}}`,
			message: "already allocated to another edge gateway",
		},
		{
			name:    "addresses outside the pool",
			subnet:  `{"gateway":"203.0.113.1","prefixLength":24,"ipRanges":{"values":[{"startAddress":"203.0.113.3","endAddress":"203.0.113.4"}]}}`,
			message: "not within the static IP pool",
		},
		{
			name:    "addresses of another subnet",
			subnet:  `{"gateway":"203.0.113.1","prefixLength":24,"ipRanges":{"values":[{"startAddress":"198.51.100.3","endAddress":"198.51.100.4"}]}}`,
			message: "is invalid",
		},
		{
			name:    "more addresses than the pool has",
			subnet:  `{"gateway":"203.0.113.1","prefixLength":24,"autoAllocateIpRanges":true,"totalIpCount":52}`,
			message: "not enough free IP addresses",
		},
		{name: "an invalid gateway", subnet: `{"gateway":"here","prefixLength":24}`, message: `"here" is invalid`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			message := c.refused(http.MethodPost, cloudAPI+"edgeGateways", c.edgeBody("third", tc.subnet), 400,
				"BAD_REQUEST")
			NewWithT(t).Expect(message).To(ContainSubstring(tc.message))
		})
	}
	c.make("edgeGateways",
		c.edgeBody("third", `{"gateway":"203.0.113.1","prefixLength":24,"autoAllocateIpRanges":true,"totalIpCount":51}`))
	c.ok(http.MethodDelete, cloudAPI+"edgeGateways/"+id, "")
	c.make("edgeGateways",
		c.edgeBody("fourth",
			`{"gateway":"203.0.113.1","prefixLength":24,"autoAllocateIpRanges":true,"totalIpCount":100}`))
}

func TestAddressesInUseCannotBeRemovedFromTheirGateway(t *testing.T) {
	c := start(t)
	c.make(c.natPath(), dnat("web", "203.0.113.80", "192.168.100.5", ""))
	p := c.provider()
	path := cloudAPI + "edgeGateways/" + c.gatewayURN()
	shrunk := c.edgeBody("acme-vdc-gateway",
		`{"gateway":"203.0.113.1","prefixLength":24,"primaryIp":"203.0.113.10","ipRanges":{"values":[{"startAddress":"203.0.113.10","endAddress":"203.0.113.20"}]}}`)
	c.Expect(p.refused(http.MethodPut, path, shrunk, 400,
		"VALIDATION_ERROR")).To(ContainSubstring("203.0.113.80 cannot be deallocated because it is in use"))
	c.ok(http.MethodDelete, cloudAPI+c.natPath()+"/"+c.values(c.natPath())[0]["id"].(string), "")
	p.ok(http.MethodPut, path, shrunk)
	c.Expect(c.gateway().Uplinks[0].Subnets[0].Addresses).To(HaveLen(1))

	grown := strings.Replace(shrunk, `"uplinkId"`, `"quickAddAllocatedIpCount":5,"uplinkId"`, 1)
	p.ok(http.MethodPut, path, grown)
	total := c.get(path).json["edgeGatewayUplinks"].([]any)[0].(map[string]any)["subnets"].(map[string]any)["values"].([]any)[0].(map[string]any)["totalIpCount"]
	c.Expect(total).To(Equal(16.0))
}

func TestOneTaskAtATimeOnAGateway(t *testing.T) {
	c := start(t, manual)
	first := c.call(http.MethodPost, cloudAPI+c.natPath(), dnat("first", "203.0.113.20", "192.168.100.5", ""))
	c.Expect(first.status).To(Equal(http.StatusAccepted))
	c.Expect(first.body).To(BeEmpty(), "only Location leads to the result")
	c.Expect(c.get(cloudAPI + "edgeGateways/" + c.gatewayURN()).json["status"]).To(Equal("CONFIGURING"))
	message := c.refused(http.MethodPost, cloudAPI+c.natPath(), dnat("second", "203.0.113.21", "192.168.100.5", ""),
		400, "BUSY_ENTITY")
	c.Expect(message).To(ContainSubstring("CREATE_NAT_RULE(com.vmware.vcloud.entity.task:"))
	c.refused(http.MethodPost, cloudAPI+"loadBalancer/pools", `{"name":"p","gatewayRef":{"id":"`+c.gatewayURN()+`"}}`,
		400, "BUSY_ENTITY")
	c.advance(10 * time.Second)
	c.make(c.natPath(), dnat("second", "203.0.113.21", "192.168.100.5", ""))
	c.Expect(c.get(cloudAPI + "edgeGateways/" + c.gatewayURN()).json["status"]).To(Equal("REALIZED"))
}

func TestAFailedTaskKeepsCreatedObjects(t *testing.T) {
	c := start(t, manual)
	c.sim.Faults().Add(vcdsim.Fault{FailTask: true, Operation: "createLoadBalancerPool", Count: 1})
	location := c.call(http.MethodPost, cloudAPI+"loadBalancer/pools",
		`{"name":"p","gatewayRef":{"id":"`+c.gatewayURN()+`"}}`).header.Get("Location")
	summaries := "edgeGateways/" + c.gatewayURN() + "/loadBalancer/poolSummaries"
	c.Expect(c.values(summaries)[0]).To(HaveKeyWithValue("status", "PENDING"))
	c.Expect(c.finish(c.get(location).xml).Attr("status")).To(Equal("error"))
	pool := c.values(summaries)[0]
	c.Expect(pool).To(HaveKeyWithValue("status", "REALIZATION_FAILED"))
	c.ok(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool["id"].(string), "")
	c.Expect(c.values(summaries)).To(BeEmpty())
}

func TestOthersDoNotSeeAGateway(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		other := vcdsim.Minimal().Orgs[1]
		other.Name = "other"
		cfg.Model.Orgs = append(cfg.Model.Orgs, other)
	})
	pool := c.pool("secret", "192.168.100.11")
	paths := []string{
		"edgeGateways/" + c.gatewayURN(),
		"edgeGateways/" + c.gatewayURN() + "/usedIpAddresses",
		c.natPath(),
		"loadBalancer/pools/" + pool,
		"edgeGateways/" + c.gatewayURN() + "/loadBalancer",
		"edgeGateways/" + c.gatewayURN() + "/loadBalancer/poolSummaries",
	}
	for _, p := range paths {
		c.get(cloudAPI + p)
	}
	c.token = c.login("admin", "other", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	for _, p := range paths {
		c.refused(http.MethodGet, cloudAPI+p, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	}
	c.Expect(c.values("edgeGateways")).To(BeEmpty())
	c.Expect(c.values("loadBalancer/serviceEngineGroups/assignments")).To(BeEmpty())
}
