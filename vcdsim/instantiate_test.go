// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withTwoVMs adds a second VM, "database", to the first template, and turns off fast provisioning, so that disks can
// grow.
func withTwoVMs(cfg *vcdsim.Config) {
	org := &cfg.Model.Orgs[1]
	template := &org.Catalogs[0].Templates[0]
	second := template.VMs[0]
	second.ID = ""
	second.Name = "database"
	second.DisksMiB = []int64{10240, 20480}
	template.VMs[0].Name = "web"
	template.VMs = append(template.VMs, second)
	org.VDCs[0].FullClones = true
}

// instantiate returns the body that instantiates the first template, as VMware's clients write it: the source has the
// name of the template.
func (c *client) instantiate(name string, items ...string) string {
	template := c.model().Catalogs[0].Templates[0]
	return `<InstantiateVAppTemplateParams ` + xmlns + ` name="` + name + `" deploy="false" powerOn="false"><InstantiationParams>` +
		c.networks(0) + `</InstantiationParams><Source href="` + c.sim.URL() + `/api/vAppTemplate/vappTemplate-` + template.ID +
		`" name="` + template.Name + `"/>` + strings.Join(items, "") + `</InstantiateVAppTemplateParams>`
}

// itemOf returns the parameters of one VM of the first template.
func (c *client) itemOf(vm int, more string) string {
	return `<SourcedItem><Source href="` + c.sim.URL() + `/api/vAppTemplate/vm-` + c.model().Catalogs[0].Templates[0].VMs[vm].ID +
		`" name="ignored"/>` + more + `</SourcedItem>`
}

const rasd = `xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData"`

// hardware returns a VirtualHardwareSection with items.
func hardware(items ...string) string {
	return `<ovf:VirtualHardwareSection ` + rasd + ` xmlns:vcloud="http://www.vmware.com/vcloud/v1.5"><ovf:Info/>` +
		strings.Join(items, "") + `</ovf:VirtualHardwareSection>`
}

// hardwareItem returns a hardware item of a resource type.
func hardwareItem(kind, instance, more string) string {
	return `<ovf:Item>` + more + `<rasd:InstanceID>` + instance + `</rasd:InstanceID><rasd:ResourceType>` + kind +
		`</rasd:ResourceType></ovf:Item>`
}

func quantity(n string) string { return `<rasd:VirtualQuantity>` + n + `</rasd:VirtualQuantity>` }

func TestVMsOfAnInstantiatedTemplateHaveItsNames(t *testing.T) {
	c := start(t, withTwoVMs)

	c.ok(http.MethodPost, c.vdc()+"/action/instantiateVAppTemplate", c.instantiate("shop"))

	c.Expect(c.state("web").Disks).To(HaveLen(1))
	c.Expect(c.state("database").Disks).To(HaveLen(2))
	c.Expect(c.sim.State().VMs).To(HaveLen(2))
}

func TestVMsOfAComposedTemplateHaveItsNames(t *testing.T) {
	c := start(t, withTwoVMs)
	template := c.model().Catalogs[0].Templates[0]

	c.ok(http.MethodPost, c.vapp("shop")+"/action/recomposeVApp", recompose(`<SourcedItem><Source href="`+c.sim.URL()+
		`/api/vAppTemplate/vappTemplate-`+template.ID+`" name="`+template.Name+`"/></SourcedItem>`))

	c.Expect(c.state("web").ID).NotTo(Equal(c.state("database").ID))
}

func TestAnInstantiationHasParametersOfEachVM(t *testing.T) {
	c := start(t, withTwoVMs)
	profile := c.model().VDCs[0].StorageProfiles[1].ID

	c.ok(http.MethodPost, c.vdc()+"/action/instantiateVAppTemplate", c.instantiate("shop", c.itemOf(1,
		`<VmGeneralParams><Name>db-1</Name><Description>of the shop</Description></VmGeneralParams><InstantiationParams>`+
			nic("MANUAL", "192.168.100.200")+
			`<GuestCustomizationSection><ovf:Info/><Enabled>true</Enabled><ComputerName>db-host</ComputerName></GuestCustomizationSection>`+
			hardware(hardwareItem("3", "4", quantity("6")), hardwareItem("4", "5", quantity("8192")),
				hardwareItem("17", "2001", `<rasd:HostResource vcloud:capacity="30720"/>`))+
			`</InstantiationParams><StorageProfile href="`+c.sim.URL()+`/api/vdcStorageProfile/`+profile+`"/>`)))

	vm := c.state("db-1")
	c.Expect(vm.Description).To(Equal("of the shop"))
	c.Expect(vm.NICs[0].Address).To(Equal("192.168.100.200"))
	c.Expect(vm.Customization.ComputerName).To(Equal("db-host"))
	c.Expect([]int64{vm.CPUs, vm.MemoryMiB}).To(Equal([]int64{6, 8192}))
	c.Expect([]int64{vm.Disks[0].SizeMiB, vm.Disks[1].SizeMiB}).To(Equal([]int64{10240, 30720}))
	c.Expect(vm.StorageProfileID).To(Equal(profile))
	c.Expect(c.state("web").CPUs).To(Equal(c.model().Catalogs[0].Templates[0].VMs[0].CPUs), "it has no parameters")
	c.Expect(c.state("web").StorageProfileID).NotTo(Equal(profile))
}

func TestComposedVMsHaveTheRequestedHardware(t *testing.T) {
	c := start(t, withTwoVMs)

	c.ok(http.MethodPost, c.vapp("shop")+"/action/recomposeVApp", recompose(c.item("node", nic("POOL", "")+hardware(
		hardwareItem("3", "4", quantity("6")+`<vmw:CoresPerSocket>3</vmw:CoresPerSocket>`),
		hardwareItem("17", "2100", quantity("1073741824"))), "")))

	vm := c.state("node")
	c.Expect([]int64{vm.CPUs, vm.CoresPerSocket}).To(Equal([]int64{6, 3}))
	c.Expect(vm.Disks[1].SizeMiB).To(Equal(int64(1024)))
}

func TestInstantiationsWithUnusableParametersAreRefused(t *testing.T) {
	c := start(t, withTwoVMs)
	nicItem := hardwareItem("10", "1", "")
	for name, tc := range map[string]struct {
		item    string
		message string
	}{
		"of a VM of another template": {
			`<SourcedItem><Source href="` + c.sim.URL() + `/api/vAppTemplate/vm-11111111-2222-3333-4444-555555555555"/></SourcedItem>`,
			"is not a VM of the vApp template",
		},
		"with the name of another VM": {
			c.itemOf(1, `<VmGeneralParams><Name>web</Name></VmGeneralParams>`),
			"web already exists",
		},
		"with a network adapter": {
			c.itemOf(1, `<InstantiationParams>`+hardware(nicItem, nicItem, nicItem)+`</InstantiationParams>`),
			"NetworkConnectionSection",
		},
		"with a smaller disk": {
			c.itemOf(1, `<InstantiationParams>`+hardware(hardwareItem("17", "2000", `<rasd:HostResource vcloud:capacity="1"/>`))+
				`</InstantiationParams>`),
			"cannot be reduced",
		},
		"with a disk without a size": {
			c.itemOf(1, `<InstantiationParams>`+hardware(hardwareItem("17", "2100", ""))+`</InstantiationParams>`),
			"no SizeMb",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.WithT = NewWithT(t)
			a := c.call(http.MethodPost, c.vdc()+"/action/instantiateVAppTemplate", c.instantiate("shop", tc.item))
			c.Expect(a.status).To(Equal(http.StatusBadRequest))
			c.Expect(a.xml.Attr("message")).To(ContainSubstring(tc.message))
			c.Expect(c.sim.State().VApps).To(BeEmpty())
		})
	}
}
