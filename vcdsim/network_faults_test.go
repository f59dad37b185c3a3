// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A networkWrite is a change on a gateway, in the library or in an IP Space.
type networkWrite struct {
	name, method, path, body string
	operation, task          string // as in fault rules; task is empty if it finishes immediately
	happened                 func() bool
}

// networkWrites contains one write of each kind, on a gateway with objects of every kind.
func networkWrites(c *client) []networkWrite {
	const balancer = "/cloudapi/1.0.0/loadBalancer/"
	const edge = "/cloudapi/1.0.0/edgeGateways/"
	post := http.MethodPost
	put := http.MethodPut
	del := http.MethodDelete
	summaries := "edgeGateways/" + c.gatewayURN() + "/loadBalancer/"
	c.pool("unused", "192.168.100.11")
	pool := c.pool("old", "192.168.100.11")
	service := c.make("loadBalancer/virtualServices", c.service("old", pool, "203.0.113.20", 80))
	c.make(c.natPath(), dnat("old", "203.0.113.21", "192.168.100.5", ""))
	set := c.make("firewallGroups",
		`{"name":"old","type":"IP_SET","ownerRef":{"id":"`+c.gatewayURN()+`"},"ipAddresses":["192.168.100.11"]}`)
	profile := c.portProfile("new", c.vdcURN())
	space := "ipSpaces/" + c.values("ipSpaces/summaries")[0]["id"].(string)
	allocations := space + "/allocations?filter=type==FLOATING_IP"
	c.ok(post, cloudAPI+space+"/allocate", `{"type":"FLOATING_IP","quantity":2}`)
	kept := c.values(allocations)[0]
	gone := c.values(allocations)[1]
	tls := vcdsim.NewCertificate("new")
	has := func(path, name string) func() bool {
		return func() bool { return len(c.values(path+"?filter=name=="+name)) > 0 }
	}
	hasNot := func(path, name string) func() bool {
		there := has(path, name)
		return func() bool { return !there() }
	}
	rule := func(name string) func() bool {
		return func() bool {
			return slices.ContainsFunc(c.values(c.natPath()), func(m map[string]any) bool { return m["name"] == name })
		}
	}
	member := func() bool { return c.get(cloudAPI + "loadBalancer/pools/" + pool).json["memberCount"] == 2.0 }
	unused := c.values(summaries + "poolSummaries?filter=name==unused")[0]["id"].(string)
	return []networkWrite{
		{
			"create a pool",
			post,
			"loadBalancer/pools",
			`{"name":"new","gatewayRef":{"id":"` + c.gatewayURN() + `"}}`,
			"POST " + balancer + "pools",
			"createLoadBalancerPool",
			has(summaries+"poolSummaries", "new"),
		},
		{
			"change a pool",
			put,
			"loadBalancer/pools/" + pool,
			`{"name":"old","gatewayRef":{"id":"` + c.gatewayURN() +
				`"},"members":[{"ipAddress":"192.168.100.11"},{"ipAddress":"192.168.100.12"}]}`,
			"PUT " + balancer + "pools",
			"updateLoadBalancerPool",
			member,
		},
		{
			"delete a pool",
			del,
			"loadBalancer/pools/" + unused,
			"",
			"DELETE " + balancer + "pools",
			"deleteLoadBalancerPool",
			hasNot(summaries+"poolSummaries", "unused"),
		},
		{
			"create a virtual service",
			post,
			"loadBalancer/virtualServices",
			c.service("new", pool, "203.0.113.20", 443),
			"POST " + balancer + "virtualServices",
			"createLoadBalancerVirtualService",
			has(summaries+"virtualServiceSummaries", "new"),
		},
		{
			"delete a virtual service",
			del,
			"loadBalancer/virtualServices/" + service,
			"",
			"DELETE " + balancer + "virtualServices",
			"deleteLoadBalancerVirtualService",
			hasNot(summaries+"virtualServiceSummaries", "old"),
		},
		{
			"create a NAT rule",
			post,
			c.natPath(),
			dnat("new", "203.0.113.21", "192.168.100.6", ""),
			"POST " + edge + "nat/rules",
			"createNatRule",
			rule("new"),
		},
		{
			"delete a NAT rule",
			del,
			c.natPath() + "/" + c.values(c.natPath())[0]["id"].(string),
			"",
			"DELETE " + edge + "nat/rules",
			"deleteNatRule",
			func() bool { return !rule("old")() },
		},
		{
			"create an application port profile",
			post,
			"applicationPortProfiles",
			profile,
			"POST /cloudapi/1.0.0/applicationPortProfiles",
			"createApplicationPortProfile",
			has("applicationPortProfiles", "new"),
		},
		{
			"delete an IP set",
			del,
			"firewallGroups/" + set,
			"",
			"DELETE /cloudapi/1.0.0/firewallGroups",
			"deleteFirewallGroup",
			hasNot("firewallGroups/summaries", "old"),
		},
		{
			"create a certificate",
			post,
			"ssl/certificateLibrary",
			with(map[string]any{"alias": "new", "certificate": tls.PEM, "privateKey": tls.Key}, nil),
			"POST /cloudapi/1.0.0/ssl/certificateLibrary",
			"",
			func() bool {
				return len(c.values("ssl/certificateLibrary?filter=alias==new")) > 0
			},
		},
		{
			"allocate an address",
			post,
			space + "/allocate",
			`{"type":"FLOATING_IP","quantity":1}`,
			"POST /cloudapi/1.0.0/ipSpaces/allocate",
			"createIpSpaceAllocation",
			func() bool { return len(c.values(allocations)) == 3 },
		},
		{
			"mark an address",
			put,
			space + "/allocations/" + kept["id"].(string),
			with(kept, map[string]any{"usageState": "USED_MANUAL", "description": "mine"}),
			"PUT /cloudapi/1.0.0/ipSpaces/allocations",
			"updateIpSpaceAllocation",
			func() bool {
				return len(c.values(allocations+";usageState==USED_MANUAL")) == 1
			},
		},
		{
			"release an address",
			del,
			space + "/allocations/" + gone["id"].(string),
			"",
			"DELETE /cloudapi/1.0.0/ipSpaces/allocations",
			"deleteIpSpaceAllocation",
			func() bool {
				return len(c.values(allocations+";value=="+gone["value"].(string))) == 0
			},
		},
	}
}

func TestNetworkRequestFaults(t *testing.T) {
	for i := range networkWrites(start(t, preset("cloud-provider"))) {
		c := start(t, preset("cloud-provider"), manual)
		w := networkWrites(c)[i]
		t.Run(w.name, func(t *testing.T) {
			g := NewWithT(t)
			for _, fault := range []vcdsim.Fault{
				{Status: 503},
				{Status: 429, Header: map[string]string{"Retry-After": "7"}},
				{Status: 401},
				{Busy: vcdsim.BusyTenant},
				{DropBefore: true},
			} {
				fault.Operation = w.operation
				fault.Count = 1
				c.sim.Faults().Add(fault)
				res, err := c.http.Do(c.request(w.method, cloudAPI+w.path, w.body))
				if fault.DropBefore {
					g.Expect(errors.Is(err, io.EOF)).To(BeTrue(), "%v", err)
				} else {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(res.Body.Close()).To(Succeed())
					g.Expect(res.StatusCode).To(BeElementOf(fault.Status, 400), "%+v", fault)
				}
				g.Expect(c.sim.Faults().List()).To(BeEmpty(), "the rule matched")
				c.advance(time.Minute)
				g.Expect(w.happened()).To(BeFalse(), "%+v", fault)
			}
			c.sim.Faults().Add(vcdsim.Fault{Operation: w.operation, Count: 1, DropAfter: true})
			_, err := c.http.Do(c.request(w.method, cloudAPI+w.path, w.body)) //nolint:bodyclose // there is no answer
			g.Expect(errors.Is(err, io.EOF)).To(BeTrue(), "%v", err)
			c.advance(time.Minute)
			g.Expect(w.happened()).To(BeTrue(), "it was executed, but without a response")
		})
	}
}

func TestNetworkTaskFaults(t *testing.T) {
	for i := range networkWrites(start(t, preset("cloud-provider"))) {
		c := start(t, preset("cloud-provider"), manual)
		w := networkWrites(c)[i]
		if w.task == "" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			g := NewWithT(t)
			c.sim.Faults().Add(vcdsim.Fault{Operation: w.task, Count: 1, StickTask: true, Delay: time.Hour})
			task := c.get(c.call(w.method, cloudAPI+w.path, w.body).header.Get("Location")).xml
			c.advance(time.Minute)
			g.Expect(c.get(task.Attr("href")).xml.Attr("status")).To(Equal("running"))
			c.advance(time.Hour)
			g.Expect(c.get(task.Attr("href")).xml.Attr("status")).To(Equal("success"))
			g.Expect(w.happened()).To(BeTrue())

			for status, fault := range map[string]vcdsim.Fault{
				"error":   {FailTask: true, Code: "NSX_ERROR", Message: "NSX is away"},
				"aborted": {AbortTask: true},
			} {
				c := start(t, preset("cloud-provider"), manual)
				w := networkWrites(c)[i]
				fault.Operation = w.task
				fault.Count = 1
				c.sim.Faults().Add(fault)
				task := c.finish(c.get(c.call(w.method, cloudAPI+w.path, w.body).header.Get("Location")).xml)
				g.Expect(task.Attr("status")).To(Equal(status))
				g.Expect(w.happened()).To(Equal(w.method == http.MethodPost && w.task != "createIpSpaceAllocation"),
					"its result remains, as failed")
			}
		})
	}
}

func TestFaultsOfOneGatewayDoNotAffectTheOther(t *testing.T) {
	c := start(t, preset("two-gateways"), manual)
	second := c.model().VDCs[0].EdgeGateways[1]
	pool := func(gateway string) answer {
		return c.call(http.MethodPost, cloudAPI+"loadBalancer/pools",
			`{"name":"p","gatewayRef":{"id":"urn:vcloud:gateway:`+gateway+`"}}`)
	}
	for _, entity := range []string{second.Name, second.ID, "urn:vcloud:gateway:" + second.ID} {
		c.sim.Faults().Add(vcdsim.Fault{Entity: entity, Status: 503})
		c.Expect(pool(second.ID).status).To(Equal(503))
		c.Expect(c.call(http.MethodGet, cloudAPI+"edgeGateways/urn:vcloud:gateway:"+second.ID,
			"").status).To(Equal(503))
		c.get(cloudAPI + "edgeGateways/" + c.gatewayURN())
		c.sim.Faults().Clear()
	}
	c.sim.Faults().Add(vcdsim.Fault{Entity: second.Name, StickTask: true})
	stuck := pool(second.ID)
	fine := pool(c.gateway().ID)
	c.Expect(c.finish(c.get(fine.header.Get("Location")).xml).Attr("status")).To(Equal("success"))
	c.Expect(c.get(stuck.header.Get("Location")).xml.Attr("status")).To(Equal("running"))
}
