// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestSecurityTags(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	c.vm(vapp, "a")
	c.vm(vapp, "b")
	a := vcdsim.URN("vm", c.state("a").ID)
	b := vcdsim.URN("vm", c.state("b").ID)
	const base = cloudAPI + "securityTags/"
	tag := func(name string, vms ...string) int {
		return c.call(http.MethodPut, base+"tag",
			`{"tag":"`+name+`","entities":["`+strings.Join(vms, `","`)+`"]}`).status
	}
	c.Expect(tag("Workers", a, b)).To(Equal(http.StatusNoContent))
	c.Expect(c.values("securityTags/values")).To(ConsistOf(HaveKeyWithValue("tag", "workers")), "in lower case")
	c.Expect(c.values("securityTags/entities?filter=tag==workers")).To(ConsistOf(
		And(HaveKeyWithValue("id", a), HaveKeyWithValue("name", "a"),
			HaveKeyWithValue("parentRef", HaveKeyWithValue("name", "cluster"))), HaveKeyWithValue("id", b)))
	c.Expect(c.values("securityTags/entities?filter=tag==others")).To(BeEmpty())
	c.Expect(tag("workers", b)).To(Equal(http.StatusNoContent), "and no other VM")
	c.Expect(c.get(base + "vm/" + a).json).To(HaveKeyWithValue("tags", BeEmpty()))
	c.Expect(c.call(http.MethodPut, base+"vm/"+a, `{"tags":["z","Y","y"]}`).json).To(HaveKeyWithValue("tags",
		Equal([]any{"y", "z"})))
	c.Expect(c.sim.State().Model).NotTo(BeZero())
	c.Expect(c.state("a").SecurityTags).To(Equal([]string{"y", "z"}))
	c.Expect(tag("", a)).To(Equal(http.StatusBadRequest))
	c.Expect(tag("x", "urn:vcloud:vm:00000000-0000-0000-0000-000000000000")).To(Equal(http.StatusForbidden))
}

func TestSystemAdministratorTasksOnTenantVMsBelongToTheTenant(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	p := c.provider()
	task := p.ok(http.MethodPost, vm+"/power/action/powerOn", "").xml.Attr("href")
	c.Expect(c.get(task).xml.At("Organization").Attr("name")).To(Equal("acme"))
	list := c.get("/api/tasksList/" + c.model().ID).xml.All("Task")
	c.Expect(list).To(HaveLen(3), "including finished tasks")
	c.Expect(list[0].Attr("operationName")).To(Equal("vappDeploy"), "newest first")
}

func TestVDCsAreUpdated(t *testing.T) {
	c := start(t)
	p := c.provider()
	admin := "/api/admin" + strings.TrimPrefix(c.vdc(), "/api")
	c.Expect(p.get(admin).xml.Str("UsesFastProvisioning")).To(Equal("true"))
	change := `<AdminVdc ` + xmlns + ` name="renamed"><Description>d</Description><VmQuota>7</VmQuota><UsesFastProvisioning>false</UsesFastProvisioning></AdminVdc>`
	c.refused(http.MethodPut, admin, change, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	p.ok(http.MethodPut, admin, change)
	doc := c.get(c.vdc()).xml
	c.Expect(doc.Attr("name")).To(Equal("renamed"))
	c.Expect(doc.Str("VmQuota")).To(Equal("7"))
	c.Expect(p.get(admin).xml.Str("UsesFastProvisioning")).To(Equal("false"))
	c.Expect(c.records("type=vAppTemplate&filter=vdcName==renamed")).NotTo(BeEmpty())
	version := c.get(c.vdc() + "/hwv/vmx-19").xml
	c.Expect(version.Str("name")).To(Equal("vmx-19"))
	c.refused(http.MethodGet, c.vdc()+"/hwv/vmx-1", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}
