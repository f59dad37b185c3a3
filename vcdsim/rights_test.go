// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const extraConfigRight = "vApp: Allow All Extra Config"

// extraConfig returns a reconfiguration of a VM with one key.
func (c *client) extraConfig(name string) string {
	return `<Vm ` + xmlns + ` name="` + name + `"><VirtualHardwareSection><ExtraConfig key="guestinfo.x" value="y"/></VirtualHardwareSection></Vm>`
}

func TestAnUndefinedRoleHasNoRights(t *testing.T) {
	c := start(t, withUsers("Of Nobody", "other"))

	c.user("other").refused(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("x", ""), 403, forbiddenCode)
	c.user("other").refused(http.MethodGet, "/cloudapi/1.0.0/edgeGateways", "", 403, forbiddenCode)
}

func TestARoleHasTheSameIDEverywhere(t *testing.T) {
	c := start(t).user("admin")
	role := c.call(http.MethodPost, cloudAPI+"roles", `{"name":"Operator"}`).json["id"].(string)
	account, _ := c.serviceAccount("ccm")
	path := cloudAPI + "serviceAccounts/urn:vcloud:serviceAccount:" + account
	c.Expect(c.call(http.MethodPut, path, `{"name":"ccm","softwareId":"x","role":{"id":"`+role+`"}}`).status).To(Equal(http.StatusOK))
	c.Expect(c.get(path).json).To(HaveKeyWithValue("role", HaveKeyWithValue("id", role)))

	org := c.get("/api/org").xml.At("Org").Attr("href")
	users := strings.Replace(org, "/api/org/", "/api/admin/org/", 1) + "/users"
	user := c.call(http.MethodPost, users, `<User `+xmlns+` name="operator"><IsEnabled>true</IsEnabled><Role href="`+c.sim.URL()+`/api/admin/role/`+
		strings.TrimPrefix(role, "urn:vcloud:role:")+`"/><Password>password</Password></User>`)
	c.Expect(user.xml.At("Role").Attr("href")).To(HaveSuffix(strings.TrimPrefix(role, "urn:vcloud:role:")))
	c.Expect(c.get(user.xml.At("Role").Attr("href")).xml.Attr("name")).To(Equal("Operator"))

	session := c.user("operator").get(cloudAPI + "sessions/current").json
	c.Expect(session["roleRefs"]).To(ConsistOf(HaveKeyWithValue("id", role)))
}

func TestAdministratorsHaveOnlyTheDefaultRights(t *testing.T) {
	c := start(t)
	admin := c.user("admin")
	vm := admin.vm(admin.vapp("own"), "node")

	admin.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	admin.get("/cloudapi/1.0.0/edgeGateways")
	c.Expect(admin.refused(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"), 403, forbiddenCode)).
		To(ContainSubstring("rights [" + extraConfigRight + "]"))
	admin.refused(http.MethodPost, "/cloudapi/1.0.0/entityTypes/urn:vcloud:type:vmware:capvcdCluster:1.1.0",
		`{"name":"c","entity":{}}`, 403, forbiddenCode)
}

func TestEveryRightOfARoleIsListed(t *testing.T) {
	c := start(t).user("admin")
	names := func(path string) (out []any) {
		for _, v := range c.get(cloudAPI + path).json["values"].([]any) {
			out = append(out, v.(map[string]any)["name"])
		}
		return out
	}
	role := c.get(cloudAPI + "roles?filter=name==vApp%20User").json["values"].([]any)[0].(map[string]any)["id"].(string)

	of := names("roles/" + role + "/rights?pageSize=128")

	c.Expect(of).To(ContainElements("vApp: Copy", "vApp: Use Console"))
	for page := range 3 {
		of = slices.DeleteFunc(of, func(name any) bool {
			return slices.Contains(names(fmt.Sprintf("rights?pageSize=64&page=%d", page+1)), name)
		})
	}
	c.Expect(of).To(BeEmpty())
}

func TestARoleHasOnlyRightsPublishedToItsOrganization(t *testing.T) {
	c := start(t, func(cfg *vcdsim.Config) {
		bundles := cfg.Model.Orgs[1].Bundles
		bundles[0].Rights = slices.DeleteFunc(bundles[0].Rights, func(r string) bool { return r == extraConfigRight })
	})
	vm := c.vm(c.vapp("cluster"), "node")
	c.refused(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"), 403, forbiddenCode)

	provider := c.provider()
	bundle := provider.call(http.MethodPost, cloudAPI+"rightsBundles", `{"name":"Kubernetes"}`).json["id"].(string)
	list := provider.get(cloudAPI + "rights?filter=name==" + "vApp:%20Allow%20All%20Extra%20Config").json["values"]
	right := list.([]any)[0].(map[string]any)["id"].(string)
	provider.must(http.MethodPost, cloudAPI+"rightsBundles/"+bundle+"/rights", `{"values":[{"id":"`+right+`"}]}`)
	c.refused(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"), 403, forbiddenCode)

	provider.must(http.MethodPost, cloudAPI+"rightsBundles/"+bundle+"/tenants/publishAll", "")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"))
}

func TestExtraConfigurationIsVisibleOnlyWithItsRight(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"))

	c.Expect(string(c.get(vm).body)).To(ContainSubstring("guestinfo.x"))
	c.Expect(string(c.user("ccm").get(vm).body)).NotTo(ContainSubstring("guestinfo.x"))
}

func TestEntitiesRequireTheRightOfTheirTypeAndAccess(t *testing.T) {
	const prefix = "vmware:capvcdCluster: "
	c := start(t, withRoles(map[string][]string{
		"viewer":       {prefix + "View"},
		"editor":       {prefix + "Modify"},
		"owner":        {prefix + "Full Access"},
		"sees all":     {prefix + "Administrator View"},
		"controls all": {prefix + "Administrator Full access"},
		"nothing":      {"Organization: View"},
	}))
	const types = cloudAPI + "entityTypes/urn:vcloud:type:vmware:capvcdCluster:1.1.0"
	owner := c.user("owner")
	href := c.get(owner.call(http.MethodPost, types, `{"name":"c","entity":`+content+`}`).header.Get("Location")).
		xml.At("Owner").Attr("href")
	entity := cloudAPI + "entities/urn:vcloud:entity:vmware:capvcdCluster:" + href[len(href)-36:]
	owner.must(http.MethodPost, entity+"/resolve", "")

	statuses := func(user string) []int {
		u := c.user(user)
		return []int{
			u.call(http.MethodGet, entity, "").status,
			u.call(http.MethodPut, entity, `{"name":"c","entity":`+content+`}`).status,
		}
	}
	for user, want := range map[string][]int{
		"viewer":       {403, 403},
		"editor":       {403, 403},
		"nothing":      {403, 403},
		"owner":        {200, 200},
		"sees all":     {200, 403},
		"controls all": {200, 200},
	} {
		c.Expect(statuses(user)).To(Equal(want), user)
	}
	c.user("viewer").refused(http.MethodPost, types, `{"name":"d","entity":{}}`, 403, forbiddenCode)

	for _, user := range []string{"viewer", "editor", "nothing"} {
		member := "urn:vcloud:user:" + c.userHref(user)[len(c.userHref(user))-36:]
		a := owner.call(http.MethodPost, entity+"/accessControls",
			`{"grantType":"MembershipAccessControlGrant","accessLevelId":"urn:vcloud:accessLevel:ReadWrite","memberId":"`+
				member+`"}`)
		c.Expect(a.status).To(Equal(http.StatusCreated))
	}
	for user, want := range map[string][]int{"viewer": {200, 403}, "editor": {200, 200}, "nothing": {403, 403}} {
		c.Expect(statuses(user)).To(Equal(want), user)
	}
	c.user("editor").refused(http.MethodDelete, entity, "", 403, forbiddenCode)
}

func TestAdministratorsHaveAllRightsIfAssumed(t *testing.T) {
	c := start(t, assuming(func(a *vcdsim.Assumptions) { a.RolesAreExact = false }))
	admin := c.user("admin")
	vm := admin.vm(admin.vapp("own"), "node")

	admin.ok(http.MethodPost, vm+"/action/reconfigureVm", c.extraConfig("node"))
}
