// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withRoles adds users to the organization, each with a role of the same name that has some rights.
func withRoles(roles map[string][]string) func(*vcdsim.Config) {
	return func(cfg *vcdsim.Config) {
		acme := &cfg.Model.Orgs[1]
		for name, rights := range roles {
			acme.Roles = append(acme.Roles, vcdsim.Role{Name: name, Rights: rights})
			acme.Bundles = append(acme.Bundles, vcdsim.RightsBundle{Name: name, Rights: rights})
			acme.Users = append(acme.Users, vcdsim.User{Name: name, Password: "password", Role: name})
		}
	}
}

// user logs in as another user of the organization.
func (c *client) user(name string) *client {
	other := *c
	other.token = ""
	other.token = other.login(name, "acme", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return &other
}

// networkRequest is a user's request for network objects.
type networkRequest struct {
	name, method, path, body string
	rights                   []string // any of these is sufficient
}

// networkRequests returns requests that need rights, on a simulator with a few objects of every kind.
func networkRequests(c *client) []networkRequest {
	const gateway = "Organization vDC Gateway: "
	view := gateway + "View"
	viewLB := gateway + "View Load Balancer"
	viewNAT := gateway + "View NAT"
	viewFirewall := gateway + "View Firewall"
	lb := gateway + "Configure Load Balancer"
	nat := gateway + "Configure NAT"
	firewall := gateway + "Configure Firewall"
	edge := "edgeGateways/" + c.gatewayURN()
	pool := c.pool("api", "192.168.100.11")
	service := c.make("loadBalancer/virtualServices", c.service("api", pool, "198.51.100.10", 6443))
	c.make(c.natPath(), dnat("web", "198.51.100.11", "192.168.100.5", ""))
	rule := c.natPath() + "/" + c.values(c.natPath())[0]["id"].(string)
	space := "ipSpaces/" + c.values("ipSpaces/summaries")[0]["id"].(string)
	profile := c.portProfile("web", c.vdcURN())
	group := `{"name":"nodes","type":"IP_SET","ownerRef":{"id":"` + c.gatewayURN() + `"},"ipAddresses":["192.168.100.11"]}`
	get := http.MethodGet
	post := http.MethodPost
	put := http.MethodPut
	del := http.MethodDelete
	return []networkRequest{
		{"list edge gateways", get, "edgeGateways", "", []string{view}},
		{"view an edge gateway", get, edge, "", []string{view}},
		{"view used addresses", get, edge + "/usedIpAddresses", "", []string{view}},
		{"list NAT rules", get, c.natPath(), "", []string{viewNAT, nat}},
		{"view a NAT rule", get, rule, "", []string{viewNAT, nat}},
		{"create a NAT rule", post, c.natPath(), dnat("second", "198.51.100.11", "192.168.100.6", ""), []string{nat}},
		{"delete a NAT rule", del, rule, "", []string{nat}},
		{"view the load balancer", get, edge + "/loadBalancer", "", []string{viewLB, lb}},
		{"list pools", get, edge + "/loadBalancer/poolSummaries", "", []string{viewLB, lb}},
		{"list virtual services", get, edge + "/loadBalancer/virtualServiceSummaries", "", []string{viewLB, lb}},
		{"list service engine groups", get, "loadBalancer/serviceEngineGroups/assignments", "", []string{viewLB, lb}},
		{"view a pool", get, "loadBalancer/pools/" + pool, "", []string{viewLB, lb}},
		{
			"create a pool",
			post,
			"loadBalancer/pools",
			`{"name":"p","gatewayRef":{"id":"` + c.gatewayURN() + `"}}`,
			[]string{lb},
		},
		{
			"change a pool",
			put,
			"loadBalancer/pools/" + pool,
			`{"name":"api","gatewayRef":{"id":"` + c.gatewayURN() + `"}}`,
			[]string{lb},
		},
		{"view a virtual service", get, "loadBalancer/virtualServices/" + service, "", []string{viewLB, lb}},
		{
			"create a virtual service",
			post,
			"loadBalancer/virtualServices",
			c.service("second", pool, "198.51.100.10", 80),
			[]string{lb},
		},
		{"delete a virtual service", del, "loadBalancer/virtualServices/" + service, "", []string{lb}},
		{"view firewall rules", get, edge + "/firewall/rules", "", []string{viewFirewall, firewall}},
		{"change firewall rules", put, edge + "/firewall/rules", `{"userDefinedRules":[]}`, []string{firewall}},
		{"list application port profiles", get, "applicationPortProfiles", "", []string{view}},
		{"create an application port profile", post, "applicationPortProfiles", profile, []string{nat, firewall}},
		{"list firewall groups", get, "firewallGroups/summaries", "", []string{view}},
		{
			"create an IP set",
			post,
			"firewallGroups",
			group,
			[]string{firewall, "Organization vDC Distributed Firewall: Configure Rules"},
		},
		{
			"list certificates",
			get,
			"ssl/certificateLibrary",
			"",
			[]string{"Certificate Library: View", "Certificate Library: Manage"},
		},
		{
			"create a certificate",
			post,
			"ssl/certificateLibrary",
			`{"alias":"x"}`,
			[]string{"Certificate Library: Manage"},
		},
		{
			"list IP Spaces",
			get,
			"ipSpaces/summaries",
			"",
			[]string{"IP Spaces: Allocate", "Private IP Spaces: View", "Private IP Spaces: Manage"},
		},
		{
			"list allocations",
			get,
			space + "/allocations?filter=type==FLOATING_IP",
			"",
			[]string{"IP Spaces: Allocate", "Private IP Spaces: View", "Private IP Spaces: Manage"},
		},
		{
			"allocate an address",
			post,
			space + "/allocate",
			`{"type":"FLOATING_IP","quantity":1}`,
			[]string{"IP Spaces: Allocate"},
		},
	}
}

func TestNetworkObjectsRequireRights(t *testing.T) {
	everything := append(vcdsim.RightsOfCloudProvider(), "Organization vDC Distributed Firewall: Configure Rules",
		"Private IP Spaces: Manage")
	c := start(t, manual, func(cfg *vcdsim.Config) {
		cfg.Model = vcdsim.IPSpaces()
		roles := map[string][]string{}
		for i, right := range everything {
			roles[fmt.Sprint("only-", i)] = []string{right}
			roles[fmt.Sprint("not-", i)] = slices.DeleteFunc(slices.Clone(everything),
				func(r string) bool { return r == right })
		}
		withRoles(roles)(cfg)
	})
	space := c.values("ipSpaces/summaries")[0]["id"].(string)
	c.ok(http.MethodPost, cloudAPI+"ipSpaces/"+space+"/allocate", `{"type":"FLOATING_IP","quantity":2}`)
	allowed := map[string]*client{}
	refused := map[string]*client{}
	for i, right := range everything {
		allowed[right] = c.user(fmt.Sprint("only-", i))
		refused[right] = c.user(fmt.Sprint("not-", i))
	}
	for _, tc := range networkRequests(c) {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			for _, right := range tc.rights {
				a := allowed[right].call(tc.method, cloudAPI+tc.path, tc.body)
				g.Expect(a.status).NotTo(Equal(http.StatusForbidden), "%s: %s", right, a.body)
				c.advance(30 * time.Second)
			}
			for _, right := range everything {
				if !slices.Contains(tc.rights, right) {
					g.Expect(allowed[right].refused(tc.method, cloudAPI+tc.path, tc.body, 403,
						"ACCESS_TO_RESOURCE_IS_FORBIDDEN")).
						To(MatchRegexp(`^\[ \S+ \] Either you need some or all of the following rights \[.*\] to perform operations \[[A-Z_]+\] for .* or the target entity is invalid\.$`))
				}
			}
			if len(tc.rights) == 1 {
				message := refused[tc.rights[0]].refused(tc.method, cloudAPI+tc.path, tc.body, 403,
					"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
				g.Expect(message).To(ContainSubstring("[" + tc.rights[0]))
			}
		})
	}
}

func TestPresetRolesHaveTheirRequiredRights(t *testing.T) {
	c := start(t)
	ccm := c.user("ccm")
	author := c
	plain := start(t, withRoles(map[string][]string{"none": nil})).user("none")
	for _, user := range []*client{ccm, author} {
		pool := user.pool("p-"+user.token[len(user.token)-8:], "192.168.100.11")
		user.ok(http.MethodDelete, cloudAPI+"loadBalancer/pools/"+pool, "")
	}
	c.vapp("cluster")
	ccm.refused(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("other", ""), 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	plain.refused(http.MethodGet, cloudAPI+"edgeGateways", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.values("roles?pageSize=128&filter=name==Kubernetes*")).To(ConsistOf(
		HaveKeyWithValue("name", "Kubernetes Cluster Author"), HaveKeyWithValue("name", "Kubernetes Cloud Provider")))
}
