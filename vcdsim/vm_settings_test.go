// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// node creates a VM and returns its path.
func (c *client) node(name string) string {
	vapp := c.vapp("of-" + name)
	c.ok(http.MethodPost, vapp+"/action/recomposeVApp", recompose(c.item(name, "", "")))
	return "/api/vApp/vm-" + c.state(name).ID
}

func TestAVMKeepsItsBootSettings(t *testing.T) {
	c := start(t)
	vm := c.node("node")
	boot := func() map[string]string {
		out := map[string]string{}
		for _, e := range c.get(vm).xml.At("BootOptions").Children {
			out[e.Name] = e.Text
		}
		return out
	}
	c.Expect(boot()).To(And(HaveKeyWithValue("EnterBIOSSetup", "false"),
		HaveKeyWithValue("EfiSecureBootEnabled", "false")))
	c.Expect(c.get(vm).xml.Str("VmSpecSection", "Firmware")).To(Equal("bios"))

	c.ok(http.MethodPost, vm+"/action/reconfigureVm",
		`<Vm `+xmlns+` name="node"><VmSpecSection Modified="true"><Firmware>efi</Firmware></VmSpecSection>`+
			`<BootOptions><BootDelay>1</BootDelay><EnterBIOSSetup>true</EnterBIOSSetup><EfiSecureBootEnabled>true</EfiSecureBootEnabled></BootOptions></Vm>`)
	c.Expect(boot()).To(And(HaveKeyWithValue("BootDelay", "1"), HaveKeyWithValue("EnterBIOSSetup", "true"),
		HaveKeyWithValue("EfiSecureBootEnabled", "true")))
	c.Expect(c.get(vm).xml.Str("VmSpecSection", "Firmware")).To(Equal("efi"))

	old := *c
	old.version = "37.0"
	c.Expect(old.get(vm).xml.At("VmSpecSection", "Firmware")).To(BeNil(), "it was introduced in 37.1")

	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.Expect(boot()).To(And(HaveKeyWithValue("EnterBIOSSetup", "false"), HaveKeyWithValue("BootDelay", "1")),
		"the setup is entered once")
	c.refused(http.MethodPost, vm+"/action/reconfigureVm",
		`<Vm `+xmlns+` name="node"><VmSpecSection Modified="true"><Firmware>bios</Firmware></VmSpecSection></Vm>`, 400,
		"BAD_REQUEST")
}

func TestHardwareSettings(t *testing.T) {
	c := start(t)
	vm := c.node("node")
	c.ok(http.MethodPut, vm+"/vmCapabilities",
		`<VmCapabilities `+xmlns+`><MemoryHotAddEnabled>true</MemoryHotAddEnabled></VmCapabilities>`)
	c.Expect(c.get(vm + "/vmCapabilities").xml.Bool("MemoryHotAddEnabled")).To(BeTrue())
	c.Expect(c.get(vm).xml.Bool("VmCapabilities", "CpuHotAddEnabled")).To(BeFalse())

	c.ok(http.MethodPost, vm+"/action/enableNestedHypervisor", "")
	c.Expect(c.get(vm).xml.Attr("nestedHypervisorEnabled")).To(Equal("true"))

	c.sim.Edit(func(e *vcdsim.Editor) { e.VM("node").HardwareVersion = "vmx-14" })
	c.ok(http.MethodPost, vm+"/action/upgradeHardwareVersion", "")
	c.Expect(c.state("node").HardwareVersion).To(Equal("vmx-19"))
	c.refused(http.MethodPost, vm+"/action/reconfigureVm",
		`<Vm `+xmlns+` name="node"><VmSpecSection Modified="true"><HardwareVersion>vmx-15</HardwareVersion></VmSpecSection></Vm>`, 400, "BAD_REQUEST")

	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.refused(http.MethodPost, vm+"/action/disableNestedHypervisor", "", 400, "BAD_REQUEST")
}

func TestOldOperatingSystemsAreSupported(t *testing.T) {
	c := start(t)
	version := c.get(c.vdc()).xml.At("Capabilities", "SupportedHardwareVersions").Children[0].Attr("href")
	var systems []string
	for _, family := range c.get(version).xml.At("supportedOperatingSystems").Children {
		for _, system := range family.All("OperatingSystem") {
			systems = append(systems, system.Str("InternalName"))
		}
	}
	c.Expect(systems).To(ContainElements("rhel4Guest", "ubuntu64Guest"))
}

func TestProductSections(t *testing.T) {
	c := start(t)
	vm := c.node("node")
	vapp := "/api/vApp/vapp-" + c.state("node").VAppID
	section := `<ProductSectionList ` + xmlns +
		` xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"><ovf:ProductSection><ovf:Info>x</ovf:Info>` +
		`<ovf:Property ovf:key="role" ovf:type="string" ovf:userConfigurable="true" ovf:value="none"><ovf:Label>Its role</ovf:Label><ovf:Value ovf:value="worker"/></ovf:Property>` +
		`</ovf:ProductSection></ProductSectionList>`
	for _, path := range []string{vm, vapp} {
		c.ok(http.MethodPut, path+"/productSections", section)
		p := c.get(path+"/productSections").xml.At("ProductSection", "Property")
		c.Expect([]string{
			p.Attr("key"),
			p.Attr("value"),
			p.At("Value").Attr("value"),
			p.Str("Label"),
			p.Attr("userConfigurable"),
		}).
			To(Equal([]string{"role", "none", "worker", "Its role", "true"}))
		c.Expect(c.get(path).xml.At("ProductSection", "Property").Attr("key")).To(Equal("role"))
		c.refused(http.MethodPut, path+"/productSections", strings.Replace(section, `ovf:key="role"`, "", 1), 400,
			"BAD_REQUEST")
		c.ok(http.MethodPut, path+"/productSections", `<ProductSectionList `+xmlns+`/>`)
		c.Expect(c.get(path + "/productSections").xml.At("ProductSection")).To(BeNil())
	}
}
