// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// affinity returns the document of a rule.
func (c *client) affinity(name, polarity string, enabled bool, vms ...string) string {
	var refs strings.Builder
	for _, vm := range vms {
		fmt.Fprintf(&refs, `<VmReference href="%s"/>`, c.sim.URL()+vm)
	}
	return fmt.Sprintf(`<VmAffinityRule %s><Name>%s</Name><IsEnabled>%t</IsEnabled><IsMandatory>true</IsMandatory><Polarity>%s</Polarity><VmReferences>%s</VmReferences></VmAffinityRule>`,
		xmlns, name, enabled, polarity, &refs)
}

func TestAffinityRules(t *testing.T) {
	c := start(t, manual, withUsers("vApp User", "other"))
	c.as("admin")
	vapp := c.vapp("cluster")
	a := c.vm(vapp, "a")
	b := c.vm(vapp, "b")
	d := c.vm(vapp, "d")
	rules := c.vdc() + "/vmAffinityRules/"
	rule := c.ok(http.MethodPost, rules, c.affinity("apart", "Anti-Affinity", true, a, b)).xml.At("Owner").Attr("href")
	c.Expect(c.get(rules).xml.All("VmAffinityRule")).To(HaveLen(1))
	c.Expect(rule).To(HaveSuffix("/"+c.get(rule).xml.Attr("id")), "its ID is a bare UUID")

	for _, tc := range []struct {
		name, body string
		status     int
	}{
		{name: "no name", body: c.affinity("", "Affinity", true, a, b), status: 400},
		{name: "an unknown polarity", body: c.affinity("x", "Sometimes", true, a, b), status: 400},
		{name: "one VM", body: c.affinity("x", "Affinity", true, a), status: 400},
		{name: "a VM twice", body: c.affinity("x", "Affinity", true, a, a), status: 400},
		{
			name:   "a nonexistent VM",
			body:   c.affinity("x", "Affinity", true, a, "/api/vApp/vm-11111111-2222-3333-4444-555555555555"),
			status: 403,
		},
		{name: "a VM in another rule of that kind", body: c.affinity("x", "Anti-Affinity", true, a, d), status: 400},
		{name: "together although another rule separates them", body: c.affinity("x", "Affinity", true, a, b, d), status: 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.call(http.MethodPost, rules, tc.body).status).To(Equal(tc.status))
		})
	}

	c.ok(http.MethodPut, rule, c.affinity("renamed", "Anti-Affinity", false, b, d))
	x := c.get(rule).xml
	c.Expect([]string{
		x.Str("Name"),
		x.Str("IsEnabled"),
		x.Str("IsMandatory"),
	}).To(Equal([]string{"renamed", "false", "true"}))
	c.ok(http.MethodPost, rules, c.affinity("together", "Affinity", true, b, d))
	c.ok(http.MethodDelete, d, "")
	c.Expect(c.get(rule).xml.At("VmReferences").All("VmReference")).To(HaveLen(1), "the other VM is deleted")

	c.as("other")
	c.refused(http.MethodDelete, rule, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.as("admin")
	c.ok(http.MethodDelete, rule, "")
	c.refused(http.MethodGet, rule, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.sim.State().Affinity).To(HaveLen(1))
}

func TestAMandatoryRuleNeedsOneHostPerVM(t *testing.T) {
	c := start(t, manual)
	c.sim.Edit(func(e *vcdsim.Editor) { e.Model.Orgs[1].VDCs[0].Hosts = 1 })
	c.as("admin")
	vapp := c.vapp("cluster")
	a := c.vm(vapp, "a")
	b := c.vm(vapp, "b")
	rule := c.ok(http.MethodPost, c.vdc()+"/vmAffinityRules/", c.affinity("apart", "Anti-Affinity", true, a, b)).
		xml.At("Owner").Attr("href")
	c.ok(http.MethodPost, a+"/power/action/powerOn", "")

	failed := c.call(http.MethodPost, b+"/power/action/powerOn", "")
	c.Expect(failed.status).To(Equal(http.StatusAccepted))
	task := c.finish(failed.xml)
	c.Expect(task.At("Error").Attr("minorErrorCode")).To(Equal("NO_FEASIBLE_PLACEMENT_SOLUTION"))
	c.Expect(c.get(b).xml.Attr("status")).To(Equal("8"))

	c.ok(http.MethodDelete, rule, "")
	c.ok(http.MethodPost, b+"/power/action/powerOn", "")
	c.Expect(c.get(b).xml.Attr("status")).To(Equal("4"))
}

func TestSnapshots(t *testing.T) {
	c := start(t, manual)
	c.as("admin")
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	memory := func() string { return c.get(vm + "/virtualHardwareSection/memory").xml.Str("VirtualQuantity") }
	before := memory()
	c.refused(http.MethodPost, vm+"/action/revertToCurrentSnapshot", "", 400, "BAD_REQUEST")
	c.ok(http.MethodPost, vm+"/action/createSnapshot", `<CreateSnapshotParams `+xmlns+` memory="false"/>`)
	c.Expect(c.get(vm + "/snapshotSection").xml.At("Snapshot").Attr("poweredOn")).To(Equal("false"))

	hw := c.get(vm + "/virtualHardwareSection/memory").body
	c.ok(http.MethodPut, vm+"/virtualHardwareSection/memory",
		strings.Replace(string(hw), "VirtualQuantity>"+before, "VirtualQuantity>8192", 1))
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(memory()).To(Equal("8192"))
	c.ok(http.MethodPost, vm+"/action/revertToCurrentSnapshot", "")
	c.Expect(memory()).To(Equal(before))
	c.Expect(c.get(vm).xml.Attr("status")).To(Equal("8"), "its memory is not in the snapshot")

	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.ok(http.MethodPost, vapp+"/action/createSnapshot", `<CreateSnapshotParams `+xmlns+` memory="true"/>`)
	c.ok(http.MethodPost, vapp+"/action/revertToCurrentSnapshot", "")
	c.Expect(c.get(vm).xml.Attr("status")).To(Equal("4"))
	c.ok(http.MethodPost, vapp+"/action/removeAllSnapshots", "")
	c.Expect(c.get(vm + "/snapshotSection").xml.At("Snapshot")).To(BeNil())
}
