// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestADiskIsAttachedAtTheRequestedPosition(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	attach := func(name, slot string) string {
		made := c.ok(http.MethodPost, c.vdc()+"/disk", `<DiskCreateParams `+xmlns+`><Disk name="`+name+`" sizeMb="1024"/></DiskCreateParams>`)
		return `<DiskAttachOrDetachParams ` + xmlns + `><Disk href="` + made.xml.Attr("href") + `"/>` + slot + `</DiskAttachOrDetachParams>`
	}
	attached := func() (out [][]int) {
		for _, d := range c.state("node").Disks {
			out = append(out, []int{d.Bus, d.Unit})
		}
		return out
	}

	c.ok(http.MethodPost, vm+"/disk/action/attach", attach("a", `<BusNumber>1</BusNumber><UnitNumber>0</UnitNumber>`))
	c.ok(http.MethodPost, vm+"/disk/action/attach", attach("b", `<BusNumber>1</BusNumber>`))
	c.ok(http.MethodPost, vm+"/disk/action/attach", attach("c", ``))

	c.Expect(attached()).To(Equal([][]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}}))
	c.refused(http.MethodPost, vm+"/disk/action/attach", attach("d", `<BusNumber>1</BusNumber><UnitNumber>0</UnitNumber>`), 400, "BAD_REQUEST")
	c.refused(http.MethodPost, vm+"/disk/action/attach", attach("e", `<BusNumber>4</BusNumber>`), 400, "BAD_REQUEST")
}

func TestASharedDiskIsAttachedToSeveralVMs(t *testing.T) {
	c := start(t)
	vapp := c.vapp("cluster")
	a := c.vm(vapp, "a")
	b := c.vm(vapp, "b")
	create := func(attrs string) (href, param string) {
		made := c.ok(http.MethodPost, c.vdc()+"/disk",
			`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024" `+attrs+`/></DiskCreateParams>`)
		href = made.xml.Attr("href")
		return href, `<DiskAttachOrDetachParams ` + xmlns + `><Disk href="` + href + `"/></DiskAttachOrDetachParams>`
	}
	attached := func(disk string) int { return len(c.get(disk + "/attachedVms").xml.All("VmReference")) }

	disk, param := create(`shareable="true"`)
	c.Expect(c.get(disk).xml.Attr("shareable")).To(Equal("true"), "the CSI driver compares it with its request")
	c.Expect(c.get(disk).xml.Attr("sharingType")).To(Equal("DiskSharing"))
	c.Expect(c.get(disk).xml.At("Owner", "User").Attr("name")).To(Equal("capvcd"))
	c.ok(http.MethodPost, a+"/disk/action/attach", param)
	c.refused(http.MethodPost, a+"/disk/action/attach", param, 400, "BAD_REQUEST")
	c.ok(http.MethodPost, b+"/disk/action/attach", param)
	c.Expect(attached(disk)).To(Equal(2))
	row := c.records("type=disk&filter=isShareable==true;attachedVmCount==2;ownerName==capvcd")
	c.Expect(row).To(HaveLen(1))
	c.Expect(row[0].Attr("busTypeDesc")).To(Equal("SCSI"))
	c.Expect(row[0].Attr("datastoreName")).To(BeEmpty(), "tenants cannot see it")
	c.Expect(c.provider().records("type=adminDisk")[0].Attr("datastoreName")).NotTo(BeEmpty())
	c.ok(http.MethodPost, a+"/disk/action/detach", param)
	c.refused(http.MethodPost, a+"/disk/action/detach", param, 400, "BAD_REQUEST")
	c.refused(http.MethodDelete, disk, "", 400, "BAD_REQUEST")
	c.Expect(c.sim.State().Disks[0].AttachedTo).To(ConsistOf(c.state("b").ID))
	c.ok(http.MethodPost, b+"/disk/action/detach", param)
	c.ok(http.MethodDelete, disk, "")

	disk, param = create(`busType="20" busSubType="ahci"`)
	c.Expect(c.get(disk).xml.Attr("shareable")).To(Equal("false"))
	c.ok(http.MethodPost, a+"/disk/action/attach", param)
	c.refused(http.MethodPost, b+"/disk/action/attach", param, 400, "BAD_REQUEST")
	c.Expect(attached(disk)).To(Equal(1))
	var buses []string
	for _, item := range c.get(a + "/virtualHardwareSection/disks").xml.All("Item") {
		if host := item.At("HostResource"); host != nil {
			buses = append(buses, host.Attr("busType"))
		}
	}
	c.Expect(buses).To(Equal([]string{"6", "20"}), "the disk is on the bus for which it was created")
}

func TestADiskIsVisibleToItsOwnerAndAdministrators(t *testing.T) {
	c := start(t, withUsers(vcdsim.RoleClusterAuthor, "other"))
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "a")
	c.must(http.MethodPost, vapp+"/action/controlAccess", c.sharing(map[string]string{"other": "FullControl"}))
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	param := `<DiskAttachOrDetachParams ` + xmlns + `><Disk href="` + disk + `"/></DiskAttachOrDetachParams>`
	other := c.user("other")
	admin := c.user("admin")

	other.refused(http.MethodGet, disk, "", 403, forbiddenCode)
	other.refused(http.MethodDelete, disk, "", 403, forbiddenCode)
	other.refused(http.MethodPost, vm+"/disk/action/attach", param, 403, forbiddenCode)
	c.Expect(other.rows("disk")).To(BeZero())
	c.Expect(admin.rows("disk")).To(Equal(1))
	admin.ok(http.MethodPost, vm+"/disk/action/attach", param)
	other.refused(http.MethodPost, vm+"/disk/action/detach", param, 403, forbiddenCode)
	c.ok(http.MethodPost, vm+"/disk/action/detach", param)
	admin.ok(http.MethodDelete, disk, "")

	open := vcdsim.DefaultAssumptions()
	open.DisksArePrivate = false
	c = start(t, withUsers(vcdsim.RoleClusterAuthor, "other"),
		func(cfg *vcdsim.Config) { cfg.Assumptions = &open })
	disk = c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	c.user("other").ok(http.MethodDelete, disk, "")
}
