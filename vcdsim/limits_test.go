// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func (c *client) disk(name string) answer {
	return c.call(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="`+name+`" sizeMb="1024"/></DiskCreateParams>`)
}

func (c *client) taskStatus(task *xmltree.Node) string {
	return c.get(task.Attr("href")).xml.Attr("status")
}

func TestOperationsBeyondTheLimitAreQueuedAndThenRejected(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits vcdsim.OperationLimits
	}{
		{"of a user", vcdsim.OperationLimits{PerUser: 2, QueuedPerUser: 1}},
		{"of an organization", vcdsim.OperationLimits{PerOrg: 2, QueuedPerOrg: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := start(t, manual, func(cfg *vcdsim.Config) { cfg.Model.Orgs[1].Limits = tc.limits })
			var tasks []*xmltree.Node
			for i := range 3 {
				a := c.disk(fmt.Sprint("disk-", i))
				c.Expect(a.status).To(Equal(http.StatusCreated))
				tasks = append(tasks, a.xml.At("Tasks", "Task"))
			}
			c.Expect([]string{
				c.taskStatus(tasks[0]),
				c.taskStatus(tasks[1]),
				c.taskStatus(tasks[2]),
			}).To(Equal([]string{"running", "running", "queued"}))
			c.Expect(c.refused(http.MethodPost, c.vdc()+"/disk",
				`<DiskCreateParams `+xmlns+`><Disk name="d" sizeMb="1"/></DiskCreateParams>`, 400,
				"OPERATION_LIMITS_EXCEEDED")).
				To(ContainSubstring("maximum number of operations"))

			c.advance(3 * time.Second)
			c.Expect(c.taskStatus(tasks[0])).To(Equal("success"))
			c.Expect(c.taskStatus(tasks[2])).To(Equal("running"), "a queued operation starts when another ends")
			c.Expect(c.disk("more").status).To(Equal(http.StatusCreated))
			c.advance(3 * time.Second)
			c.Expect(c.taskStatus(tasks[2])).To(Equal("success"), "and takes its full time")
		})
	}
}

func TestRolesAllowTheOperationsOfTheirRights(t *testing.T) {
	body := `<DiskCreateParams ` + xmlns + `><Disk name="d" sizeMb="1"/></DiskCreateParams>`
	for _, tc := range []struct {
		role           string
		compose, power bool
	}{
		{"Organization Administrator", true, true},
		{"vApp Author", true, true},
		{"vApp User", false, true},
		{"Console Access Only", false, false},
	} {
		t.Run(tc.role, func(t *testing.T) {
			c := start(t, withUsers(tc.role, "them"))
			vm := c.vm(c.vapp("cluster"), "node")
			c.sim.Edit(func(e *vcdsim.Editor) { e.Share(e.VApp("cluster"), "them", "FullControl") })
			c.token = c.login("them", "acme", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")

			c.Expect(c.get(vm).xml.Attr("name")).To(Equal("node"), "reading takes only a share")
			if tc.compose {
				c.ok(http.MethodPost, c.vdc()+"/disk", body)
			} else {
				c.Expect(c.refused(http.MethodPost, c.vdc()+"/disk", body, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")).
					To(ContainSubstring("rights [Organization vDC Named Disk: Create] to perform operations [VDC_CREATE_DISK]"))
				c.refused(http.MethodPost, c.vdc()+"/action/composeVApp", c.compose("other", ""), 403,
					"ACCESS_TO_RESOURCE_IS_FORBIDDEN")
			}
			if tc.power {
				c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
			} else {
				c.refused(http.MethodPost, vm+"/power/action/powerOn", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
				c.refused(http.MethodDelete, vm, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
			}
		})
	}
}
