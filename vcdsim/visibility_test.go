// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const forbiddenCode = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"

// withUsers adds users with a role to the tenant.
func withUsers(role string, names ...string) func(*vcdsim.Config) {
	return func(cfg *vcdsim.Config) {
		for _, name := range names {
			cfg.Model.Orgs[1].Users = append(cfg.Model.Orgs[1].Users,
				vcdsim.User{Name: name, Password: "password", Role: role})
		}
	}
}

// userHref returns the reference to a user of the tenant.
func (c *client) userHref(name string) string {
	for _, u := range c.model().Users {
		if u.Name == name {
			return c.sim.URL() + "/api/admin/user/" + u.ID
		}
	}
	return ""
}

// sharing returns a body that shares an object with users, by access level.
func (c *client) sharing(levels map[string]string) string {
	body := `<ControlAccessParams ` + xmlns + `><IsSharedToEveryone>false</IsSharedToEveryone><AccessSettings>`
	for name, level := range levels {
		body += `<AccessSetting><Subject href="` + c.userHref(name) + `"/><AccessLevel>` + level +
			`</AccessLevel></AccessSetting>`
	}
	return body + `</AccessSettings></ControlAccessParams>`
}

// must sends a write that needs no task.
func (c *client) must(method, path, body string) {
	a := c.call(method, path, body)
	c.Expect(a.status).To(BeElementOf(http.StatusOK, http.StatusNoContent), "%s %s: %s", method, path, a.body)
}

// rows counts the rows of a query.
func (c *client) rows(kind string) int {
	return len(c.records("type=" + kind))
}

func TestAVAppIsHiddenFromOthersUntilItIsShared(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	other := c.user("other")

	hidden := func() {
		for _, path := range []string{
			vapp,
			vm,
			vapp + "/controlAccess",
			vapp + "/networkConfigSection",
			vm + "/networkConnectionSection",
			vm + "/metadata",
		} {
			other.refused(http.MethodGet, path, "", 403, forbiddenCode)
		}
		for _, path := range []string{vm + "/power/action/powerOn", vapp + "/action/undeploy"} {
			other.refused(http.MethodPost, path, "", 403, forbiddenCode)
		}
		other.refused(http.MethodDelete, vm, "", 403, forbiddenCode)
		c.Expect(other.rows("vApp")).To(BeZero())
		c.Expect(other.rows("vm")).To(Equal(other.rows("vm&filter=isVAppTemplate==true")))
		c.Expect(other.rows("task")).To(BeZero(), "nor the tasks of other users")
		c.Expect(string(other.get(c.vdc()).body)).NotTo(ContainSubstring(vapp))
	}
	hidden()
	c.Expect(other.refused(http.MethodGet, vm, "", 403, forbiddenCode)).
		To(ContainSubstring("rights [Base] to perform operations [VAPP_VM_VIEW]"), "like a nonexistent object")

	c.must(http.MethodPost, vapp+"/action/controlAccess", c.sharing(map[string]string{"other": "ReadOnly"}))
	c.Expect(other.get(vm).xml.Attr("name")).To(Equal("node"))
	c.Expect(other.rows("vApp")).To(Equal(1))
	c.Expect(other.rows("task")).NotTo(BeZero())
	other.refused(http.MethodPost, vm+"/power/action/powerOn", "", 403, forbiddenCode)

	c.must(http.MethodPost, vapp+"/action/controlAccess", c.sharing(map[string]string{"other": "Change"}))
	other.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	other.refused(http.MethodDelete, vapp, "", 403, forbiddenCode)
	other.refused(http.MethodPost, vapp+"/action/controlAccess", c.sharing(nil), 403, forbiddenCode)

	c.must(http.MethodPost, vapp+"/action/controlAccess", c.sharing(map[string]string{"other": "FullControl"}))
	other.must(http.MethodPost, vapp+"/action/controlAccess", c.sharing(nil))
	c.Expect(c.rows("vApp")).To(Equal(1), "the owner keeps access")
	other.refused(http.MethodGet, vm, "", 403, forbiddenCode)
}

func TestAVAppCanBeSharedWithEveryone(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	vapp := c.vapp("cluster")
	c.must(http.MethodPost, vapp+"/action/controlAccess", `<ControlAccessParams `+xmlns+
		`><IsSharedToEveryone>true</IsSharedToEveryone><EveryoneAccessLevel>ReadOnly</EveryoneAccessLevel></ControlAccessParams>`)

	c.Expect(c.user("other").get(vapp).xml.Attr("name")).To(Equal("cluster"))
}

func TestAdministratorsSeeAllVAppsAndOnlyTheirControlChangesThem(t *testing.T) {
	author := []string{"vApp: Power Operations", "vApp: View ACL"}
	c := start(t, withRoles(map[string][]string{
		"sees":    append([]string{"General: Administrator View"}, author...),
		"does":    append([]string{"General: Administrator Control"}, author...),
		"neither": author,
	}))
	vm := c.vm(c.vapp("cluster"), "node")

	c.Expect(c.user("sees").rows("vApp")).To(Equal(1))
	c.user("sees").refused(http.MethodPost, vm+"/power/action/powerOn", "", 403, forbiddenCode)
	c.user("does").ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.user("neither").refused(http.MethodGet, vm, "", 403, forbiddenCode)
}

func TestAVAppOwnerIsChanged(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	vapp := c.vapp("cluster")
	body := `<Owner ` + xmlns + `><User href="` + c.userHref("other") + `"/></Owner>`

	c.refused(http.MethodPut, vapp+"/owner", body, 403, forbiddenCode)
	c.user("admin").must(http.MethodPut, vapp+"/owner", body)

	c.refused(http.MethodGet, vapp, "", 403, forbiddenCode)
	c.Expect(c.user("other").get(vapp + "/owner").xml.At("User").Attr("name")).To(Equal("other"))
}

func TestTheOwnerOfADeletedVAppSeesTheDeletingUser(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	vapp := c.vapp("cluster")
	c.user("admin").ok(http.MethodDelete, vapp, "")

	query := "task&filter=name==vdcDeleteVapp"
	c.Expect(c.rows(query)).To(Equal(1))
	c.Expect(c.user("other").rows(query)).To(BeZero())
}

func TestVAppsAreVisibleToEveryoneIfAssumed(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"),
		assuming(func(a *vcdsim.Assumptions) { a.VAppsArePrivate = false }))
	vm := c.vm(c.vapp("cluster"), "node")

	c.user("other").ok(http.MethodPost, vm+"/power/action/powerOn", "")
}

func TestADumpKeepsOwnersAndShares(t *testing.T) {
	c := start(t, manual, withUsers("vApp Author", "other", "third"))
	vapp := c.vapp("cluster")
	c.advance(time.Minute)
	c.sim.Edit(func(e *vcdsim.Editor) {
		e.Share(e.VApp("cluster"), "other", "ReadOnly")
		e.SetOwner(e.VApp("cluster"), "third")
	})
	var saved bytes.Buffer
	c.Expect(c.sim.Dump(&saved)).To(Succeed())
	c.sim.Edit(func(e *vcdsim.Editor) { e.DeleteVApp(e.VApp("cluster")) })
	c.Expect(c.sim.Restore(&saved)).To(Succeed())

	for user, status := range map[string]int{"capvcd": 403, "other": 200, "third": 200} {
		c.Expect(c.user(user).call(http.MethodGet, vapp, "").status).To(Equal(status), user)
	}
	c.sim.Edit(func(e *vcdsim.Editor) { e.Share(e.VApp("cluster"), "other", "") })
	c.user("other").refused(http.MethodGet, vapp, "", 403, forbiddenCode)
}
