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

const descriptor = `<?xml version="1.0"?><Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf">
<References><File ovf:href="disk-0.vmdk" ovf:id="f0" ovf:size="10"/><File ovf:href="disk-1.vmdk" ovf:id="f1"/></References>
<DiskSection><Disk ovf:capacity="40" ovf:capacityAllocationUnits="byte * 2^20" ovf:diskId="d0"/><Disk ovf:capacity="1073741824" ovf:diskId="d1"/></DiskSection>
<VirtualSystem ovf:id="node"><Name>node</Name><OperatingSystemSection vmw:osType="ubuntu64Guest"/><VirtualHardwareSection>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>4</rasd:ResourceType><rasd:VirtualQuantity>4096</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>10</rasd:ResourceType></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/d0</rasd:HostResource></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:HostResource>ovf:/disk/d1</rasd:HostResource></Item>
</VirtualHardwareSection></VirtualSystem></Envelope>`

func TestTheTemplateLeaseIsKept(t *testing.T) {
	c := start(t).user("admin")
	lease := "/api/vAppTemplate/vappTemplate-" + c.model().Catalogs[0].Templates[0].ID + "/leaseSettingsSection/"
	c.Expect(c.get(lease).xml.Str("StorageLeaseInSeconds")).To(Equal("0"), "forever")

	c.ok(http.MethodPut, lease, `<LeaseSettingsSection `+xmlns+
		`><ovf:Info/><StorageLeaseInSeconds>3600</StorageLeaseInSeconds></LeaseSettingsSection>`)

	c.Expect(c.get(lease).xml.Str("StorageLeaseInSeconds")).To(Equal("3600"))
}

func TestARejectedCatalogUpdateChangesNothing(t *testing.T) {
	c := start(t).user("admin")
	path := "/api/admin/catalog/" + c.model().Catalogs[0].ID
	change := func(profile, name string) string {
		return `<AdminCatalog ` + xmlns + ` name="` + name + `"><Description>other</Description><CatalogStorageProfiles>` +
			`<VdcStorageProfile href="https://vcd/api/vdcStorageProfile/` + profile +
			`"/></CatalogStorageProfiles></AdminCatalog>`
	}
	name := c.model().Catalogs[0].Name
	c.Expect(c.call(http.MethodPut, path, change(c.model().VDCs[0].StorageProfiles[0].ID, name)).status).To(Equal(200))
	before := c.model().Catalogs[0]

	c.refused(http.MethodPut, path, change("00000000-0000-4000-8000-000000000000", "renamed"), 403,
		"ACCESS_TO_RESOURCE_IS_FORBIDDEN")

	c.Expect(c.model().Catalogs[0]).To(Equal(before))
}

// promiseTemplate starts the upload of a template and returns its address.
func (c *client) promiseTemplate(name string) string {
	a := c.call(http.MethodPost, c.catalogPath()+"/action/upload",
		`<UploadVAppTemplateParams `+xmlns+` name="`+name+`"/>`)
	c.Expect(a.status).To(Equal(http.StatusCreated), string(a.body))
	return strings.TrimPrefix(a.xml.At("Entity").Attr("href"), c.sim.URL())
}

// links returns the addresses for the transfer of a template's files.
func (c *client) links(template string) []string {
	var out []string
	for _, f := range c.get(template).xml.At("Files").All("File") {
		out = append(out, f.At("Link").Attr("href"))
	}
	return out
}

func TestTemplatesAreUploadedAsOVF(t *testing.T) {
	c := start(t)
	c.as("admin")
	template := c.promiseTemplate("uploaded")
	c.Expect(c.links(template)).To(HaveLen(1), "the descriptor is first")
	c.refused(http.MethodPut, c.links(template)[0], "<Nothing/>", 400, "BAD_REQUEST")

	other := c.promiseTemplate("second")
	c.Expect(c.call(http.MethodPut, c.links(other)[0], descriptor).status).To(Equal(http.StatusOK))
	task := c.get(other).xml.At("Tasks", "Task")
	links := c.links(other)
	c.Expect(links).To(HaveLen(3))
	c.Expect(c.send(links[1], "0123456789", 0, 10).status).To(Equal(http.StatusOK))
	c.Expect(c.get(task.Attr("href")).xml.Attr("status")).To(Equal("running"))
	c.Expect(c.send(links[2], "01234", 0, 5).status).To(Equal(http.StatusOK), "its size is known once it is uploaded")
	c.Expect(c.finish(task).Attr("status")).To(Equal("success"))

	templates := c.model().Catalogs[0].Templates
	vm := templates[len(templates)-1].VMs[0]
	c.Expect([]any{vm.Name, vm.OS, vm.CPUs, vm.MemoryMiB, vm.DisksMiB, vm.NICs}).To(Equal(
		[]any{"node", "ubuntu64Guest", int64(2), int64(4096), []int64{40, 1024}, 1}))

	c.ok(http.MethodPut, other,
		`<VAppTemplate `+xmlns+` name="renamed" goldMaster="true"><Description>d</Description></VAppTemplate>`)
	x := c.get(other).xml
	c.Expect([]string{
		x.Attr("name"),
		x.Attr("goldMaster"),
		x.Str("Description"),
	}).To(Equal([]string{"renamed", "true", "d"}))
	c.ok(http.MethodDelete, other, "")
	c.refused(http.MethodGet, other, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodDelete, template, "", 400, "BUSY_ENTITY")
}

func TestAVAppIsCapturedAndCloned(t *testing.T) {
	c := start(t)
	c.as("admin")
	vapp := c.vapp("source")
	vm := c.vm(vapp, "node")
	capture := func(name, target string) string {
		return fmt.Sprintf(`<CaptureVAppParams %s name="%s"><Source href="%s"/>%s</CaptureVAppParams>`, xmlns, name,
			c.sim.URL()+vapp, target)
	}
	a := c.ok(http.MethodPost, c.catalogPath()+"/action/captureVApp", capture("captured", ""))
	template := c.get(a.xml.At("Owner").Attr("href")).xml
	c.Expect(template.Attr("status")).To(Equal("8"))
	c.Expect(template.At("Children").All("Vm")).To(HaveLen(1))
	c.refused(http.MethodPost, c.catalogPath()+"/action/captureVApp", capture("captured", ""), 400, "DUPLICATE_NAME")
	item := template.All("Link")[1].Attr("href")
	c.ok(http.MethodPost, c.catalogPath()+"/action/captureVApp",
		capture("captured", `<TargetCatalogItem href="`+item+`"/>`))
	c.Expect(c.records("type=vAppTemplate&filter=name==captured")).To(HaveLen(1), "it replaced the first")

	clone := func(name string, move bool) string {
		return fmt.Sprintf(`<CloneVAppParams %s name="%s" powerOn="%t"><Source href="%s"/><IsSourceDelete>%t</IsSourceDelete></CloneVAppParams>`,
			xmlns, name, !move, c.sim.URL()+vapp, move)
	}
	c.refused(http.MethodPost, c.vdc()+"/action/cloneVApp", clone("source", false), 400, "DUPLICATE_NAME")
	a = c.ok(http.MethodPost, c.vdc()+"/action/cloneVApp", clone("copy", false))
	second := c.get(a.xml.Attr("href")).xml.At("Children", "Vm")
	c.Expect(second.Attr("status")).To(Equal("4"))
	first := c.get(vm).xml
	c.Expect(second.Attr("id")).NotTo(Equal(first.Attr("id")))
	c.Expect(second.At("NetworkConnectionSection", "NetworkConnection").Str("MACAddress")).NotTo(
		Equal(first.At("NetworkConnectionSection", "NetworkConnection").Str("MACAddress")))

	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.refused(http.MethodPost, c.vdc()+"/action/cloneVApp", clone("moved", true), 400, "BAD_REQUEST")
	c.ok(http.MethodPost, vapp+"/action/undeploy", `<UndeployVAppParams `+xmlns+`/>`)
	c.ok(http.MethodPost, c.vdc()+"/action/cloneVApp", clone("moved", true))
	c.refused(http.MethodGet, vapp, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.records("type=vApp")).To(HaveLen(2))
}

func TestACapturedTemplateKeepsTheExtraConfigurationOfItsVM(t *testing.T) {
	c := start(t)
	c.as("admin")
	vapp := c.vapp("source")
	c.vm(vapp, "node")
	c.sim.Edit(func(e *vcdsim.Editor) { e.VM("node").ExtraConfig["guestinfo.metadata"] = "of the node" })
	a := c.ok(http.MethodPost, c.catalogPath()+"/action/captureVApp",
		fmt.Sprintf(`<CaptureVAppParams %s name="captured"><Source href="%s"/></CaptureVAppParams>`, xmlns,
			c.sim.URL()+vapp))
	template := c.get(a.xml.At("Owner").Attr("href")).xml

	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(`<SourcedItem><Source href="`+
		template.At("Children", "Vm").Attr("href")+`" name="copy"/></SourcedItem>`))

	c.sim.Edit(func(e *vcdsim.Editor) {
		c.Expect(e.VM("copy").ExtraConfig).To(HaveKeyWithValue("guestinfo.metadata", "of the node"))
	})
}
